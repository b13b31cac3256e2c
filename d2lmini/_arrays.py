"""What every function of the core asks of its arrays, checked at the door.

The core is written once, against the array API standard, for NumPy and PyTorch alike. ``floating``
finds out which of the two it has been given (``xp``) and turns away what it cannot compute with, so
that the functions themselves can read like their formulas.
"""

import contextlib
import math
import numbers
import operator
import sys
from types import ModuleType
from typing import Any, TypeAlias, TypeGuard

import array_api_compat
import numpy as np

Array: TypeAlias = Any  # a numpy.ndarray or a torch.Tensor: the result is of the kind that came in


def is_torch(x: object) -> TypeGuard[Array]:
    """Tell whether `x` is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")  # array_api_compat asks the same through a cache, at which
    return torch is not None and isinstance(x, torch.Tensor)  # torch.compile warns


def namespace(**arrays: Array) -> ModuleType:
    """Return the one array namespace of all arguments.

    Raises
    ------
    TypeError
        If an argument is not an array, or if NumPy and PyTorch are mixed.
    """
    found = {name: _namespace_of(name, x) for name, x in arrays.items()}
    xp, *others = found.values()
    if any(other is not xp for other in others):
        kinds = " and ".join(f"{name} ({_kind(xp)})" for name, xp in found.items())
        raise TypeError(
            f"all arrays must be of one kind, got {kinds}; convert with torch.from_numpy(x) or "
            "x.detach().numpy()"
        )
    return xp


def _namespace_of(name: str, x: object) -> ModuleType:
    xp: ModuleType  # imported where needed: an import of d2lmini stays as light as that of NumPy
    if is_torch(x):
        _check_dense(name, x)
        import array_api_compat.torch as xp
    elif type(x) is np.ndarray or isinstance(x, np.memmap | np.generic):
        import array_api_compat.numpy as xp
    elif isinstance(x, np.ndarray) or not array_api_compat.is_array_api_obj(x):
        # np.matrix and np.ma are arrays whose + and @ do not mean what the standard says
        raise TypeError(
            f"{name} must be a NumPy array or a PyTorch tensor, got {type(x).__name__}; "
            f"{_way_out(x)}"
        )
    else:
        xp = array_api_compat.array_namespace(x)
    return xp


def _check_dense(name: str, x: Array) -> None:
    """Raise TypeError for a tensor that is no plain table of numbers."""
    torch = sys.modules["torch"]
    if x.layout is torch.strided and not (x.is_nested or x.is_quantized):
        return
    if x.is_nested:
        kind, way_out = "nested", "x.to_padded_tensor(0.0), with padding_mask(lengths, m) as mask"
    elif x.is_quantized:
        kind, way_out = "quantized", "x.dequantize()"
    else:
        kind, way_out = "sparse or opaque", "x.to_dense()"
    raise TypeError(f"{name} must be a dense tensor, got a {kind} one; give {way_out}")


def _kind(xp: ModuleType) -> str:
    return {"numpy": "NumPy", "torch": "PyTorch"}.get(xp.__name__.split(".")[-1], xp.__name__)


def _way_out(x: object) -> str:
    if isinstance(x, np.ma.MaskedArray):
        return "pass x.data, and what may be attended as mask="
    return "convert it with np.asarray(x) or torch.as_tensor(x)"


def floating(**arrays: Array) -> tuple[Any, ...]:
    """Return ``xp`` and the arrays, all of one real floating dtype.

    Integers and booleans become the namespace's default float (float64 in NumPy, float32 in
    PyTorch); where two floating dtypes meet, the wider one is used.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or if NumPy and PyTorch are mixed.
    """
    xp = namespace(**arrays)
    values = list(arrays.values())
    first = values[0].dtype
    if all(x.dtype == first for x in values) and is_floating(xp, first):
        return (xp, *values)
    for i, (name, x) in enumerate(arrays.items()):
        check_real(xp, name, x)
        if not is_floating(xp, x.dtype):
            values[i] = xp.astype(x, xp.asarray(0.0).dtype)
    common = xp.result_type(*(x.dtype for x in values))
    return (xp, *(xp.astype(x, common, copy=False) for x in values))


def is_floating(xp: Any, dtype: Any) -> bool:
    """Tell whether one can compute with a dtype as it is: a float of two bytes or more."""
    return getattr(dtype, "itemsize", 8) > 1 and is_kind(xp, dtype, "real floating")


def check_real(xp: Any, name: str, x: Array) -> None:
    """Raise TypeError unless ``x`` holds real numbers: floats, integers or booleans."""
    dtype = x.dtype
    if is_floating(xp, dtype) or is_kind(xp, dtype, ("bool", "integral")):
        return
    if is_kind(xp, dtype, "real floating"):  # float8 and float4 are for storage
        raise TypeError(f"{name} has dtype {dtype}, which only stores; give {name}.float()")
    way_out = ""
    if is_kind(xp, dtype, "complex floating"):
        way_out = f"; give {name}.real or abs({name})"
    elif str(dtype) == "object":
        way_out = f"; give {name}.astype(float)"
    raise TypeError(f"{name} must hold real numbers, got {dtype}{way_out}")


def is_kind(xp: Any, dtype: Any, kind: str | tuple[str, ...]) -> bool:
    """Tell whether a dtype is of one of the array API's kinds."""
    try:
        return bool(xp.isdtype(dtype, kind))
    except TypeError:  # NumPy's StringDType, of which it has not heard itself
        return False


