"""AdditiveAttention: what `test_invariants.py` does not ask of the additive score, learned."""

import pytest

torch = pytest.importorskip("torch")

from comparing import no_nan_in_backward  # noqa: E402
from torch.testing import assert_close  # noqa: E402

from d2lmini import AdditiveAttention, padding_mask  # noqa: E402

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def layer(**options):
    return AdditiveAttention(4, 3, 6, **options).double()


def inputs(batch=(2,)):
    return [torch.randn(*batch, *shape).double() for shape in ((3, 4), (5, 3), (5, 2))]


def test_its_parameters_and_their_gradients_without_keys():
    attend = layer()
    shapes = [tuple(x.weight.shape) for x in (attend.w_q, attend.w_k, attend.w_v)]
    assert shapes == [(6, 4), (6, 3), (1, 6)]
    assert len(list(attend.parameters())) == 3
    with no_nan_in_backward():
        attend(*inputs(), mask=padding_mask(torch.tensor([0, 4]), 5)).output.sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in attend.parameters())


def test_weights_are_before_dropout_which_is_for_training_only():
    attend, given = layer(dropout=0.5).train(), inputs()
    first, second = attend(*given), attend(*given)
    assert not torch.allclose(first.output, second.output)
    assert torch.equal(first.weights, second.weights)
    assert_close(first.weights.sum(dim=-1), torch.ones(2, 3).double(), **EXACT)
    quiet = attend.eval()(*given)
    assert torch.equal(quiet.output, attend(*given).output)
    assert_close(quiet.output, quiet.weights @ given[2], **EXACT)
    assert torch.equal(quiet.weights, first.weights)


def test_integers_become_the_dtype_of_the_weights():
    attend, ones = layer(), [torch.ones_like(x, dtype=torch.int64) for x in inputs()]
    assert_close(attend(*ones), attend(*(x.double() for x in ones)), **EXACT)
