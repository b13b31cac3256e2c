"""Every word around the panels, and the place that it takes."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.plotting import show_heatmaps
from d2lmini.plotting._inputs import visible_token
from tests.comparing import many
from tests.plotting.reading import heatmaps, pixels, random_weights, texts, tick_labels, words

TOKENS = ["the", "cat", "sat", "on", "mats"]


# ------------------------------------------------------------------------------------ ticks


def test_tokens_are_tick_labels_of_the_outer_panels_only():
    shown = heatmaps(random_weights(2, 2, 5, 5), xticks=TOKENS, yticks=TOKENS[::-1])
    for row, column in np.ndindex(2, 2):
        ax = shown.axes[row, column]
        assert tick_labels(ax.xaxis) == (TOKENS if row == 1 else [])
        assert tick_labels(ax.yaxis) == (TOKENS[::-1] if column == 0 else [])


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("the", "the"),
        (" the", "␣the"),
        ("the  ", "the␣␣"),
        (" ", "␣"),
        ("", ""),
        ("New York", "New York"),
        ("\n", "⏎"),
        ("\ta", "⇥a"),
        ("Ġthe", "Ġthe"),
    ],
)
def test_spaces_are_visible(token, shown):
    assert visible_token(token) == shown


def test_spaces_are_visible_in_the_figure():
    shown = heatmaps(np.eye(2), xticks=["a", " a"], yticks=[" ", "b "])
    assert tick_labels(shown.axes[0, 0].xaxis) == ["a", "␣a"]
    assert tick_labels(shown.axes[0, 0].yaxis) == ["␣", "b␣"]


def test_labels_may_be_of_any_kind():
    shown = heatmaps(np.eye(2), xticks=range(2), yticks=np.array([1.5, 2.5]))
    assert tick_labels(shown.axes[0, 0].xaxis) == ["0", "1"]
    assert tick_labels(shown.axes[0, 0].yaxis) == ["1.5", "2.5"]


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [0]), (10, list(range(10))), (500, list(range(0, 500, 50)))]
)
def test_without_tokens_cells_are_numbered_in_round_steps(count, expected):
    ax = heatmaps(random_weights(count, count)).axes[0, 0]
    assert tick_labels(ax.xaxis) == [str(i) for i in expected]
    np.testing.assert_array_equal(ax.get_xticks(), expected)


def angles(shown):
    return {label.get_rotation() for label in shown.axes[-1, 0].get_xticklabels()}


def test_labels_are_turned_and_left_out_only_where_they_do_not_fit():
    assert angles(heatmaps(np.eye(5), xticks=TOKENS)) == {0}
    assert angles(heatmaps(random_weights(12, 12), xticks=["a token"] * 12)) == {45}
    assert angles(heatmaps(random_weights(40, 40), xticks=["a token"] * 40)) == {90}
    thirty = heatmaps(random_weights(30, 30), xticks=range(1, 31))  # numbers stay upright
    assert angles(thirty) == {0}
    assert tick_labels(thirty.axes[0, 0].xaxis) == [str(i) for i in range(1, 31, 2)]
    many_tokens = [f"t{i}" for i in range(300)]
    labels = tick_labels(heatmaps(random_weights(300, 300), xticks=many_tokens).axes[0, 0].xaxis)
    step = 300 // len(labels) + (300 % len(labels) > 0)
    assert 30 < len(labels) < 100 and labels == many_tokens[::step]
    forty = [f"t{i}" for i in range(40)]
    assert tick_labels(heatmaps(random_weights(40, 40), yticks=forty).axes[0, 0].yaxis) == forty


def test_a_very_long_label_leaves_room_for_the_picture():
    title = "How to bake sourdough bread at home without any special tools, step by step"
    shown = heatmaps(np.eye(2), yticks=[title, "short"])
    label = tick_labels(shown.axes[0, 0].yaxis)[0]
    assert label.endswith("…") and title.startswith(label[:-1]) and len(label) > 20
    assert shown.figure.get_size_inches()[0] <= 6.4


# ----------------------------------------------------------------------------------- titles


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        (["a", "b", "c"], [["a", "b", "c"], ["", "", ""]]),
        (list("abcdef"), [["a", "b", "c"], ["d", "e", "f"]]),
        ([["a", "b", "c"], ["d", "e", "f"]], [["a", "b", "c"], ["d", "e", "f"]]),
        (("a", None, 3), [["a", "", "3"], ["", "", ""]]),
        ((f"{c}" for c in "abc"), [["a", "b", "c"], ["", "", ""]]),
    ],
)
def test_titles_are_one_per_column_or_one_per_panel(titles, expected):
    """d2l 1.0.3 has titles by column only."""
    shown = heatmaps(random_weights(2, 3, 4, 4), titles=titles)
    assert [[ax.get_title() for ax in row] for row in shown.axes] == expected


def test_a_column_of_panels_takes_a_title_each():
    shown = heatmaps(random_weights(3, 1, 4, 4), titles=["a", "b", "c"])
    assert [ax.get_title() for ax in shown.axes[:, 0]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("titles", "message"),
    [
        (["a", "b"], r"titles has 2 entries; give 3 \(one per column\) or 6 \(one per panel\)"),
        ([], "titles has 0 entries; give 3"),
        (list("abcdefg"), "titles has 7 entries; give 3"),
        ([["a", "b", "c"]], "titles has 1 row for 2 rows of panels"),
        ([["a", "b", "c"], ["d"]], r"titles\[1\] has 1 title for 3 columns of panels"),
    ],
)
def test_a_wrong_number_of_titles_is_told_with_both_numbers(titles, message):
    with pytest.raises(ValueError, match=message):
        heatmaps(random_weights(2, 3, 4, 4), titles=titles)


def test_row_titles():
    shown = heatmaps(random_weights(2, 3, 4, 4), row_titles=["Layer 1", "Layer 2"])
    assert {"Layer 1", "Layer 2"} <= set(words(shown))
    with pytest.raises(ValueError, match="row_titles has 3 entries for 2 rows of panels"):
        heatmaps(random_weights(2, 3, 4, 4), row_titles=["a", "b", "c"])


# ------------------------------------------------------------------------- never a formula

HOSTILE = ["$$", "$\\foo$", "$5 and $6", "a_b^c", "\\frac", "100%", "{", "<b>&"]


@pytest.mark.parametrize("where", ["xticks", "yticks", "titles", "row_titles", "label", "xlabel"])
def test_no_word_is_taken_for_a_formula(where):
    """matplotlib#20266, nine-or-null#14, mtools PR#639."""
    values = random_weights(*{"titles": (1, 8), "row_titles": (8, 1)}.get(where, (1, 1)), 8, 8)
    given = {"xlabel": "Keys", "ylabel": "Queries"}
    given[where] = HOSTILE[1] if where in ("label", "xlabel") else HOSTILE
    shown = show_heatmaps(values, **given)
    shown.png()  # a formula would be read now
    found = {t: text.replace("\n", " ") for text, _, t in texts(shown)}  # a title may be wrapped
    found = {t: text for t, text in found.items() if text in HOSTILE}
    assert len(set(found.values())) == (1 if where in ("label", "xlabel") else 8)
    assert not any(t.get_parse_math() for t in found)


