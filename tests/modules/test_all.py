"""What holds for every layer alike: copies, dtypes, derivatives, PyTorch's compiler."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

from comparing import uses_torch_func  # noqa: E402
from torch.testing import assert_close  # noqa: E402

from d2lmini import AdditiveAttention, MultiHeadAttention, SelfAttention  # noqa: E402

EXACT = {"rtol": 1e-12, "atol": 1e-12}
LAYERS = {
    "MultiHeadAttention": lambda: MultiHeadAttention(8, 2, bias=True),
    "SelfAttention": lambda: SelfAttention(8, 4, 3, bias=True),
    "AdditiveAttention": lambda: AdditiveAttention(8, 8, 6),
}
FUSED = ("MultiHeadAttention", {"need_weights": False})
each_layer = pytest.mark.parametrize("made", LAYERS.values(), ids=LAYERS)


def on_itself(layer, **weights):
    """Return a function of one sequence and options."""
    times = 3 if isinstance(layer, AdditiveAttention) else 1
    if isinstance(layer, MultiHeadAttention):
        weights = {"need_weights": True, **weights}
    return lambda x, **options: layer(*[x] * times, **weights, **options)


def sequence(*shape, dtype=torch.float64):
    return torch.randn(*(shape or (2, 5, 8)), dtype=dtype)


@each_layer
def test_state_dict_round_trip_and_copies(made):
    layer, twin, x = made().double(), made().double(), sequence()
    expected = on_itself(layer)(x).output
    assert not torch.allclose(on_itself(twin)(x).output, expected)
    assert not twin.load_state_dict(layer.state_dict()).missing_keys
    for same in (twin, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(on_itself(same)(x).output, expected)
        for parameter in same.parameters():
            parameter.data.zero_()
    assert torch.equal(on_itself(layer)(x).output, expected)


@each_layer
def test_dtypes_and_autocast(made):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        output, weights = on_itself(made().to(dtype))(sequence(dtype=dtype))
        assert output.dtype == weights.dtype == dtype
        assert_close(weights.float().sum(dim=-1), torch.ones(weights.shape[:-1]), rtol=0, atol=2e-2)
    attend, x = on_itself(made()), sequence(dtype=torch.float32)
    expected = attend(x).output
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = attend(x)
    assert_close(output.float(), expected, rtol=0.05, atol=0.05)


@uses_torch_func
@pytest.mark.parametrize("name, weights", [*((x, {}) for x in LAYERS), FUSED])
def test_derivatives(name, weights):
    attend, x = on_itself(LAYERS[name]().double(), **weights), sequence(3, 4, 8)

    def output(x):
        return attend(x).output

    assert_close(torch.func.vmap(output)(x), output(x), **EXACT)
    step = 1e-6 * torch.randn_like(x)
    _, tangent = torch.func.jvp(output, (x,), (step,))
    assert_close(tangent, output(x + step) - output(x), rtol=0, atol=1e-9)
    assert torch.linalg.norm(tangent) > 1e-7
    one = x[:1, :2].clone().requires_grad_()
    assert torch.autograd.gradcheck(output, (one,), fast_mode=True)
    if not weights:  # PyTorch's kernel has no second derivative
        assert torch.autograd.gradgradcheck(output, (one,), fast_mode=True)


@pytest.mark.parametrize(
    "name, weights", [*((x, {}) for x in LAYERS if x != "SelfAttention"), FUSED]
)
def test_it_compiles_with_dynamic_shapes(name, weights):
    """Whether a name stands for an open size or a number: ``size in (1, n)`` does not tell."""
    attend = on_itself(LAYERS[name]().double(), **weights)
    torch.compiler.reset()
    compiled = torch.compile(attend, backend="eager", fullgraph=True, dynamic=True)
    for batch, n in ((2, 3), (4, 6), (1, 2), (2, 0), (0, 3)):
        x, mask = sequence(batch, n, 8), torch.rand(batch, 1, n) < 0.7
        assert_close(compiled(x, mask=mask).output, attend(x, mask=mask).output, **EXACT)
