"""PyTorch's fused kernel: the output of `attention` in less time and memory, without weights."""

import math
import sys
from typing import Any

from d2lmini._arrays import Array, in_transform, is_compiling, namespace, on_one_batch
from d2lmini.masks import _combined_mask

__all__ = ["fused_attention", "kernel_serves"]

STRIP = 256  # queries whose mask is in memory at once, where the kernel needs one


def kernel_serves(*arrays: Array | None) -> bool:
    """Tell whether the kernel takes these: not in vmap, with forward-mode derivatives, or empty."""
    given = [x for x in arrays if x is not None]
    if any(0 in x.shape for x in given):
        return False
    return is_compiling(given[0]) or not in_transform(*given)


def fused_attention(
    query: Array,  # (..., n, d)
    key: Array,  # (..., m, d)
    value: Array,  # (..., m, d_v)
    mask: Array | None = None,  # broadcasts to (..., n, m), as the bias does
    causal: bool = False,
    scale: float | None = None,
    bias: Array | None = None,
    dropout: float = 0.0,
) -> Array:
    """Return the output of `attention`, in the forms in which the kernel keeps no weights.

    Its own ``is_causal`` hides what comes later without a mask in memory, but aligns the first
    query with the first key: with fewer queries than keys a mask has to say so.
    """
    torch = sys.modules["torch"]
    query, key, value = on_one_batch(namespace(query=query), query, key, value)
    *batch, n, d = query.shape
    m, d_v = value.shape[-2:]
    width = max(d, d_v)  # it saves memory for four axes and equal widths only
    q, k, v = (_four_axes(_padded(x, width)) for x in (query, key, value))
    mask, bias = (_four_axes_that_broadcast(x, batch) for x in (mask, bias))
    options = {"scale": 1 / math.sqrt(d) if scale is None else scale, "dropout_p": dropout}
    attend = torch.nn.functional.scaled_dot_product_attention
    if causal and mask is None and bias is None and _are_equal(n, m):
        output = attend(q, k, v, is_causal=True, **options)
    elif not causal or n == 1 or is_compiling(q):  # its own loop would fix a size that is open
        mask = _combined_mask(mask, n, m, causal=causal, like=q)
        output = attend(q, k, v, attn_mask=_joined(mask, bias), **options)
    else:  # a mask of all queries takes n × m
        blind = max(n - m, 0)
        pieces = [v.new_zeros((*q.shape[:-2], blind, width))]
        for top in range(blind, n, STRIP):
            rows, seen = slice(top, min(top + STRIP, n)), min(top + STRIP, n) + m - n
            own = _combined_mask(_cut(mask, rows, seen), rows.stop - top, seen, causal=True, like=q)
            own = _joined(own, _cut(bias, rows, seen))
            pieces.append(
                attend(q[..., rows, :], k[..., :seen, :], v[..., :seen, :], own, **options)
            )
        output = torch.cat(pieces, dim=-2)
    return output[..., :d_v].reshape((*batch, n, d_v))


def _padded(x: Array, width: int) -> Array:
    """Append components of 0, which change no score and no sum."""
    missing = width - x.shape[-1]
    return sys.modules["torch"].nn.functional.pad(x, (0, missing)) if missing else x


def _four_axes(x: Array) -> Array:
    """Make (items, heads, n, d) of any number of leading axes."""
    while x.ndim < 4:
        x = x[None]
    return x.reshape((-1, *x.shape[-3:])) if x.ndim > 4 else x


def _four_axes_that_broadcast(x: Array | None, batch: list[int]) -> Array | None:
    """Do the same with a mask or a bias, as small as it is wherever that is possible."""
    if x is None:
        return None
    while x.ndim < 4:
        x = x[None]
    if len(batch) > 2 and not all(length == 1 for length in x.shape[:-3]):
        x = x.expand((*batch, *x.shape[-2:]))
    return _four_axes(x)


def _cut(x: Array | None, rows: slice, seen: int) -> Array | None:
    """Return what a mask or a bias says of some queries and the keys that they may see."""
    if x is None:
        return None
    x = x[..., rows, :] if x.shape[-2] > 1 else x
    return x[..., :seen] if x.shape[-1] > 1 else x


def _joined(mask: Array | None, bias: Array | None) -> Array | None:
    """Return what the kernel takes: a boolean mask, or numbers that are added to the scores."""
    if mask is None or bias is None:
        return mask if bias is None else bias
    return sys.modules["torch"].where(mask, bias, -math.inf)


def _are_equal(n: Any, m: Any) -> bool:
    """Tell whether two sizes are equal; where PyTorch leaves them open, whether they must be."""
    torch = sys.modules["torch"]
    if isinstance(n, int) and isinstance(m, int):
        return n == m
    return bool(torch.fx.experimental.symbolic_shapes.statically_known_true(n == m))
