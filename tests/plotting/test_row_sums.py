"""``show_heatmaps`` warns of numbers that look like weights and do not sum to 1."""

import warnings

import numpy as np
import pytest

from d2lmini import masked_softmax
from d2lmini.plotting import RowSumWarning, show_heatmaps
from tests.plotting.reading import drawn, heatmaps, random_weights

pytestmark = pytest.mark.filterwarnings("error:matrices. row:UserWarning")
CAUSAL = np.tri(4, dtype=bool)
PAIR = [np.eye(2), [[0.5, 0.5], [0.2, 0.2]]]
WRONG = {
    "too much": ([[0.5, 0.5], [0.9, 0.9]], {}, "row 1 sums to 1.8, not to 1; it is drawn"),
    "too little": ([[0.5, 0.2], [0.5, 0.5]], {}, "row 0 sums to 0.7, not to 1"),
    "a little": ([[0.55, 0.5], [0.5, 0.5]], {}, "row 0 sums to 1.05, not to 1"),
    "one of many": ([PAIR], {}, r"row 1 of panel \(0, 1\) sums to 0.4, not to 1"),
    "masked after the softmax": (np.full((4, 4), 0.25), {"mask": "causal"}, "row 0 sums to 0.25"),
    "many keys": (np.full((2, 100), 0.012), {}, "row 0 sums to 1.2"),
}


@pytest.mark.parametrize(("matrices", "kwargs", "message"), WRONG.values(), ids=WRONG)
def test_wrong_sums_are_drawn_with_a_warning_that_can_be_turned_off(matrices, kwargs, message):
    with pytest.warns(RowSumWarning, match="^matrices: " + message) as caught:
        shown = show_heatmaps(matrices, "Keys", "Queries", **kwargs)
    assert len(caught) == 1 and caught[0].filename == __file__
    last = np.asarray(matrices, dtype=float).reshape(-1, *np.shape(matrices)[-2:])[-1]
    seen = drawn(shown.axes.flat[-1])
    there = ~np.isnan(seen)
    assert there.any()
    np.testing.assert_array_equal(seen[there], last[there])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RowSumWarning)
        heatmaps(matrices, **kwargs)
    assert "simplefilter" in show_heatmaps.__doc__


ANYTHING = np.where(CAUSAL, [[1], [0.5], [1 / 3], [0.25]], 0.9)
RIGHT = {
    "weights": (random_weights(2, 3, 5, 7), None),
    "rounded to two decimals": (random_weights(16, 16).round(2), None),
    "thirds": (np.full((3, 3), 0.33), None),
    "half precision": (random_weights(8, 8).astype(np.float16), None),
    "a query with no key": ([[0.3, 0.7], [0.0, 0.0]], None),
    "a causal mask": (masked_softmax(np.ones((4, 4)), CAUSAL), "causal"),
    "masked cells hold anything": (ANYTHING, "causal"),
    "NaN": ([[0.4, 0.6, np.nan]], None),
    "yes and no": (np.ones((3, 3)), None),
    "whole numbers": (np.tri(3, dtype=int), None),
    "scores": ([[0.5, 1.5], [0.1, 0.2]], None),
    "signed": ([[0.5, -0.5], [0.1, 0.2]], None),
    "all masked": (np.full((2, 2), np.nan), None),
}


@pytest.mark.parametrize(("matrices", "mask"), RIGHT.values(), ids=RIGHT)
def test_no_warning_for_weights_and_for_what_is_none(matrices, mask):
    heatmaps(matrices, mask=mask)
