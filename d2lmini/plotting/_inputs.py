"""What ``show_heatmaps`` is given, checked at the door and brought into one form."""

import math
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from d2lmini.plotting._legible import ISOLATES, legible

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

SCALE_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 1.0)  # where a scale of weights may end
MAX_PANELS = 512
LARGEST = 1e300  # beyond, differences of two numbers overflow


class RowSumWarning(UserWarning):
    """Weights were drawn whose rows do not sum to 1."""


def read_matrices(matrices: Any, name: str = "matrices") -> tuple[Floats, Bools]:
    """Return the values, (rows, columns, queries, keys), and where they are visible numbers."""
    array = to_numpy(matrices, name)
    values = _to_float(array, name)
    if values.ndim not in (2, 3, 4):
        more = values.ndim > 4
        raise ValueError(
            f"{name} must have shape (rows, columns, queries, keys), (columns, queries, keys) or "
            f"(queries, keys); got {values.ndim}-D of shape {values.shape}; give "
            + (f"a part, such as {name}[0]" if more else "x.reshape(1, 1, queries, keys)")
        )
    if 0 in values.shape:
        raise ValueError(
            f"{name} must have at least one panel, one query and one key; got shape {values.shape}"
        )
    if np.isposinf(values).any():
        where = tuple(int(i) for i in np.argwhere(np.isposinf(values))[0])
        raise ValueError(f"{name} has +inf at {where}; only -inf and NaN count as masked")
    values = values.reshape((1,) * (4 - values.ndim) + values.shape)
    if values.shape[0] * values.shape[1] > MAX_PANELS:
        raise ValueError(
            f"{name} has {values.shape[0]} x {values.shape[1]} panels, more than {MAX_PANELS} "
            f"cannot be told apart; show a part, such as {name}[:8, :8]"
        )
    visible = np.isfinite(values) & ~np.ma.getmaskarray(array).reshape(values.shape)
    values[~visible] = np.nan  # whatever a masked cell holds
    largest = abs(values).max(initial=0.0, where=visible)
    if largest > LARGEST:
        raise ValueError(
            f"{name} has numbers as large as {largest:.3g}; at most {LARGEST:g} can be drawn; "
            "mark masked cells by -inf, NaN or a mask"
        )
    return values, visible


def to_numpy(x: Any, name: str) -> Any:
    """Return an array, a tensor, or a list of them as an array of NumPy, with its mask if any."""
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        fields = ", ".join(f".{field}" for field in x._fields)
        raise TypeError(
            f"{name} is of type {type(x).__name__}, several arrays; give one of {fields}"
        )
    if hasattr(x, "detach"):  # a torch tensor, with or without gradients, on any device
        x = x.detach().cpu()
        return x.double().numpy() if x.is_floating_point() else x.numpy()  # NumPy has no bfloat16
    if isinstance(x, list | tuple):
        rows = [to_numpy(row, name) for row in x]
        shapes = sorted({np.shape(row) for row in rows})
        if len(shapes) > 1:
            raise ValueError(
                f"{name}: all parts of a list must have one shape; got {shapes[0]} and "
                f"{shapes[-1]}; show them one by one (the steps of a generation: record.joined())"
            )
        return np.ma.stack(rows) if any(map(np.ma.isMaskedArray, rows)) else np.array(rows)
    return np.asanyarray(x)


def _to_float(array: Any, name: str) -> Floats:
    if array.dtype.kind not in "OSUcmMT":
        try:
            floats: Floats = np.array(np.ma.getdata(array), dtype=np.float64)
            return floats
        except (TypeError, ValueError):
            pass
    raise TypeError(f"{name} must hold real numbers; got {array.dtype}")


def read_mask(mask: Any, shape: tuple[int, ...], name: str = "matrices") -> Bools:
    """Return True where a query may attend, for every panel."""
    if mask is None:
        return np.ones(shape, dtype=bool)
    queries, keys = shape[-2:]
    if isinstance(mask, str):
        if mask != "causal":
            raise ValueError(f"mask must be a boolean array or 'causal'; got {mask!r}")
        mask = np.tri(queries, keys, keys - queries, dtype=bool)  # the last query sees every key
    array = to_numpy(mask, "mask")
    if array.dtype != np.bool_:
        raise TypeError(f"mask must be boolean, True = may attend; got {array.dtype}")
    try:
        return np.broadcast_to(np.ma.getdata(array), shape)
    except ValueError:
        raise ValueError(
            f"mask of shape {array.shape} does not broadcast to {name} of shape {shape}; "
            f"one mask for all panels has shape {(queries, keys)}"
        ) from None


