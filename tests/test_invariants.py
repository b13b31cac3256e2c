"""One suite over every implementation of attention: what has to hold, whoever computes it.

The list of chapter 9 and of `check_attention` comes first; what follows asks more, of gradients,
shapes and strides. The implementations stand in ``implementations.py``, one line each.
``broken.py`` holds some with a mistake, and the end of this file shows that each of them is found.
"""

import numpy as np
import pytest
from broken import BROKEN, RIGHT
from comparing import no_nan_in_backward
from implementations import D_V, IMPLEMENTATIONS, D, numbers
from numpy.lib.stride_tricks import as_strided

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
    takes_half, exactness, rectangles = False, 0.0, True
    lay, calls = staticmethod(np.ascontiguousarray), ()

    def __init__(self, implementation):
        self.implementation = implementation
        self.masks = "any" if implementation.can("mask") else None
        self.causal = (False, True) if implementation.can("causal") else (False,)
        self.returns_weights = implementation.can("weights")
        without = np.zeros((1, 1), dtype=bool)
        alone = (numbers(0, 1, 1, size) for size in (D, D, D_V))
        bias = self.masks and self.definition(*alone, mask=without).any()
        self.no_keys = "any" if bias else "zero"

    def definition(self, query, key, value, mask=None, causal=False, heads=1):
        return self.implementation.expected(query, key, value, mask=mask, causal=causal)[0]

    def __call__(self, query, key, value, mask=None, causal=False, heads=1):
        given = {"query": query, "key": key, "value": value}
        given |= {} if mask is None else {"mask": mask}
        given = {name: self.implementation.array(self.lay(x)) for name, x in given.items()}
        self.watch(given)
        return [x if x is None else array(x) for x in self.implementation(**given, causal=causal)]


def on_the_list(one):
    """Return a statement of the list as a check of an implementation."""

    def check(implementation):
        tried = Tried(implementation)
        sizes = Sizes(heads=1, keys=6, width=D, value_width=D_V)
        finding, _ = _first(tried, one, sizes)
        assert not finding, finding

    check.needs = ()
    return check


INVARIANTS |= {one.__name__: on_the_list(one) for one in LIST}


def invariant(*needs):
    """Register a check of one implementation; it applies to those that can do what it needs."""

    def register(check):
        INVARIANTS[check.__name__] = check
        check.needs = needs
        return check

    return register


def inputs(n, m, batch=(2,)):
    """Return random queries, keys and values as NumPy arrays."""
    return numbers(0, *batch, n, D), numbers(1, *batch, m, D), numbers(2, *batch, m, D_V)


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
    for mask in masks:
        for causal in (False, True)[: 1 + implementation.can("causal")]:
            yield {"mask": mask, "causal": causal}


def assert_same(result, expected, what):
    """Compare outputs, and weights where both have them."""
    for name, one, other in zip(("output", "weights"), result, expected, strict=True):
        if one is not None and other is not None:
            one, other = array(one), array(other)
            assert one.shape == other.shape, f"{what}: shape of the {name}"
            np.testing.assert_allclose(one, other, **CLOSE, err_msg=f"{what}: {name}")


def array(x):
    return x.detach().numpy() if hasattr(x, "detach") else x


@invariant()
def any_axis_may_have_any_size(implementation):
    cases = [((2,), n, m) for n, m in [(5, 3), (1, 1), (1, 6), (0, 5), (3, 0), (0, 0)]]
    for batch, n, m in [*cases, ((0,), 3, 5), ((0, 3), 2, 2)]:
        query, key, value = inputs(n, m, batch)
        for options in seen(implementation, query, key):
            if options["mask"] is not None and options["mask"].ndim > 2 and len(batch) > 1:
                continue
            result = implementation(query, key, value, **options)
            expected = implementation.expected(query, key, value, **options)
            assert_same(result, expected, f"batch {batch}, n = {n}, m = {m}, {options}")


@invariant()
def strides_cannot_matter(implementation):
    ways = {"every other number": lambda x: np.repeat(x, 2, axis=-1)[..., ::2]}
    ways["one row for all"] = lambda x: as_strided(x, strides=(0, 0, 8))
    if implementation.kind == "numpy":  # PyTorch has no negative strides
        ways["backwards"] = lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
    for what, lay in ways.items():
        laid = [lay(x) for x in inputs(3, 5)]
        copies = [np.array(x, order="C") for x in laid]
        assert_same(implementation(*laid), implementation(*copies), what)


@invariant()
def batch_axes_broadcast(implementation):
    query, key, value = numbers(1, 2, 1, 3, D), numbers(2, 3, 5, D), numbers(3, 1, 3, 5, D_V)
    whole = [np.broadcast_to(x, (2, 3, *x.shape[-2:])).copy() for x in (query, key, value)]
    rows = np.random.default_rng(5).random((3, 3, 5)) < 0.6
    for mask in (None, rows) if implementation.can("mask") else (None,):
        output, _ = implementation(query, key, value, mask=mask)
        full = None if mask is None else np.stack([mask, mask])
        expected, _ = implementation(*whole, mask=full)
        assert_same((output, None), (expected, None), "broadcast batch axes")


@invariant("gradients")
def gradients_are_the_slopes(implementation):
    import torch

    leaves = [torch.tensor(x, requires_grad=True) for x in inputs(2, 3, batch=(1,))]
    for options in seen(implementation, *leaves[:2]):

        def output(*arrays, options=options):
            return implementation(*arrays, **options)[0]

        assert torch.autograd.gradcheck(
            output, leaves, raise_exception=False, atol=1e-6, fast_mode=True
        ), f"a gradient is not the slope, {options}"


@invariant("gradients", "mask")
def gradients_are_finite_without_keys(implementation):
    import torch

    query, key, value = (torch.tensor(x, requires_grad=True) for x in inputs(4, 4))
    mask = np.ones((2, 4, 4), dtype=bool)
    mask[0, 1] = mask[1] = False
    try:
        with no_nan_in_backward():
            output, _ = implementation(query, key, value, mask=mask)
            output.sum().backward()
    except RuntimeError as error:
        raise AssertionError(f"on the way back: {error}") from error
    for name, x in (("query", query), ("key", key), ("value", value)):
        assert np.isfinite(x.grad.numpy()).all(), f"{name}: a gradient is not finite"
        assert not x.grad[1].any(), f"{name}: a gradient where nothing may be seen"
    assert not query.grad[0, 1].any(), "a gradient to a query without keys"


PAIRS = [
    (name, each)
    for name, check in INVARIANTS.items()
    for each in IMPLEMENTATIONS
    if each.can(*check.needs)
]


@pytest.mark.parametrize("name, each", PAIRS, ids=lambda one: getattr(one, "name", one))
def test_invariant(name, each):
    INVARIANTS[name](each)


@pytest.mark.parametrize("meant, broken", [(meant, one) for meant, made in BROKEN for one in made])
def test_suite_rejects(meant, broken):
    INVARIANTS[meant](RIGHT[broken.kind])
    with np.errstate(all="ignore"), pytest.raises((AssertionError, ValueError)):
        INVARIANTS[meant](broken)
