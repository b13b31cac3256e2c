"""Faults that people reported of layers with several heads, of training mode and of derivatives.

As in ``tests/test_reported_faults.py``: each test carries its source in its id, and True in a mask
means "may attend", whatever the convention of the source.
"""

import functools
import inspect

import pytest

torch = pytest.importorskip("torch")

from torch.testing import assert_close  # noqa: E402

from d2lmini import (  # noqa: E402
    AdditiveAttention,
    MultiHeadAttention,
    SelfAttention,
    multi_head_attention,
    padding_mask,
)

T, F = True, False
EXACT = {"rtol": 1e-12, "atol": 1e-12}
either_path = pytest.mark.parametrize("need_weights", [False, True], ids=["fused", "weights"])
each_mode = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


def source(*reports):
    """Give a test the reports that it stands for, as its id."""
    return pytest.mark.parametrize(
        "reported", [pytest.param(reports, id=",".join(reports))], indirect=True
    )


@pytest.fixture(autouse=True)
def reported(request):
    """See to it that each test names its source."""
    return request.param


def layer(*sizes, **options):
    return MultiHeadAttention(*(sizes or (8, 2)), **options).double()


def sequence(*shape):
    return torch.randn(*(shape or (2, 3, 8)), dtype=torch.float64)


# Rows without keys


@source("pytorch#152028", "pytorch#189045")
@either_path
def test_rows_without_keys_are_zero_with_dropout_too(need_weights):
    attend, x = layer(dropout=0.5), sequence()
    mask = padding_mask(torch.tensor([0, 3]), 3)
    for training in (True, False):
        output, weights = attend.train(training)(x, mask=mask, need_weights=need_weights)
        assert not output[0].any()
        assert torch.isfinite(output).all()
        assert weights is None or not weights[0].any()


# Polarity and kinds of masks


@source("x-transformers#164-layers", "equinox#463-layers")
@pytest.mark.parametrize(
    "documented",
    [multi_head_attention, MultiHeadAttention.forward, AdditiveAttention.forward],
    ids=lambda function: function.__qualname__,
)
def test_every_mask_argument_says_what_true_means(documented):
    assert "True = may attend" in inspect.getdoc(documented)


@source("pytorch#136816-layer", "pytorch#107084-float", "mlverse/torch#1205-layer")
@each_mode
@either_path
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64], ids=str)
def test_a_mask_of_numbers_is_turned_away_on_every_path(training, need_weights, dtype):
    attend = layer().train(training)
    with torch.no_grad(), pytest.raises(TypeError, match="mask must be boolean"):
        attend(sequence(), mask=torch.ones(3, 3, dtype=dtype), need_weights=need_weights)


# Causal alignment and shapes


# Scale, dtype, rounding


# Training mode and derivatives


@source("pytorch#124464", "pytorch#99293", "torchtune#1791", "timm#1978", "wenet#2699",
        "torch-harmonics#221")  # fmt: skip
@either_path
def test_no_dropout_in_eval(need_weights):
    attend, x = layer(dropout=0.5).eval(), sequence()
    outputs = [attend(x, need_weights=need_weights).output for _ in range(2)]
    assert torch.equal(*outputs)
    assert_close(outputs[0], attend(x, need_weights=not need_weights).output, **EXACT)


@source("pytorch#116350-layer", "pytorch#116348-layer", "learn2learn#429-layer")
def test_gradients_of_gradients():
    attend, x = layer(4, 2), sequence(1, 2, 4).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: attend(x, need_weights=True).output, (x,))


# Where PyTorch compiles and exports


DYNAMIC = {
    "MultiHeadAttention": lambda: layer(),
    "MultiHeadAttention, weights": lambda: functools.partial(layer(), need_weights=True),
    "SelfAttention": lambda: SelfAttention(8, 4, 5).double(),
    "AdditiveAttention": lambda: with_itself(AdditiveAttention(8, 8, 4).double()),
}


def with_itself(module):
    return lambda x, mask: module(x, x, x, mask=mask)


@source("pytorch#97158")
@pytest.mark.parametrize("made", DYNAMIC.values(), ids=DYNAMIC)
def test_it_compiles_with_dynamic_shapes(made):
    """Whether a name stands for an open size or a number: ``size in (1, n)`` does not tell."""
    attend = made()
    torch.compiler.reset()
    compiled = torch.compile(attend, backend="eager", fullgraph=True, dynamic=True)
    for batch, n in ((2, 3), (4, 6), (1, 2), (2, 0), (0, 3)):
        x, mask = sequence(batch, n, 8), torch.rand(batch, 1, n) < 0.7
        assert_close(compiled(x, mask=mask).output, attend(x, mask=mask).output, **EXACT)


@source("pytorch#156681")
@either_path
@pytest.mark.skipif(
    not hasattr(torch.utils._pytree, "is_namedtuple_class"),
    reason="this PyTorch cannot export a named tuple that says what it holds",
)
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_it_exports_with_a_dynamic_batch(need_weights, training):
    attend = layer().train(training)
    exported = torch.export.export(
        attend,
        (sequence(),),
        {"causal": True, "need_weights": need_weights},
        dynamic_shapes={"query": {0: torch.export.Dim.AUTO}, "causal": None, "need_weights": None},
    ).module()
    x = sequence(5, 3, 8)
    output = exported(x, causal=True, need_weights=need_weights).output
    assert_close(output, attend(x, causal=True).output, **EXACT)


@source("mlx-lm#1903")
@either_path
def test_a_mask_per_item_where_the_batch_has_as_many_items_as_there_are_key_value_heads(
    need_weights,
):
    attend, x = layer(8, 4, num_kv_heads=2), sequence(2, 3, 8)
    mask = padding_mask(torch.tensor([1, 3]), 3)
    output = attend(x, mask=mask, need_weights=need_weights).output
    assert_close(output[0], attend(x[0], x[0, :1]).output, **EXACT)
    assert_close(output[1], attend(x[1]).output, **EXACT)