def looks_like_weights(seen: Floats) -> bool:
    """Say whether all numbers lie within 0 and 1, and not all are 0 or 1.

    >>> looks_like_weights(np.array([0.2, 0.9])), looks_like_weights(np.array([0.0, 1.0]))
    (True, False)
    """
    inside = bool(((seen > -1e-6) & (seen < 1.005)).all())
    return inside and not bool(np.isin(seen, (0.0, 1.0)).all())


def warn_of_sums(values: Floats, visible: Bools, name: str, tolerance: float = 0.01) -> None:
    """Warn of the first row of weights that sums to neither 1 nor 0; masked cells count nothing."""
    sums = np.where(visible, values, 0.0).sum(axis=-1)
    wrong = np.argwhere((abs(sums - 1) > tolerance) & (abs(sums) > 0.01))
    if wrong.size:
        *panel, row = (int(i) for i in wrong[0])
        of = f" of panel {tuple(panel)}" if sums.size > sums.shape[-1] else ""
        warnings.warn(
            f"{name}: row {row}{of} sums to {sums[tuple(wrong[0])]:.3g}, not to 1; "
            "it is drawn as it is (if these are no weights, turn this off: "
            'warnings.simplefilter("ignore", RowSumWarning))',
            RowSumWarning,
            stacklevel=3,
        )


def scale_limits(
    seen: Floats, vmin: float | None = None, vmax: float | None = None
) -> tuple[float, float]:
    """Return where the one colour scale of all panels begins and ends.

    0 to 1 for weights, or to the next of .01 .02 .05 .1 .2 where all are small; symmetric about 0
    for signed numbers; 0 to the largest otherwise.
    """
    low = float(seen.min(initial=0.0))
    high = float(seen.max(initial=0.0))
    rounding = 1.005  # half a per cent: bfloat16 keeps 8 bits
    if low < -1e-6:
        high = max(high, -low)
        low = -high
    elif high == 0.0:
        low, high = 0.0, 1.0
    else:
        low, high = 0.0, next((end for end in SCALE_ENDS if high <= end * rounding), high)
    low = low if vmin is None else _finite(vmin, "vmin")
    high = high if vmax is None else _finite(vmax, "vmax")
    if low >= high:
        raise ValueError(
            f"vmin must be below vmax; the scale would go from {low:g} to {high:g}"
            + ("" if vmin is not None and vmax is not None else "; give both vmin and vmax")
        )
    return low, high


def _finite(number: Any, name: str) -> float:
    try:
        value = float(number)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number; got {type(number).__name__}") from None
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite; got {value}")
    return value


def read_size(figsize: Any) -> tuple[float, float] | None:
    """Return (width, height) in inches."""
    if figsize is None:
        return None
    if not isinstance(figsize, list | tuple | np.ndarray):
        raise TypeError(f"figsize must be (width, height); got {type(figsize).__name__}")
    if len(figsize) != 2:
        raise ValueError(f"figsize must be 2 numbers, (width, height); got {len(figsize)}")
    width, height = _finite(figsize[0], "figsize"), _finite(figsize[1], "figsize")
    if not (0 < width <= 100 and 0 < height <= 100):
        raise ValueError(f"figsize must lie between 0 and 100 inches; got ({width:g}, {height:g})")
    return width, height


def read_tokens(labels: Any, count: int, name: str, what: str) -> list[str] | None:
    """Return one tick label per query or key, with spaces at the ends made visible."""
    if labels is None:
        return None
    tokens = [visible_token(str(token)) for token in _listed(labels, name)]
    if len(tokens) != count:
        raise ValueError(
            f"{name}: got {len(tokens)} {what} {_plural('label', len(tokens))} for {count} "
            f"{_plural(what, count)}; give one label for each {what}"
        )
    return tokens


