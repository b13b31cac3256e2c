"""One suite over every implementation of attention: what has to hold, whoever computes it.

The list of chapter 9 and of `check_attention` comes first; what follows asks more, of gradients,
positions, shapes and strides. The implementations stand in ``implementations.py``, one line each.
``broken.py`` holds some with a mistake, and the end of this file shows that each of them is found.
"""

import numpy as np
import pytest
from broken import BROKEN, EXHIBITS, correct
from comparing import TORCH, no_nan_in_backward
from implementations import CAN, D_V, IMPLEMENTATIONS, D, numbers

from d2lmini import rotary
from d2lmini.testing import INVARIANTS as LIST
from d2lmini.testing import _first
from d2lmini.testing.invariants import Sizes
from d2lmini.testing.subject import Subject

CLOSE = {"rtol": 1e-11, "atol": 1e-12}
INVARIANTS = {}


class Tried(Subject):
    """An implementation as the list of the book asks for it, with its own definition in loops."""

    corner, meaning, one_rule, padding = "bottom-right", "attend", False, False
    precision = dtype = np.float64
    takes_half, exactness = False, 0.0
    lay, calls = staticmethod(np.ascontiguousarray), ()

    def __init__(self, implementation):
        self.implementation = implementation
        self.masks = "any" if implementation.can("mask") else None
        asked = {"everything": False, "causal": True}
        self.causal = tuple(said for what, said in asked.items() if implementation.can(what))
        self.rectangles = implementation.can("rectangles")
        self.returns_weights = implementation.can("weights")
        without = np.zeros((1, 1), dtype=bool)
        alone = (numbers(0, 1, 1, size) for size in (D, D, D_V))
        bias = self.masks and self.definition(*alone, mask=without).any()
        self.no_keys = "any" if bias else "zero"

    def definition(self, query, key, value, mask=None, causal=False, heads=1):
        return self.implementation.expected(query, key, value, mask=mask, causal=causal)[0]

    def __call__(self, query, key, value, mask=None, causal=False, heads=1):
        given = {"query": query, "key": key, "value": value, "mask": mask}
        given = {
            name: self.implementation.array(self.lay(x))
            for name, x in given.items()
            if x is not None
        }
        self.watch(given)
        return [x if x is None else array(x) for x in self.implementation(**given, causal=causal)]


def on_the_list(one):
    """Return a statement of the list as a check of an implementation."""

    def check(implementation):
        tried = Tried(implementation)
        sizes = Sizes(heads=1, keys=6 if tried.rectangles else 4, width=D, value_width=D_V)
        finding, _ = _first(tried, one, sizes)
        assert not finding, finding

    # Without the keys that nobody sees, the others would stand elsewhere.
    check.needs = ("unordered",) * (one.__name__ == "a_hidden_key_might_as_well_be_gone")
    return check


INVARIANTS |= {one.__name__: on_the_list(one) for one in LIST}


def invariant(*needs):
    """Register a check of one implementation; it applies to those that can do what it needs."""

    def register(check):
        INVARIANTS[check.__name__] = check
        check.needs = needs
        return check

    return register


def applies(check, implementation):
    return implementation.can(*check.needs)


def inputs(implementation, n, m, batch=(2,), seed=0):
    """Return random queries, keys and values as NumPy arrays."""
    if not implementation.can("rectangles"):
        n = m = max(n, m) if min(n, m) > 0 else 0
    seed = 10 * seed
    return (
        numbers(seed, *batch, n, D),
        numbers(seed + 1, *batch, m, D),
        numbers(seed + 2, *batch, m, D_V),
    )


def seen(implementation, query, key):
    """Yield every way to say who may attend to whom: mask, causal, both, in several shapes."""
    batch, n, m = query.shape[0], query.shape[-2], key.shape[-2]
    draw = np.random.default_rng(99)
    masks = [None]
    if implementation.can("mask"):
        rows = draw.random((n, m)) < 0.6
        rows[:, -1:] = True  # so that causal takes something away
        lengths = draw.integers(0, m + 1, batch)
        padding = np.arange(m) < lengths[:, None, None]  # (batch, 1, m)
        masks += [rows, padding, rows & padding]
    causal = [False] * implementation.can("everything") + [True] * implementation.can("causal")
    for mask in masks:
        for also_causal in causal:
            yield {"mask": mask, "causal": also_causal}


