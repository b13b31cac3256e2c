"""`record_attention` on PyTorch's own modules; models of transformers are in tests/models."""

import functools
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import oracles  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from d2lmini import MultiHeadAttention, SelfAttention, record_attention  # noqa: E402

N, M, D = 4, 6, 8
BOOLEAN = torch.tensor([[i != 1 and (i + j) % 3 > 0 for j in range(M)] for i in range(N)])
ADDITIVE = torch.linspace(-2, 2, N * M).reshape(N, M).masked_fill(~BOOLEAN, -torch.inf)


def encoder(**options):
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # why nested tensors are not used
        return nn.TransformerEncoder(layer, 2)


def recorded(call, *model, seed=1, **options):
    """Return what a call gives, and its record."""
    torch.manual_seed(seed)
    with record_attention(*model, **options) as record:
        output = call()
    return output, record


def alone(call, seed=1):
    """Return what it gives unseen, after the same random numbers."""
    torch.manual_seed(seed)
    return call()


def assert_weights(found, query, key, visible=True, scores=lambda table: table):
    expected = scores(oracles.scores(query, key))
    visible = np.broadcast_to(visible, expected.shape)
    np.testing.assert_allclose(found, oracles.masked_softmax(expected, visible), atol=1e-6)


@pytest.mark.parametrize(
    "options, visible, bias, scale",
    [
        ({}, True, 0.0, None),
        ({"attn_mask": BOOLEAN}, BOOLEAN.numpy(), 0.0, None),
        ({"attn_mask": ADDITIVE}, BOOLEAN.numpy(), ADDITIVE.nan_to_num(neginf=0.0).numpy(), None),
        ({"is_causal": True}, np.tri(N, M, dtype=bool), 0.0, None),  # from the top left, there
        ({"scale": 0.7, "dropout_p": 0.5}, True, 0.0, 0.7),
    ],
)
def test_one_call_has_the_weights_of_the_definition(options, visible, bias, scale):
    query, key, value = (torch.randn(2, 3, *size) for size in ((N, D), (M, D), (M, 5)))
    call = lambda: scaled_dot_product_attention(query, key, value, **options)  # noqa: E731
    output, record = recorded(call)
    assert torch.equal(alone(call), output)
    factor = 1 if scale is None else scale * D**0.5
    assert_weights(record.weights, query, key, visible, lambda table: factor * table + bias)
    assert record[0].name == "" and not record[0].weights.requires_grad
    six = query.repeat(1, 2, 1, 1)  # in groups, which share their keys
    call = lambda: scaled_dot_product_attention(six, key[:, :2], key[:, :2], enable_gqa=True)  # noqa: E731
    assert_weights(recorded(call)[1].weights, six, key[:, [0, 0, 0, 1, 1, 1]])


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_the_layer_of_pytorch(train, need_weights, batch_first):
    """Its kernel, its fast path, its path with weights, and dropout: the output is the same."""
    layer = nn.MultiheadAttention(16, 4, dropout=0.3, batch_first=batch_first).train(train)
    x = torch.randn(2, 5, 16)
    hidden = torch.arange(5) >= torch.tensor([[5], [3]])
    given = x if batch_first else x.transpose(0, 1)
    options = {"key_padding_mask": hidden, "need_weights": need_weights}
    for grad in (torch.no_grad, torch.enable_grad):
        with grad():
            call = functools.partial(layer, given, given, given, **options)
            output, record = recorded(call, layer)
            for before, after in zip(alone(call), output, strict=True):
                assert (before is after is None) or torch.equal(before, after)
        q, k, _ = nn.functional.linear(x, layer.in_proj_weight).chunk(3, -1)
        q, k = (part.reshape(2, 5, 4, 4).transpose(1, 2) for part in (q, k))
        assert_weights(record.weights, q, k, ~hidden.numpy()[:, None, None])
        assert record.weights.requires_grad is False


