"""Every word around the panels, and the place that it takes."""

import numpy as np
import pytest

from d2lmini.plotting import show_heatmaps
from tests.plotting.reading import (
    heatmaps,
    inside,
    overlap,
    random_weights,
    texts,
    tick_labels,
    titles,
    words,
)

TOKENS = ["the", "cat", "sat", "on", "mats"]


def test_tokens_are_tick_labels_of_the_outer_panels_only():
    shown = heatmaps(random_weights(2, 2, 5, 5), xticks=TOKENS, yticks=TOKENS[::-1])
    for (row, column), ax in np.ndenumerate(shown.axes):
        assert tick_labels(ax.xaxis) == (TOKENS if row == 1 else [])
        assert tick_labels(ax.yaxis) == (TOKENS[::-1] if column == 0 else [])


def test_spaces_are_visible_and_labels_may_be_of_any_kind():
    for x, y, shown in (
        (["a", " a"], [" ", "b\n"], (["a", "␣a"], ["␣", "b⏎"])),
        (range(2), np.array([1.5, 2.5]), (["0", "1"], ["1.5", "2.5"])),
    ):
        ax = heatmaps(np.eye(2), xticks=x, yticks=y).axes[0, 0]
        assert (tick_labels(ax.xaxis), tick_labels(ax.yaxis)) == shown


@pytest.mark.parametrize(
    ("labels", "angle", "step"),
    [
        (None, 0, 50),  # cells are numbered in round steps
        (TOKENS, 0, 1),
        (["a token"] * 12, 45, 1),
        (["a token"] * 40, 90, 1),
        ([str(i) for i in range(1, 31)], 0, 2),  # numbers stay upright
    ],
    ids=lambda value: str(value)[:20],
)
def test_labels_are_turned_and_left_out_only_where_they_do_not_fit(labels, angle, step):
    count = len(labels or range(500))
    ax = heatmaps(random_weights(count, count), xticks=labels).axes[0, 0]
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {angle}
    assert tick_labels(ax.xaxis) == (labels or [str(i) for i in range(500)])[::step]
    np.testing.assert_array_equal(ax.get_xticks(), range(0, count, step))


def test_titles_are_one_per_column_or_one_per_panel_and_rows_have_their_own():
    """d2l 1.0.3 has titles by column only."""
    columns, every = [["a", "b", "c"], [""] * 3], [["a", "b", "c"], ["d", "e", "f"]]
    for told, expected in ((["a", "b", "c"], columns), (list("abcdef"), every), (every, every)):
        shown = heatmaps(random_weights(2, 3, 4, 4), titles=told, row_titles=["Layer 1", "Layer 2"])
        assert titles(shown) == expected
        assert {"Layer 1", "Layer 2"} <= set(words(shown))


HOSTILE = ["$$", "$\\foo$", "$5 and $6", "<b>&"]


def test_no_word_is_taken_for_a_formula():
    """matplotlib#20266, nine-or-null#14, mtools PR#639."""
    bad = HOSTILE[1]
    sides = {"xticks": HOSTILE, "yticks": HOSTILE, "titles": HOSTILE, "row_titles": HOSTILE}
    shown = show_heatmaps(random_weights(4, 4, 4, 4), bad, bad, label=bad, **sides)
    shown.png()  # a formula would be read now
    found = [(text.replace("\n", " "), t) for text, _, t in texts(shown)]  # a title may be wrapped
    said = [text for text, _ in found]
    times = {word: said.count(word) for word in HOSTILE}
    assert times == dict.fromkeys(HOSTILE, 4 + 4 + 1 + 1) | {bad: 10 + 3}
    assert not any(t.get_parse_math() for text, t in found if text in HOSTILE)


HEADS, LAYERS = [f"Head {i}" for i in range(1, 13)], [f"Layer {i}" for i in range(1, 4)]
EACH = ["layer 1, head 11", "layer 1, head 2", "layer 10, head 3", "uncharacteristically"]
AFTER = ["before learning", "after learning, which takes a while and then some more"]
LONG = "Key positions, counted from the first token of the sentence"
BAR = "attention weight after the softmax"
FIVE = {"xticks": TOKENS, "yticks": TOKENS}
TURNED = {key: [f"token {i}" for i in range(12)] for key in FIVE}
FIGURES = {
    "one cell": (np.ones((1, 1)), {}),
    "tokens": (random_weights(5, 5), FIVE | {"label": "weight"}),
    "two with turned tokens": (random_weights(1, 2, 12, 12), TURNED | {"titles": AFTER}),
    "twelve heads": (random_weights(3, 12, 16, 16), {"titles": HEADS, "row_titles": LAYERS}),
    "a title each": (random_weights(2, 2, 5, 5), FIVE | {"titles": EACH}),
    "one long query": (random_weights(1, 200), {}),
    "long words": (random_weights(1, 6, 4, 4), {"titles": ["characterisation"] * 6}),
    "long labels": (np.eye(2), {"xlabel": LONG, "ylabel": LONG, "label": BAR}),
    "signed": (random_weights(6, 6) * 700 - 300, {"xticks": list("abcdef")}),
    "too small": (random_weights(2, 4, 9, 9), {"figsize": (1, 1), "titles": ["a title"] * 4}),
}


@pytest.mark.parametrize(("matrices", "options"), FIGURES.values(), ids=FIGURES)
def test_all_has_its_place(matrices, options):
    figure = show_heatmaps(matrices, **{"xlabel": "Keys", "ylabel": "Queries"} | options)
    axes = [ax.get_window_extent() for ax in figure.figure.axes]
    # No word is cut, or covers another or a panel.
    found = inside(figure)
    cells = {id(t) for ax in figure.axes.flat for t in ax.texts}
    for i, (text, box, artist) in enumerate(found):
        turned = artist.get_rotation() == 45  # its box is larger than the word
        if id(artist) not in cells:
            assert turned or not any(overlap(box, panel) for panel in axes), text
            for other, near, its in found[:i]:
                assert (turned and its.get_rotation() == 45) or not overlap(box, near), other
    # It is no wider than the page unless asked to.
    inches = figure.figure.get_size_inches()
    assert (inches >= options["figsize"]).all() if "figsize" in options else inches[0] <= 6.4
    # Cells are square unless the matrix is long and thin, and panels alike.
    panels = axes[: figure.axes.size]
    queries, keys = matrices.shape[-2:]
    for box in panels:
        if max(queries, keys) < 20 * min(queries, keys):
            assert box.width / keys == pytest.approx(box.height / queries, rel=0.02)
        else:  # the short side can be seen: 0.3 inches
            assert min(box.width, box.height) >= 0.29 * 96
        np.testing.assert_allclose(box.size, panels[0].size)
    # The bar is as tall as the grid.
    (bar,) = axes[figure.axes.size :]
    assert bar.y0 == pytest.approx(min(p.y0 for p in panels))
    assert bar.y1 == pytest.approx(max(p.y1 for p in panels))
