"""Pictures of attention: heatmaps, and the look of every figure in the book.

Names are loaded when they are first used, so ``import d2lmini.plotting`` does not load matplotlib.
What there is stands in ``__init__.pyi``.
"""

from typing import Any

import lazy_loader

from d2lmini.plotting.theme import needs_matplotlib

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a name, or say how to install what it needs."""
    with needs_matplotlib():
        return _load(name)