def read_sides(
    queries: Any, keys: Any, counts: tuple[int, int], names: tuple[str, str] = ("queries", "keys")
) -> tuple[list[str] | None, list[str] | None]:
    """Return the labels of queries and keys; whoever exchanges them is told so."""
    left = None if queries is None else _listed(queries, names[0])
    right = None if keys is None else _listed(keys, names[1])
    if left and right and (len(right), len(left)) == counts != (len(left), len(right)):
        raise ValueError(
            f"{names[0]} and {names[1]} are exchanged: there are {counts[0]} queries (rows) and "
            f"{counts[1]} keys (columns)"
        )
    return (
        read_tokens(left, counts[0], names[0], "query"),
        read_tokens(right, counts[1], names[1], "key"),
    )


def visible_token(token: str) -> str:
    r"""Show the spaces around a token, and its tabs and line breaks.

    >>> visible_token(" the"), visible_token("\n")
    ('␣the', '⏎')
    """
    token = token.replace("\r\n", "⏎").replace("\n", "⏎").replace("\t", "⇥")
    token = legible(token)
    core = token.strip(" ")
    if not core:
        return "␣" * len(token)
    start = token.index(core)
    return "␣" * start + core + "␣" * (len(token) - start - len(core))


def read_titles(titles: Any, rows: int, columns: int) -> list[list[str]]:
    """Return one title per panel, "" where there is none."""
    empty = [[""] * columns for _ in range(rows)]
    if titles is None:
        return empty
    given = _listed(titles, "titles")
    if given and all(isinstance(row, list | tuple) for row in given):
        nested = [[_title(title) for title in row] for row in given]
        if len(nested) != rows:
            raise ValueError(
                f"titles has {len(nested)} {_plural('row', len(nested))} "
                f"for {rows} {_plural('row', rows)} of panels"
            )
        for i, row in enumerate(nested):
            if len(row) != columns:
                raise ValueError(
                    f"titles[{i}] has {len(row)} {_plural('title', len(row))} "
                    f"for {columns} {_plural('column', columns)} of panels"
                )
        return nested
    flat = [_title(title) for title in given]
    if len(flat) == columns:
        return [flat, *empty[1:]]
    if len(flat) == rows * columns:
        return [flat[i * columns : (i + 1) * columns] for i in range(rows)]
    per_panel = f" or {rows * columns} (one per panel)" if rows > 1 else ""
    raise ValueError(
        f"titles has {len(flat)} {_plural('entry', len(flat))}; "
        f"give {columns} (one per column){per_panel}"
    )


def read_row_titles(row_titles: Any, rows: int) -> list[str]:
    """Return one title per row of panels, or none at all."""
    if row_titles is None:
        return []
    flat = [_title(title) for title in _listed(row_titles, "row_titles")]
    if len(flat) != rows:
        raise ValueError(
            f"row_titles has {len(flat)} {_plural('entry', len(flat))} "
            f"for {rows} {_plural('row', rows)} of panels"
        )
    return flat


def read_text(text: Any, name: str) -> str:
    """Return a text with nothing in it that cannot be seen."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string; got {type(text).__name__}")
    return legible(text, keep="\n")


def read_alt(alt: Any) -> str | None:
    """Return a description, or None where it is to be generated."""
    if alt is None:
        return None
    if not isinstance(alt, str):
        raise TypeError(f"alt must be a string; got {type(alt).__name__}")
    text = legible(alt, keep="\n" + ISOLATES)
    if not text.strip():
        raise ValueError("alt is empty; describe the picture, or leave it out")
    return text


def _listed(items: Any, name: str) -> list[Any]:
    if isinstance(items, str | bytes):
        raise TypeError(f"{name} must be a list of strings; got one string, {items!r}")
    if not isinstance(items, Iterable):
        raise TypeError(f"{name} must be a list of strings; got {type(items).__name__}")
    return list(items)


def _title(title: Any) -> str:
    return "" if title is None else legible(str(title), keep="\n")


def _plural(noun: str, count: int = 2) -> str:
    if count == 1:
        return noun
    return {"query": "queries", "entry": "entries"}.get(noun, noun + "s")


def read_numbers(array: Any, name: str) -> Floats:
    """Return finite numbers of any shape as float64."""
    values = _to_float(np.ma.getdata(to_numpy(array, name)), name)
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name} must be finite; got {values[where]} at {where}")
    return values
