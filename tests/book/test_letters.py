"""Words of a drawing, set anew for the width that a page gives it: where they stand."""

import re

import pytest
from bs4 import BeautifulSoup

from d2lmini.plotting import show_figure
from lettering.letters import lettered

PLACES = {  # what is drawn: where it is anchored, and how
    "two lines\nin the middle": {"ha": "center"},
    "these begin\ntogether": {"ha": "left"},
    "these\nend together": {"ha": "right"},
}
ANCHORS = ["middle", "start", "end"]


def said(line, what):
    return re.search(rf"{what}: ([\w.]+)", line["style"])[1]


def size(line, words, scale=1.0):
    """Return the size of letters on the page."""
    drawn = float(said(line, "font-size").removesuffix("px"))
    return drawn * scale * 240 / float(words["viewbox"].split()[2])


def test_a_drawing_that_is_shown_smaller_than_it_was_drawn_is_set_in_12():

    @show_figure(canvas=True, width=4, height=3, alt="Words.", show=False)
    def drawn(ax):
        for y, (text, how) in enumerate(PLACES.items()):
            ax.text(2, 0.5 + y, text, size=11, **how)
        for x, token in enumerate(["i", "like", "apples"]):
            ax.text(1 + x, 2.9, token, rotation=-90, size=9, va="top", ha="center")
        ax.text(3.9, 0.2, "beyond the side", size=11)
        ax.text(0.5, 0.2, "large", size=15)
        ax.text(0.5, 2.2, "$x_i$", size=11)

    svg = lettered(drawn.svg().encode(), 240, 12).decode()
    words = BeautifulSoup(svg, "html.parser").svg
    lines = {line.text: line for line in words.find_all("text")}
    # Lines stay flush where they were.
    for text, anchor in zip(PLACES, ANCHORS, strict=True):
        for line in text.split("\n"):
            assert said(lines[line], "text-anchor") == anchor, line
            # What stays is the anchor: 2 inches, in points.
            moved = re.search(r"translate\(([\d.]+)", lines[line]["transform"])[1]
            assert float(moved) + float(lines[line]["x"]) == pytest.approx(144, abs=0.5), line
    for token in ("i", "like", "apples"):
        assert said(lines[token], "text-anchor") == "start", "they hang from one height"
    # What would be cut makes the drawing wider.
    left, _, width, _ = map(float, words["viewbox"].split())
    assert left < 0 and width > 1.2 * 4 * 72, "at either side"
    assert size(lines["beyond the side"], words) == pytest.approx(12, 0.01)
    assert size(lines["large"], words) == pytest.approx(12 * 17 / 14, 0.01)
    # An index stays large enough.
    letter, index = words.find_all("tspan")
    scale = float(re.search(r"scale\(([\d.]+)\)", letter.find_parent("g")["transform"])[1])
    assert size(letter, words, scale) == pytest.approx(12, 0.01)
    assert size(index, words, scale) == pytest.approx(0.85 * 12, 0.01)
