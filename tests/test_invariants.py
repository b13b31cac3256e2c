"""One suite over every implementation of attention: what has to hold, whoever computes it.

The implementations stand in ``implementations.py``, one line each. ``broken.py`` holds some with a
mistake, and the second half of this file shows that the suite finds each of them.
"""

import numpy as np
import pytest
from broken import BROKEN, EXHIBITS, correct
from comparing import TORCH, no_nan_in_backward
from implementations import CAN, D_V, IMPLEMENTATIONS, D, numbers

from d2lmini import rotary
from d2lmini.testing import check_attention

HUGE = 1e100  # its square still fits float64
CLOSE = {"rtol": 1e-11, "atol": 1e-12}
INVARIANTS = {}


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


def array(x):
    return x.detach().numpy() if hasattr(x, "detach") else x


def assert_same(result, expected, what):
    """Compare outputs, and weights where both have them."""
    for name, one, other in zip(("output", "weights"), result, expected, strict=True):
        if one is not None and other is not None:
            one, other = array(one), array(other)
            assert one.shape == other.shape, f"{what}: shape of the {name}"
            np.testing.assert_allclose(one, other, **CLOSE, err_msg=f"{what}: {name}")


def as_leaves(implementation, *arrays):
    return [implementation.array(x.copy()).requires_grad_() for x in arrays]


@invariant()
def equal_to_the_loops(implementation):
    for n, m in [(3, 5), (5, 3), (4, 4), (1, 1), (1, 6)]:
        query, key, value = inputs(implementation, n, m)
        for options in seen(implementation, query, key):
            result = implementation(query, key, value, **options)
            expected = implementation.expected(query, key, value, **options)
            assert_same(result, expected, f"n = {n}, m = {m}, {options}")


@invariant("causal")
def a_later_token_cannot_matter(implementation):
    query, key, value = inputs(implementation, 3, 5)
    n, m = query.shape[-2], key.shape[-2]
    masks = [None, np.tri(n, m, dtype=bool) | (np.arange(m) % 2 == 0)]
    for mask in masks[: 1 + implementation.can("mask")]:
        before = implementation(query, key, value, mask=mask, causal=True)
        for i in range(n):
            later = i + (m - n) + 1
            changed_key, changed_value = key.copy(), value.copy()
            changed_key[:, later:] *= -HUGE
            changed_value[:, later:] = HUGE
            after = implementation(query, changed_key, changed_value, mask=mask, causal=True)
            rows = [[x if x is None else x[..., i, :] for x in r] for r in (before, after)]
            assert_same(*rows, f"query {i} when what follows has changed")


@invariant("causal", "gradients")
def a_later_token_gets_no_gradient(implementation):
    for i in range(4):
        query, key, value = as_leaves(implementation, *inputs(implementation, 4, 4))
        output, _ = implementation(query, key, value, causal=True)
        output[:, i].sum().backward()
        for name, x in (("key", key), ("value", value)):
            assert not x.grad[:, i + 1 :].any(), f"query {i} has taught a later {name}"


@invariant("mask")
def a_masked_key_cannot_matter(implementation):
    query, key, value = inputs(implementation, 3, 5)
    m = key.shape[-2]
    hidden = np.arange(m) % 2 == 1
    mask = np.tile(~hidden, (query.shape[-2], 1))
    options = {**default(implementation), "mask": mask}
    before = implementation(query, key, value, **options)
    changed_key, changed_value = key.copy(), value.copy()
    changed_key[:, hidden] *= HUGE
    changed_value[:, hidden] = -HUGE
    after = implementation(query, changed_key, changed_value, **options)
    assert_same(after, before, "hidden keys and values have changed")
    if after[1] is not None:
        assert not array(after[1])[..., hidden].any(), "a hidden key has a weight"


@invariant("mask")
def a_masked_key_stays_hidden_however_low_the_others_score(implementation):
    query, key, value = inputs(implementation, 3, 5)
    query, key = 3000 * abs(query), -3000 * abs(key)
    mask = np.tile(np.arange(key.shape[-2]) % 2 == 0, (query.shape[-2], 1))
    options = {**default(implementation), "mask": mask}
    result = implementation(query, key, value, **options)
    assert_same(result, implementation.expected(query, key, value, **options), "large scores")


