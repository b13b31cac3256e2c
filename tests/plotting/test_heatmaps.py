"""What is drawn: the numbers, the one colour scale, what is masked, what is written into cells."""

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from d2lmini.plotting import show_heatmaps
from d2lmini.plotting._svg import data_address
from d2lmini.plotting.theme import COLUMN, PHONE
from tests.comparing import many
from tests.plotting.reading import (
    cell,
    drawn,
    heatmaps,
    limits,
    pixels,
    random_weights,
    texts,
    words,
)

# ----------------------------------------------------- the calls that readers bring with them


def test_identity():
    shown = show_heatmaps(np.eye(10).reshape(1, 1, 10, 10), xlabel="Keys", ylabel="Queries")
    np.testing.assert_array_equal(drawn(shown.axes[0, 0]), np.eye(10))
    assert limits(shown) == {(0, 1)}
    assert words(shown).count("Keys") == words(shown).count("Queries") == 1


def test_a_figure_size_and_another_colour_map():
    encoding = np.sin(np.arange(60)[:, None] / 50 ** (np.arange(32) / 32))
    shown = show_heatmaps(
        encoding[None, None], xlabel="Dimension", ylabel="Position", figsize=(6, 3), cmap="Blues"
    )
    assert shown.axes[0, 0].images[0].get_cmap().name == "Blues"
    np.testing.assert_allclose(shown.figure.get_size_inches(), (6, 3))
    np.testing.assert_array_equal(drawn(shown.axes[0, 0]), encoding)


def test_two_rows_of_four_heads():
    weights = random_weights(2, 4, 9, 7)
    titles = [f"Head {i}" for i in range(1, 5)]
    shown = show_heatmaps(weights, "Keys", "Queries", titles, (7, 3.5))
    assert shown.axes.shape == (2, 4)
    for row, column in np.ndindex(2, 4):
        np.testing.assert_array_equal(drawn(shown.axes[row, column]), weights[row, column])
        assert shown.axes[row, column].get_title() == (titles[column] if row == 0 else "")
    np.testing.assert_allclose(shown.figure.get_size_inches(), (7, 3.5))


@pytest.mark.parametrize(
    "shape", [(10, 10), (2, 5), (3, 6), (16, 40), (6, 5), (3, 1, 3, 8), (1, 2, 2, 3), (2, 2, 3, 3)]
)
def test_it_is_nearly_as_wide_as_the_page_and_lower_than_a_screen(shape):
    width, height = heatmaps(random_weights(*shape)).figure.get_size_inches()
    assert 0.7 * COLUMN < width <= COLUMN and height <= 4.8


# --------------------------------------------------------------------------- the one scale


@pytest.mark.parametrize(
    ("largest", "end"),
    [
        (0.004, 0.01),
        (0.01, 0.01),
        (0.011, 0.02),
        (0.05, 0.05),
        (0.06, 0.1),
        (0.2, 0.2),
        (0.21, 1.0),
        (1.0, 1.0),
        (1.00001, 1.0),  # the rounding of a softmax
        (0.0, 1.0),
        (37.5, 37.5),
    ],
)
def test_the_scale_of_what_is_never_negative_starts_at_zero(largest, end):
    values = np.array([[[0.0, largest / 2]], [[0.0, largest]]])[None]
    shown = heatmaps(values)
    assert limits(shown) == {(0, end)}


def test_the_bar_says_where_the_scale_ends():
    assert {"0", "0.025", "0.05"} <= set(words(heatmaps(np.full((1, 30), 0.04))))
    assert {"0", "0.5", "1"} <= set(words(heatmaps(np.eye(3) * 0.5)))


def test_signed_numbers_share_one_symmetric_scale():
    shown = heatmaps([[[[1.0, -0.5]], [[0.25, -3.0]]]])
    assert limits(shown) == {(-3, 3)}
    assert {"−3", "0", "3"} <= set(words(shown))


@pytest.mark.parametrize(
    ("values", "cmap", "used"),
    [
        ([[1.0, -1.0]], "Reds", "RdBu_r"),
        ([[1.0, 0.0]], "Reds", "weights"),
        ([[1.0, -1.0]], "Blues", "Blues"),
        ([[1.0, -1.0]], matplotlib.colormaps["Reds"], "Reds"),
    ],
)
def test_only_the_usual_one_hue_gives_way_to_two_where_there_is_a_sign(values, cmap, used):
    shown = heatmaps(values, cmap=cmap)
    assert shown.axes[0, 0].images[0].get_cmap().name == used


def test_given_limits_are_kept_and_the_bar_tells_what_lies_beyond():
    shown = heatmaps([[0.1, 0.9]], vmin=0.2, vmax=0.6)
    assert limits(shown) == {(0.2, 0.6)}
    assert {"≤ 0.2", "0.4", "≥ 0.6"} <= set(words(shown))
    assert limits(heatmaps([[0.1, 0.9]], vmax=2)) == {(0, 2)}


