"""Attention over a sequence that several processes hold together (chapter 8).

Each process (a *rank*) holds some of the tokens. Keys and values travel round a ring, and what each
rank has seen of them is merged as the tiles of `tiled_attention` are. The messages are sent by
``torch.distributed``; without them, in one process, it is ``_ring_attention``.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from d2lmini._arrays import floating
from d2lmini._checks import (
    check_batch,
    check_flag,
    check_one_value_for_each_key,
    check_same_length,
    check_tables,
    divided_evenly,
    whole_number,
)
from d2lmini._torch import Tensor, torch, xp
from d2lmini.masks import _no_later_key
from d2lmini.scores import _scale_that_fits
from d2lmini.tiled import Part, _finished, _merged, _nothing, _part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from torch.distributed import ProcessGroup

__all__ = ["ring_attention", "ring_slices"]

distributed = torch.distributed

TILE = 2**18  # scores of all heads that are in memory at once
COLUMNS = 512  # keys of a message


def _ring_attention(
    query: Tensor, key: Tensor, value: Tensor, slices: Sequence[Any], causal: bool, scale: float
) -> list[Tensor]:
    """Do in one process what the ranks do together: each meets the keys of all, in turn."""
    outputs = []
    for rank, own in enumerate(slices):
        q = query[..., own, :] * scale
        seen = _nothing(xp, q, value)
        for step in range(len(slices)):
            held = slices[(rank - step) % len(slices)]  # what arrives from the rank before
            visible = torch.as_tensor(_no_later_key(own[:, None], held)) if causal else None
            part = _part(xp, q @ key[..., held, :].mT, value[..., held, :], visible)
            seen = _merged(xp, seen, part)
        outputs.append(_finished(xp, seen))
    return outputs


def ring_slices(length: int, world_size: int, *, causal: bool) -> list[NDArray[np.int64]]:
    r"""Cut a sequence for `ring_attention`, so that every rank holds as much and has as much to do.

    Without a causal mask each rank gets one stretch of the tokens. With it a token at position t
    sees t + 1 keys, so that the last rank would have nearly 2 - 1/R times the mean to do. The
    sequence is therefore cut into 2R stretches, and rank r gets two of them (a *zigzag*):

    .. math:: r \quad \text{and} \quad 2R - 1 - r

    What the first of them saves the second needs: work and memory are both even.

    Parameters
    ----------
    length : int
        L, the number of tokens.
    world_size : int
        R, the number of ranks.
    causal : bool
        Whether `ring_attention` will be causal.

    Returns
    -------
    list of integer arrays
        Entry r holds the positions of rank r's tokens, in order: ``query[..., own[r], :]``. The
        numbers of tokens differ by one at most.

    Raises
    ------
    TypeError, ValueError
        If a number is not an integer or too small, or `causal` is not a bool.

    References
    ----------
    Brandon et al., "Striped attention: faster ring attention for causal transformers", 2023, on
    uneven work; the zigzag is that of Zhu's ring-flash-attention, 2024.

    Examples
    --------
    >>> [own.tolist() for own in ring_slices(8, 2, causal=False)]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    >>> [own.tolist() for own in ring_slices(8, 2, causal=True)]
    [[0, 1, 6, 7], [2, 3, 4, 5]]
    >>> [int((own + 1).sum()) for own in ring_slices(8, 2, causal=True)]  # keys seen by each rank
    [18, 18]
    """
    length = whole_number("length", length, at_least=0)
    ranks = whole_number("world_size", world_size, at_least=1)
    check_flag("causal", causal)
    if not causal:
        return np.array_split(np.arange(length), ranks)
    pieces = np.array_split(np.arange(length), 2 * ranks)
    return [np.concatenate([pieces[r], pieces[2 * ranks - 1 - r]]) for r in range(ranks)]


def ring_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    group: ProcessGroup | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Attend over a sequence of which each rank holds a slice; all ranks call it together.

    Every rank gives its own tokens, as `ring_slices` cuts them, and gets their output: that of
    `attention` over the whole sequence. In turn each rank meets the keys and values of all others,
    which travel round. None holds more than one slice of them at a time, and no weights.

    Parameters
    ----------
    query : tensor, shape (..., h, n, d)
    key : tensor, shape (..., g, m, d)
    value : tensor, shape (..., g, m, d_v)
        This rank's slice. The lengths n and m may differ from rank to rank as they do in
        `ring_slices` (without `causal` as you like), all else may not. The heads h are a
        multiple of the key-value heads g (grouped heads); other leading axes broadcast. Without a
        head axis there is one head.
    group : torch.distributed.ProcessGroup, optional
        The ranks that take part; all unless given.
    causal : bool
        Hide later keys (see `causal_mask`: the last query of the sequence sees every key). The
        ranks then hold ``ring_slices(length, world_size, causal=True)``: two stretches each, which
        evens out the work. What they hold is not asked; only its length can be checked.
    scale : float, optional
        What the dot product is multiplied by; 1/√d unless given.

    Returns
    -------
    tensor, shape (..., h, n, d_v)
        This rank's slice of the output. Gradients travel round as well: if one rank calls
        ``backward``, all must.

    Raises
    ------
    TypeError, ValueError
        On every rank, if what one of them gave is not a tensor of real numbers, does not fit
        together, or differs from that of the others in more than the length.
    RuntimeError
        If no process group is initialised, or another rank has ended or does not answer within the
        timeout of the group (``init_process_group(timeout=...)``).

    References
    ----------
    Liu, Zaharia and Abbeel, "Ring attention with blockwise transformers for near-infinite context",
    2023.

    Examples
    --------
    In a script that ``torchrun --nproc-per-node 4 script.py`` starts, after
    ``torch.distributed.init_process_group("gloo")``::

        own = ring_slices(length, world_size, causal=True)[rank]
        output = ring_attention(query[:, own], key[:, own], value[:, own], causal=True)
    """
    ring = _Ring(group)
    error: Exception | None = None
    try:
        inputs = _Inputs(query, key, value, causal, scale)
        told = ring.tell_all(inputs.about)
    except (TypeError, ValueError) as found:
        error, told = found, ring.tell_all(f"{type(found).__name__}: {found}")
    if error is not None:
        raise error
    _check_agreement(told)
    ring.lengths = [(about["n"], about["m"]) for about in told]
    if causal:
        _check_slices(ring.lengths)
    rounds: Callable[..., Tensor] = _Rounds.apply
    return inputs.shaped(rounds(*inputs.canonical, ring, causal, inputs.scale))


