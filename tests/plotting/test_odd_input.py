"""Very large numbers, and halves of surrogate pairs."""

import re

import numpy as np
import pytest

from d2lmini.plotting import AttentionExplorer, AttentionTrace, show_attention_lines
from tests.plotting.reading import heatmaps, words

HALF = "\ud83d"
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


def test_half_a_surrogate_pair_is_written_out():
    named = {"titles": [HALF], "row_titles": [HALF], "label": HALF, "alt": HALF}
    shown = heatmaps(np.eye(2), xticks=[HALF, "b"], **named)
    assert words(shown).count(r"\ud83d") == 4
    explorer = AttentionExplorer(np.eye(2), [HALF, "b"])
    lines = show_attention_lines([[0.9, 0.1], [0.4, 0.6]], [HALF, "b"])
    trace = AttentionTrace([1.0], [[1.0]], [1.0], labels=[HALF], name=HALF)
    for html in (shown.html(), explorer._repr_html_(), lines.html(), trace._repr_html_()):
        assert r"\ud83d" in html and html.encode()
