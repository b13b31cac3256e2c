"""The scores: how a query is compared with a key."""

import functools

import numpy as np
import oracles
import pytest
from comparing import assert_close, dtype_name, each_dtype, no_nan_in_backward, random

from d2lmini import (
    additive_score,
    bilinear_score,
    cosine_score,
    dot_product_score,
    gaussian_score,
    scaled_dot_product_score,
)
from d2lmini.scores import __all__ as SCORES

NAMES = [name.removesuffix("_score").replace("_", " ") for name in SCORES]
each_score = pytest.mark.parametrize("name", NAMES)
NAN = float("nan")


def library_and_loop(name, xp, *, dtype="float64", d_q=3, d_k=3, hidden=5):
    """Return a score of the library and the loop that defines it, with the same parameters."""
    matrix = random(xp, 10, d_q, d_k, dtype=dtype)
    sizes = [(d_q, hidden), (d_k, hidden), (hidden,)]
    network = [random(xp, 11, *size, dtype=dtype) for size in sizes]
    return {
        "dot product": (dot_product_score, oracles.dot_product),
        "scaled dot product": (scaled_dot_product_score, oracles.scaled_dot_product),
        "cosine": (cosine_score, oracles.cosine),
        "gaussian": (
            lambda q, k: gaussian_score(q, k, width=0.5),
            functools.partial(oracles.gaussian, width=0.5),
        ),
        "bilinear": (
            lambda q, k: bilinear_score(q, k, matrix),
            functools.partial(oracles.bilinear, weight=matrix.tolist()),
        ),
        "additive": (
            lambda q, k: additive_score(q, k, *network),
            lambda q, k: oracles.additive(q, k, *(w.tolist() for w in network)),
        ),
    }[name]


# Values


@each_dtype
@each_score
def test_score_is_its_definition(xp, dtype, name):
    score, loop = library_and_loop(name, xp, dtype=dtype)
    query, key = random(xp, 0, 2, 4, 3, dtype=dtype), random(xp, 1, 2, 5, 3, dtype=dtype)
    query[0, 1] = 0  # a vector without direction
    scores = score(query, key)
    expected = oracles.scores(query, key, loop)
    assert dtype_name(scores) == dtype
    assert_close(scores, expected, scale=4 * np.abs(expected).max())


@each_score
@pytest.mark.parametrize("n, m, d", [(0, 2, 3), (2, 0, 3), (0, 0, 3), (2, 4, 0)])
def test_axes_of_size_zero(xp, name, n, m, d):
    """Vectors without components are all alike: their score is 0."""
    score, _ = library_and_loop(name, xp, d_q=d, d_k=d)
    scores = score(xp.zeros((n, d), dtype=xp.float64), xp.zeros((m, d), dtype=xp.float64))
    assert tuple(scores.shape) == (n, m)
    assert not xp.any(scores != 0)


def test_the_scale_replaces_one_over_the_root_of_d(xp):
    query, key = random(xp, 4, 2, 16), random(xp, 5, 3, 16)
    dot = oracles.scores(query, key, oracles.dot_product)
    assert_close(scaled_dot_product_score(query, key), dot / 4, scale=10)
    assert_close(scaled_dot_product_score(query, key, scale=0.5), dot / 2, scale=10)


def test_the_query_is_scaled_before_the_product(xp):
    """In float16 the unscaled product, 32 · 32 · 64 = 65536, would be infinite."""
    query = xp.full((1, 64), 32.0, dtype=xp.float16)
    assert scaled_dot_product_score(query, query).tolist() == [[8192]]


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_cosine_sees_the_direction_alone(xp, size):
    query, key = xp.asarray([[3.0, 4.0]], dtype=xp.float64), random(xp, 6, 3, 2)
    expected = oracles.scores(query, key, oracles.cosine)
    assert_close(cosine_score(query * size, key), expected)
    assert_close(cosine_score(query, key * size), expected)