class _Inputs:
    """What this rank was given, checked."""

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, causal: bool, scale: float | None
    ) -> None:
        found, query, key, value = floating(query=query, key=key, value=value)
        if found is not xp:
            raise TypeError("query, key and value must be PyTorch tensors: use torch.as_tensor(x)")
        check_flag("causal", causal)
        check_tables(query=query)  # their leading axes need not agree: heads may be grouped
        check_tables(key=key)
        check_tables(value=value)
        check_one_value_for_each_key(key, value)
        check_same_length(query, key)
        self.scale = 1 / math.sqrt(max(query.shape[-1], 1))
        if scale is not None:
            self.scale = _scale_that_fits(xp, scale, query.dtype)
        self.has_heads = max(x.ndim for x in (query, key, value)) > 2
        query, key, value = (x if x.ndim > 2 else x[None] for x in (query, key, value))
        check_batch(key=key, value=value)
        check_batch(query=query[..., :1, :, :0], key=key[..., :1, :, :0])
        batch = np.broadcast_shapes(*(tuple(x.shape[:-3]) for x in (query, key, value)))
        (groups,) = np.broadcast_shapes((key.shape[-3],), (value.shape[-3],))
        heads = groups if query.shape[-3] == 1 else query.shape[-3]
        if heads != groups:
            name = "the number of key-value heads"
            divided_evenly("the number of query heads", heads, name, max(groups, 1))
        self.shape = (*batch, heads, query.shape[-2], value.shape[-1])
        q = query.expand(*self.shape[:-1], query.shape[-1])
        k, v = (x.expand(*batch, groups, *x.shape[-2:]) for x in (key, value))
        items = math.prod(batch)
        shared = heads // groups if groups else 1
        self.canonical = (
            q.reshape(items, groups, shared, *q.shape[-2:]),
            k.reshape(items, groups, *k.shape[-2:]),
            v.reshape(items, groups, *v.shape[-2:]),
        )
        self.about = {
            "leading axes": self.shape[:-2],
            "key-value heads": groups,
            "d": q.shape[-1],
            "d_v": v.shape[-1],
            "dtype": str(q.dtype),
            "causal": bool(causal),
            "scale": self.scale,
            "requires_grad": torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)),
            "n": q.shape[-2],
            "m": k.shape[-2],
        }

    def shaped(self, output: Tensor) -> Tensor:
        """Give the output the axes of the query."""
        output = output.reshape(self.shape)
        return output if self.has_heads else output[0]


