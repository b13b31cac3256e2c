"""AdditiveAttention: the additive score, learned."""

import oracles
import pytest

torch = pytest.importorskip("torch")

from comparing import no_nan_in_backward  # noqa: E402
from torch.testing import assert_close  # noqa: E402

from d2lmini import AdditiveAttention, additive_score, attention, padding_mask  # noqa: E402

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def layer(**options):
    return AdditiveAttention(4, 3, 6, **options).double()


def inputs(n=3, m=5, batch=(2,), dtype=torch.float64):
    return [torch.randn(*batch, *shape, dtype=dtype) for shape in ((n, 4), (m, 3), (m, 2))]


@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
@pytest.mark.parametrize("n, m", [(3, 5), (5, 3), (1, 1), (0, 4), (4, 0)])
def test_it_is_the_definition(batch, n, m):
    attend, given = layer(), inputs(n, m, batch)
    w_q, w_k, w_v = (x.weight.detach().T.tolist() for x in (attend.w_q, attend.w_k, attend.w_v))
    w_v = [row[0] for row in w_v]
    expected = oracles.attention(*given, score=lambda q, k: oracles.additive(q, k, w_q, w_k, w_v))
    result = attend(*given)
    for one, other in zip(result, expected, strict=True):
        assert_close(one.detach(), torch.as_tensor(other), **EXACT)


@pytest.mark.parametrize("kind", ["lengths", "rows", "items", "nothing"])
def test_a_mask(kind):
    mask = {
        "lengths": padding_mask(torch.tensor([0, 4]), 5),
        "rows": torch.rand(3, 5) < 0.5,
        "items": torch.rand(2, 3, 5) < 0.5,
        "nothing": torch.zeros(3, 5, dtype=torch.bool),
    }[kind]
    attend, (query, key, value) = layer(), inputs()
    w_q, w_k, w_v = attend.w_q.weight.T, attend.w_k.weight.T, attend.w_v.weight[0]
    result = attend(query, key, value, mask=mask)
    expected = attention(
        query, key, value, mask=mask, score=lambda q, k: additive_score(q, k, w_q, w_k, w_v)
    )
    assert_close(result, expected, **EXACT)
    assert not result.weights[~mask.expand(2, 3, 5)].any()
    with no_nan_in_backward():
        result.output.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in attend.parameters())


def test_weights_are_before_dropout_which_is_for_training_only():
    attend, given = layer(dropout=0.5), inputs()
    attend.train()
    first, second = attend(*given), attend(*given)
    assert not torch.allclose(first.output, second.output)
    assert torch.equal(first.weights, second.weights)
    assert_close(first.weights.sum(dim=-1), torch.ones(2, 3).double(), **EXACT)
    attend.eval()
    quiet = attend(*given)
    assert torch.equal(quiet.output, attend(*given).output)
    assert_close(quiet.output, quiet.weights @ given[2], **EXACT)
    assert torch.equal(quiet.weights, first.weights)


def test_dropout_leaves_the_mean_as_it_is():
    attend, (query, key, value) = layer(dropout=0.4).train(), inputs(batch=())
    mean = attend(query.expand(4000, 3, 4), key, value).output.mean(dim=0)
    assert_close(mean, attend.eval()(query, key, value).output, rtol=0, atol=0.1)


def test_a_score_for_every_pair_of_different_widths():
    attend = layer()
    assert attend.w_q.weight.shape == (6, 4)
    assert attend.w_k.weight.shape == (6, 3)
    assert attend.w_v.weight.shape == (1, 6)
    assert sum(p.numel() for p in attend.parameters()) == 6 * (4 + 3 + 1)


def test_integers_become_the_dtype_of_the_weights():
    attend = layer()
    query, key, value = (torch.ones_like(x, dtype=torch.int64) for x in inputs())
    result = attend(query, key, value)
    assert_close(result, attend(query.double(), key.double(), value.double()), **EXACT)
