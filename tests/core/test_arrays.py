"""What is turned away at the door, alike in every function: kinds of arrays, and of numbers."""

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


# One wrong kind for each argument: that it is checked. All kinds for one are in test_errors.py.


@each_argument
def test_each_argument_is_checked(function, name):
    words = rf"{name} must be a NumPy array or a PyTorch tensor, got list; .*asarray"
    with pytest.raises(TypeError, match=words):
        call(np, function, **{name: [[1.0, 2.0]]})


def test_numpy_and_pytorch_together_are_named(torch):
    words = r"query \(NumPy\) and key \(NumPy\) and value \(PyTorch\); .*torch\.from_numpy"
    with pytest.raises(TypeError, match=words):
        call(np, "attention", value=torch.ones(TABLE))


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


def test_either_byte_order_and_arrays_mapped_from_a_file(tmp_path):
    expected = d2lmini.softmax(np.eye(3))
    for dtype in (">f4", ">f8"):
        found = d2lmini.softmax(np.eye(3).astype(dtype))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.save(tmp_path / "keys.npy", np.eye(3))
    keys = np.load(tmp_path / "keys.npy", mmap_mode="r")
    np.testing.assert_allclose(d2lmini.softmax(keys), expected)


# Tensors that are no plain tables of numbers


@pytest.mark.parametrize(
    "kind, way_out",
    [
        ("sparse or opaque", r"to_dense\(\)"),
        ("nested", r"to_padded_tensor\(0\.0\), with padding_mask"),
    ],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
def test_a_tensor_that_is_not_dense(torch, kind, way_out):
    """Wherever arrays come in: as inputs, as a mask, as the example of a mask."""
    x = torch.ones(TABLE)
    bad = x.to_sparse() if way_out.startswith("to_dense") else torch.nested.as_nested_tensor([x, x])
    calls = {
        "key": lambda: call(torch, "attention", key=bad),
        "mask": lambda: d2lmini.attention(x, x, x, mask=bad),
        "like": lambda: d2lmini.causal_mask(2, like=bad),
        "query": lambda: d2lmini.MultiHeadAttention(2, 1)(bad),
    }
    for name, bad_call in calls.items():
        said = rf"{name} must be a dense tensor, got a {kind} one; give x\.{way_out}"
        with pytest.raises(TypeError, match=said):
            bad_call()


def test_floats_that_are_only_stored(torch):
    """Also where all arguments are of that dtype."""
    bad = torch.ones(TABLE).to(torch.float8_e4m3fn)
    for arguments in {"key": bad}, {"query": bad, "key": bad, "value": bad}:
        with pytest.raises(TypeError, match=r"float8_e4m3fn, which only stores; .*\.float\(\)"):
            call(torch, "attention", **arguments)


# What the user has set for all of his program changes no number


def test_a_default_device_makes_no_difference(torch):
    x, lengths = torch.ones(2, 3, 4), torch.tensor([0, 2])
    with torch.device("meta"):
        mask = d2lmini.padding_mask(lengths, 3) & d2lmini.causal_mask(3, like=x)
        assert d2lmini.attention(x, x, x, mask=mask).output.device.type == "cpu"
