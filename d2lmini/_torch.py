"""PyTorch for the modules that need it, with an error that says what to install."""

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError as error:
    raise ImportError(
        "this part of d2lmini needs PyTorch: pip install 'd2lmini[torch]' (for a CPU-only build on "
        "Linux see pytorch.org/get-started); everything that takes NumPy arrays works without it"
    ) from error

from d2lmini._arrays import check_real, finite_number, namespace

__all__ = ["Tensor", "check_dropout", "functional", "in_transform", "nn", "tensor_like", "torch"]


def tensor_like(name: str, x: Tensor, weight: Tensor, width: int | None = None) -> Tensor:
    """Return ``x`` of shape (..., n, width) in the dtype of a module's weights.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor of real numbers, or of another floating dtype than ``weight``.
    ValueError
        If its shape does not fit.
    """
    xp = namespace(**{name: x})
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a PyTorch tensor, got a NumPy array; convert it with "
            f"torch.as_tensor({name})"
        )
    if x.ndim < 2 or (width is not None and width != x.shape[-1]):
        raise ValueError(f"{name} must have shape (..., n, {width or 'd'}), got {tuple(x.shape)}")
    check_real(xp, name, x)
    if not x.is_floating_point():
        return x.to(weight.dtype)
    if x.dtype != weight.dtype and not _autocast(x, weight):
        raise TypeError(
            f"{name} has dtype {x.dtype}, the module's weights have {weight.dtype}; convert one "
            f"of them: {name}.to({weight.dtype}) or module.to({x.dtype})"
        )
    return x


def _autocast(*tensors: Tensor) -> bool:
    """Tell whether PyTorch will bring these to one dtype; it leaves float64 as it is."""
    kind = tensors[0].device.type
    available = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return available and all(x.dtype != torch.float64 for x in tensors)


def check_dropout(dropout: float) -> float:
    """Return ``dropout``; TypeError for another kind, ValueError unless 0 ≤ dropout ≤ 1."""
    number = finite_number("dropout", dropout)
    if not 0 <= number <= 1:
        raise ValueError(f"dropout is a probability between 0 and 1, got {number:g}")
    return number


def in_transform(*tensors: Tensor) -> bool:
    """Tell whether vmap or forward-mode derivatives are at work: no fused kernel serves them."""
    if torch.compiler.is_compiling():
        return False
    if torch.autograd.forward_ad._current_level >= 0:
        return True
    return any(torch._C._functorch.is_functorch_wrapped_tensor(x) for x in tensors)