def test_a_query_of_a_layer_that_sees_no_key_has_weights_0_and_a_nan_stays():
    layer, x = nn.MultiheadAttention(16, 4, batch_first=True), torch.randn(2, 3, 16)
    mask = torch.tensor([[True, True, True], [False, True, True], [False, False, True]])
    _, record = recorded(lambda: layer(x, x, x, attn_mask=mask), layer)
    assert record.weights.sum(-1).tolist() == [[[0.0, 1.0, 1.0]] * 4] * 2
    x[1, 0] = torch.nan
    _, record = recorded(lambda: layer(x, x, x), layer)
    assert record.weights[1].isnan().all() and not record.weights[0].isnan().any()


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_an_encoder_gives_the_same_on_its_fast_path_too(norm_first, padded, grad):
    model, x = encoder(norm_first=norm_first).eval(), torch.randn(3, 5, 16)
    hidden = torch.arange(5) >= torch.tensor([[5], [4], [2]]) if padded else None
    call = functools.partial(model, x, src_key_padding_mask=hidden)
    with torch.set_grad_enabled(grad), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype
        output, record = recorded(call, model)
        assert torch.equal(alone(call), output)
        assert record.names == ["layers.0.self_attn", "layers.1.self_attn"]
        first, real = model.layers[0], slice(None) if hidden is None else ~hidden
        inside = first.norm1(x) if norm_first else x
        theirs = first.self_attn(
            inside, inside, inside, key_padding_mask=hidden, average_attn_weights=False
        )[1]
        difference = (record["layers.0.self_attn"].weights - theirs).abs()
        assert difference.transpose(1, 2)[real].max() < 1e-6
        assert record.unseen == []


def test_a_transformer_of_both_sides():
    model = nn.Transformer(16, 4, 1, 2, 24, batch_first=True).eval()
    source, target = torch.randn(2, 5, 16), torch.randn(2, 3, 16)
    causal = nn.Transformer.generate_square_subsequent_mask(3)
    call = functools.partial(model, source, target, tgt_mask=causal)
    output, record = recorded(call, model)
    assert torch.equal(alone(call), output)
    assert record.names == [
        "encoder.layers.0.self_attn",
        *(f"decoder.layers.{i}.{kind}_attn" for i in (0, 1) for kind in ("self", "multihead")),
    ]
    assert record["decoder.*.multihead_attn"].stack(1).shape == (2, 4, 3, 5)
    assert record["decoder.*.self_attn"].stack().triu(1).abs().max() == 0
    with pytest.raises(ValueError, match=r"3 shapes \(heads, n, m\), such as \(4, 3, 3\) and"):
        record.stack()


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_a_head_taken_out_gives_nothing_and_gradients_flow(train, need_weights):
    layer, x = nn.MultiheadAttention(16, 4, batch_first=True).train(train), torch.randn(2, 5, 16)
    state = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    call = functools.partial(layer, x, x, x, need_weights=need_weights, average_attn_weights=False)
    (output, _), record = recorded(call, layer, without={"": [0, 3]})
    output.sum().backward()
    assert all(torch.equal(state[name], tensor) for name, tensor in layer.state_dict().items())
    assert record.weights.sum(-1).min() > 0.99  # as if it were there
    assert layer.in_proj_weight.grad[8:12].abs().max() > 0
    assert layer.in_proj_weight.grad[:4].abs().max() == 0
    with torch.no_grad():
        layer.out_proj.weight[:, :4] = 0
        layer.out_proj.weight[:, 12:] = 0
        torch.testing.assert_close(output, call()[0])
    ours = MultiHeadAttention(16, 4, num_kv_heads=2)
    result, record = recorded(lambda: ours(x, causal=True), ours, without={"": [2]})
    torch.testing.assert_close(result.output, ours(x, causal=True, without=[2]).output)
    torch.testing.assert_close(record.weights, ours(x, causal=True, need_weights=True).weights)


