"""nadaraya_watson: weights from distance alone."""

import numpy as np
import oracles
import pytest
from comparing import assert_close, dtype_name, each_dtype, no_nan_in_backward, random

from d2lmini import nadaraya_watson

KERNELS = ["gaussian", "boxcar", "triangular", "epanechnikov"]
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def assert_is(result, expected, scale=5):
    assert_close(result.output, expected[0], scale=scale)
    assert_close(result.weights, expected[1], scale=scale)


@each_dtype
@each_kernel
def test_estimate_is_its_definition(xp, dtype, kernel):
    query, key = random(xp, 0, 2, 3, 2, dtype=dtype), random(xp, 1, 2, 6, 2, dtype=dtype)
    value = random(xp, 2, 2, 6, 4, dtype=dtype)
    result = nadaraya_watson(query, key, value, kernel=kernel, width=1.5)
    assert dtype_name(result.output) == dtype
    assert_is(result, oracles.nadaraya_watson(query, key, value, kernel, 1.5), scale=10)


@pytest.mark.parametrize("width", [0.1, 0.7, 1e-3, 1e3, 1 / 3])
def test_a_key_at_the_edge_of_the_boxcar_is_inside(xp, width):
    query = xp.zeros((1, 1), dtype=xp.float64)
    key = xp.asarray([[width], [-width], [1.001 * width]], dtype=xp.float64)
    weights = nadaraya_watson(query, key, key, kernel="boxcar", width=width).weights
    assert weights.tolist() == [[0.5, 0.5, 0]]


@each_kernel
def test_nan_gives_nan_not_a_weight(xp, kernel):
    nan = float("nan")
    key, value = xp.asarray([[0.0], [9.0]]), xp.asarray([[1.0], [3.0]])
    output, weights = nadaraya_watson(xp.asarray([[nan], [0.0]]), key, value, kernel=kernel)
    assert np.isnan(output.tolist()).tolist() == [[True], [False]]
    assert np.isnan(weights[0, :].tolist()).all()
    output, _ = nadaraya_watson(key, xp.asarray([[nan], [9.0]]), value, kernel=kernel)
    assert np.isnan(output.tolist()).all()


# Gradients


@each_kernel
def test_gradients_are_finite_where_points_coincide_and_out_of_reach(torch, kernel):
    query = torch.tensor([[0.0, 1.0], [99.0, 99.0]], requires_grad=True)
    key = torch.tensor([[0.0, 1.0], [0.0, 1.0], [0.5, 1.0], [2.0, 1.0]], requires_grad=True)
    value = torch.randn(4, 1, requires_grad=True)
    with no_nan_in_backward():  # one key at the edge of the kernel, u = w
        nadaraya_watson(query, key, value, kernel=kernel, width=2.0).output.sum().backward()
    for x in (query, key, value):
        assert x.grad.isfinite().all()
    if kernel != "gaussian":
        assert query.grad[1].tolist() == [0, 0]


@each_kernel
def test_half_precision_measures_distances_whose_square_does_not_fit_it(xp, kernel):
    query, key, value = ([[300.0]], [[0.0], [1.0]], [[10.0], [20.0]])
    half = [xp.asarray(x, dtype=xp.float16) for x in (query, key, value)]
    output, weights = nadaraya_watson(*half, kernel=kernel, width=400.0)
    exact = nadaraya_watson(*map(np.asarray, (query, key, value)), kernel=kernel, width=400.0)
    assert output.dtype == weights.dtype == xp.float16
    np.testing.assert_allclose(np.asarray(weights), exact.weights, atol=1e-3)
    np.testing.assert_allclose(np.asarray(output), exact.output, rtol=1e-3)


@each_dtype
@each_kernel
@pytest.mark.parametrize("width", [5e-324, 1e-300, 1e-160, 1.7e308])
def test_a_width_at_the_end_of_all_numbers(xp, dtype, kernel, width):
    """A narrow kernel sees the equal key alone, a wide one all of them; no NaN, and no warning."""
    query, key, value = (
        xp.asarray(x, dtype=getattr(xp, dtype))
        for x in ([[1.0], [2.0]], [[1.0], [3.0], [7.0]], [[10.0], [20.0], [60.0]])
    )
    with np.errstate(all="raise"):
        output, weights = nadaraya_watson(query, key, value, kernel=kernel, width=width)
    if width < 1:
        assert weights.tolist() == [[1, 0, 0], [0, 0, 0]]
        assert output.tolist() == [[10], [0]]
    else:
        np.testing.assert_allclose(np.array(weights.tolist()), 1 / 3, rtol=1e-2)
