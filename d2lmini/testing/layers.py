"""A layer of the framework's kind as a function: its projections become the identity."""

import copy
from collections.abc import Callable
from typing import Any

__all__ = ["is_multihead", "of_multihead"]


def is_multihead(thing: Any) -> bool:
    """Tell whether something is PyTorch's layer, without importing PyTorch for it."""
    return any(
        base.__module__.startswith("torch.nn") and base.__name__ == "MultiheadAttention"
        for base in type(thing).__mro__
    )


def of_multihead(layer: Any) -> Callable[..., tuple[Any, Any]]:
    """Return what ``nn.MultiheadAttention`` does between its projections, as a function.

    Raises
    ------
    ValueError
        If keys or values have another width, or it adds keys of its own.
    """
    import torch

    width = layer.embed_dim
    if (layer.kdim, layer.vdim) != (width, width):
        raise ValueError(
            f"keys and values must be as wide as queries, {width}; got {layer.kdim}, {layer.vdim}"
        )
    if layer.bias_k is not None or layer.add_zero_attn:
        raise ValueError("add_bias_kv and add_zero_attn add keys: there is no such invariant")
    layers: dict[Any, Any] = {}

    def plain(dtype: Any) -> Any:
        """Return a copy in this precision, in use and not in training, with unit matrices."""
        if dtype not in layers:
            made = copy.deepcopy(layer).to(dtype).eval()
            with torch.no_grad():
                one = torch.eye(width, dtype=dtype)
                made.in_proj_weight.copy_(torch.cat([one] * 3))
                made.out_proj.weight.copy_(one)
                for bias in (made.in_proj_bias, made.out_proj.bias):
                    if bias is not None:
                        bias.zero_()
            layers[dtype] = made.requires_grad_(False)
        return layers[dtype]

    def attend(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        need_weights: bool = True,
        key_padding_mask: Any = None,
    ) -> Any:
        if attn_mask is not None and attn_mask.ndim > 2:  # (batch, n, m) -> (batch · heads, n, m)
            n = query.shape[1]
            full = attn_mask.expand(-1, n, -1)
            attn_mask = full.repeat_interleave(layer.num_heads, dim=0)
        arrays = [query, key, value]
        if not layer.batch_first:
            arrays = [x.transpose(0, 1) for x in arrays]
        output, weights = plain(query.dtype)(
            *arrays,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
        )
        return (output if layer.batch_first else output.transpose(0, 1)), weights

    attend.__name__ = type(layer).__name__
    return attend