def test_what_is_kept():
    model, x = encoder().eval(), torch.randn(2, 5, 16)
    _, everything = recorded(lambda: model(x), model)
    _, record = recorded(lambda: (model(x), model(x[:1])), model, keep="*.1.*")
    assert [(call.name, len(call.weights)) for call in record] == [
        ("layers.1.self_attn", 2),
        ("layers.1.self_attn", 1),
    ]
    assert torch.equal(record[0].weights, everything[1].weights)
    assert everything.nbytes == 2 * 2 * 4 * 5 * 5 * 4
    assert repr(record) == (
        "Attention of 2 calls in 1 module, 1.2 kB\n  layers.1.self_attn  (2, 4, 5, 5) × 2"
    )


def test_only_the_model_is_recorded_and_without_one_all_is():
    one, other, x = encoder().eval(), encoder().eval(), torch.randn(1, 5, 16)
    with record_attention() as everything:
        _, record = recorded(lambda: (other(x), one(x)), one)
    assert (len(record), len(everything)) == (2, 4)


def test_threads_have_records_of_their_own():
    models, together = [encoder().eval() for _ in range(4)], threading.Barrier(4, timeout=60)

    def run(length):
        with torch.no_grad(), record_attention() as record:
            for _ in range(5):
                together.wait()
                models[length - 3](torch.randn(1, length, 16))
            together.wait()
        return record

    with ThreadPoolExecutor(4) as pool:
        for length, record in enumerate(pool.map(run, range(3, 7)), 3):
            assert [call.weights.shape[-2:] for call in record] == [(length, length)] * 10
            assert record.names == ["layers.0.self_attn", "layers.1.self_attn"]


def hooked():
    from torch.nn.modules import module

    names = [name for name in vars(module) if name.startswith("_global_")]
    return {
        name: len(getattr(module, name)) for name in names if name.endswith(("hooks", "kwargs"))
    }


@pytest.mark.parametrize("grad", [False, True])
def test_an_exception_inside_leaves_nothing_behind(grad):
    model, x, before = encoder().eval(), torch.randn(1, 5, 16), hooked()
    with torch.set_grad_enabled(grad):
        with pytest.raises((RuntimeError, AssertionError)), record_attention(model):
            model(torch.randn(1, 5, 7))  # too narrow
        output, record = recorded(lambda: model(x), model)
        assert record.names == ["layers.0.self_attn", "layers.1.self_attn"]
        assert torch.equal(output, model(x))
    assert hooked() == before
    assert not torch.overrides._get_current_function_mode_stack()


def test_steps_are_joined():
    def call(n, m):
        q, k = torch.zeros(1, 2, n, 4), torch.zeros(1, 2, m, 4)
        scaled_dot_product_attention(q, k, k)

    nan = torch.nan
    _, record = recorded(lambda: (call(2, 2), call(1, 3), call(1, 2)))  # it grows, and forgets
    expected = torch.tensor(
        [[0.5, 0.5, nan, nan], [0.5, 0.5, nan, nan], [1 / 3] * 3 + [nan], [nan, nan, 0.5, 0.5]]
    )
    torch.testing.assert_close(record.joined()[0, 1], expected, equal_nan=True)
    _, record = recorded(lambda: [call(1, 3) for _ in range(4)])  # keys of another sequence
    torch.testing.assert_close(record.joined()[0, 0], torch.full((4, 3), 1 / 3))


class Chain(nn.Module):
    """Attention that is not PyTorch's beside one that is."""

    def __init__(self):
        super().__init__()
        self.first, self.last = SelfAttention(16), nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        return self.last(x, x, self.first(x).output)[0]