@settings(many, max_examples=20)
@given(
    arrays(
        float,
        st.tuples(*[st.integers(1, 3)] * 4),
        elements=st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
    )
)
def test_every_panel_has_the_same_scale_and_it_holds_all_numbers(values):
    """matplotlib#11377, iris#2106, AnatomyOfMatplotlib#28."""
    shown = heatmaps(values, show=False)
    ((low, high),) = limits(shown)
    assert low <= 0 < high
    assert low <= values.min() + 1e-6 and values.max() <= high * 1.005
    assert low in (0, -high)
    for row, column in np.ndindex(shown.axes.shape):
        np.testing.assert_array_equal(drawn(shown.axes[row, column]), values[row, column])


# ------------------------------------------------------------------------ masked is not zero


def test_masked_cells_are_hatched_and_a_weight_of_zero_is_not():
    values = np.array([[0.0, 0.0], [1.0, 0.0]])
    shown = heatmaps(values, mask=np.array([[True, False], [True, True]]), annot=False)
    panel = pixels(shown, shown.axes[0, 0])
    zero = {tuple(p) for p in cell(panel, (2, 2), 0, 0)}
    masked = {tuple(p) for p in cell(panel, (2, 2), 0, 1)}
    assert zero == {(243, 240, 236)}  # the pale end of the ramp, all over
    assert len(masked) > 1 and zero.isdisjoint(masked)
    assert {tuple(p) for p in cell(panel, (2, 2), 1, 1)} == zero


@pytest.mark.parametrize("kind", ["mask", "nan", "-inf", "masked array", "causal", "torch"])
def test_the_ways_to_mask(kind, request):
    allowed = np.tri(3, 4, 1, dtype=bool)
    values = random_weights(3, 4)
    hidden = np.where(allowed, values, 99.0)
    if kind == "mask":
        shown = heatmaps(hidden, mask=allowed)
    elif kind == "causal":  # three queries, four keys: the last query sees every key
        shown = heatmaps(hidden, mask="causal")
    elif kind == "torch":
        torch = request.getfixturevalue("torch")
        shown = heatmaps(hidden, mask=torch.tensor(allowed))
    elif kind == "masked array":
        shown = heatmaps(np.ma.array(hidden, mask=~allowed))
    else:
        shown = heatmaps(np.where(allowed, values, float(kind)))
    np.testing.assert_array_equal(drawn(shown.axes[0, 0]), np.where(allowed, values, np.nan))
    assert limits(shown) == {(0, 1)}  # 99 is masked: it moves nothing


@pytest.mark.parametrize(("queries", "keys"), [(3, 3), (2, 5), (4, 2)])
def test_causal_lets_the_last_query_see_every_key(queries, keys):
    shown = heatmaps(np.ones((queries, keys)), mask="causal")
    seen = [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]
    np.testing.assert_array_equal(np.isfinite(drawn(shown.axes[0, 0])), seen)


def test_a_mask_broadcasts_to_all_panels():
    padding = np.array([[[[True, True, False]]], [[[True, False, False]]]])  # (2, 1, 1, 3)
    shown = heatmaps(np.ones((2, 4, 5, 3)), mask=padding)
    for row, column in np.ndindex(2, 4):
        expected = np.broadcast_to(padding[row, 0], (5, 3))
        np.testing.assert_array_equal(np.isfinite(drawn(shown.axes[row, column])), expected)


def test_everything_masked_still_is_a_picture():
    shown = heatmaps(np.full((2, 2), np.nan))
    assert limits(shown) == {(0, 1)}
    assert shown.alt == "Heatmap of 2 × 2 values (Queries × Keys), all masked."


# -------------------------------------------------------------------------- numbers in cells


def annotations(shown):
    """Return what is written into the cells of the first panel, by (query, key)."""
    return {
        (round(t.get_position()[1]), round(t.get_position()[0])): t for t in shown.axes[0, 0].texts
    }


def test_numbers_have_two_decimals_and_masked_cells_none():
    shown = heatmaps([[0.5, 0.254], [0.0, 1.0]], mask="causal")
    found = {place: text.get_text() for place, text in annotations(shown).items()}
    assert found == {(0, 0): "0.50", (1, 0): "0.00", (1, 1): "1.00"}


def test_numbers_have_a_true_minus_and_no_negative_zero():
    shown = heatmaps([[-1.5, -0.001], [250.5, 3.0]])
    assert {t.get_text() for t in annotations(shown).values()} == {"−1.50", "0.00", "250", "3.00"}


def test_whole_numbers_have_no_decimals():
    found = annotations(heatmaps(np.array([[0, 3], [12, 1]])))
    assert [found[place].get_text() for place in np.ndindex(2, 2)] == ["0", "3", "12", "1"]


@pytest.mark.parametrize(
    ("shape", "annot", "written"),
    [
        ((1, 1, 8, 8), "auto", True),
        ((1, 2, 5, 5), "auto", True),
        ((1, 1, 9, 8), "auto", False),
        ((1, 3, 2, 2), "auto", False),
        ((1, 1, 1, 64), "auto", False),  # small, but the cells are too narrow
        ((1, 3, 2, 2), True, True),
        ((1, 1, 10, 10), True, True),
        ((1, 1, 2, 2), False, False),
    ],
)
def test_small_matrices_are_annotated(shape, annot, written):
    assert bool(annotations(heatmaps(random_weights(*shape), annot=annot))) == written


