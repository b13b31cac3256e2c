"""What is turned away at the door, alike in every function: kinds of arrays, and of numbers."""

import inspect
import warnings

import numpy as np
import pytest
from comparing import dtype_name

import d2lmini

TABLE = (2, 2)  # a shape that every argument of every function below may have

# Each function with the arrays that it takes; a call puts one bad array in the place of each.
FUNCTIONS = {
    "softmax": ["scores"],
    "masked_softmax": ["scores"],
    "dot_product_score": ["query", "key"],
    "scaled_dot_product_score": ["query", "key"],
    "cosine_score": ["query", "key"],
    "gaussian_score": ["query", "key"],
    "bilinear_score": ["query", "key", "weight"],
    "additive_score": ["query", "key", "w_q", "w_k", "w_v"],
    "attention": ["query", "key", "value"],
    "nadaraya_watson": ["query", "key", "value"],
}
each_argument = pytest.mark.parametrize(
    "function, name", [(f, name) for f, names in FUNCTIONS.items() for name in names]
)


def call(xp, function, **replaced):
    """Call a function of d2lmini with ones everywhere but where something is put in their place."""
    arrays = {name: xp.ones(2 if name == "w_v" else TABLE) for name in FUNCTIONS[function]}
    return getattr(d2lmini, function)(**{**arrays, **replaced})


def test_no_function_of_scores_and_weights_is_left_out():
    modules = [f"d2lmini.{name}" for name in ("attention", "kernels", "scores", "weights")]
    public = [getattr(d2lmini, name) for name in d2lmini.__all__]
    functions = {x.__name__ for x in public if inspect.isfunction(x) and x.__module__ in modules}
    assert functions == FUNCTIONS.keys()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_ones_are_good(xp, function):
    call(xp, function)


# One wrong kind for each argument: that it is checked. All kinds for one are in test_errors.py.


@each_argument
def test_each_argument_is_checked(function, name):
    words = rf"{name} must be a NumPy array or a PyTorch tensor, got list; .*asarray"
    with pytest.raises(TypeError, match=words):
        call(np, function, **{name: [[1.0, 2.0]]})


@pytest.mark.parametrize("function", [f for f, names in FUNCTIONS.items() if len(names) > 1])
def test_numpy_and_pytorch_together_are_named(torch, function):
    names = FUNCTIONS[function]
    tensor = torch.ones(2 if names[-1] == "w_v" else TABLE)
    with pytest.raises(TypeError) as error:
        call(np, function, **{names[-1]: tensor})
    for name in names[:-1]:
        assert f"{name} (NumPy)" in str(error.value)
    assert f"{names[-1]} (PyTorch)" in str(error.value)
    assert "torch.from_numpy" in str(error.value)


# Kinds that are accepted


def first(result):
    return result.output if isinstance(result, d2lmini.Attention) else result


@each_argument
def test_one_wider_argument_widens_the_result(xp, function, name):
    ones = {n: xp.ones(2 if n == "w_v" else TABLE, dtype=xp.float16) for n in FUNCTIONS[function]}
    assert dtype_name(first(call(xp, function, **ones))) == "float16"
    wider = {**ones, name: xp.astype(ones[name], xp.float32)}
    assert dtype_name(first(call(xp, function, **wider))) == "float32"
    integers = {**ones, name: xp.astype(ones[name], xp.int64)}
    assert first(call(xp, function, **integers)).dtype == xp.asarray(0.0).dtype


def test_float16_and_bfloat16_meet_in_float32(torch):
    half, brain = torch.ones(2, 2, dtype=torch.float16), torch.ones(2, 2, dtype=torch.bfloat16)
    assert d2lmini.attention(half, brain, half).output.dtype == torch.float32


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64"])
def test_integers_and_booleans_count_as_the_default_float(xp, dtype):
    ones = xp.ones(TABLE, dtype=getattr(xp, dtype))
    assert first(call(xp, "attention", query=ones)).dtype == xp.asarray(0.0).dtype


def test_the_default_float_is_the_one_that_is_set(torch):
    torch.set_default_dtype(torch.float64)
    try:
        assert d2lmini.softmax(torch.tensor([1, 2])).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_either_byte_order_and_arrays_mapped_from_a_file(tmp_path):
    expected = d2lmini.softmax(np.eye(3))
    for dtype in (">f4", ">f8"):
        found = d2lmini.softmax(np.eye(3).astype(dtype))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.save(tmp_path / "keys.npy", np.eye(3))
    keys = np.load(tmp_path / "keys.npy", mmap_mode="r")
    np.testing.assert_allclose(d2lmini.softmax(keys), expected)