def _check_agreement(told: list[Any]) -> None:
    """Raise, on every rank the same, if a rank has failed or was given something else."""
    failed = [f"rank {rank}: {about}" for rank, about in enumerate(told) if isinstance(about, str)]
    if failed:
        raise ValueError(f"ring_attention was called wrongly on another rank; {'; '.join(failed)}")
    for name in told[0]:
        values = [about[name] for about in told]
        if name not in ("n", "m") and any(value != values[0] for value in values):
            listed = ", ".join(f"{value} on rank {rank}" for rank, value in enumerate(values))
            raise ValueError(f"the ranks must agree in {name}, and have {listed}")


def _check_slices(lengths: list[tuple[int, int]]) -> None:
    """Raise, on every rank the same, if they do not hold what `ring_slices` has cut."""
    for name, held in zip(("query", "key"), zip(*lengths, strict=True), strict=True):
        call = f"ring_slices({sum(held)}, {len(held)}, causal=True)"
        expected = [len(own) for own in ring_slices(sum(held), len(held), causal=True)]
        if list(held) != expected:
            listed = ", ".join(f"{n} on rank {rank}" for rank, n in enumerate(held))
            raise ValueError(
                f"with causal=True each rank gives the tokens that {call} names, {expected} of "
                f"them; {name} has {listed}"
            )


# The ring


class _Ring:
    """Who is next, who has how much, and messages."""

    lengths: list[tuple[int, int]]  # n and m of each rank

    def __init__(self, group: ProcessGroup | None) -> None:
        if not (distributed.is_available() and distributed.is_initialized()):
            raise RuntimeError(
                "ring_attention needs a process group, and none is initialised: start the script "
                'with torchrun and call torch.distributed.init_process_group("gloo") first'
            )
        self.group = group
        self.rank, self.size = distributed.get_rank(group), distributed.get_world_size(group)
        if self.rank < 0:
            raise ValueError("this rank is not a member of the group")
        whole: Any = distributed.group.WORLD if group is None else group
        self.next, self.previous = (
            distributed.get_global_rank(whole, (self.rank + step) % self.size) for step in (1, -1)
        )

    @property
    def neighbours(self) -> str:
        return " or ".join(f"rank {rank}" for rank in sorted({self.previous, self.next}))

    def tell_all(self, about: Any) -> list[Any]:
        """Tell every rank something, and return what each has told."""
        told = [None] * self.size
        try:
            distributed.all_gather_object(told, about, group=self.group)
        except RuntimeError as error:
            raise self.silence("another rank") from error
        return told

    def exchange(self, outgoing: Tensor, incoming: Tensor) -> list[Any]:
        """Begin to send to the next rank, and to receive from the one before."""
        sent, received = (x.view(torch.uint8) for x in (outgoing, incoming))  # of any dtype
        try:
            return distributed.batch_isend_irecv(
                [
                    distributed.P2POp(distributed.isend, sent, self.next, self.group),
                    distributed.P2POp(distributed.irecv, received, self.previous, self.group),
                ]
            )
        except RuntimeError as error:
            raise self.silence(self.neighbours) from error

    def wait(self, messages: list[Any]) -> None:
        """Wait until they have arrived; an error if a neighbour has ended, or is silent."""
        try:
            for message in messages:
                message.wait()
        except RuntimeError as error:
            raise self.silence(self.neighbours) from error

    def silence(self, whom: str) -> RuntimeError:
        return RuntimeError(
            f"ring_attention on rank {self.rank}: {whom} does not answer. It has ended, does not "
            "call ring_attention as often as this rank, or is slower than the timeout of "
            "init_process_group"
        )

    def positions(self, rank: int, which: int, causal: bool) -> NDArray[np.int64]:
        """Return where a rank's queries (which = 0) or keys (1) are among all keys."""
        if not causal:
            return np.arange(self.lengths[rank][which])
        queries, keys = (sum(each) for each in zip(*self.lengths, strict=True))
        length, shift = (queries, keys - queries) if which == 0 else (keys, 0)
        return ring_slices(length, self.size, causal=True)[rank] + shift


