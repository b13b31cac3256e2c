"""Right answers of every style pass: einsum, keepdims, loops, float32, PyTorch."""

import ast
import functools

import numpy as np
import pytest
from answers import EXERCISES, HAS_TORCH, on, run_text

from d2lmini.exercises import find, grade

FUNCTIONS = [exercise for exercise in EXERCISES if not exercise.needs_torch]
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")


def converted(kind, things):
    """Convert all arrays of numbers; masks stay as they are."""
    if isinstance(things, tuple):
        return tuple(converted(kind, thing) for thing in things)
    if hasattr(things, "dtype") and "float" in str(things.dtype):
        return kind(things)
    return things


def tensors(x):
    import torch

    return torch.tensor(x, requires_grad=True)


KINDS = {  # of what goes in, and of what comes out
    "float32": (np.float32, np.float32),
    "by columns": (functools.partial(np.asarray, order="F"),) * 2,
    "tensors": (np.asarray, tensors),
}


@pytest.mark.parametrize("kind", ["float32", "by columns"] + ["tensors"] * HAS_TORCH)
@pytest.mark.parametrize("exercise", [on(exercise) for exercise in FUNCTIONS])
def test_an_answer_of_another_kind_passes(exercise, kind):
    solution = run_text(exercise.solution, exercise.function)
    before, after = KINDS[kind]
    if kind == "tensors":
        import torch  # noqa: F401  (here, where no limit of time counts it)

    def of_this_kind(*arguments):
        result = solution(*converted(before, arguments))
        many = isinstance(result, tuple)
        return converted(after, tuple(map(np.asarray, result)) if many else np.asarray(result))

    result = grade(of_this_kind, name=exercise.name)
    assert result.status == "pass", result


ARRAYS = """
def softmax(a):
    rows = []
    for row in a:
        row = [float(x) for x in row]
        e = [2.0 ** (x - max(row)) for x in row]
        rows.append([x / sum(e) for x in e])
    return np.array(rows)

def softmax(scores, axis=-1):
    return np.exp2(scores - np.logaddexp2.reduce(scores, axis=axis, keepdims=True))

def attention(query, key, value, bias):
    import d2lmini
    return d2lmini.attention(query, key, value, bias=bias).output

def causal_mask(n, m):
    if n < m:  # the last rows of the square one
        return causal_mask(m, m)[m - n :]
    return np.arange(m) <= np.arange(m - n, m)[:, None]

def causal_mask(n, m):
    return np.array([[j <= i + m - n for j in range(m)] for i in range(n)])

def split_heads(x, h):
    d = x.shape[-1] // (3 * h)
    return np.moveaxis(x.reshape(-1, 3, h, d), 0, 2)

def keep_heads(a, b, h, kept):
    d, e = a.shape[1] // h, len(b) // h
    return (np.hstack([a[:, i * d : i * d + d] for i in kept]),
            np.vstack([b[i * e : i * e + e] for i in kept]))

def one_hot(scores):
    return np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]

def count_parameters(m, k, v):
    return m * m - (m - k) ** 2.0 + m * v
"""
TENSORS = """
def softmax(a):
    return torch.softmax(a * torch.log(torch.tensor(2)), -1)

def attention(q, k, v, b):
    return F.scaled_dot_product_attention(q, k, v, b)

def attention(*all):
    q, k, v, b = (torch.tensor(x, dtype=torch.float32) for x in all)
    return F.scaled_dot_product_attention(q, k, v, b)

def masked_softmax(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).softmax(-1).nan_to_num(0.0)

def causal_mask(n, m):
    return torch.ones(n, m, dtype=torch.bool).tril(m - n)

def split_heads(x, h):
    return x.unflatten(-1, (3, h, -1)).movedim(0, 2)

def linear_attention(query, key, value):
    q, k = (F.elu(torch.as_tensor(x).float()) + 1 for x in (query, key))
    weights = (q @ k.T).tril()
    return weights @ torch.as_tensor(value).float() / weights.sum(1, keepdim=True)

def linear_attention(query, key, value):
    q, k = (F.elu(torch.as_tensor(x).float()) + 1 for x in (query, key))
    state = torch.cumsum(k[:, :, None] * torch.as_tensor(value).float()[:, None], dim=0)
    return torch.einsum("nd,ndv->nv", q, state) / (q * k.cumsum(0)).sum(1, keepdim=True)

def linear_attention(query, key, value):
    import numpy as np
    query, key, value = (np.asarray(x, np.float32) for x in (query, key, value))
    q, k = (np.where(x > 0, x, np.expm1(x)) + np.float32(1) for x in (query, key))
    weights = np.tril(q @ k.T)
    return weights @ value / weights.sum(axis=1, keepdims=True)
"""
TORCH = "import torch\nimport torch.nn.functional as F\n"
STYLES = [(node.name, ast.unparse(node)) for node in ast.parse(ARRAYS).body]
STYLES += [(n.name, TORCH + ast.unparse(n)) for n in ast.parse(TENSORS).body] * HAS_TORCH


