"""QKVProjection and SelfAttention: shapes, and the same numbers as the function `attention`."""

import pytest

torch = pytest.importorskip("torch")

from torch.testing import assert_close  # noqa: E402

from d2lmini import QKVProjection, SelfAttention, attention, padding_mask  # noqa: E402

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def sequence(*shape, dtype=torch.float64):
    return torch.randn(*(shape or (2, 5, 8)), dtype=dtype)


# QKVProjection


@pytest.mark.parametrize(
    "sizes, widths", [((8,), (8, 8, 8)), ((8, 3), (3, 3, 3)), ((8, 3, 6), (3, 3, 6))]
)
@pytest.mark.parametrize("shape", [(5, 8), (2, 5, 8), (2, 3, 5, 8), (0, 5, 8), (2, 0, 8)])
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_three_matrix_products(sizes, widths, shape, bias):
    project = QKVProjection(*sizes, bias=bias).double()
    x = sequence(*shape)
    result = project(x)
    for name, width, linear in zip(
        ("query", "key", "value"), widths, (project.w_q, project.w_k, project.w_v), strict=True
    ):
        projected = getattr(result, name)
        assert projected.shape == (*shape[:-1], width)
        assert (linear.bias is not None) == bias
        expected = x @ linear.weight.T + (linear.bias if bias else 0)
        assert_close(projected, expected, **EXACT)
    query, key, value = result
    assert (query is result.query) and (key is result.key) and (value is result.value)


def test_parameters_are_counted():
    def count(module):
        return sum(p.numel() for p in module.parameters())

    assert count(QKVProjection(8, 4, 5)) == 8 * (4 + 4 + 5)
    assert count(QKVProjection(8, 4, 5, bias=True)) == 9 * (4 + 4 + 5)
    assert count(SelfAttention(8, 4, 5)) == 8 * (4 + 4 + 5)


# SelfAttention


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_it_is_attention_over_its_projections(causal, masked, training):
    module, x = SelfAttention(8, 4, 3, bias=True).double().train(training), sequence()
    mask = padding_mask(torch.tensor([0, 4]), 5) if masked else None
    result = module(x, mask=mask, causal=causal)
    expected = attention(*module.project(x), mask=mask, causal=causal)
    assert result.output.shape == (2, 5, 3)
    assert result.weights.shape == (2, 5, 5)
    assert_close(result, expected, **EXACT)
    if masked:
        assert not result.output[0].any()