def test_what_cannot_be_seen_is_said():
    model, x = Chain(), torch.randn(1, 5, 16)
    _, record = recorded(lambda: model(x), model)
    assert record.names == ["last"]
    assert record.unseen == [
        "first called no attention that can be seen, but multiplied by hand or called a kernel "
        "directly"
    ]
    assert repr(record).endswith("\nNot seen: " + record.unseen[0])
    _, record = recorded(lambda: model.first(x), model.first)
    with pytest.raises(ValueError, match="nothing was recorded: the model called no attention"):
        record.stack()
    kernel, q = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu, x[:, None]
    _, record = recorded(lambda: kernel(q, q, q))
    assert record.unseen == ["_scaled_dot_product_flash_attention_for_cpu was called directly"]
    torch.compiler.reset()
    f = torch.compile(lambda q: scaled_dot_product_attention(q, q, q) + 1, backend="eager")
    with record_attention() as record, torch.compiler.set_stance("default"):  # as before the first
        f(q)
    assert record.unseen == ["what was compiled in this block: call torch.compile before it"]


def compiled_runs(model):
    """Return how to call a model, compiled whole, in place or in a part, and what to record."""
    whole = torch.compile(model, backend="eager")
    yield whole, whole, "_orig_mod."
    yield whole, model, ""
    model.layers[1] = torch.compile(model.layers[1], backend="eager")
    yield model, model, ""
    model.compile(backend="eager")
    yield model, model, ""


@pytest.mark.parametrize("warm, grad, padded", [(1, 0, 1), (0, 1, 0)])
def test_a_compiled_model_is_recorded_as_it_was_written(padded, grad, warm):
    model, x = encoder().eval(), torch.randn(2, 5, 16)
    hidden = torch.arange(5) >= torch.tensor([[5], [3]]) if padded else None
    with torch.set_grad_enabled(bool(grad)), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype
        expected, written = recorded(lambda: model(x, src_key_padding_mask=hidden), model)
        for run, seen, before in compiled_runs(model):
            torch.compiler.reset()
            call = functools.partial(run, x, src_key_padding_mask=hidden)
            if warm:
                call()
            output, record = recorded(call, seen)
            assert record.names[0] == before + "layers.0.self_attn" and record.unseen == []
            assert torch.equal(record.stack(), written.stack()) and torch.equal(output, expected)
    assert torch._dynamo.eval_frame._stance.stance == "default"


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"model": "gpt2"}, TypeError, "model must be a torch.nn.Module, got str"),
        ({"without": {"layers.0": [0]}}, ValueError, "ran in 'layers.0.self_attn', 'layers.1"),
        ({"without": {"layers.7": [0]}}, ValueError, "no module 'layers.7'; .* record.names"),
        ({"without": {"layers.0.self_attn": [4]}}, ValueError, "no head 4: there are 4, from 0"),
        ({"keep": "layers.7.*"}, ValueError, "keep: no module of the model fits 'layers.7"),
    ],
)
def test_bad_input(options, error, words):
    model = encoder().eval()
    with pytest.raises(error, match=words):
        recorded(lambda: model(torch.randn(1, 5, 16)), **{"model": model, **options})


def test_the_errors_of_a_record_help():
    _, record = recorded(lambda: None)
    with pytest.raises(ValueError, match="nothing was recorded: no attention ran in the block"):
        record.stack()
    model, x = encoder().eval(), torch.randn(2, 5, 16)
    _, record = recorded(lambda: model(x), model)
    with pytest.raises(
        KeyError, match=r"no call of 'layers.1.attn' was recorded; there is 'layers"
    ):
        record["layers.1.attn"]
    with pytest.raises(ValueError, match=r"2 calls: give one, as record\[0\].weights"):
        record.weights  # noqa: B018
    for take in (record.stack, record.joined):
        with pytest.raises(ValueError, match="item = 2: there are 2, from 0 to 1"):
            take(2)
        with pytest.raises(TypeError, match="item must be an integer, got str"):
            take("a")
    assert torch.equal(record.stack(-1), record.stack(1))
    with pytest.raises(IndexError, match=r"record\[2\]: there are 2 calls, from 0 to 1"):
        record[2]
    assert len(record[1:]) == 1 and record[1:].weights is record[1].weights