def check_boolean(xp: Any, mask: Array, name: str = "mask") -> None:
    """Raise TypeError unless ``mask`` is boolean."""
    if mask.dtype != xp.bool:
        raise TypeError(
            f"{name} must be boolean (True = may attend), got {mask.dtype}; "
            f"write a 0/1 mask as {name} != 0, an additive one as {name} == 0"
        )


def check_mask(xp: Any, mask: Array, scores_shape: tuple[int, ...]) -> None:
    """Raise unless ``mask`` is boolean and broadcasts to scores of shape ``(..., n, m)``."""
    check_boolean(xp, mask)
    if not broadcasts_to(mask, scores_shape):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to scores of shape "
            f"{scores_shape}{_padding_hint(scores_shape)}"
        )


def broadcasts_to(x: Array, shape: tuple[int, ...]) -> bool:
    """Tell whether each axis of `x`, counted from the last, is 1 or that of `shape`."""
    own = tuple(x.shape)
    pairs = zip(reversed(own), reversed(shape), strict=False)
    return len(own) <= len(shape) and all(a == 1 or a == b for a, b in pairs)


def _padding_hint(scores_shape: tuple[int, ...]) -> str:
    if len(scores_shape) < 3:
        return "; a mask is (queries, keys), True where a query may attend to a key"
    return (
        f"; for per-sequence lengths use padding_mask(lengths, {scores_shape[-1]}), "
        f"which has shape (batch, 1, {scores_shape[-1]})"
    )


def check_rank(name: str, x: Array, axes: str = "(..., n, d)") -> None:
    """Raise ValueError unless ``x`` has at least the two axes of a table of vectors."""
    if x.ndim < 2:
        raise ValueError(
            f"{name} must have at least 2 axes {axes}, got shape {tuple(x.shape)}; "
            f"for a single vector use {name}[None, :]"
        )


def check_batch(**arrays: Array) -> None:
    """Raise ValueError unless the leading axes (all but the last two) broadcast together."""
    shapes = [tuple(x.shape) for x in arrays.values()]
    if all(s[:-2] == shapes[0][:-2] for s in shapes):
        return
    try:
        np.broadcast_shapes(*(s[:-2] for s in shapes))
    except ValueError:
        listed = " and ".join(f"{n} {s}" for n, s in zip(arrays, shapes, strict=True))
        raise ValueError(
            f"the leading (batch) axes do not broadcast: {listed}; all axes but the last two "
            "must be equal or 1"
        ) from None


def whole_number(name: str, value: Any, *, at_least: int) -> int:
    """Return ``value`` as an int; TypeError for another kind, ValueError if it is too small."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    try:
        number = value if _is_int(value) else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}") from None
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {number}")
    return number


def _is_int(value: object) -> TypeGuard[int]:
    """Tell whether a number is an int, or a size that PyTorch, as it exports, leaves open."""
    torch = sys.modules.get("torch")
    return isinstance(value, int) or (torch is not None and isinstance(value, torch.SymInt))


def finite_number(name: str, value: Any) -> float:
    """Return ``value`` as a float; TypeError unless it is one real number, ValueError for inf."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not -math.inf < number < math.inf:  # False for NaN too
        raise ValueError(f"{name} must be finite, got {number:g}")
    return number


def positive_number(name: str, value: Any) -> float:
    """Return ``value`` as a float; TypeError for another kind, ValueError unless 0 < value < ∞."""
    number = finite_number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number:g}")
    return number


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")


def fitting(xp: Any, number: float, dtype: Any) -> float:
    """Return a positive number, or the nearest one that a floating dtype holds."""
    info = xp.finfo(dtype)
    smallest, largest = float(info.smallest_normal) * float(info.eps), float(info.max)
    return min(max(number, smallest), largest)


def quiet(x: Array, *, invalid: bool = False) -> contextlib.AbstractContextManager[object]:
    """Let NumPy round to 0 and to infinity without a word, as PyTorch does.

    With ``invalid`` it may also make NaN: where the numbers may be those of a hidden key.
    """
    if is_torch(x):
        return contextlib.nullcontext()
    return np.errstate(over="ignore", under="ignore", invalid="ignore" if invalid else None)
