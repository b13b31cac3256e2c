"""QKVProjection, and SelfAttention, which is attention over three projections."""

import pytest

torch = pytest.importorskip("torch")

from torch.testing import assert_close  # noqa: E402

from d2lmini import QKVProjection, SelfAttention, attention, padding_mask  # noqa: E402

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize("sizes, widths", [((8,), (8,) * 3), ((8, 3), (3,) * 3), ((8, 3, 6), None)])
@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 5, 8), (0, 5, 8), (2, 0, 8)])
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_three_matrix_products(sizes, widths, shape, bias):
    project, x = QKVProjection(*sizes, bias=bias).double(), torch.randn(shape).double()
    result, linear = project(x), (project.w_q, project.w_k, project.w_v)
    assert (result.query, result.key, result.value) == tuple(result)
    for found, width, one in zip(result, widths or (3, 3, 6), linear, strict=True):
        assert found.shape == (*shape[:-1], width)
        assert (one.bias is not None) == bias
        assert_close(found, x @ one.weight.T + (one.bias if bias else 0), **EXACT)
    assert len(list(project.parameters())) == (6 if bias else 3)


@pytest.mark.parametrize("training", [False, True])
def test_self_attention_is_attention_over_its_projections(training):
    module, x = SelfAttention(8, 4, 3, bias=True).double().train(training), torch.randn(2, 5, 8)
    options = {"mask": padding_mask(torch.tensor([0, 4]), 5), "causal": True}
    result = module(x.double(), **options)
    assert_close(result, attention(*module.project(x.double()), **options), **EXACT)
    assert (result.output.shape, result.weights.shape) == ((2, 5, 3), (2, 5, 5))
