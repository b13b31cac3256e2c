"""Heads taken out of a layer, and a layer given back to PyTorch."""

import pytest

torch = pytest.importorskip("torch")

from torch.testing import assert_close  # noqa: E402

from d2lmini import MultiHeadAttention  # noqa: E402


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("without", [[0], (3, 1, 3), range(4), []], ids=str)
@pytest.mark.parametrize("options", [{}, {"num_kv_heads": 2, "bias": True}])
def test_a_head_taken_out_adds_nothing(without, need_weights, options):
    layer, x = MultiHeadAttention(8, 4, **options).double(), torch.randn(2, 5, 8).double()
    result = layer(x, causal=True, without=without, need_weights=need_weights)
    with torch.no_grad():
        for head in without:  # its columns of W_O
            layer.w_o.weight[:, 2 * head : 2 * head + 2] = 0
    assert_close(result, layer(x, causal=True, need_weights=need_weights))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sizes", [{}, {"kdim": 5, "vdim": 3}])
def test_to_torch_and_back(bias, sizes):
    layer = MultiHeadAttention(8, 4, bias=bias, dropout=0.25, **sizes).double().eval()
    for linear in (layer.w_q, layer.w_k, layer.w_v, layer.w_o) if bias else ():
        torch.nn.init.normal_(linear.bias)
    layer.w_k.weight.requires_grad_(False)
    theirs = layer.to_torch()
    widths = 8, sizes.get("kdim", 8), sizes.get("vdim", 8)
    given = [torch.randn(2, n, width).double() for n, width in zip((3, 5, 5), widths, strict=True)]
    result = theirs(*given, average_attn_weights=False)
    assert_close(result, tuple(layer(*given, need_weights=True)))
    assert (theirs.dropout, theirs.training, theirs.batch_first) == (0.25, False, True)
    back = MultiHeadAttention.from_torch(theirs).state_dict()
    assert all(torch.equal(parameter, back[name]) for name, parameter in layer.state_dict().items())
    assert theirs.out_proj.weight.data_ptr() != layer.w_o.weight.data_ptr()