class _Block:
    """Keys and values (and their gradients) on their way round, in pieces of some positions.

    A piece is sent on while it is used, and what arrives takes its place, so that beside the block
    one piece is in memory.
    """

    def __init__(self, ring: _Ring, tensors: Sequence[Tensor], dtype: torch.dtype) -> None:
        self.ring = ring
        self.owner = ring.rank
        longest = max(m for _, m in ring.lengths)
        items, groups = tensors[0].shape[:2]
        self.shapes = [(items, groups, min(COLUMNS, longest), x.shape[-1]) for x in tensors]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        pieces = math.ceil(longest / COLUMNS)
        self.data = tensors[0].new_zeros((pieces, sum(self.sizes)), dtype=dtype)
        self.arriving = self.data.new_empty(sum(self.sizes))
        for piece in range(pieces):
            for own, x in zip(self.parts(piece), tensors, strict=True):
                own.copy_(x[..., piece * COLUMNS : (piece + 1) * COLUMNS, :])

    @property
    def starts(self) -> list[int]:
        """The first position of each piece, within the slice of the block's owner."""
        return [COLUMNS * piece for piece in range(len(self.data))]

    def parts(self, piece: int) -> list[Tensor]:
        """Return the tensors of a piece, as long as they are filled: (items, g, positions, d)."""
        filled = self.ring.lengths[self.owner][1] - COLUMNS * piece
        pieces = torch.split(self.data[piece], self.sizes)
        return [
            x.view(shape)[..., : max(filled, 0), :]
            for x, shape in zip(pieces, self.shapes, strict=True)
        ]

    def send(self, piece: int) -> list[Any]:
        """Begin to pass a piece on; until `receive` it may be read, not written."""
        return self.ring.exchange(self.data[piece], self.arriving)

    def receive(self, piece: int, messages: list[Any]) -> None:
        """Put what has arrived in its place."""
        self.ring.wait(messages)
        self.data[piece].copy_(self.arriving)

    def moved(self) -> None:
        """All pieces have been passed on: the block is that of the rank before."""
        self.owner = (self.owner - 1) % self.ring.size


