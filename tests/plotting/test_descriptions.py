"""The generated descriptions say what is true."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from d2lmini.plotting import AttentionTrace, show_heatmaps
from d2lmini.plotting._describe import describe_panel
from tests.comparing import many
from tests.plotting.reading import heatmaps, random_weights, words

THREE = ["the", "cat", "sat"]


def said(weights, mask=None, rows=None, columns=None, **kwargs):
    weights = np.asarray(weights, dtype=float)
    visible = np.isfinite(weights) if mask is None else np.asarray(mask)
    return describe_panel(weights, visible, rows, columns, **kwargs)


CAUSAL = np.tri(3) / [[1], [2], [3]]
FEW = np.where(np.tri(2, 4, 2) > 0, [[0.5, 0.3, 0.2, 0], [0.1, 0.2, 0.3, 0.4]], np.nan)
TOLD = [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.54, 0.26]]
TIES = [[0.4, 0.4, 0.1, 0.1], [0.1, 0.3, 0.3, 0.3], [0.25] * 4, [0.4, 0.1, 0.4, 0.1]]
SIGNED, IDENTITY = [[-1.5, 2.0], [0.5, 0.25]], "identity: 1 on the diagonal, 0 elsewhere"
TRUE = [
    (np.eye(4), {}, IDENTITY),
    (np.full((2, 4), 0.25), {}, "uniform, every value 0.25"),
    (np.zeros((2, 2)), {}, "uniform, every value 0"),
    (np.full((2, 2), np.nan), {}, "all masked"),
    (
        np.where(CAUSAL > 0, CAUSAL, np.nan),
        {},
        "causal mask; uniform over what each query may attend to",
    ),
    (np.where(CAUSAL > 0, np.eye(3), np.nan), {}, f"causal mask; {IDENTITY}"),
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
        "2 → all keys equally (0.25 each), 3 → 0 and 2 equally (0.40 each)",
    ),
    (
        [[0.5, 0.5, np.nan], [0.2, 0.8, np.nan]],
        {},
        "2 of 6 cells masked; strongest key per query: "
        "0 → 0 and 1 equally (0.50 each), 1 → 1 (0.80)",
    ),
    (
        [[0.3, 0.7], [np.nan, np.nan]],
        {"rows": ["a", "b"]},
        "2 of 4 cells masked; strongest key per query: “a” → 1 (0.70); all masked for “b”",
    ),
    (SIGNED, {}, "largest value 2.00 at query 0, key 1, smallest −1.50 at query 0, key 0"),
    (
        SIGNED,
        {"sides": ("row", "column")},
        "largest value 2.00 at row 0, column 1, smallest −1.50 at row 0, column 0",
    ),
]


@pytest.mark.parametrize(("weights", "kwargs", "expected"), TRUE)
def test_one_panel(weights, kwargs, expected):
    assert said(weights, **kwargs) == expected


def test_a_large_panel_names_its_pattern_and_its_largest_value():
    for k, where in (-1, "the position before"), (0, "its own position"), (1, "the next position"):
        near = 0.6 * np.eye(12, k=k) + 0.01
        near[5, 5 + k] = 0.75
        assert said(near) == (
            f"in most rows the largest value is at {where}; "
            f"largest value 0.75 at query 5, key {5 + k}"
        )
    scattered = random_weights(12, 20)
    query, key = np.unravel_index(scattered.argmax(), scattered.shape)
    assert said(scattered) == f"largest value {scattered.max():.2f} at query {query}, key {key}"


def test_a_single_key_is_no_choice():
    weights = np.where(np.tri(12) > 0, random_weights(12, 12), np.nan)
    weights[0, 0] = 1.0
    weights[7, 3] = 0.93
    found = said(weights)
    assert found.startswith("causal mask; ")
    assert found.endswith("largest value where there is a choice 0.93 at query 7, key 3")


@settings(many, max_examples=40)
@given(
    arrays(float, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=st.floats(0, 1)),
    st.data(),
)
def test_the_strongest_key_is_the_strongest(weights, data):
    mask = data.draw(arrays(bool, weights.shape))
    found = said(weights, mask)
    for query, key, value in re.findall(r"(\d) → (\d) \((\d\.\d\d)\)", found):
        row = np.where(mask[int(query)], weights[int(query)], -1)
        assert row.max() - row[int(key)] < 1e-6 and abs(row.max() - float(value)) < 0.0051
    if "causal" in found:
        np.testing.assert_array_equal(mask, np.tri(*mask.shape, mask.shape[1] - mask.shape[0]) > 0)
    if "identity" in found:
        np.testing.assert_allclose(weights[mask], np.eye(len(weights))[mask], atol=1e-6)
    if "uniform, every" in found:
        assert np.ptp(weights[mask]) < 2e-3


def test_several_panels_get_a_sentence_each():
    mask = np.array([np.ones((3, 3)), np.ones((3, 3)), np.tri(3)], bool)
    weights, names = np.stack([np.eye(3), np.full((3, 3), 1 / 3), CAUSAL]), ["first", None, "third"]
    assert heatmaps(weights, titles=names, mask=mask).alt == (
        "3 heatmaps in 3 columns, each of 3 × 3 values (Queries × Keys), from 0 to 1. "
        f"first: {IDENTITY}. Panel 2: uniform, every value 0.333. "
        "third: causal mask; uniform over what each query may attend to."
    )
    layers, heads = ["Layer 1", "Layer 2"], ["Head 1", "Head 2"]
    four = heatmaps(np.broadcast_to(np.eye(2), (2, 2, 2, 2)), titles=heads, row_titles=layers)
    for layer, head in itertools.product(layers, heads):
        assert f"{layer}, {head}: identity" in four.alt


def test_many_panels_are_summed_up():
    weights = random_weights(4, 5, 9, 9)
    weights[3, 2, 4, 1] = 0.999
    alt = heatmaps(weights, titles=list("abcde"), row_titles=list("wxyz")).alt
    assert alt.count("largest value ") == 8 + 1
    assert alt.endswith("12 more panels. The largest value of all is in z, c, at query 4, key 1.")
    assert len(alt) < 1200


def test_one_panel_is_told_in_whole_sentences():
    size = "Heatmap of {0} × {1} values (Queries × Keys), "
    for values, alt in (
        (np.eye(10), size.format(10, 10) + f"from 0 to 1. I{IDENTITY[1:]}."),
        (np.full((2, 4), 0.25), size.format(2, 4) + "all 0.25."),
    ):
        assert heatmaps(values).alt == alt
    assert heatmaps(np.eye(2), alt="My own words.").alt == "My own words."
    alt = heatmaps([[0.001, 0.5], [0.876, 0.0]]).alt  # rounded as numbers are shown
    assert "from 0 to 0.88." in alt and "(0.50)" in alt and "(0.88)" in alt
    waves = np.sin(np.arange(20)[:, None] / 3 ** np.arange(4))
    alt = show_heatmaps(waves, "Dimension", "Position").alt
    assert "at row " in alt and "query" not in alt
    bare = show_heatmaps(np.eye(2), "", "")
    assert bare.alt.startswith("Heatmap of 2 × 2 values, from 0 to 1. ")
    assert set(words(bare)) == {"0", "1", "0.5"}


def test_one_small_panel_has_a_folded_table_of_its_numbers():
    html = heatmaps([[0.25, 0.75], [1.0, np.nan]], xticks=["<a>", "b"], yticks=["c", " d"]).html()
    assert "<details><summary>Show the numbers</summary>" in html
    assert "<caption>Rows: Queries. Columns: Keys.</caption>" in html
    assert '<th scope="col">&lt;a&gt;</th><th scope="col">b</th>' in html
    assert '<th scope="row">c</th><td>0.25</td><td>0.75</td>' in html
    assert '<th scope="row">␣d</th><td>1.00</td><td>masked</td>' in html
    for shape in (13, 12), (1, 2, 3, 3):
        assert "<details>" not in heatmaps(random_weights(*shape)).html()


LARGE = {
    "one": ([[1e300, 1.0]], "from about 0 to 1e+300. Strongest key per query: 0 → 0 (1e+300)."),
    "signed": ([[-1e300, 1e300]], "largest value 1e+300 at query 0, key 1, smallest −1e+300 at"),
    "whole": ([[2**62, 1]], "Strongest key per query: 0 → 0 (4.61e+18)."),
    "equal": ([[2**62, 2**62, 1]], "0 → 0 and 1 equally (4.61e+18 each)."),
    "many rows": (np.diag([1e300] * 9), "(1e+300)|value 1e+300 at"),
}


@pytest.mark.parametrize(("values", "said"), LARGE.values(), ids=LARGE)
def test_very_large_numbers_are_drawn_and_told_with_a_power(values, said):
    for annot in (False, "auto"):
        shown = heatmaps(values, annot=annot)
        assert any(part.lower() in shown.alt.lower() for part in said.split("|"))
        assert not re.search(r"→ {2}|\d{15}|nan|inf", shown.alt + shown._more)
        assert max(map(len, words(shown))) <= 10
    assert shown.svg("light") != shown.svg("dark") and shown.png()


def test_a_ledger_of_very_large_numbers():
    trace = AttentionTrace([1e100], [[1e100], [1.0]], [1, 2])
    assert "1e+200" in str(trace) and trace.plot(show=False).figure.get_size_inches()[0] <= 6.4