@invariant("everything", "unordered")
def the_order_of_the_keys_cannot_matter(implementation):
    query, key, value = inputs(implementation, 4, 4)
    order = [2, 0, 3, 1]
    masks = [None, np.random.default_rng(7).random((4, 4)) < 0.7]
    for mask in masks[: 1 + implementation.can("mask")]:
        output, weights = implementation(query, key, value, mask=mask)
        weights = None if weights is None else weights[..., order]
        moved_mask = None if mask is None else mask[:, order]
        moved = implementation(query, key[:, order], value[:, order], mask=moved_mask)
        assert_same(moved, (output, weights), "keys and values in another order")


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


@invariant("weights")
def each_row_sums_to_one_or_zero(implementation):
    for n, m in [(3, 5), (5, 3)]:
        query, key, value = inputs(implementation, n, m)
        for options in seen(implementation, query, key):
            _, weights = implementation(query, key, value, **options)
            weights = array(weights)
            assert (weights >= 0).all(), f"a weight below 0, {options}"
            _, expected = implementation.expected(query, key, value, **options)
            has_key = expected.any(axis=-1)
            np.testing.assert_allclose(weights.sum(axis=-1), has_key, atol=1e-12)


@invariant()
def a_query_without_keys_gets_nothing(implementation):
    query, key, value = inputs(implementation, 4, 4)
    cases = {"keys out of reach": (query + 30, key, value, default(implementation))}
    if implementation.can("mask"):
        row = np.arange(4)[:, None] != np.array([1, 1, 1, 1])  # query 1 may see no key
        item = np.array([True, False])[:, None, None] & np.ones((1, 1, 4), dtype=bool)
        for mask in (row, item, np.zeros((4, 4), dtype=bool)):
            options = {**default(implementation), "mask": mask}
            cases[f"mask {mask.tolist()}"] = (query, key, value, options)
    if implementation.can("causal", "rectangles"):
        cases["more queries than keys"] = (query, key[:, :1], value[:, :1], {"causal": True})
    if implementation.can("rectangles"):
        cases["no keys"] = (query, key[:, :0], value[:, :0], default(implementation))
    for what, (q, k, v, options) in cases.items():
        result = implementation(q, k, v, **options)
        assert np.isfinite(array(result[0])).all(), f"{what}: not a number"
        assert_same(result, implementation.expected(q, k, v, **options), what)


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


@invariant()
def inputs_are_not_written_to(implementation):
    query, key, value = inputs(implementation, 3, 5)
    for options in seen(implementation, query, key):
        given = [implementation.array(x.copy()) for x in (query, key, value)]
        options = {**options}
        if options["mask"] is not None:
            options["mask"] = implementation.array(options["mask"].copy())
            given.append(options["mask"])
        copies = [array(x).copy() for x in given]
        versions = [getattr(x, "_version", 0) for x in given]
        implementation(*given[:3], **options)
        for name, x, copy in zip(("query", "key", "value", "mask"), given, copies, strict=False):
            np.testing.assert_array_equal(array(x), copy, err_msg=f"{name} was written to")
        assert versions == [getattr(x, "_version", 0) for x in given], "written to, and back"


@invariant()
def layout_in_memory_cannot_matter(implementation):
    arrays = inputs(implementation, 3, 5)
    expected = implementation(*arrays, **default(implementation))
    layouts = {
        "axes swapped": lambda x: np.ascontiguousarray(x.swapaxes(0, 2)).swapaxes(0, 2),
        "Fortran order": np.asfortranarray,
        "every other number": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    }
    if implementation.kind == "numpy":  # PyTorch has no negative strides
        layouts["negative strides"] = lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
    for what, lay in layouts.items():
        laid = [lay(x) for x in arrays]
        assert not any(x.flags.c_contiguous for x in laid)
        assert_same(implementation(*laid, **default(implementation)), expected, what)
    one_row = [np.broadcast_to(x[:1, :1], x.shape) for x in arrays]  # strides of 0
    expected = implementation(*(x.copy() for x in one_row), **default(implementation))
    given = [x if implementation.kind == "numpy" else torch_row(x) for x in one_row]
    assert_same(implementation(*given, **default(implementation)), expected, "strides of 0")


def torch_row(x):
    """Return a tensor with the strides of 0 of a broadcast NumPy array."""
    import torch

    return torch.as_tensor(x[:1, :1].copy()).expand(x.shape)