def default(implementation):
    """Return the plainest of these ways."""
    return {"causal": not implementation.can("everything")}


def assert_same(result, expected, what):
    """Compare outputs, and weights where both have them."""
    for name, one, other in zip(("output", "weights"), result, expected, strict=True):
        if one is not None and other is not None:
            one, other = array(one), array(other)
            assert one.shape == other.shape, f"{what}: shape of the {name}"
            np.testing.assert_allclose(one, other, **CLOSE, err_msg=f"{what}: {name}")


def as_leaves(implementation, *arrays):
    return [implementation.array(x.copy()).requires_grad_() for x in arrays]


def array(x):
    return x.detach().numpy() if hasattr(x, "detach") else x


@invariant()
def any_axis_may_have_any_size(implementation):
    cases = [((2,), n, m) for n, m in [(5, 3), (1, 1), (1, 6), (0, 5), (3, 0), (0, 0)]]
    for batch, n, m in [*cases, ((0,), 3, 5), ((0, 3), 2, 2)]:
        near, key, value = inputs(implementation, n, m, batch)
        # Some kernels reach no key from there; large scores are on the list.
        for query in [near] if implementation.can("mask") else [near, near + 30]:
            for options in seen(implementation, query, key):
                if options["mask"] is not None and options["mask"].ndim > 2 and len(batch) > 1:
                    continue
                result = implementation(query, key, value, **options)
                expected = implementation.expected(query, key, value, **options)
                assert_same(result, expected, f"batch {batch}, n = {n}, m = {m}, {options}")


@invariant("mask", "shifts")
def where_a_text_begins_cannot_matter(implementation):
    """What counts is how far a key is from its query: hidden tokens before both change nothing."""
    query, key, value = inputs(implementation, 4, 4)
    options = default(implementation)
    expected, _ = implementation(query, key, value, **options)
    for before in 1, 7:
        longer = [np.concatenate([x[:, :1].repeat(before, 1), x], 1) for x in (query, key, value)]
        mask = np.ones((4 + before, 1), dtype=bool) & (np.arange(4 + before) >= before)
        output, _ = implementation(*longer, **{**options, "mask": mask})
        assert_same((output[:, before:], None), (expected, None), f"{before} hidden tokens before")


@invariant()
def strides_cannot_matter(implementation):
    arrays = inputs(implementation, 3, 5)
    ways = {
        "every other number": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
        "one row for all": lambda x: implementation.array(x[:1, :1].copy()),
    }
    if implementation.kind == "numpy":  # PyTorch has no negative strides
        ways["backwards"] = lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
    for what, lay in ways.items():
        laid = [lay(x) for x in arrays]
        if what == "one row for all":  # strides of 0
            spread = np.broadcast_to if implementation.kind == "numpy" else broadcast_tensor
            laid = [spread(x, y.shape) for x, y in zip(laid, arrays, strict=True)]
        copies = [np.array(array(x), order="C") for x in laid]
        expected = implementation(*copies, **default(implementation))
        assert_same(implementation(*laid, **default(implementation)), expected, what)


def broadcast_tensor(x, shape):
    return x.expand(shape)


@invariant()
def batch_axes_broadcast(implementation):
    n, m = (3, 5) if implementation.can("rectangles") else (4, 4)
    query, key, value = numbers(1, 2, 1, n, D), numbers(2, 3, m, D), numbers(3, 1, 3, m, D_V)
    whole = [np.broadcast_to(x, (2, 3, *x.shape[-2:])).copy() for x in (query, key, value)]
    result = implementation(query, key, value, **default(implementation))
    expected = list(implementation(*whole, **default(implementation)))
    assert_same((result[0], None), (expected[0], None), "broadcast batch axes")
    if implementation.can("mask"):
        mask = np.random.default_rng(5).random((3, n, m)) < 0.6
        options = {**default(implementation), "mask": mask}
        result = implementation(query, key, value, **options)
        expected = implementation(*whole, **{**options, "mask": np.stack([mask, mask])})
        assert_same((result[0], None), (expected[0], None), "broadcast batch axes of a mask")


