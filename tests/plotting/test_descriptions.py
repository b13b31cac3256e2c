"""The generated descriptions say what is true."""

import numpy as np
import pytest

from d2lmini.plotting import show_heatmaps
from d2lmini.plotting._describe import describe_panel
from tests.plotting.reading import heatmaps, random_weights

THREE = ["the", "cat", "sat"]


def said(weights, mask=None, rows=None, columns=None, **kwargs):
    weights = np.asarray(weights, dtype=float)
    visible = np.isfinite(weights) if mask is None else np.asarray(mask)
    return describe_panel(weights, visible, rows, columns, **kwargs)


CAUSAL = np.tri(3) / [[1], [2], [3]]
FEW = np.where(np.tri(2, 4, 2) > 0, [[0.5, 0.3, 0.2, 0], [0.1, 0.2, 0.3, 0.4]], np.nan)
TOLD = [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.54, 0.26]]
TIES = [[0.4, 0.4, 0.1, 0.1], [0.1, 0.3, 0.3, 0.3], [0.25] * 4]
SIGNED, IDENTITY = [[-1.5, 2.0], [0.5, 0.25]], "identity: 1 on the diagonal, 0 elsewhere"
NEAR = 0.6 * np.eye(12, k=-1) + 0.01
CHOICE = np.where(np.tri(12) > 0, np.eye(12, k=-4) * 0.93 + 0.005, np.nan)
CHOICE[0, 0] = 1.0
TRUE = [
    (np.full((2, 2), np.nan), {}, "all masked"),
    (
        np.where(CAUSAL > 0, CAUSAL, np.nan),
        {},
        "causal mask; uniform over what each query may attend to",
    ),
    (FEW, {}, "causal mask; strongest key per query: 0 → 0 (0.50), 1 → 3 (0.40)"),
    (
        TOLD,
        {"rows": THREE, "columns": THREE},
        "strongest key per query: “the” → “sat” (0.70), “cat” → “the” (0.60), “sat” → “cat” (0.54)",
    ),
    (
        TIES,
        {},
        "strongest key per query: 0 → 0 and 1 equally (0.40 each), 1 → 1 to 3 equally (0.30 each), "
        "2 → all keys equally (0.25 each)",
    ),
    (
        [[0.3, 0.7], [np.nan, np.nan]],
        {"rows": ["a", "b"]},
        "2 of 4 cells masked; strongest key per query: “a” → 1 (0.70); all masked for “b”",
    ),
    (
        SIGNED,
        {"sides": ("row", "column")},
        "largest value 2.00 at row 0, column 1, smallest −1.50 at row 0, column 0",
    ),
    (
        NEAR,
        {},
        "in most rows the largest value is at the position before; "
        "largest value 0.61 at query 1, key 0",
    ),
    (
        CHOICE,  # a single key is none
        {},
        "causal mask; largest value where there is a choice 0.94 at query 4, key 0",
    ),
]


@pytest.mark.parametrize(("weights", "kwargs", "expected"), TRUE)
def test_one_panel(weights, kwargs, expected):
    assert said(weights, **kwargs) == expected


def test_several_panels_get_a_sentence_each():
    weights, names = np.stack([np.eye(3), np.full((3, 3), 1 / 3)]), ["first", None]
    assert heatmaps(weights, titles=names).alt == (
        "2 heatmaps in 2 columns, each of 3 × 3 values (Queries × Keys), from 0 to 1. "
        f"first: {IDENTITY}. Panel 2: uniform, every value 0.333."
    )


def test_many_panels_are_summed_up():
    weights = random_weights(4, 5, 9, 9)
    weights[3, 2, 4, 1] = 0.999
    alt = heatmaps(weights, titles=list("abcde"), row_titles=list("wxyz")).alt
    assert alt.count("largest value ") == 8 + 1
    assert alt.endswith("12 more panels. The largest value of all is in z, c, at query 4, key 1.")


def test_one_panel_is_told_in_whole_sentences():
    size = "Heatmap of {0} × {0} values (Queries × Keys), "
    assert heatmaps(np.eye(10)).alt == size.format(10) + f"from 0 to 1. I{IDENTITY[1:]}."
    assert heatmaps(np.eye(2), alt="My own words.").alt == "My own words."
    alt = heatmaps([[0.001, 0.5], [0.876, 0.0]]).alt  # rounded as numbers are shown
    assert "from 0 to 0.88." in alt and "(0.50)" in alt and "(0.88)" in alt


def test_rows_that_are_no_queries_are_called_what_they_are():
    alt = show_heatmaps([[0.1, 0.9]], "Keys", "Head", yticks=["first"]).alt
    assert "Strongest key per head: “first” → 1 (0.90)." in alt and "query" not in alt


def test_one_small_panel_has_a_folded_table_of_its_numbers():
    html = heatmaps([[0.25, 0.75], [1.0, np.nan]], xticks=["<a>", "b"], yticks=["c", " d"]).html()
    assert "<details><summary>Show the numbers</summary>" in html
    assert "<caption>Rows: Queries. Columns: Keys.</caption>" in html
    assert '<th scope="col">&lt;a&gt;</th><th scope="col">b</th>' in html
    assert '<th scope="row">c</th><td>0.25</td><td>0.75</td>' in html
    assert '<th scope="row">␣d</th><td>1.00</td><td>masked</td>' in html
    assert "<details>" not in heatmaps(random_weights(17, 17)).html()
    two = heatmaps([[[[0.25]], [[0.75]]]], titles=["before", "after"]).html()
    assert two.count("<table>") == 2 and "<caption>after. Rows: Queries. Columns: Keys." in two
