"""attention: score, mask, softmax, weighted sum."""

import numpy as np
import oracles
import pytest
from comparing import (
    assert_close,
    dtype_name,
    each_dtype,
    no_nan_in_backward,
    random,
    uses_torch_func,
)

from d2lmini import (
    attention,
    bilinear_score,
    cosine_score,
    dot_product_score,
    gaussian_score,
    padding_mask,
    scaled_dot_product_score,
)

NAN, INF = float("nan"), float("inf")


def inputs(xp, *, batch=(2,), n=3, m=5, d=4, d_v=2, dtype="float64"):
    """Queries, keys and values, with no two sizes equal."""
    return (
        random(xp, 0, *batch, n, d, dtype=dtype),
        random(xp, 1, *batch, m, d, dtype=dtype),
        random(xp, 2, *batch, m, d_v, dtype=dtype),
    )


def assert_is(result, expected, scale=5):
    """Compare output and weights with the oracle's."""
    assert_close(result.output, expected[0], scale=scale)
    assert_close(result.weights, expected[1])


def dtypes(result):
    return {dtype_name(x) for x in result}


# Values


@each_dtype
@pytest.mark.parametrize("causal", [False, True, np.True_])
def test_attention_with_a_mask_is_its_definition(xp, dtype, causal):
    query, key, value = inputs(xp, dtype=dtype)
    mask = random(xp, 3, 2, 3, 5) > 0
    mask[0, 2] = False  # a query without keys
    result = attention(query, key, value, mask=mask, causal=causal)
    assert dtypes(result) == {dtype}
    assert_is(result, oracles.attention(query, key, value, mask, causal))


# Scores


def test_a_score_may_hide_keys_with_minus_infinity(xp):
    """Also all of them, and together with a mask."""

    def score(q, k):
        return xp.where(dot_product_score(q, k) > 0, 0.0, -INF)

    query, value = xp.asarray([[1.0], [-1.0], [0.0]]), xp.asarray([[10.0], [20.0], [30.0]])
    key = xp.asarray([[1.0], [2.0], [-1.0]])
    assert attention(query, key, value, score=score).output.tolist() == [[15], [30], [0]]
    mask = xp.asarray([False, True, False])
    assert attention(query, key, value, score=score, mask=mask).output.tolist() == [[20], [0], [0]]


def test_a_score_of_another_dtype(xp):
    """The wider one wins, as everywhere; weights are as wide as the values."""
    query, key, value = inputs(xp, dtype="float64")
    ones = attention(query, key, value, score=lambda q, k: xp.astype(q @ k.mT > 99, xp.int64))
    assert_close(ones.weights, np.full((2, 3, 5), 0.2))
    query, key, value = inputs(xp, dtype="float32")
    wide = random(xp, 4, 4, 4, dtype="float64")
    result = attention(query, key, value, score=lambda q, k: bilinear_score(q, k, wide))
    assert dtypes(result) == {"float64"}
    assert "float64" in dtypes(attention(query, key, xp.astype(value, xp.float64)))


# Masks


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1), (1, 5), (3, 5), (1, 3, 5), (2, 1, 1)])
def test_mask_shapes_that_broadcast(xp, shape):
    query, key, value = inputs(xp)
    mask = xp.reshape(random(xp, 8, 30)[: int(np.prod(shape))] > 0, shape)
    result = attention(query, key, value, mask=mask)
    assert_is(result, oracles.attention(query, key, value, mask))


def test_nan_reaches_what_uses_it(xp):
    """A NaN in a query its row, in a key the rows that see it, in a value also rows that do not."""
    query, key, value = inputs(xp, batch=())
    hide_first = xp.asarray([False, True, True, True, True])

    def spoiled(which, mask=None):
        copies = [xp.asarray(x, copy=True) for x in (query, key, value)]
        copies[which][0, 0] = NAN
        return np.isnan(attention(*copies, mask=mask).output.tolist()).tolist()

    assert spoiled(0) == [[True, True], [False, False], [False, False]]
    assert spoiled(1) == [[True, True]] * 3
    assert spoiled(1, hide_first) == [[False, False]] * 3
    assert spoiled(2) == [[True, False]] * 3
    assert spoiled(2, hide_first) == [[True, False]] * 3  # 0 · NaN, as in PyTorch


def test_the_result_is_not_a_view_of_the_inputs():
    """With one key the output equals the value, and may be written to all the same."""
    value = np.ones((1, 2))
    output, weights = attention(np.ones((1, 3)), np.ones((1, 3)), value)
    output[:], weights[:] = 7, 7
    assert value.tolist() == [[1, 1]]


# Gradients


