"""Very large numbers, halves of surrogate pairs, and messages that name their argument."""

import re

import numpy as np
import pytest

from d2lmini.plotting import AttentionExplorer, AttentionTrace, show_attention_lines, show_heatmaps
from tests.plotting.reading import heatmaps, words

HALF = "\ud83d"
LARGE = {
    "one": ([[1e300, 1.0]], "from about 0 to 1e+300. Strongest key per query: 0 → 0 (1e+300)."),
    "signed": ([[-1e300, 1e300]], "largest value 1e+300 at query 0, key 1, smallest −1e+300 at"),
    "whole": ([[2**62, 1]], "Strongest key per query: 0 → 0 (4.61e+18)."),
    "equal": ([[2**62, 2**62, 1]], "0 → 0 and 1 equally (4.61e+18 each)."),
    "many rows": (np.diag([1e300] * 9), "(1e+300)|value 1e+300 at"),
}


@pytest.mark.parametrize("annot", [False, "auto"])
@pytest.mark.parametrize(("values", "said"), LARGE.values(), ids=LARGE)
def test_very_large_numbers_are_drawn_and_told_with_a_power(values, said, annot):
    shown = heatmaps(values, annot=annot)
    assert any(part.lower() in shown.alt.lower() for part in said.split("|"))
    assert not re.search(r"→ {2}|\d{15}|nan|inf", shown.alt + shown._more)
    assert max(map(len, words(shown))) <= 10
    assert shown.svg("light") != shown.svg("dark") and shown.png()


def test_numbers_whose_difference_overflows_are_refused():
    with pytest.raises(ValueError, match=r"matrices has numbers as large as 1.7e\+308; at most"):
        heatmaps([[1.7e308, -1.7e308]])
    heatmaps(np.ma.array([[1.0, -1.7e308]], mask=[[False, True]]))


def test_a_ledger_of_very_large_numbers():
    trace = AttentionTrace([1e100], [[1e100], [1.0]], [1, 2])
    assert "1e+200" in str(trace) and trace.plot(show=False).figure.get_size_inches()[0] <= 6.4


def test_what_does_not_fit_is_told_in_round_numbers():
    with pytest.raises(ValueError, match=r"1 column of panels does not fit .* in 6\.4 inches"):
        show_heatmaps(np.eye(2), "x" * 200, "Queries")


MAKERS = {
    "weights": lambda x: show_attention_lines(x, ["a"], ["b", "c"]),
    "scores": lambda x: AttentionExplorer(x, ["a"], ["b", "c"]),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([[np.inf, 0.0]], ValueError),
        (np.ones(2), ValueError),
        (np.ones((0, 2)), ValueError),
        ([["x", "y"]], TypeError),
        ([[1e301, 0.0]], ValueError),
    ],
)
def test_messages_name_the_argument(name, given, error):
    with pytest.raises(error, match=f"^{name} ") as caught:
        MAKERS[name](given)
    assert "matrices" not in str(caught.value)


def test_a_mask_that_does_not_fit_names_the_scores():
    with pytest.raises(ValueError, match="does not broadcast to scores of shape"):
        AttentionExplorer(np.eye(2), ["a", "b"], mask=np.ones((3, 3), dtype=bool))


def test_half_a_surrogate_pair_is_written_out():
    shown = heatmaps(
        np.eye(2), xticks=[HALF, "b"], titles=[HALF], row_titles=[HALF], label=HALF, alt=HALF
    )
    assert words(shown).count(r"\ud83d") == 4
    explorer = AttentionExplorer(np.eye(2), [HALF, "b"])
    lines = show_attention_lines([[0.9, 0.1], [0.4, 0.6]], [HALF, "b"])
    trace = AttentionTrace([1.0], [[1.0]], [1.0], labels=[HALF], name=HALF)
    for html in (shown.html(), explorer._repr_html_(), lines.html(), trace._repr_html_()):
        assert r"\ud83d" in html and html.encode()