def test_a_gaussian_score_does_not_lose_digits_far_from_zero(xp):
    """|q|² + |k|² - 2 qk would give 0 here."""
    query, key = xp.asarray([[1e8]], dtype=xp.float64), xp.asarray([[1e8 + 1]], dtype=xp.float64)
    assert gaussian_score(query, key).tolist() == [[-0.5]]


def test_queries_and_keys_of_two_lengths(xp):
    query, key = random(xp, 7, 2, 3), random(xp, 8, 4, 6)
    for name in ("bilinear", "additive"):
        score, loop = library_and_loop(name, xp, d_q=3, d_k=6)
        assert_close(score(query, key), oracles.scores(query, key, loop), scale=20)


@each_score
def test_nan_stays_in_its_row_and_column(xp, name):
    score, _ = library_and_loop(name, xp, d_q=1, d_k=1)
    scores = score(xp.asarray([[NAN], [1.0]]), xp.asarray([[1.0], [NAN], [2.0]]))
    assert np.isnan(scores.tolist()).tolist() == [[True] * 3, [False, True, False]]


# Kinds and bad input


@each_score
def test_shapes_that_do_not_fit(xp, name):
    score, _ = library_and_loop(name, xp)
    shapes = {
        r"query .* 2 axes .* \(3,\).*query\[None, :\]": ((3,), (2, 3)),
        r"query \(2, 1, 3\) and key \(5, 1, 3\)": ((2, 1, 3), (5, 1, 3)),
    }
    if name not in ("bilinear", "additive"):  # which compare vectors of two lengths
        shapes[r"query and key .* got 3 and 4;.*bilinear_score"] = ((2, 3), (2, 4))
    for words, (query, key) in shapes.items():
        with pytest.raises(ValueError, match=words):
            score(xp.zeros(query), xp.zeros(key))


def test_numbers_given_as_numpys_do_not_widen_the_result(xp):
    query, wide = random(xp, 0, 2, 3, dtype="float32"), np.float64(0.5)
    assert dtype_name(scaled_dot_product_score(query, query, scale=wide)) == "float32"
    assert dtype_name(gaussian_score(query, query, width=wide)) == "float32"


# Inputs and gradients


@each_score
def test_gradients_are_finite_at_zero_and_where_vectors_coincide(torch, name):
    score, _ = library_and_loop(name, torch, d_q=2, d_k=2)
    query = torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    with no_nan_in_backward():
        score(query, query).sum().backward()
    assert query.grad.isfinite().all()


# Numbers at the ends of what a dtype holds


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_float16_length_of_many_numbers(order):
    """NumPy's own sum of float16 stalls at 2048 along an axis that is not contiguous."""
    x = np.asarray(np.ones((2, 5000), np.float16), order=order)
    assert cosine_score(x, x).tolist() == [[1, 1], [1, 1]]
    np.testing.assert_allclose(gaussian_score(0 * x, x / 64), -5000 / 2 / 64**2, rtol=1e-3)


@each_dtype
@pytest.mark.parametrize("width", [5e-324, 1e-200, 1e-60, 1e60, 1.7e308])
def test_a_width_at_the_end_of_all_numbers(xp, dtype, width):
    """Also one that the dtype does not hold: equal vectors score 0, others 0 or far below."""
    query, key = (
        xp.asarray(x, dtype=getattr(xp, dtype)) for x in ([[1.0, 0.0]], [[1.0, 0.0], [1.0, 2.0]])
    )
    with np.errstate(all="raise"):
        scores = gaussian_score(query, key, width=width)
    assert dtype_name(scores) == dtype
    same, other = scores[0, :].tolist()
    assert same == 0
    assert other < -1e9 if width < 1 else -1e-100 <= other <= 0


def test_a_scale_that_does_not_fit_the_dtype(xp):
    x = xp.asarray([[0.0, 1.0]], dtype=xp.float16)
    words = r"scale = -1e\+300 does not fit .*float16, whose largest number is 65504"
    with pytest.raises(ValueError, match=words):
        scaled_dot_product_score(x, x, scale=-1e300)
    x = xp.astype(x, xp.float64)
    assert float(scaled_dot_product_score(x, x, scale=1e300)[0, 0]) == 1e300
