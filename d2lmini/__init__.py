"""d2lmini: attention that reads like its formula, for NumPy and PyTorch.

Names are loaded when they are first used (SPEC 1), so that ``import d2lmini`` needs neither PyTorch
nor matplotlib. What there is stands in ``__init__.pyi``.
"""

import lazy_loader

# The function, before the module of the same name can take its place as ``d2lmini.attention``.
from d2lmini.attention import attention as attention

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