@invariant("gradients")
def gradients_are_the_slopes(implementation):
    import torch

    query, key, value = as_leaves(implementation, *inputs(implementation, 2, 3, batch=(1,)))
    for options in seen(implementation, query, key):

        def output(*arrays, options=options):
            return implementation(*arrays, **options)[0]

        assert torch.autograd.gradcheck(
            output, (query, key, value), raise_exception=False, atol=1e-6, fast_mode=True
        ), f"a gradient is not the slope, {options}"


@invariant("gradients", "mask")
def gradients_are_finite_without_keys(implementation):
    arrays = inputs(implementation, 4, 4)
    query, key, value = as_leaves(implementation, *arrays)
    mask = np.ones((2, 4, 4), dtype=bool)
    mask[0, 1] = mask[1] = False
    options = {**default(implementation), "mask": mask}
    try:
        with no_nan_in_backward():
            output, _ = implementation(query, key, value, **options)
            output.sum().backward()
    except RuntimeError as error:
        raise AssertionError(f"on the way back: {error}") from error
    for name, x in (("query", query), ("key", key), ("value", value)):
        assert np.isfinite(x.grad.numpy()).all(), f"{name}: a gradient is not finite"
        assert not x.grad[1].any(), f"{name}: a gradient where nothing may be seen"
    assert not query.grad[0, 1].any(), "a gradient to a query without keys"


PAIRS = [
    pytest.param(check, implementation, id=f"{name}-{implementation.name}")
    for name, check in INVARIANTS.items()
    for implementation in IMPLEMENTATIONS
    if applies(check, implementation)
]


@pytest.mark.parametrize("check, implementation", PAIRS)
def test_invariant(check, implementation):
    check(implementation)


@pytest.mark.parametrize("each", [i for i in IMPLEMENTATIONS if "shifts" in i.lacks])
def test_positions_count_where_they_are_said_to(each):
    """Positions that changed nothing would pass all else: here the invariant has to fail."""
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        INVARIANTS["where_a_text_begins_cannot_matter"](each)


@pytest.mark.parametrize("each", [i for i in IMPLEMENTATIONS if "unordered" in i.lacks])
def test_the_order_of_the_keys_counts_where_it_is_said_to(each):
    query, key, value = inputs(each, 4, 4)
    moved = each(query, key[:, ::-1].copy(), value[:, ::-1].copy(), **default(each))[0]
    assert not np.allclose(array(moved), array(each(query, key, value, **default(each))[0]))


def test_every_name_is_used_once_and_every_feature_that_may_be_lacking_is_asked_for():
    names = [implementation.name for implementation in IMPLEMENTATIONS]
    assert len(names) == len(set(names))
    assert {need for check in INVARIANTS.values() for need in check.needs} <= CAN


# The suite itself: it accepts what is right, and each mistake is rejected by the invariant meant.


@pytest.mark.parametrize("right", correct(), ids=lambda right: right.name)
@pytest.mark.parametrize("check", INVARIANTS.values(), ids=INVARIANTS)
def test_suite_accepts_what_the_mistakes_are_made_from(check, right):
    if applies(check, right):
        check(right)
    else:
        assert set(check.needs) & right.lacks


@pytest.mark.parametrize("broken", [pytest.param(b, id=f"{b.name}-{b.meant}") for b in BROKEN])
def test_suite_rejects(broken):
    check = INVARIANTS[broken.meant]
    assert applies(check, broken.implementation)
    with np.errstate(all="ignore"), pytest.raises(broken.raises):
        check(broken.implementation)


def test_every_exhibit_of_the_book_is_rejected():
    """Both layouts of rotary are attention: only a known model's numbers tell them apart."""
    rejected = {broken.name.partition(" [")[0] for broken in BROKEN}
    assert set(EXHIBITS) - rejected == {"rotary_in_halves"}
    x = numbers(0, 3, 6)
    turned, other = rotary(x, base=1e5), EXHIBITS["rotary_in_halves"](x)
    np.testing.assert_allclose(turned[0], other[0])  # at position 0 both are right
    assert not np.allclose(turned, other)


def test_every_invariant_rejects_something():
    needs_gradients = {name for name, check in INVARIANTS.items() if "gradients" in check.needs}
    idle = INVARIANTS.keys() - {b.meant for b in BROKEN}
    assert idle <= (set() if TORCH else needs_gradients)
