"""Attention when the sequence grows: the key-value cache (chapters 5 and 8)."""

from typing import Any

from d2lmini._arrays import A, Array, floating, namespace
from d2lmini._checks import check_one_value_for_each_key, check_tables, whole_number

__all__ = ["KeyValueCache"]


class KeyValueCache:
    """Keep the keys and values of earlier tokens, so that decoding does not compute them again.

    Give one to each layer, as ``cache=`` of `MultiHeadAttention`, and then one token (or a few) at
    a time: the outputs are those of the whole sequence at once.

    Parameters
    ----------
    window : int, optional
        Keep only this many positions, the newest, as `sliding_window_mask` would show to the last
        query. All are kept unless given.
    sinks : int
        Keep as many of the first positions too when the window moves on. Language models put the
        weight there that they have no use for, and lose their way without them.

    Attributes
    ----------
    key, value : array or None
        What is kept, shape (..., length, d_k) and (..., length, d_v); None before the first append.
    window : int or None
    sinks : int

    Raises
    ------
    TypeError, ValueError
        If `window` is not a positive integer, `sinks` is not an integer or negative, or there are
        sinks without a window.

    References
    ----------
    Xiao et al., "Efficient streaming language models with attention sinks", 2024.

    Examples
    --------
    >>> import numpy as np
    >>> cache = KeyValueCache(window=2, sinks=1)
    >>> for t in range(5):
    ...     key, value = cache.append(np.full((1, 4), t), np.full((1, 5), t))
    >>> len(cache), key[:, 0].tolist()
    (3, [0.0, 3.0, 4.0])
    """

    def __init__(self, window: int | None = None, sinks: int = 0) -> None:
        self.window = None if window is None else whole_number("window", window, at_least=1)
        self.sinks = whole_number("sinks", sinks, at_least=0)
        if self.sinks and window is None:
            raise ValueError(
                f"sinks = {self.sinks} needs a window: without one all positions are kept anyway"
            )
        self.key: Array | None = None
        self.value: Array | None = None

    def __len__(self) -> int:
        """Count the positions that are kept."""
        return 0 if self.key is None else int(self.key.shape[-2])

    def __repr__(self) -> str:
        """Say what is kept."""
        made = f"window={self.window}" + (f", sinks={self.sinks}" if self.sinks else "")
        held = "empty"
        if self.key is not None and self.value is not None:
            held = f"key {tuple(self.key.shape)}, value {tuple(self.value.shape)}"
        return f"KeyValueCache({made}), {held}"

    @property
    def context(self) -> int:
        """How many earlier positions, those its first token sees, the next `append` returns."""
        return len(self) if self.window is None else min(len(self), self.sinks + self.window - 1)

    @property
    def nbytes(self) -> int:
        """How many bytes the keys and values take that are kept."""
        return 0 if self.key is None else int(self.key.nbytes + self.value.nbytes)  # type: ignore[union-attr]

    def reorder(self, index: Any) -> None:
        """Let item i of the batch go on from what item ``index[i]`` has read.

        So a search that keeps the best few beginnings of a text (a beam search) drops some and goes
        on twice from others.

        Parameters
        ----------
        index : sequence or array of int, shape (new batch,)
            For each new item the old one, counted from 0 along the first axis. One may be named
            several times, or not at all.

        Raises
        ------
        TypeError
            If `index` does not hold integers.
        ValueError
            If the cache is empty or has no batch axis, or a number is not that of an item. The
            cache is then as it was.

        Examples
        --------
        >>> import numpy as np
        >>> cache = KeyValueCache()
        >>> key, value = cache.append(np.array([[[1.0]], [[2.0]]]), np.zeros((2, 1, 1)))
        >>> cache.reorder([1, 1, 0])
        >>> cache.key[:, 0, 0].tolist(), cache.nbytes
        ([2.0, 2.0, 1.0], 48)
        """
        if self.key is None or self.value is None:
            raise ValueError("there is nothing to reorder: the cache is empty")
        if self.key.ndim < 3:
            raise ValueError(f"key {tuple(self.key.shape)} has no batch axis to reorder")
        items = index.tolist() if hasattr(index, "tolist") else index
        if not isinstance(items, list | tuple | range):
            raise TypeError(f"index must be a sequence of integers, got {type(index).__name__}")
        batch = self.key.shape[0]
        numbers = [whole_number(f"index[{i}]", item, at_least=0) for i, item in enumerate(items)]
        for i, number in enumerate(numbers):
            if number >= batch:
                raise ValueError(f"index[{i}] = {number} is no item of a batch of {batch}")
        xp = namespace(key=self.key)
        kind = xp.asarray(0).dtype  # the integer of this machine, also for no numbers at all
        order = xp.asarray(numbers, dtype=kind, device=self.key.device)
        self.key, self.value = xp.take(self.key, order, axis=0), xp.take(self.value, order, axis=0)

    def append(self, key: A, value: A) -> tuple[A, A]:
        """Add the keys and values of the newest n tokens.

        Parameters
        ----------
        key : array, shape (..., n, d_k)
        value : array, shape (..., n, d_v)

        Returns
        -------
        tuple of two arrays, shape (..., m, d_k) and (..., m, d_v)
            All that one of the n tokens may see: the n new positions, and before them what was
            kept, with a window the sinks and the newest ``window - 1``. So with a window and n > 1
            the last of the new tokens still need `sliding_window_mask`, which `MultiHeadAttention`
            adds by itself. Do not write into them: they may be what is kept.

        Raises
        ------
        TypeError
            If an argument is not an array of real numbers, or of another kind or dtype than what
            is kept.
        ValueError
            If keys and values differ in number, or the batch, the heads or the vectors are not
            those of what is kept. The cache is then as it was.
        """
        xp, key, value = floating(key=key, value=value)
        check_tables(key=key, value=value)
        check_one_value_for_each_key(key, value)
        if key.shape[:-2] != value.shape[:-2]:
            raise ValueError(
                f"key {tuple(key.shape)} and value {tuple(value.shape)} must agree in all axes but "
                "the last"
            )
        seen = self.context + key.shape[-2]
        old_keys: list[Array] = []
        old_values: list[Array] = []
        if self.key is not None and self.value is not None:
            _check_continues("key", key, self.key)
            _check_continues("value", value, self.value)
            old_keys, old_values = [self.key], [self.value]
        key = xp.concat([*old_keys, key], axis=-2)  # a copy, even of the first
        value = xp.concat([*old_values, value], axis=-2)
        self.key, self.value = key, value
        if self.window is not None:
            kept = self.sinks + self.window
            self.key, self.value = (self._first_and_last(xp, x, kept) for x in (key, value))
        return self._first_and_last(xp, key, seen), self._first_and_last(xp, value, seen)

    def _first_and_last(self, xp: Any, x: A, count: int) -> A:
        """Return `count` of the positions: the sinks, and the newest."""
        surplus = x.shape[-2] - count
        if surplus <= 0:
            return x
        newest = x[..., self.sinks + surplus :, :]
        return xp.concat([x[..., : self.sinks, :], newest], axis=-2)  # a view would hold on to all


def _check_continues(name: str, new: Array, kept: Array) -> None:
    floating(**{name: new, f"cached {name}": kept})  # one kind, or a TypeError in words
    if new.dtype != kept.dtype:
        raise TypeError(f"{name} has dtype {new.dtype}, the cache holds {kept.dtype}")
    old_shape, new_shape = tuple(kept.shape), tuple(new.shape)
    if (*old_shape[:-2], old_shape[-1]) != (*new_shape[:-2], new_shape[-1]):
        raise ValueError(
            f"{name} of shape {new_shape} does not continue the cache, which holds {old_shape}: "
            "all axes but the one of the tokens (-2) must agree; use a new KeyValueCache for "
            "another batch"
        )
