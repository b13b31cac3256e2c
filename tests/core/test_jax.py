"""Arrays of JAX go through the core as NumPy's do, also under jit, grad and vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import d2lmini as d

N, M, D = 4, 6, 8
RNG = np.random.default_rng(0)
SHAPES = (N, D), (M, D), (M, 5)
ARRAYS = [RNG.normal(size=(2, 3, *shape)).astype("float32") for shape in SHAPES]
QUERY, KEY, VALUE = ARRAYS
ONE = RNG.normal(size=(D, D)).astype("float32")
MASK = np.array([[(i + j) % 3 > 0 for j in range(M)] for i in range(N)])


def like(x, q):
    return x if isinstance(q, np.ndarray) else jnp.asarray(x)


CALLS = {
    "attention": lambda q, k, v: d.attention(q, k, v).output,
    "causal": lambda q, k, v: d.attention(q, k, v, causal=True).weights,
    "mask": lambda q, k, v: d.attention(q, k, v, mask=like(MASK, q)).output,
    "bias": lambda q, k, v: d.attention(q, k, v, bias=d.alibi_bias(3, N, M, like=q)).output,
    "gqa": lambda q, k, v: d.attention(q, k[:, :1], v[:, :1], enable_gqa=True).output,
    "heads": lambda q, k, v: (
        d.multi_head_attention(q, k, k, *[like(ONE, q)] * 4, num_heads=2).output
    ),
    "tiled": lambda q, k, v: d.tiled_attention(q, k, v, causal=True, block_size=4),
    "rotary": lambda q, k, v: d.rotary(q, layout="halves"),
    "sinusoidal": lambda q, k, v: q + d.sinusoidal_positions(N, D, like=q),
    "cosine": lambda q, k, v: d.cosine_score(q, k),
    "gaussian": lambda q, k, v: d.gaussian_score(q, k),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_as_numpy(name):
    call, traced = CALLS[name], tuple(map(jnp.asarray, ARRAYS))
    expected = call(*ARRAYS)
    for run in (call, jax.jit(call)):
        found = run(*traced)
        assert isinstance(found, jax.Array) and found.dtype == jnp.float32
        np.testing.assert_allclose(found, expected, rtol=5e-6, atol=2e-6)
    if name not in ("bias", "gqa"):  # they need the axis of the heads
        np.testing.assert_allclose(jax.vmap(call)(*traced), expected, rtol=5e-6, atol=2e-6)
    gradient = jax.grad(lambda q: call(q, *traced[1:]).sum())(traced[0])
    step = 1e-2 * jnp.ones_like(traced[0]).at[..., 0].set(0)
    change = (call(traced[0] + step, *traced[1:]) - call(traced[0] - step, *traced[1:])).sum() / 2
    np.testing.assert_allclose((gradient * step).sum(), change, atol=2e-3)


def test_a_query_that_sees_no_key_has_zeros_and_finite_gradients():
    mask = jnp.asarray(MASK).at[1].set(False)
    query, key, value = map(jnp.asarray, ARRAYS)
    output, gradient = jax.value_and_grad(
        lambda q: d.attention(q, key, value, mask=mask).output[:, :, 1].sum()
    )(query)
    assert output == 0 and bool(jnp.isfinite(gradient).all())


def test_jax_and_numpy_are_not_mixed():
    with pytest.raises(TypeError, match=r"all arrays must be of one kind, got query .JAX. and key"):
        d.attention(jnp.asarray(QUERY), KEY, VALUE)