class _Rounds(torch.autograd.Function):
    """Forward and backward, each a journey round the ring."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,  # (items, g, h / g, n, d)
        key: Tensor,  # (items, g, m, d)
        value: Tensor,  # (items, g, m, d_v)
        ring: _Ring,
        causal: bool,
        scale: float,
    ) -> Tensor:
        wide = torch.promote_types(query.dtype, torch.float32)
        seen = _nothing(xp, query, value.new_empty((0, value.shape[-1]), dtype=wide))
        block = _Block(ring, (key, value), query.dtype)
        for step in range(ring.size):
            for piece, start in enumerate(block.starts):
                messages = block.send(piece) if step + 1 < ring.size else []
                k, v = (x[:, :, None].to(wide) for x in block.parts(piece))
                tiles = _tiles(ring, block.owner, start, k.shape[-2], query, causal)
                for rows, columns, visible in tiles:
                    scores = (query[..., rows, :].to(wide) * scale) @ k[..., columns, :].mT
                    part = _part(xp, scores, v[..., columns, :], visible)
                    before = Part(*(x[..., rows, :] for x in seen))
                    for kept, new in zip(before, _merged(xp, before, part), strict=True):
                        kept.copy_(new)
                if messages:
                    block.receive(piece, messages)
            block.moved()
        log_total = (seen.largest + seen.total.log()).where(seen.total > 0, 0.0)
        result = _finished(xp, seen).to(value.dtype)
        ctx.save_for_backward(query, key, value, result, log_total)
        ctx.ring, ctx.causal, ctx.scale = ring, causal, scale
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, output, log_total = ctx.saved_tensors
        ring, causal, scale = ctx.ring, ctx.causal, ctx.scale
        wide = log_total.dtype
        mean = (slope.to(wide) * output).sum(-1, keepdim=True)  # (items, g, h / g, n, 1)
        to_query = torch.zeros_like(query, dtype=wide)
        block = _Block(ring, (key, value, torch.zeros_like(key), torch.zeros_like(value)), wide)
        for _ in range(ring.size):
            for piece, start in enumerate(block.starts):
                parts = block.parts(piece)
                tiles = _tiles(ring, block.owner, start, parts[0].shape[-2], query, causal)
                for rows, columns, visible in tiles:
                    k, v, to_key, to_value = (x[..., columns, :] for x in parts)
                    k, v = k[:, :, None], v[:, :, None]
                    q, down = (x[..., rows, :].to(wide) for x in (query, slope))
                    scores = (q * scale) @ k.mT
                    if visible is not None:
                        scores = scores.where(visible, -torch.inf)
                    weights = (scores - log_total[..., rows, :]).exp()
                    to_value += (weights.mT @ down).sum(2)
                    to_scores = weights * (down @ v.mT - mean[..., rows, :]) * scale
                    if visible is not None:
                        to_scores = to_scores.where(visible, 0.0)
                    to_query[..., rows, :] += to_scores @ k
                    to_key += (to_scores.mT @ q).sum(2)
                if ring.size > 1:
                    block.receive(piece, block.send(piece))
            block.moved()  # in the end each is home again
        to_key, to_value = torch.empty_like(key), torch.empty_like(value)
        for piece, start in enumerate(block.starts):
            _, _, *parts = block.parts(piece)
            for whole, part in zip((to_key, to_value), parts, strict=True):
                whole[..., start : start + COLUMNS, :] = part
        return to_query.to(query.dtype), to_key, to_value, None, None, None


def _tiles(
    ring: _Ring, owner: int, start: int, columns: int, query: Tensor, causal: bool
) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Yield some queries, some keys of a piece that they may see, and who of them sees what."""
    height = max(TILE // max(math.prod(query.shape[:-2]) * columns, 1), 1)
    query_at = ring.positions(ring.rank, 0, causal)
    key_at = ring.positions(owner, 1, causal)[start : start + columns]
    for keys in _stretches(key_at):
        for stretch in _stretches(query_at):
            for top in range(stretch.start, stretch.stop, height):
                rows = slice(top, min(top + height, stretch.stop))
                asking, asked = query_at[rows], key_at[keys]
                if not causal or asked[-1] <= asking[0]:
                    yield rows, keys, None
                elif asked[0] <= asking[-1]:
                    visible = _no_later_key(asking[:, None], asked)
                    yield rows, keys, torch.as_tensor(visible, device=query.device)


def _stretches(positions: NDArray[np.int64]) -> list[slice]:
    """Return where positions follow each other without a gap."""
    gaps = np.flatnonzero(np.diff(positions) != 1) + 1
    cuts = [0, *gaps.tolist(), len(positions)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts) if a < b]