# ----------------------------------------------------------------------------------- layout

FIGURES = {
    "one": {"matrices": np.eye(10)},
    "one cell": {"matrices": np.ones((1, 1))},
    "tokens": {
        "matrices": random_weights(5, 5),
        "xticks": TOKENS,
        "yticks": TOKENS,
        "label": "weight",
    },
    "heads": {
        "matrices": random_weights(2, 4, 12, 12),
        "titles": [f"Head {i}" for i in range(1, 5)],
        "row_titles": ["Layer 1", "Layer 2"],
    },
    "two with turned tokens": {
        "matrices": random_weights(1, 2, 12, 12),
        "xticks": [f"token {i}" for i in range(12)],
        "yticks": [f"token {i}" for i in range(12)],
        "titles": ["before learning", "after learning, which takes a while and then some more"],
    },
    "all heads of a model": {
        "matrices": random_weights(8, 12, 16, 16),
        "titles": [f"Head {i}" for i in range(1, 13)],
        "row_titles": [f"Layer {i}" for i in range(1, 9)],
    },
    "a title each": {
        "matrices": random_weights(2, 2, 5, 5),
        "titles": [
            "layer 1, head 11",
            "layer 1, head 2",
            "layer 10, head 3",
            "uncharacteristically",
        ],
        "xticks": TOKENS,
        "yticks": TOKENS,
    },
    "one long query": {"matrices": random_weights(1, 200)},
    "long and thin": {"matrices": random_weights(200, 3)},
    "large": {"matrices": random_weights(512, 512)},
    "columns of long words": {
        "matrices": random_weights(1, 6, 4, 4),
        "titles": [f"characterisation{i}" for i in range(6)],
    },
    "long labels": {
        "matrices": np.eye(2),
        "xlabel": "Key positions, counted from the first token of the sentence",
        "ylabel": "Query positions, counted from the first token of the same sentence",
        "label": "attention weight after the softmax",
    },
    "signed": {"matrices": random_weights(6, 6) * 700 - 300, "xticks": list("abcdef")},
    "a size": {"matrices": random_weights(2, 4, 9, 9), "figsize": (7, 3.5)},
    "too small a size": {
        "matrices": random_weights(2, 4, 9, 9),
        "figsize": (1, 1),
        "titles": ["a title"] * 4,
    },
}