@pytest.mark.parametrize(("name", "text"), STYLES)
def test_a_right_answer_in_another_style_passes(name, text):
    result = grade(run_text(text, name))
    assert result.status == "pass", result


SAID = [  # of what is written for PyTorch: a known mistake is known, and each of its own fault
    ("softmax(a)", "torch.softmax(a * np.log(2), dim=0)", ("wrong", "axis", "wrong values")),
    ("attention(q, k, v, b)", "(q @ k.mT + b).softmax(-1) @ v", ("wrong", "no-scale", "")),
    ("softmax(scores)", "torch.softmax(scores)", ("error", None, "dim")),
    ("split_heads(x, h)", "x.transpose(0, 1)", ("wrong", None, "wrong shape")),
    ("softmax(x)", "x.sub_(x.amax(-1, keepdim=True)).softmax(-1)", ("wrong", None, "changed its")),
    # Of what is not, too, though PyTorch is there.
    ("attention(q, k, v, b)", "q @ k @ v", ("wrong", None, "")),
    ("attention(q, k, v, b)", "q @ np.ones((7, 7))", ("error", None, "raised ValueError: matmul")),
]


@needs_torch
@pytest.mark.parametrize(("head", "body", "said"), SAID)
def test_the_fault_of_an_answer_is_found_on_arrays_or_tensors(head, body, said):
    text = f"import torch\ndef {head}:\n    return {body}"
    result = grade(run_text(text, head.split("(")[0]))
    status, mistake, words = said
    assert result.status == status and words in result.head, result
    assert mistake is None or result.mistake == mistake
    assert "must be Tensor" not in result.head


MODULE_STYLES = [
    # PyTorch's own attention
    (
        "scores.softmax(dim=-1) @ value",
        "nn.functional.scaled_dot_product_attention(query, key, value)",
    ),
    ("scores.softmax(dim=-1)", "nn.Softmax(dim=2)(scores)"),
    ("key.mT", "key.transpose(1, 2)"),
]


@needs_torch
@pytest.mark.parametrize(("old", "new"), MODULE_STYLES)
def test_a_right_module_in_another_style_passes(old, new):
    text = find("OneHead").solution
    assert old in text
    assert grade(run_text(text.replace(old, new), "OneHead")).status == "pass"


@needs_torch
@pytest.mark.parametrize("exercise", [on(e) for e in EXERCISES if e.needs_torch])
def test_a_right_module_that_rounds_otherwise_passes(exercise):
    """Computed in float64, its slopes differ from the reference's as any other order's do."""
    import torch

    class Wide(run_text(exercise.solution, exercise.function)):
        def forward(self, x):
            if x.dtype == torch.float64:
                return super().forward(x)
            wide = {name: weight.double() for name, weight in self.named_parameters()}
            return torch.func.functional_call(self, wide, x.double()).float()

    result = grade(Wide, name=exercise.name)
    assert result.status == "pass", result


def test_the_names_of_the_arguments_are_free():
    assert grade(lambda a, b: a / a.sum(-1, keepdims=True) @ b, name="weighted_average")
    assert grade(lambda *all: all[0] @ all[1] / all[0].sum(-1)[:, None], name="weighted_average")
