"""PyTorch for the modules that need it, with an error that says what to install."""

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError as error:
    raise ImportError(
        "this part of d2lmini needs PyTorch: pip install torch (for a CPU-only build on Linux see "
        "pytorch.org/get-started); everything that takes NumPy arrays works without it",
        name=error.name,
    ) from error

import array_api_compat.torch as xp

__all__ = ["Tensor", "functional", "nn", "torch", "xp"]