@pytest.fixture(scope="module", params=FIGURES.values(), ids=FIGURES)
def figure(request):
    return show_heatmaps(**{"xlabel": "Keys", "ylabel": "Queries"} | request.param)


def test_no_word_is_cut_or_covers_another_or_a_panel(figure):
    width, height = figure.figure.canvas.get_width_height()
    found = texts(figure)
    panels = [ax.get_window_extent() for ax in figure.figure.axes]
    inside = {id(t) for ax in figure.axes.flat for t in ax.texts}
    for i, (text, box, artist) in enumerate(found):
        assert box.x0 >= -0.5 and box.x1 <= width + 0.5, (text, box, width)
        assert box.y0 >= -0.5 and box.y1 <= height + 0.5, (text, box, height)
        if id(artist) in inside:
            continue
        turned = artist.get_rotation() == 45  # its box is larger than the word
        for panel in [] if turned else panels:
            assert not overlap(box, panel), text
        for other, other_box, other_artist in found[:i]:
            if not (turned and other_artist.get_rotation() == 45):
                assert not overlap(box, other_box), (text, other)


def overlap(a, b):
    """Whether two boxes share more than a pixel."""
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1


def test_no_figure_is_wider_than_the_page_unless_asked_to(figure, request):
    width = figure.figure.get_size_inches()[0]
    asked = request.node.callspec.params["figure"].get("figsize")
    if asked is None:
        assert width <= 6.4
    else:
        assert (figure.figure.get_size_inches() >= np.array(asked) - 1e-9).all()


def test_cells_are_square_unless_the_matrix_is_long_and_thin(figure, request):
    shapes = []
    for ax in figure.axes.flat:
        queries, keys = ax.images[0].get_array().shape
        box = ax.get_window_extent()
        shapes.append((box.width, box.height))
        if max(queries, keys) < 20 * min(queries, keys):
            assert box.width / keys == pytest.approx(box.height / queries, rel=0.02)
        else:  # the short side can be seen: 0.3 inches
            assert min(box.width, box.height) >= 0.29 * 96
    np.testing.assert_allclose(shapes, shapes[:1] * len(shapes))


def test_the_bar_is_as_tall_as_the_grid(figure):
    panels = [ax.get_window_extent() for ax in figure.axes.flat]
    (bar,) = (ax for ax in figure.figure.axes if ax not in list(figure.axes.flat))
    box = bar.get_window_extent()
    assert box.y0 == pytest.approx(min(p.y0 for p in panels))
    assert box.y1 == pytest.approx(max(p.y1 for p in panels))
    assert len(bar.get_yticks()) == 3


def test_the_picture_has_whole_pixels(figure, request):
    if "figsize" not in request.node.callspec.params["figure"]:
        inches = figure.figure.get_size_inches()
        np.testing.assert_allclose(inches * 96, (inches * 96).round(), atol=1e-9)
        assert pixels(figure).shape[:2] == tuple((inches[::-1] * 192).round())


@settings(many, max_examples=8)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 30), st.integers(1, 30)),
    words=st.lists(st.text("abc ÄW$_.…", max_size=12), min_size=30, max_size=30),
    named=st.booleans(),
)
def test_any_grid_fits_the_page(shape, words, named):
    rows, columns, queries, keys = shape
    tokens = {"xticks": words[:keys], "yticks": words[:queries]} if named else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = heatmaps(
            np.zeros(shape), titles=words[:columns], row_titles=words[:rows], show=False, **tokens
        )
    assert shown.figure.get_size_inches()[0] <= 6.4
    assert shown.axes.shape == (rows, columns)
    for text, box, _ in texts(shown):
        assert box.x0 >= -1 and box.y0 >= -1, text
        assert box.x1 <= shown.figure.bbox.x1 + 1 and box.y1 <= shown.figure.bbox.y1 + 1, text


def test_panels_that_need_a_pixel_less_each_still_fit():
    shown = heatmaps(np.zeros((1, 5, 11, 13)), titles=["W", "", "", "", ""], row_titles=["W"])
    assert shown.figure.get_size_inches()[0] <= 6.4
