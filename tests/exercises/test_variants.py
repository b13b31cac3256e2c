"""Right answers of every style pass: einsum, keepdims, loops, float32, PyTorch."""

import numpy as np
import pytest
from answers import EXERCISES, HAS_TORCH, on, run_text

from d2lmini.exercises import find, grade

FUNCTIONS = [exercise for exercise in EXERCISES if not exercise.needs_torch]
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")


def numbers(kind, things):
    """Convert all arrays of numbers; masks stay as they are."""
    if isinstance(things, tuple):
        return tuple(numbers(kind, thing) for thing in things)
    if hasattr(things, "dtype") and "float" in str(things.dtype):
        return kind(things)
    return things


@pytest.mark.parametrize("exercise", [on(exercise) for exercise in FUNCTIONS])
def test_a_float32_answer_passes(exercise):
    solution = run_text(exercise.solution, exercise.function)

    def single(*arguments):
        return numbers(np.float32, solution(*numbers(np.float32, arguments)))

    assert grade(single, name=exercise.name).status == "pass"


@needs_torch
@pytest.mark.parametrize("exercise", [on(exercise) for exercise in FUNCTIONS])
def test_an_answer_as_tensors_passes(exercise):
    import torch

    solution = run_text(exercise.solution, exercise.function)

    def tensors(*arguments):
        result = solution(*arguments)
        parts = result if isinstance(result, tuple) else (result,)
        parts = tuple(
            torch.tensor(part, requires_grad=part.dtype == float) for part in map(np.asarray, parts)
        )
        return parts if isinstance(result, tuple) else parts[0]

    assert grade(tensors, name=exercise.name).status == "pass"


@pytest.mark.parametrize("exercise", [on(exercise) for exercise in FUNCTIONS])
def test_an_answer_in_the_other_order_of_memory_passes(exercise):
    solution = run_text(exercise.solution, exercise.function)

    def in_columns(x):
        return np.asarray(x, order="F")

    def fortran(*arguments):
        return numbers(in_columns, solution(*numbers(in_columns, arguments)))

    assert grade(fortran, name=exercise.name).status == "pass"


