"""The attention of any PyTorch model, recorded while it runs, or taken out head by head."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from d2lmini._checks import whole_number
from d2lmini._torch import nn
from d2lmini._watch import Watch
from d2lmini.record import AttentionRecord

__all__ = ["record_attention"]


@contextmanager
def record_attention(
    model: nn.Module | None = None,
    *,
    without: Mapping[str, Sequence[int]] | None = None,
    keep: str | Sequence[str] | None = None,
) -> Iterator[AttentionRecord]:
    r"""Record the attention weights of a PyTorch model, whichever kernel it uses.

    .. math:: W = \operatorname{softmax}(s\, Q K^\top + B)

    of each call of ``scaled_dot_product_attention`` or ``multi_head_attention_forward`` in the
    block, with the Q, K, mask or bias B and scale s of that call. The model is not changed, and
    returns what it returns outside, bit for bit.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Only its calls are recorded. Without it all calls in the block are, and a module is named
        as within the outermost module that is called.
    without : dict of str to sequence of int, optional
        Heads to take out, from 0, for each name of a module: they give nothing to its output
        (their weights are recorded all the same).
    keep : str or sequence of str, optional
        Names of the modules to record, or patterns such as ``"layers.?.*"``. Weights take
        batch × heads × n × m numbers for each call: this is how to bound them.

    Yields
    ------
    AttentionRecord
        It grows with each call. It is complete after the block, where ``print(record)`` tells what
        was seen, and what was not.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If a name is not in the model, no attention ran in a module that `without` names, or it has
        no such head.

    Notes
    -----
    Weights are those before dropout, detached, on the device of the model, and in float32 even if
    the model computes in 16 bits. Each thread records its own calls only. Where a
    `torch.nn.TransformerEncoder` takes its fast path, the path that can be seen runs beside it.
    What ``torch.compile`` has compiled runs, in all threads, uncompiled until the block ends.

    Not seen: kernels that are called directly (such as those of the package ``flash_attn``), flex
    attention, code that is compiled within the block, and attention that is written as two matrix
    products. The record says where it met one of them, and, for a model of transformers (with
    ``attn_implementation="eager"``), what to do.

    References
    ----------
    The output without a head is that of Michel et al., "Are sixteen heads really better than one?",
    2019, with the head's variable at 0.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, nhead=2, batch_first=True)
    >>> model = torch.nn.TransformerEncoder(layer, num_layers=3, enable_nested_tensor=False).eval()
    >>> with record_attention(model) as record:
    ...     output = model(torch.zeros(1, 5, 8))
    >>> record.names
    ['layers.0.self_attn', 'layers.1.self_attn', 'layers.2.self_attn']
    >>> record["layers.2.self_attn"].weights.shape
    torch.Size([1, 2, 5, 5])
    >>> record.stack().shape                                   # (layers, heads, n, m)
    torch.Size([3, 2, 5, 5])
    """
    if not (model is None or isinstance(model, nn.Module)):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    patterns = None if keep is None else (keep,) if isinstance(keep, str) else tuple(keep)
    names = [] if model is None else [name for name, _ in model.named_modules()]
    for pattern in patterns or ():
        if names and not fnmatch.filter(names, pattern):
            raise ValueError(f"keep: no module of the model fits {pattern!r}; see named_modules()")
    heads = _heads_of(model, without)
    watch = Watch(model, heads, patterns)
    with watch:
        yield watch.record
    if missed := heads.keys() - watch.seen:
        raise ValueError(
            f"without: no attention ran in {min(missed)!r}; it ran in "
            + (", ".join(map(repr, sorted(watch.seen)[:3])) or "no module")
        )


def _heads_of(
    model: nn.Module | None, without: Mapping[str, Sequence[int]] | None
) -> dict[str, list[int]]:
    """Return the heads to take out, checked as far as the model knows before it runs."""
    if without is None:
        return {}
    if not isinstance(without, Mapping):
        raise TypeError(
            "without must map the name of a module to its heads, as {'layers.0.self_attn': [3]}; "
            f"got {type(without).__name__}"
        )
    if model is None:
        raise ValueError("without needs the model: record_attention(model, without=...)")
    names = {name for name, _ in model.named_modules()}
    for name in without:
        if name not in names:
            raise ValueError(
                f"without: the model has no module {name!r}; record it once, and take a name from "
                "record.names"
            )
        if not isinstance(without[name], Sequence):
            given = type(without[name]).__name__
            raise TypeError(f"without[{name!r}] must be a list of heads, such as [3]; got {given}")
    return {
        name: [whole_number(f"without[{name!r}]", head, at_least=0) for head in heads]
        for name, heads in without.items()
    }
