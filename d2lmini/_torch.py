"""PyTorch for the modules that need it, with an error that says what to install."""

from d2lmini._lazy import WHAT_TO_INSTALL

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError as error:
    raise ImportError(WHAT_TO_INSTALL["torch"], name=error.name) from error

import array_api_compat.torch as xp

__all__ = ["Tensor", "functional", "nn", "torch", "xp"]