STYLES = {
    "softmax": [
        """
def softmax(a):
    rows = []
    for row in a:
        row = [float(x) for x in row]
        e = [2.0 ** (x - max(row)) for x in row]
        rows.append([x / sum(e) for x in e])
    return np.array(rows)""",
        """
def softmax(scores):
    e = np.exp2((scores.T - scores.max(axis=1)).T)
    return np.einsum("nm,n->nm", e, 1 / np.einsum("nm->n", e))""",
        """
def softmax(scores, axis=-1):
    return np.exp2(scores - np.logaddexp2.reduce(scores, axis=axis, keepdims=True))""",
    ],
    "masked_softmax": [
        """
def masked_softmax(scores, mask):
    low = np.where(mask, scores, -np.inf).max(-1, keepdims=True, initial=-1e300)
    e = np.exp(np.minimum(scores - low, 0)) * mask
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300)""",
        """
def masked_softmax(scores, mask):
    result = np.zeros_like(scores)
    for i in range(len(scores)):
        seen = scores[i][mask[i]]
        if len(seen):
            e = np.exp(seen - seen.max())
            result[i, mask[i]] = e / e.sum()
    return result""",
    ],
    "attention": [
        """
def attention(q, k, v, b):
    s = np.einsum("nd,md->nm", q, k) * k.shape[1] ** -0.5 + b
    w = np.exp(s - s.max(1)[:, None])
    return np.einsum("nm,mv->nv", w, v) / w.sum(1)[:, None]""",
        """
def attention(query, key, value, bias):
    import d2lmini
    return d2lmini.attention(query, key, value, bias=bias).output""",
    ],
    "additive_score": [
        """
def additive_score(q, k, a, b, w):
    return np.array([[np.tanh(x @ a + y @ b) @ w for y in k] for x in q])""",
        """
def additive_score(q, k, a, b, w):
    return np.einsum("nmh,h->nm", np.tanh((q @ a)[:, None] + k @ b), w)""",
    ],
    "attend_to_others": [
        """
def attend_to_others(x):
    out = np.zeros_like(x)
    for i in range(len(x)):
        rest = np.delete(x, i, axis=0)
        if len(rest):
            s = rest @ x[i] / x.shape[1] ** 0.5
            e = np.exp(s - s.max())
            out[i] = e @ rest / e.sum()
    return out""",
    ],
    "causal_mask": [
        """
def causal_mask(n, m):
    if n < m:  # the last rows of the square one
        return causal_mask(m, m)[m - n :]
    return np.arange(m) <= np.arange(m - n, m)[:, None]""",
        """
def causal_mask(n, m):
    return np.tril(np.ones((n, m), dtype=bool), m - n)""",
        """
def causal_mask(n, m):
    return np.array([[j <= i + m - n for j in range(m)] for i in range(n)])""",
    ],
    "split_heads": [
        """
def split_heads(x, h):
    return np.array([np.split(part, h, axis=1) for part in np.split(x, 3, axis=1)])""",
        """
def split_heads(x, h):
    d = x.shape[-1] // (3 * h)
    return np.moveaxis(x.reshape(-1, 3, h, d), 0, 2)""",
    ],
    "keep_heads": [
        """
def keep_heads(a, b, h, kept):
    d, e = a.shape[1] // h, len(b) // h
    return (np.hstack([a[:, i * d : i * d + d] for i in kept]),
            np.vstack([b[i * e : i * e + e] for i in kept]))"""
    ],
    "one_hot": [
        """
def one_hot(scores):
    return np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]""",
    ],
    "count_parameters": [
        "def count_parameters(m, k, v):\n    return m * m - (m - k) ** 2.0 + m * v"
    ],
}
TORCH_STYLES = {
    "softmax": ["def softmax(a):\n    return torch.softmax(a * torch.log(torch.tensor(2)), -1)"],
    "attention": [
        "def attention(q, k, v, b):\n    return F.scaled_dot_product_attention(q, k, v, b)",
        "def attention(q, k, v, b):\n    return (q @ k.mT / len(k[0]) ** 0.5 + b).softmax(-1) @ v",
        """
def attention(*all):
    q, k, v, b = (torch.tensor(x, dtype=torch.float32) for x in all)
    return F.scaled_dot_product_attention(q, k, v, b)""",
    ],
    "masked_softmax": [
        """
def masked_softmax(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).softmax(-1).nan_to_num(0.0)"""
    ],
    "causal_mask": [
        "def causal_mask(n, m):\n    return torch.ones(n, m, dtype=torch.bool).tril(m - n)"
    ],
    "cosine_scores": [
        """
def cosine_scores(q, k):
    return F.cosine_similarity(q[:, None], k[None], dim=-1)"""
    ],
    "packed_self_attention": [
        """
def packed_self_attention(x, text, w_q, w_k, w_v):
    same = text[:, None] == text
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, attn_mask=same)"""
    ],
    "split_heads": [
        "def split_heads(x, h):\n    return x.unflatten(-1, (3, h, -1)).movedim(0, 2)",
    ],
    "linear_attention": [
        """
def linear_attention(query, key, value):
    q, k = (F.elu(torch.as_tensor(x).float()) + 1 for x in (query, key))
    weights = (q @ k.T).tril()
    return weights @ torch.as_tensor(value).float() / weights.sum(1, keepdim=True)""",
        """
def linear_attention(query, key, value):
    q, k = (F.elu(torch.as_tensor(x).float()) + 1 for x in (query, key))
    state = torch.cumsum(k[:, :, None] * torch.as_tensor(value).float()[:, None], dim=0)
    return torch.einsum("nd,ndv->nv", q, state) / (q * k.cumsum(0)).sum(1, keepdim=True)""",
        """
def linear_attention(query, key, value):
    import numpy as np
    query, key, value = (np.asarray(x, np.float32) for x in (query, key, value))
    q, k = (np.where(x > 0, x, np.expm1(x)) + np.float32(1) for x in (query, key))
    weights = np.tril(q @ k.T)
    return weights @ value / weights.sum(axis=1, keepdims=True)""",
    ],
    "grouped_attention": [
        """
def grouped_attention(x, w_q, w_k, w_v, w_o, num_heads, num_kv_heads):
    q = (x @ w_q).reshape(len(x), num_heads, -1).transpose(0, 1)
    k, v = ((x @ w).reshape(len(x), num_kv_heads, -1).transpose(0, 1) for w in (w_k, w_v))
    q = q.reshape(num_kv_heads, -1, len(x), q.shape[-1])
    weights = (q @ k[:, None].transpose(-2, -1) / k.shape[-1] ** 0.5).softmax(-1)
    return (weights @ v[:, None]).flatten(0, 1).transpose(0, 1).flatten(1) @ w_o"""
    ],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in STYLES.items() for text in texts]
)
def test_a_right_answer_in_another_style_passes(name, text):
    result = grade(run_text(text, name))
    assert result.status == "pass", result


@needs_torch
@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in TORCH_STYLES.items() for text in texts]
)
def test_a_right_answer_for_pytorch_passes(name, text):
    result = grade(run_text("import torch\nimport torch.nn.functional as F\n" + text, name))
    assert result.status == "pass", result


@needs_torch
def test_a_known_mistake_is_known_in_pytorch_too():
    text = "def softmax(a):\n    import torch\n    return torch.softmax(a * np.log(2), dim=0)"
    assert grade(run_text(text, "softmax")).mistake == "axis"
    text = "def attention(q, k, v, b):\n    return (q @ k.mT + b).softmax(-1) @ v"
    assert grade(run_text("import torch\n" + text, "attention")).mistake == "no-scale"


@needs_torch
def test_a_torch_answer_hears_of_its_own_fault():
    text = "def softmax(scores):\n    import torch\n    return torch.softmax(scores)"
    result = grade(run_text(text, "softmax"))
    assert result.status == "error"
    assert "must be Tensor" not in result.head
    text = "def split_heads(x, h):\n    return x.transpose(0, 1)"
    assert grade(run_text(text, "split_heads")).head.startswith("wrong shape")


@needs_torch
def test_a_numpy_answer_with_a_fault_is_not_judged_as_tensors():
    import torch

    assert torch.is_tensor(torch.ones(1))
    text = "def attention(q, k, v, b):\n    return q @ k @ v"
    result = grade(run_text("import numpy as np\n" + text, "attention"))
    assert result.status == "wrong"
    text = "def attention(q, k, v, b):\n    return q @ np.ones((7, 7))"
    assert grade(run_text(text, "attention")).head.startswith("raised ValueError: matmul")


@needs_torch
def test_a_torch_answer_that_changes_its_input_is_caught():
    text = "def softmax(scores):\n    return scores.sub_(scores.amax(-1, keepdim=True)).softmax(-1)"
    result = grade(run_text("import torch\n" + text, "softmax"))
    assert result.head == "changed its input scores in place."


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
