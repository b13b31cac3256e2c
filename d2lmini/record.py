"""What `record_attention` returns: the weights of each call, by the names of the modules."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, overload

from d2lmini._checks import position
from d2lmini._torch import Tensor, torch

__all__ = ["AttentionRecord", "RecordedAttention"]

LISTED = 12  # modules in the text of a record


class RecordedAttention(NamedTuple):
    """One call of attention.

    Attributes
    ----------
    name : str
        Of the module that made it, as in ``model.named_modules()``; "" for the model itself, or
        for a call outside any module.
    weights : tensor, shape (batch, heads, n, m)
        Before dropout, detached, in float32 or float64; a row sums to 1, or to 0 for a query that
        may see no key.
    """

    name: str
    weights: Tensor


class AttentionRecord(Sequence[RecordedAttention]):
    """The calls of attention that `record_attention` has seen, in their order.

    ``record[0]`` is the first call. ``record["encoder.layers.0.self_attn"]`` holds the calls of one
    module, and ``record["decoder.*.self_attn"]`` those of all modules whose names fit the pattern:
    each is a record itself.

    Attributes
    ----------
    unseen : list of str
        What ran in the block and may be attention, but could not be seen: one sentence each.
    """

    def __init__(self, calls: list[RecordedAttention], unseen: list[str]) -> None:
        self._calls = calls
        self.unseen = unseen

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[RecordedAttention]:
        return iter(self._calls)

    @overload
    def __getitem__(self, at: int) -> RecordedAttention: ...
    @overload
    def __getitem__(self, at: slice | str) -> AttentionRecord: ...
    def __getitem__(self, at: int | slice | str) -> RecordedAttention | AttentionRecord:
        if isinstance(at, str):
            calls = [call for call in self._calls if call.name == at or fnmatchcase(call.name, at)]
            if not calls:
                near = difflib.get_close_matches(at, self.names, n=1, cutoff=0) or ["nothing"]
                raise KeyError(f"no call of {at!r} was recorded; there is {near[0]!r} (see .names)")
            return AttentionRecord(calls, self.unseen)
        if isinstance(at, slice):
            return AttentionRecord(self._calls[at], self.unseen)
        if not -len(self) <= at < len(self):
            there = f"there are {len(self)} calls, from 0 to {len(self) - 1}"
            raise IndexError(f"record[{at}]: {there if self._calls else self._nothing()}")
        return self._calls[at]

    @property
    def names(self) -> list[str]:
        """The modules that were seen, each once."""
        return list(dict.fromkeys(call.name for call in self._calls))

    @property
    def nbytes(self) -> int:
        """The memory that the weights take."""
        return sum(call.weights.nbytes for call in self._calls)

    @property
    def weights(self) -> Tensor:
        """The weights of the only call, (batch, heads, n, m)."""
        self._something()
        if len(self) > 1:
            raise ValueError(
                f"there are {len(self)} calls: give one, as record[0].weights, or take .stack() or "
                ".joined()"
            )
        return self._calls[0].weights

    def stack(self, item: int = 0) -> Tensor:
        """Return the weights of one item of the batch, (layers, heads, n, m), for `show_heatmaps`.

        Parameters
        ----------
        item : int
            Which item of the batch.

        Raises
        ------
        ValueError
            If the batch has no such item, nothing was recorded, or the calls' shapes differ.
        """
        self._something()
        shapes = {tuple(call.weights.shape[1:]) for call in self._calls}
        if len(shapes) > 1:
            raise ValueError(
                f"the calls have {len(shapes)} shapes (heads, n, m), such as "
                f"{' and '.join(map(str, sorted(shapes)[:2]))}: choose modules, as "
                f"record[{self.names[0]!r}], or join the steps of a generation with .joined()"
            )
        return torch.stack([_item(call, item) for call in self._calls])

    def joined(self, item: int = 0) -> Tensor:
        """Return the steps of ``generate()`` as one matrix per head, (layers, heads, N, M).

        The calls of each module follow each other: the queries of a step come after those of the
        steps before. Where nothing was computed, such as for keys that a cache has dropped or that
        came later, there is NaN.

        `item` and the errors are those of `stack`; here the modules may not differ in the shapes of
        their steps.
        """
        self._something()
        layers = [_joined([_item(call, item) for call in self[name]]) for name in self.names]
        shapes = {tuple(layer.shape) for layer in layers}
        if len(shapes) > 1:
            raise ValueError(
                f"the modules have {len(shapes)} shapes (heads, N, M), such as "
                f"{' and '.join(map(str, sorted(shapes)[:2]))}: choose some, as "
                f"record[{self.names[0]!r}].joined()"
            )
        return torch.stack(layers)

    def __repr__(self) -> str:
        """Say what was recorded, what memory it takes, and what could not be seen."""
        names = self.names
        calls = f"{len(self)} call{'s' * (len(self) != 1)}"
        modules = f"{len(names)} module{'s' * (len(names) != 1)}"
        lines = [f"Attention of {calls} in {modules}, {_memory(self.nbytes)}"]
        for name in names[:LISTED]:
            of_it = [call for call in self._calls if call.name == name]
            shape = tuple(of_it[0].weights.shape)
            lines.append(
                f"  {name or '(the model)'}  {shape}" + f" × {len(of_it)}" * (len(of_it) > 1)
            )
        if len(names) > LISTED:
            lines.append(f"  … and {len(names) - LISTED} more")
        return "\n".join([*lines, *(f"Not seen: {words}" for words in self.unseen)])

    def _nothing(self) -> str:
        why = "; ".join(self.unseen) or "no attention ran in the block, or `keep` fits none"
        return f"nothing was recorded: {why}"

    def _something(self) -> None:
        if not self._calls:
            raise ValueError(self._nothing())


def _memory(nbytes: int) -> str:
    """Say a number of bytes.

    >>> _memory(4_718_592), _memory(1728)
    ('4.7 MB', '1.7 kB')
    """
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 1e6 else f"{nbytes / 1e3:.1f} kB"


def _item(call: RecordedAttention, item: int) -> Tensor:
    return call.weights[position("item", item, len(call.weights))]


def _joined(steps: list[Tensor]) -> Tensor:
    """Lay the steps of one module below each other, (heads, n, m) each."""
    first, counts = steps[0], [step.shape[-2] for step in steps]
    # A cache that grows, or forgets its oldest keys: the last key is that of the last query. Keys
    # that are all there from the first step, as in cross-attention, stay where they are.
    grows = first.shape[-2] == first.shape[-1]
    keys = sum(counts) if grows else max(step.shape[-1] for step in steps)
    joined = first.new_full((first.shape[0], sum(counts), keys), torch.nan)
    end = 0
    for step, n in zip(steps, counts, strict=True):
        end += n
        start = end - step.shape[-1] if grows else 0
        joined[:, end - n : end, start : start + step.shape[-1]] = step
    return joined
