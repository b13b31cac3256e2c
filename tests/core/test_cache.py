"""KeyValueCache by itself, on NumPy and PyTorch."""

import numpy as np
import pytest
from comparing import dtype_name, each_dtype, in_words, random

from d2lmini import KeyValueCache


def tokens(xp, first, count, width=2, batch=(1,), dtype="float64"):
    """Return (*batch, count, width): the vectors of tokens first, first + 1, …"""
    x = np.arange(first, first + count, dtype=float)[:, None] * np.ones((*batch, 1, width))
    return xp.asarray(x, dtype=getattr(xp, dtype))


def positions(x):
    return [int(row[0]) for row in x[0].tolist()]


def state(cache):
    return None if cache.key is None else (cache.key.tolist(), cache.value.tolist())


def test_it_grows_by_what_it_is_given(xp):
    cache = KeyValueCache()
    assert (len(cache), cache.key, cache.value, cache.window) == (0, None, None, None)
    assert repr(cache) == "KeyValueCache(window=None), empty"
    for first, count in [(0, 2), (2, 1), (3, 0), (3, 4)]:
        key, value = cache.append(tokens(xp, first, count), tokens(xp, first + 100, count, 3))
        assert positions(key) == list(range(first + count))
        assert positions(value) == list(range(100, 100 + first + count))
        assert len(cache) == cache.context == first + count
    assert repr(cache) == "KeyValueCache(window=None), key (1, 7, 2), value (1, 7, 3)"


@pytest.mark.parametrize("window, sinks", [(1, 0), (3, 0), (10, 0), (1, 1), (3, 2), (2, 10)])
@pytest.mark.parametrize(
    "counts", [[1] * 8, [4, 1, 1], [2, 3, 1, 4], [1, 9], [9, 2], [0, 3, 0, 3]], ids=str
)
def test_a_window_keeps_the_newest_and_the_sinks_and_returns_what_may_be_seen(
    xp, window, sinks, counts
):
    cache, first = KeyValueCache(window=window, sinks=sinks), 0
    for count in counts:
        last = first + count
        sees = [t for t in range(last) if t < sinks or t > first - window]  # that any of them sees
        assert cache.context == len(sees) - count
        key, value = cache.append(tokens(xp, first, count), tokens(xp, first, count, 3))
        assert positions(key) == positions(value) == sees
        kept = [t for t in range(last) if t < sinks or t >= last - window]
        assert positions(cache.key) == positions(cache.value) == kept
        assert len(cache) == len(kept)
        first = last
    assert (f"window={window}, sinks={sinks}" if sinks else f"window={window})") in repr(cache)


@each_dtype
def test_it_keeps_the_dtype(xp, dtype):
    cache = KeyValueCache(window=2)
    for t in range(3):
        key, _ = cache.append(tokens(xp, t, 1, dtype=dtype), tokens(xp, t, 1, dtype=dtype))
    assert dtype_name(key) == dtype_name(cache.key) == dtype_name(cache.value) == dtype
    integers = xp.asarray([[1, 2]])
    assert KeyValueCache().append(integers, integers)[0].dtype == xp.asarray(0.0).dtype


@pytest.mark.parametrize("window, sinks", [(None, 0), (2, 0), (5, 0), (1, 1), (1, 5)])
def test_what_the_caller_does_with_his_arrays_does_not_matter(xp, window, sinks):
    cache = KeyValueCache(window=window, sinks=sinks)
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


# Another order of the batch, and bytes


@pytest.mark.parametrize("index", [[1, 0], [1], [1, 1, 0], []])
def test_items_go_on_from_others(xp, index):
    key, value = random(xp, 0, 2, 3, 3, 2), random(xp, 1, 2, 3, 3, 5)
    for given in (index, xp.asarray(index, dtype=xp.int64)):
        cache = KeyValueCache(window=2)
        cache.append(key, value)
        cache.reorder(given)
        assert tuple(cache.key.shape) == (len(index), 3, 2, 2)
        assert tuple(cache.value.shape) == (len(index), 3, 2, 5)
        for new, old in enumerate(index):
            assert cache.key[new].tolist() == key[old, :, 1:].tolist()
            assert cache.value[new].tolist() == value[old, :, 1:].tolist()
    key[...] = 0
    assert not index or cache.key.any()


@pytest.mark.parametrize(
    "index, kind, said",
    [
        ([0, 2], ValueError, r"index\[1\] = 2 is no item of a batch of 2"),
        ([-1], ValueError, r"index\[0\] must be at least 0, got -1"),
        ([True, False], TypeError, r"index\[0\] must be an integer, got bool"),
        ("01", TypeError, "index must be a sequence of integers, got str"),
    ],
)
def test_an_order_that_is_none(xp, index, kind, said):
    cache = KeyValueCache()
    cache.append(tokens(xp, 0, 2, batch=()), tokens(xp, 0, 2, batch=()))
    with pytest.raises(ValueError, match=r"key \(2, 2\) has no batch axis to reorder"):
        cache.reorder([0])
    cache = KeyValueCache()
    cache.append(tokens(xp, 0, 2, batch=(2,)), tokens(xp, 0, 2, batch=(2,)))
    before = state(cache)
    with pytest.raises(kind, match=said):
        cache.reorder(index)
    assert state(cache) == before


def test_it_reports_its_bytes(xp):
    cache = KeyValueCache(window=4)
    assert cache.nbytes == 0
    for count in range(6):
        cache.append(*(tokens(xp, 0, 1, width, (2,), "float16") for width in (3, 5)))
        assert cache.nbytes == 2 * min(count + 1, 4) * (3 + 5) * 2


# Errors leave the cache as it was


BAD = {
    "another batch": ((2, 1, 2), (2, 1, 3), "key of shape (2, 1, 2) … holds (1, 2, 2)"),
    "another width of values": ((1, 1, 2), (1, 1, 5), "value of shape (1, 1, 5) … (1, 2, 3)"),
    "more values than keys": ((1, 1, 2), (1, 2, 3), "each key needs one value, …(1, 1, 2)"),
    "a vector": ((2,), (3,), "key must have at least 2 axes …(2,)"),
    "a dtype": ((1, 1, 2), (1, 1, 3), "key has dtype …float32, the cache holds …float64"),
    "a library": ((1, 1, 2), (1, 1, 3), "all arrays must be of one kind, got "),
}


@pytest.mark.parametrize("what, key, value, said", [(name, *bad) for name, bad in BAD.items()])
def test_what_does_not_continue_it_leaves_it_as_it_was(xp, what, key, value, said):
    cache, kind, other = KeyValueCache(), ValueError, xp
    cache.append(tokens(xp, 0, 2), tokens(xp, 0, 2, 3))
    before = state(cache)
    if what in ("a dtype", "a library"):
        kind = TypeError
    if what == "a library":
        other = np if xp.__name__.endswith("torch") else pytest.importorskip("torch")
    dtype = other.float32 if what == "a dtype" else other.float64
    with pytest.raises(kind, match=in_words(said)):
        cache.append(other.zeros(key, dtype=dtype), other.zeros(value, dtype=dtype))
    assert state(cache) == before
