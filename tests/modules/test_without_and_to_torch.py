"""Heads taken out of a layer, and a layer given back to PyTorch."""

import pytest

torch = pytest.importorskip("torch")

from d2lmini import MultiHeadAttention  # noqa: E402


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("without", [[0], [1, 3], (3, 3), range(4), []])
@pytest.mark.parametrize("options", [{}, {"num_kv_heads": 2, "bias": True}])
def test_a_head_taken_out_adds_nothing(without, need_weights, options):
    layer, x = MultiHeadAttention(8, 4, **options).double(), torch.randn(2, 5, 8).double()
    output, weights = layer(x, causal=True, without=without, need_weights=need_weights)
    cut = MultiHeadAttention(8, 4, **options).double()
    cut.load_state_dict(layer.state_dict())
    with torch.no_grad():
        for head in without:  # its columns of W_O
            cut.w_o.weight[:, 2 * head : 2 * head + 2] = 0
    expected = cut(x, causal=True, need_weights=need_weights)
    torch.testing.assert_close(output, expected.output)
    if need_weights:
        torch.testing.assert_close(weights, expected.weights)


@pytest.mark.parametrize(
    "without, error, words",
    [
        ([4], ValueError, r"without\[0\] = 4 is no head: there are 4, from 0 to 3"),
        ([0, -1], ValueError, r"without\[1\] must be at least 0, got -1"),
        ([1.0], TypeError, r"without\[0\] must be an integer, got float"),
    ],
)
def test_heads_that_are_none(without, error, words):
    with pytest.raises(error, match=words):
        MultiHeadAttention(8, 4)(torch.zeros(2, 8), without=without)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sizes", [{}, {"kdim": 5, "vdim": 3}])
def test_to_torch_and_back(bias, sizes):
    layer = MultiHeadAttention(8, 4, bias=bias, dropout=0.25, **sizes).double().eval()
    if bias:
        for linear in (layer.w_q, layer.w_k, layer.w_v, layer.w_o):
            torch.nn.init.normal_(linear.bias)
    layer.w_k.weight.requires_grad_(False)
    theirs = layer.to_torch()
    query = torch.randn(2, 3, 8).double()
    key, value = (torch.randn(2, 5, sizes.get(n, 8)).double() for n in ("kdim", "vdim"))
    output, weights = theirs(query, key, value, average_attn_weights=False)
    expected = layer(query, key, value, need_weights=True)
    torch.testing.assert_close(output, expected.output)
    torch.testing.assert_close(weights, expected.weights)
    assert (theirs.dropout, theirs.training, theirs.batch_first) == (0.25, False, True)
    back = MultiHeadAttention.from_torch(theirs)
    for name, parameter in layer.state_dict().items():
        assert torch.equal(parameter, back.state_dict()[name])
    assert theirs.out_proj.weight.data_ptr() != layer.w_o.weight.data_ptr()


def test_grouped_heads_have_no_counterpart():
    with pytest.raises(ValueError, match="no grouped heads, and here 4 heads share 2 key-value"):
        MultiHeadAttention(8, 4, num_kv_heads=2).to_torch()
