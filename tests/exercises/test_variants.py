"""Right answers of every style pass: einsum, keepdims, loops, float32, PyTorch."""

import numpy as np
import pytest
from answers import EXERCISES, HAS_TORCH, needs_torch, on, run_text

from d2lmini.exercises import grade

FUNCTIONS = [exercise for exercise in EXERCISES if not exercise.needs_torch]


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
    "tensors": (np.asarray, tensors),
}


@pytest.mark.parametrize("kind", ["float32"] + ["tensors"] * HAS_TORCH)
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


STYLES = {
    "one_hot": lambda s: np.arange(s.shape[1]) == s.argmax(axis=1)[:, None],
    "count_parameters": lambda m, k, v: m * m - (m - k) ** 2.0 + m * v,
    "split_heads": lambda x, h: np.moveaxis(x.reshape(len(x), 3, h, -1), 0, 2),
}


@pytest.mark.parametrize("name", STYLES)
def test_a_right_answer_in_another_style_passes(name):
    result = grade(STYLES[name], name=name)
    assert result.status == "pass", result


SAID = [  # of what is written for PyTorch: a known mistake is known, and each of its own fault
    ("softmax(a)", "torch.softmax(a * np.log(2), dim=0)", "axis", "wrong values"),
    ("softmax(x)", "x.sub_(x.amax(-1, keepdim=True)).softmax(-1)", None, "changed its"),
    # Of what is not, too, though PyTorch is there.
    ("attention(q, k, v, b)", "q @ np.ones((7, 7))", None, "raised ValueError: matmul"),
]


@needs_torch
@pytest.mark.parametrize(("head", "body", "mistake", "words"), SAID)
def test_the_fault_of_an_answer_is_found_on_arrays_or_tensors(head, body, mistake, words):
    text = f"import torch\ndef {head}:\n    return {body}"
    result = grade(run_text(text, head.split("(")[0]))
    assert not result and words in result.head and result.mistake == mistake, result
    assert "must be Tensor" not in result.head


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
