"""KeyValueCache by itself, on NumPy and PyTorch."""

import copy
import pickle

import numpy as np
import pytest
from comparing import dtype_name, each_dtype, needs_torch, random

from d2lmini import KeyValueCache


def tokens(xp, first, count, width=2, batch=(1,), dtype="float64"):
    """Return (*batch, count, width): the vectors of tokens first, first + 1, …"""
    x = np.arange(first, first + count, dtype=float)[:, None] * np.ones((*batch, 1, width))
    return xp.asarray(x, dtype=getattr(xp, dtype))


def positions(x):
    return [int(row[0]) for row in x[0].tolist()]


def state(cache):
    return None if cache.key is None else (cache.key.tolist(), cache.value.tolist())


def test_a_new_cache_is_empty():
    cache = KeyValueCache()
    assert (len(cache), cache.key, cache.value, cache.window) == (0, None, None, None)
    assert repr(cache) == "KeyValueCache(window=None), empty"


def test_it_grows_by_what_it_is_given(xp):
    cache = KeyValueCache()
    for first, count in [(0, 2), (2, 1), (3, 0), (3, 4)]:
        key, value = cache.append(tokens(xp, first, count), tokens(xp, first + 100, count, 3))
        assert positions(key) == list(range(first + count))
        assert positions(value) == list(range(100, 100 + first + count))
        assert len(cache) == cache.context == first + count
    assert repr(cache) == "KeyValueCache(window=None), key (1, 7, 2), value (1, 7, 3)"


@pytest.mark.parametrize("window", [1, 2, 3, 10])
@pytest.mark.parametrize("counts", [[1] * 6, [4, 1, 1], [2, 3, 1], [1, 5], [6], [0, 3, 0, 3]])
def test_a_window_keeps_the_newest_and_returns_what_a_new_token_may_see(xp, window, counts):
    cache, first = KeyValueCache(window=window), 0
    for count in counts:
        may_see = max(first - (window - 1), 0)  # the oldest position the first new token sees
        assert cache.context == min(first, window - 1)
        key, value = cache.append(tokens(xp, first, count), tokens(xp, first, count, 3))
        first += count
        assert positions(key) == positions(value) == list(range(may_see, first))
        kept = list(range(max(first - window, 0), first))
        assert positions(cache.key) == positions(cache.value) == kept
        assert len(cache) == len(kept)


@each_dtype
def test_it_keeps_the_dtype(xp, dtype):
    cache = KeyValueCache(window=2)
    for t in range(3):
        key, _ = cache.append(tokens(xp, t, 1, dtype=dtype), tokens(xp, t, 1, dtype=dtype))
    assert dtype_name(key) == dtype_name(cache.key) == dtype_name(cache.value) == dtype


def test_heads_and_any_number_of_batch_axes(xp):
    cache = KeyValueCache()
    for _ in range(2):
        cache.append(random(xp, 0, 2, 3, 4, 1, 5), random(xp, 1, 2, 3, 4, 1, 6))
    assert tuple(cache.key.shape) == (2, 3, 4, 2, 5)
    assert tuple(cache.value.shape) == (2, 3, 4, 2, 6)


@pytest.mark.parametrize("window", [None, 1, 2, 5])
def test_what_the_caller_does_with_his_arrays_does_not_matter(xp, window):
    cache = KeyValueCache(window=window)
    key, value = tokens(xp, 1, 3), tokens(xp, 1, 3)
    cache.append(key, value)
    before = state(cache)
    key[...] = value[...] = 0
    assert state(cache) == before


def test_a_window_does_not_hold_on_to_the_memory_of_a_long_prompt(xp):
    cache = KeyValueCache(window=2)
    cache.append(tokens(xp, 0, 1000), tokens(xp, 0, 1000))
    if isinstance(cache.key, np.ndarray):
        assert cache.key.base is None or cache.key.base.nbytes == cache.key.nbytes
    else:
        assert cache.key.untyped_storage().nbytes() == 2 * 2 * 8


def test_integers_become_the_default_float(xp):
    key, _ = KeyValueCache().append(xp.asarray([[1, 2]]), xp.asarray([[3]]))
    assert key.dtype == xp.asarray(0.0).dtype


def test_it_can_be_copied_and_stored(xp):
    cache = KeyValueCache(window=3)
    cache.append(tokens(xp, 0, 2), tokens(xp, 0, 2))
    for twin in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        twin.append(tokens(xp, 2, 1), tokens(xp, 2, 1))
        assert (len(twin), len(cache), twin.window) == (3, 2, 3)


# Errors leave the cache as it was


BAD = {
    "another batch": ((2, 1, 2), (2, 1, 3), "key of shape (2, 1, 2) .* holds (1, 2, 2)"),
    "another width of keys": ((1, 1, 4), (1, 1, 3), "key of shape (1, 1, 4) .* holds (1, 2, 2)"),
    "another width of values": ((1, 1, 2), (1, 1, 5), "value of shape (1, 1, 5) .* (1, 2, 3)"),
    "more values than keys": ((1, 1, 2), (1, 2, 3), "each key needs one value, .*(1, 1, 2)"),
    "more axes": ((1, 1, 1, 2), (1, 1, 1, 3), "key of shape (1, 1, 1, 2) .* (1, 2, 2)"),
    "a vector": ((2,), (3,), "key must have at least 2 axes .*(2,)"),
}


@pytest.mark.parametrize("key, value, said", BAD.values(), ids=BAD)
def test_what_does_not_continue_it(xp, key, value, said):
    cache = KeyValueCache()
    cache.append(tokens(xp, 0, 2), tokens(xp, 0, 2, 3))
    before = state(cache)
    said = said.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=said):
        cache.append(xp.zeros(key, dtype=xp.float64), xp.zeros(value, dtype=xp.float64))
    assert state(cache) == before


def test_another_dtype(xp):
    cache = KeyValueCache()
    cache.append(tokens(xp, 0, 2), tokens(xp, 0, 2))
    before = state(cache)
    with pytest.raises(TypeError, match=r"key has dtype .*float32, the cache holds .*float64"):
        cache.append(tokens(xp, 2, 1, dtype="float32"), tokens(xp, 2, 1, dtype="float32"))
    assert state(cache) == before


@needs_torch
def test_another_library():
    import torch

    cache = KeyValueCache()
    cache.append(np.ones((1, 2)), np.ones((1, 2)))
    with pytest.raises(TypeError, match=r"NumPy.*PyTorch|PyTorch.*NumPy"):
        cache.append(torch.ones(1, 2), torch.ones(1, 2))
    assert len(cache) == 1


@pytest.mark.parametrize(
    "window, kind, said",
    [
        (0, ValueError, "window must be at least 1, got 0"),
        (-3, ValueError, "window must be at least 1, got -3"),
        (2.0, TypeError, "window must be an integer, got float"),
        (True, TypeError, "window must be an integer, got bool"),
    ],
)
def test_a_window_that_is_none(window, kind, said):
    with pytest.raises(kind, match=said):
        KeyValueCache(window=window)


def test_what_is_not_an_array():
    with pytest.raises(TypeError, match="key must be a NumPy array or a PyTorch tensor, got list"):
        KeyValueCache().append([[1.0]], [[1.0]])
