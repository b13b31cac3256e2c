"""d2lmini: attention that reads like its formula, for NumPy and PyTorch.

>>> import numpy as np
>>> from d2lmini import attention
>>> x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])    # three tokens, two numbers each
>>> output, weights = attention(x, x, x, causal=True)     # arrays of NumPy, or tensors of PyTorch
>>> weights[2].round(2)
array([0.25, 0.25, 0.5 ])

``show_heatmaps(weights, ["the", "cat", "sat"])`` draws them, and ``record_attention(model)`` gives
those of a PyTorch model of your own. Names are loaded when they are first used (SPEC 1), so that
``import d2lmini`` needs neither PyTorch nor matplotlib. What there is stands in ``__init__.pyi``.
"""

import sys
from importlib import import_module

from d2lmini._lazy import attach

# The function, before the module of the same name can take its place as ``d2lmini.attention``.
from d2lmini.attention import attention as attention

__getattr__, __dir__, __all__ = attach(
    __name__,
    __file__,
    torch=[
        "AdditiveAttention",
        "AttentionRecord",
        "MultiHeadAttention",
        "QKVProjection",
        "RecordedAttention",
        "SelfAttention",
        "record_attention",
        "ring_attention",
        "ring_slices",
    ],
    matplotlib=["AttentionTrace", "show_attention_lines", "show_figure", "show_heatmaps"],
)
__version__ = "0.1.0"
if "ipykernel" in sys.modules and "IPython" in sys.modules:  # in a notebook
    import_module("d2lmini._folding").fold_tagged_cells()
del attach, import_module, sys