def test_no_nan_enters_the_graph(torch):
    """Two layers, with items that have no keys at all and huge padding."""
    query, key, value = inputs(torch, n=5, d_v=4)
    key[:, 4], value[:, 4] = 1e150, -1e150
    leaves = [x.requires_grad_() for x in (query, key, value)]
    mask = padding_mask(torch.tensor([0, 4]), 5)
    with no_nan_in_backward():
        first = attention(*leaves, mask=mask, causal=True)
        second = attention(first.output, first.output, first.output, mask=mask, causal=True)
        (second.output.sum() + second.weights.square().sum()).backward()
    assert not first.output[0].any()
    for x in leaves:
        assert x.grad.isfinite().all()
        assert not x.grad[0].any()  # an item without keys teaches nothing


@each_dtype
def test_hidden_keys_may_be_huge_enough_for_their_scores_to_overflow(xp, dtype):
    """Without a warning: nothing that is seen has overflowed."""
    largest = {"float16": 6e4, "bfloat16": 3e38, "float32": 3e38, "float64": 1.7e308}[dtype]
    as_dtype = {"dtype": getattr(xp, dtype)}
    query = xp.asarray([[largest, largest]], **as_dtype)
    key = xp.asarray([[0, 0], [largest, largest], [largest, -largest]], **as_dtype)
    value, mask = xp.asarray([[1.0], [2.0], [3.0]], **as_dtype), xp.asarray([True, False, False])
    for score in (scaled_dot_product_score, dot_product_score, cosine_score):
        output, weights = attention(query, key, value, mask=mask, score=score)
        assert (output.tolist(), weights.tolist()) == ([[1]], [[1, 0, 0]])
    output, _ = attention(0 * query, key, value, mask=mask, score=gaussian_score)
    assert output.tolist() == [[1]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_are_finite_where_hidden_keys_and_values_are_huge(torch, dtype):
    """A gradient that overflows at what is hidden must not meet the weight 0: inf · 0 is NaN."""
    largest = torch.finfo(getattr(torch, dtype)).max
    query, key, value = (torch.ones(n, 4, dtype=getattr(torch, dtype)) for n in (1, 3, 3))
    key[2], value[2] = largest, largest
    leaves = [x.requires_grad_() for x in (query, key, value)]
    with no_nan_in_backward():
        output, weights = attention(*leaves, mask=torch.tensor([True, True, False]))
        (output.sum() + weights.sum()).backward()
    assert output.tolist() == [[1, 1, 1, 1]]
    assert all(x.grad.isfinite().all() for x in leaves)
    assert not key.grad[2].any() and not value.grad[2].any()


@pytest.mark.parametrize("hides", ["nothing", "a mask", "itself"])
def test_the_scores_that_a_function_keeps_stay_as_they_are(xp, hides):
    query, key, value = (random(xp, seed, 3, 4) for seed in range(3))
    kept = scaled_dot_product_score(query, key)
    if hides == "itself":
        kept[0, 1] = -float("inf")
    before = xp.asarray(kept, copy=True)
    mask = random(xp, 4, 3, 3) > 0 if hides == "a mask" else None
    attention(query, key, value, mask=mask, score=lambda q, k: kept)
    assert_close(kept, before)


@pytest.mark.parametrize("recording", [True, False])
def test_autocast_has_one_dtype_with_and_without_a_mask(torch, recording):
    x = torch.randn(3, 4, requires_grad=recording)
    mask = torch.tensor([True, True, False])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = torch.softmax(x @ x.mT, -1).dtype
        for given in (None, mask):
            assert attention(x, x, x, mask=given).weights.dtype == expected


@uses_torch_func
def test_gradients_of_gradients_and_of_many_at_once(torch):
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    attend = lambda x: attention(x, x, x, mask=mask).output.square().sum()  # noqa: E731
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    together = torch.func.vmap(torch.func.grad(attend))(x)
    for one, found in zip(x, together, strict=True):
        leaf = one.clone().requires_grad_()
        assert torch.allclose(found, torch.autograd.grad(attend(leaf), leaf)[0])
    assert torch.autograd.gradgradcheck(attend, (x[0].clone().requires_grad_(),))
    _, tangent = torch.func.jvp(attend, (x[0],), (torch.ones_like(x[0]),))
    assert torch.allclose(tangent, together[0].sum())


# PyTorch's transforms


def test_it_compiles_once_for_all_lengths(torch):
    attend = lambda x: attention(x, x, x, causal=True).output  # noqa: E731
    torch.compiler.reset()
    compiled = torch.compile(attend, backend="eager", fullgraph=True)
    for n in range(2, 15):  # more lengths than PyTorch compiles one function for
        x = torch.randn(n, 4)
        assert torch.allclose(compiled(x), attend(x), atol=1e-6)
