"""What counts as an array, and of which kind: NumPy's, PyTorch's or JAX's.

The library is written once, against the array API standard, for all. ``floating`` finds out which
of them a function was given (``xp``) and turns away what cannot be computed with. What else a
public function asks of its arguments stands in ``_checks.py``; the functions whose names begin with
an underscore ask nothing, and read like their formulas.
"""

import contextlib
import sys
from typing import Any, TypeGuard

import array_api_compat
import numpy as np

from d2lmini._types import A, Array, Like

__all__ = ["A", "Array", "Like"]


def is_torch(x: object) -> TypeGuard[Array]:
    """Tell whether `x` is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")  # array_api_compat asks the same through a cache, at which
    return torch is not None and isinstance(x, torch.Tensor)  # torch.compile warns


def namespace(**arrays: Array) -> Any:
    """Return the one array namespace of all arguments.

    Raises
    ------
    TypeError
        If an argument is not an array, or if NumPy and PyTorch are mixed.
    """
    types, torch = set(map(type, arrays.values())), sys.modules.get("torch")
    xp: Any
    if types == {np.ndarray}:
        import array_api_compat.numpy as xp

        return xp
    if torch is not None and types == {torch.Tensor}:
        import array_api_compat.torch as xp

        for name, x in arrays.items():
            _check_dense(name, x)
        return xp
    found = {name: namespace_of(name, x) for name, x in arrays.items()}
    first, *others = set(found.values())
    if others:
        names = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
        kinds = [
            (name, xp.__name__.removeprefix("array_api_compat.").split(".")[0])
            for name, xp in found.items()
        ]
        listed = " and ".join(f"{name} ({names.get(kind, kind)})" for name, kind in kinds)
        raise TypeError(
            f"all arrays must be of one kind, got {listed}; convert with torch.from_numpy(x) or "
            "x.detach().numpy()"
        )
    return first


def namespace_like(like: Array | None) -> tuple[Any, Any]:
    """Return the array namespace and the device that `like` has; NumPy's if there is none."""
    if like is None:
        import array_api_compat.numpy

        return array_api_compat.numpy, "cpu"
    return namespace(like=like), device_of(like)


def device_of(x: Any) -> Any:
    """Return where an array lies; None, which is the default, for one that JAX traces."""
    return getattr(x, "device", None)


def widest(xp: Any) -> Any:
    """Return float64, or the float that JAX has unless it is told to have a wider one."""
    return xp.asarray(0.0).dtype if xp.__name__.startswith("jax") else xp.float64


def namespace_of(name: str, x: object) -> Any:
    """Return the array namespace of one argument, or raise a TypeError that names it."""
    xp: Any  # imported where needed: an import of d2lmini stays as light as that of NumPy
    if is_torch(x):
        _check_dense(name, x)
        import array_api_compat.torch as xp
    elif type(x) is np.ndarray or isinstance(x, np.memmap | np.generic):
        import array_api_compat.numpy as xp
    elif isinstance(x, np.ndarray) or not array_api_compat.is_array_api_obj(x):
        # np.matrix and np.ma are arrays whose + and @ do not mean what the standard says
        way_out = "convert it with np.asarray(x) or torch.as_tensor(x)"
        if isinstance(x, np.ma.MaskedArray):
            way_out = "pass x.data, and what may be attended as mask="
        raise TypeError(
            f"{name} must be a NumPy array or a PyTorch tensor, got {type(x).__name__}; {way_out}"
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
    dtypes = {x.dtype for x in values}
    if len(dtypes) == 1 and _is_floating(xp, *dtypes):
        return (xp, *values)
    for i, (name, x) in enumerate(arrays.items()):
        check_real(xp, name, x)
        if not _is_floating(xp, x.dtype):
            values[i] = xp.astype(x, xp.asarray(0.0).dtype)
    common = xp.result_type(*(x.dtype for x in values))
    return (xp, *(xp.astype(x, common, copy=False) for x in values))


def _is_floating(xp: Any, dtype: Any) -> bool:
    """Tell whether one can compute with a dtype as it is: a float of two bytes or more."""
    if dtype in (xp.float32, xp.float64):  # without asking the slow way
        return True
    return getattr(dtype, "itemsize", 8) > 1 and is_kind(xp, dtype, "real floating")


def check_real(xp: Any, name: str, x: Array) -> None:
    """Raise TypeError unless ``x`` holds real numbers: floats, integers or booleans."""
    dtype = x.dtype
    if _is_floating(xp, dtype) or is_kind(xp, dtype, ("bool", "integral")):
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


def is_compiling(x: Array) -> bool:
    """Tell whether `x` stands for a tensor whose numbers PyTorch, as it compiles, does not know."""
    return is_torch(x) and bool(sys.modules["torch"].compiler.is_compiling())


def in_transform(*arrays: Array) -> bool:
    """Tell whether PyTorch maps one of these (vmap) or takes derivatives along with it (jvp)."""
    torch = sys.modules["torch"]
    if torch.autograd.forward_ad._current_level >= 0:
        return True
    return any(map(torch._C._functorch.is_functorch_wrapped_tensor, arrays))


def on_one_batch(xp: Any, *arrays: Array) -> tuple[Array, ...]:
    """Broadcast the leading axes, all but the last two; that takes no memory."""
    shapes = [tuple(x.shape[:-2]) for x in arrays]
    if all(shape == shapes[0] for shape in shapes):
        return arrays
    batch: tuple[int, ...] = np.broadcast_shapes(*shapes)
    return tuple(
        x if shape == batch else xp.broadcast_to(x, (*batch, *x.shape[-2:]))
        for x, shape in zip(arrays, shapes, strict=True)
    )


def widened(xp: Any, *arrays: A) -> tuple[A, ...]:
    """Return arrays of four bytes or more: a sum over many keys needs them."""
    return tuple(xp.astype(x, xp.float32) if x.dtype.itemsize < 4 else x for x in arrays)


def values_if_known(x: Array) -> Any:
    """Return the numbers of `x` as Python's; None while PyTorch compiles, maps or only measures."""
    if is_compiling(x):
        return None
    try:
        return x.tolist()
    except RuntimeError:  # in vmap, and on the meta device
        return None


def nearest_in_dtype(xp: Any, number: float, dtype: Any) -> float:
    """Return the positive number of a floating dtype that is nearest to a positive number."""
    info = xp.finfo(dtype)
    smallest, largest = float(info.smallest_normal) * float(info.eps), float(info.max)
    return min(max(number, smallest), largest)


def rounding_ignored(
    x: Array, *, invalid: bool = False
) -> contextlib.AbstractContextManager[object]:
    """Let NumPy round to 0 and to infinity without a warning, as PyTorch does.

    With ``invalid`` it may make NaN as well: where the numbers may be those of a hidden key.
    """
    if is_torch(x):
        return contextlib.nullcontext()
    return np.errstate(over="ignore", under="ignore", invalid="ignore" if invalid else None)
