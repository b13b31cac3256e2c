"""What is said of a wrong answer that no known mistake explains: what holds on every input."""

import numpy as np
import pytest

from d2lmini.exercises import find, grade

RIGHT = find("additive_score").reference


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: -x, "Every sign is turned."),
        (lambda x: x[..., ::-1], "Each row of your result is in the reverse order."),
        (lambda x: x**2, "Your result is the square of the right one."),
        (lambda x: 3 * x, "Each number is 3 times the right one, whatever the input."),
        (lambda x: x + 0.5, "Each number is too large by 0.5."),
        (lambda x: np.where(np.arange(len(x))[:, None] > 0, x + 7 * x**2, x), "Only the first row"),
        (lambda x: x[None], "Your result has an axis of length 1 that should not be there."),
        (lambda x: x + 0.1 * x**3, ""),
        (lambda x: -x if x.size > 4 else x + 1, ""),  # what holds on some inputs only is not said
        (lambda x: x * np.nan, ""),
    ],
)
def test_what_holds_on_every_input_is_said(change, says):
    result = grade(lambda *case: change(RIGHT(*case)), name="additive_score")
    assert result.status == "wrong"
    assert result.mistake is None
    assert result.says.startswith(says) if says else result.says == ""


def test_a_known_mistake_comes_first_and_of_two_results_one_is_named():
    def merged(*case):
        output, total = find("merge_outputs").reference(*case)
        return output, 2 * total + 1

    assert grade(merged, name="merge_outputs").says == ""
    merged = find("merge_outputs").reference
    result = grade(lambda *case: (-merged(*case)[0], merged(*case)[1]), name="merge_outputs")
    assert result.says == "Of output: Every sign is turned."