def test_parameters_are_tensors(torch):
    parameter = torch.nn.Parameter(torch.ones(2, 2))
    d2lmini.attention(parameter, parameter, parameter).output.sum().backward()
    assert parameter.grad is not None


# Tensors that are no plain tables of numbers

NESTED = ("nested", r"x\.to_padded_tensor\(0\.0\), with padding_mask")
OPAQUE = ("sparse or opaque", r"x\.to_dense\(\)")
ODD = {
    "sparse": (OPAQUE, lambda torch, x: x.to_sparse()),
    "sparse rows": (OPAQUE, lambda torch, x: x.to_sparse_csr()),
    "opaque": (OPAQUE, lambda torch, x: x.to_mkldnn()),
    "nested": (NESTED, lambda torch, x: torch.nested.nested_tensor([x, x])),
    "jagged": (NESTED, lambda torch, x: torch.nested.nested_tensor([x, x], layout=torch.jagged)),
    "quantized": (
        ("quantized", r"x\.dequantize\(\)"),
        lambda torch, x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    ),
}


@pytest.mark.parametrize("words, make", ODD.values(), ids=ODD)
def test_a_tensor_that_is_not_dense(torch, words, make):
    x = torch.ones(TABLE)
    with warnings.catch_warnings():  # PyTorch warns that some are prototypes, or will go
        warnings.simplefilter("ignore")
        bad = make(torch, x)
    said = rf"key must be a dense tensor, got a {words[0]} one; give {words[1]}"
    with pytest.raises(TypeError, match=said):
        call(torch, "attention", key=bad)
    calls = {
        "mask": lambda: d2lmini.attention(x, x, x, mask=bad),
        "x": lambda: d2lmini.split_heads(bad, 2),
        "like": lambda: d2lmini.causal_mask(2, like=bad),
        "lengths": lambda: d2lmini.padding_mask(bad, 2),
        "key": lambda: d2lmini.KeyValueCache().append(bad, x),
        "values": lambda: d2lmini.KeyValueStore(["a", "b"], bad),
        "w_o": lambda: d2lmini.multi_head_attention(x, x, x, x, x, x, bad, num_heads=1),
        "query": lambda: d2lmini.MultiHeadAttention(2, 1)(bad),
        "value": lambda: d2lmini.AdditiveAttention(2, 2, 2)(x, x, bad),
        "x ": lambda: d2lmini.SelfAttention(2)(bad),
    }
    for name, bad_call in calls.items():
        with pytest.raises(TypeError, match=f"{name.strip()} must be a dense tensor"):
            bad_call()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("alone", [True, False])
def test_floats_that_are_only_stored(torch, dtype, alone):
    """Also where all arguments are of that dtype."""
    bad = torch.ones(TABLE).to(getattr(torch, dtype))
    arguments = {"key": bad} if alone else {"query": bad, "key": bad, "value": bad}
    words = rf"has dtype torch\.{dtype}, which only stores; .*\.float\(\)"
    with pytest.raises(TypeError, match=words):
        call(torch, "attention", **arguments)


# What the user has set for all of his program changes no number


def numbers(result):
    return [x.tolist() for x in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_numpy_may_be_told_to_raise(function):
    """Weights that round to 0 are no floating-point error."""
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.standard_normal(3 if name == "w_v" else (3, 3)) for name in FUNCTIONS[function]
    }
    if "query" in arrays:
        arrays["query"][0], arrays["query"][1] = 60, 1e-170
    else:
        arrays["scores"][0] = [0, -700, -740]
    expected = numbers(getattr(d2lmini, function)(**arrays))
    with np.errstate(all="raise"):
        assert numbers(getattr(d2lmini, function)(**arrays)) == expected


def test_a_default_device_makes_no_difference(torch):
    ones, vector = torch.ones(TABLE), torch.ones(2)
    layer, x, lengths = d2lmini.MultiHeadAttention(4, 2), torch.ones(2, 3, 4), torch.tensor([0, 2])
    with torch.device("meta"):
        for function, names in FUNCTIONS.items():
            arrays = {name: vector if name == "w_v" else ones for name in names}
            assert first(getattr(d2lmini, function)(**arrays)).device.type == "cpu", function
        mask = d2lmini.padding_mask(lengths, 3) & d2lmini.causal_mask(3, like=x)
        for need_weights in (False, True):
            output = layer(x, mask=mask, causal=True, need_weights=need_weights).output
            assert output.device.type == "cpu"