@invariant()
def any_axis_may_be_empty(implementation):
    for batch, n, m in [((0,), 3, 5), ((2,), 0, 5), ((2,), 3, 0), ((2,), 0, 0), ((0, 3), 2, 2)]:
        query, key, value = inputs(implementation, n, m, batch)
        for options in seen(implementation, query, key):
            if options["mask"] is not None and options["mask"].ndim > 2:
                continue
            result = implementation(query, key, value, **options)
            expected = implementation.expected(query, key, value, **options)
            assert_same(result, expected, f"batch {batch}, n = {n}, m = {m}")


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


@invariant()
def each_item_of_a_batch_stands_alone(implementation):
    query, key, value = inputs(implementation, 3, 5, batch=(3,))
    for options in seen(implementation, query, key):
        together = implementation(query, key, value, **options)
        for b in range(3):
            one = slice(b, b + 1)
            mask = options["mask"]
            own = {**options, "mask": mask[one] if mask is not None and mask.ndim > 2 else mask}
            alone = implementation(query[one], key[one], value[one], **own)
            rows = [None if x is None else x[one] for x in together]
            assert_same(alone, rows, f"item {b} by itself, {options}")


@invariant("causal", "rectangles")
def one_token_at_a_time_is_all_at_once(implementation):
    query, key, value = inputs(implementation, 5, 5)
    masks = [None, np.random.default_rng(3).random((5, 5)) < 0.7]
    for mask in masks[: 1 + implementation.can("mask")]:
        output, _ = implementation(query, key, value, mask=mask, causal=True)
        for t in range(5):
            now, past = slice(t, t + 1), slice(t + 1)
            row = None if mask is None else mask[now, past]
            newest, _ = implementation(
                query[:, now], key[:, past], value[:, past], mask=row, causal=True
            )
            assert_same((newest, None), (output[:, now], None), f"token {t}")


@invariant()
def a_call_leaves_no_trace(implementation):
    first, second = (inputs(implementation, 3, 5, seed=seed) for seed in (0, 1))
    before = implementation(*first, **default(implementation))
    before = [None if x is None else array(x).copy() for x in before]
    for options in seen(implementation, *second[:2]):
        implementation(*second, **options)
    after = implementation(*first, **default(implementation))
    assert_same(after, before, "the same call again")


PAIRS = [
    pytest.param(check, implementation, id=f"{name}-{implementation.name}")
    for name, check in INVARIANTS.items()
    for implementation in IMPLEMENTATIONS
    if applies(check, implementation)
]


@pytest.mark.parametrize("check, implementation", PAIRS)
def test_invariant(check, implementation):
    check(implementation)


@pytest.mark.parametrize(
    "missed, name, implementation",
    [
        pytest.param(missed, name, each, id=f"{missed}-{each.name}")
        for missed, name in (
            ("unordered", "the_order_of_the_keys_cannot_matter"),
            ("shifts", "where_a_text_begins_cannot_matter"),
        )
        for each in IMPLEMENTATIONS
        if missed in each.lacks
    ],
)
def test_positions_count_where_they_are_said_to(missed, name, implementation):
    """Positions that changed nothing would pass all else: here the invariant has to fail."""
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        INVARIANTS[name](implementation)


def test_every_name_is_used_once():
    names = [implementation.name for implementation in IMPLEMENTATIONS]
    assert len(names) == len(set(names))


def test_every_feature_that_may_be_lacking_is_asked_for():
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


# The list of chapter 9 and of `check_attention`, over every implementation of the same formula.

SAME_FORMULA = ("attention [", "tiled_attention", "in tiles", "ring_attention", "loops")


@pytest.mark.parametrize(
    "implementation",
    [each for each in IMPLEMENTATIONS if each.name.startswith(SAME_FORMULA)],
    ids=lambda each: each.name,
)
def test_the_list_of_the_book_finds_nothing(implementation):
    report = check_attention(
        implementation.function,
        arrays=implementation.kind,
        names={"heads": None}
        | {name: name if implementation.can(name) else None for name in ("mask", "causal")},
    )
    assert not report, report
    assert "it_is_the_definition" in report.held


def test_every_invariant_rejects_something():
    needs_gradients = {name for name, check in INVARIANTS.items() if "gradients" in check.needs}
    idle = INVARIANTS.keys() - {b.meant for b in BROKEN}
    assert idle <= (set() if TORCH else needs_gradients)