def relative_luminance(rgb):
    """WCAG 2.1, written from its definition."""
    channels = []
    for c in rgb[:3]:
        channels.append(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


@pytest.mark.parametrize("cmap", ["Reds", "viridis", "RdBu_r"])
def test_numbers_can_be_read_on_every_colour(cmap):
    values = np.concatenate([np.linspace(0, 1, 60), [0.001, 0.002, 0.003, 0.004]]).reshape(8, 8)
    shown = heatmaps(values, cmap=cmap)
    image = shown.axes[0, 0].images[0]
    for place, text in annotations(shown).items():
        ground = image.get_cmap()(image.norm(values[place]))
        pair = sorted(
            relative_luminance(c) for c in (matplotlib.colors.to_rgb(text.get_color()), ground)
        )
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5
        assert text.get_alpha() in (None, 1)


def test_zeros_are_dimmed():
    found = annotations(heatmaps([[0.0, 0.3]]))
    assert matplotlib.colors.to_rgb(found[0, 1].get_color()) == (0, 0, 0)
    assert min(matplotlib.colors.to_rgb(found[0, 0].get_color())) > 0.3


# ------------------------------------------------------------------------------ description


@pytest.mark.parametrize(
    ("values", "kwargs", "alt"),
    [
        (
            np.eye(10),
            {},
            "Heatmap of 10 × 10 values (Queries × Keys), from 0 to 1. "
            "Identity: 1 on the diagonal, 0 elsewhere.",
        ),
        (np.full((2, 4), 0.25), {}, "Heatmap of 2 × 4 values (Queries × Keys), all 0.25."),
        (np.eye(2), {"alt": "My own words."}, "My own words."),
    ],
)
def test_there_always_is_a_description(values, kwargs, alt):
    assert heatmaps(values, **kwargs).alt == alt


def test_axis_labels_may_be_empty():
    shown = show_heatmaps(np.eye(2), "", "")
    assert shown.alt.startswith("Heatmap of 2 × 2 values, from 0 to 1. ")
    assert set(words(shown)) == {"0", "1", "0.5"}


def test_the_label_stands_at_the_bar_and_the_bar_can_be_left_out():
    with_bar = heatmaps(np.eye(3), label="attention weight")
    assert "attention weight" in words(with_bar) and "0.5" in words(with_bar)
    assert "0.5" not in words(heatmaps(np.eye(3), colorbar=False))


def test_input_is_never_written_to():
    values, mask = random_weights(2, 3, 4, 5), np.tri(4, 5, dtype=bool)
    before = values.copy(), mask.copy()
    heatmaps(values, mask=mask)
    np.testing.assert_array_equal(values, before[0])
    np.testing.assert_array_equal(mask, before[1])


def test_a_later_change_of_the_input_does_not_change_the_figure():
    values = np.eye(3)
    shown = heatmaps(values)
    before = shown.png()
    values[:] = 7.0
    assert shown.png() == before


def test_on_a_phone_panels_wrap_in_order_and_none_is_lost():
    weights = random_weights(5, 4, 4, 4)  # twenty panels
    titles = [[f"Head {row}.{column}" for column in range(4)] for row in range(5)]
    shown = heatmaps(weights, titles=titles)
    small = shown.narrow
    assert small.figure.get_size_inches()[0] <= PHONE
    assert small.axes.shape == (10, 2)
    for ax, panel in zip(small.axes.flat, weights.reshape(-1, 4, 4), strict=True):
        np.testing.assert_array_equal(drawn(ax), panel)
    assert [ax.get_title() for ax in small.axes.flat] == [name for row in titles for name in row]
    assert limits(small) == limits(shown)
    assert f"--phone:url({data_address(small.svg().encode(), 'image/svg+xml')})" in shown.html()


def test_rows_that_are_named_give_their_name_to_their_panels():
    shown = heatmaps(random_weights(3, 3, 4, 4), titles=list("abc"), row_titles=list("xyz"))
    titles = [ax.get_title() for ax in shown.narrow.axes.flat if ax.images]
    assert titles == [f"{row}, {column}" for row in "xyz" for column in "abc"]


def test_a_figure_that_fits_a_phone_is_drawn_once_for_each_page():
    shown = heatmaps(np.eye(3), colorbar=False)
    assert shown.figure.get_size_inches()[0] <= PHONE
    assert shown.narrow is None and "--phone" not in shown.html()


def test_a_label_of_two_hundred_letters_stays_within_the_figure():
    long = "attention " * 20
    shown = heatmaps(random_weights(1, 4, 3, 3), titles=[long] * 4, xticks=[long] * 3)
    for one in (shown, shown.narrow):
        width, height = one.figure.get_size_inches() * one.figure.dpi
        for text, box, _ in texts(one):
            assert box.x0 >= -1 and box.x1 <= width + 1, text
            assert box.y0 >= -1 and box.y1 <= height + 1, text
