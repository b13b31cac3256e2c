"""What is drawn: the numbers, the one colour scale, what is masked, what is written into cells."""

import warnings
from unittest.mock import Mock

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from d2lmini import masked_softmax
from d2lmini.plotting import RowSumWarning, show_heatmaps
from d2lmini.plotting._svg import data_address
from d2lmini.plotting.theme import COLUMN, PHONE
from tests.comparing import many
from tests.plotting.reading import (
    cell,
    drawn,
    equal,
    heatmaps,
    inside,
    limits,
    panels,
    pixels,
    random_weights,
    titles,
    words,
)

# ------------------------------------------------------------------------------- what comes in


def test_the_calls_that_readers_bring_with_them():
    identity, weights = np.eye(10).reshape(1, 1, 10, 10), random_weights(2, 4, 9, 7)
    encoding = np.sin(np.arange(60)[:, None] / 50 ** (np.arange(32) / 32))[None, None]
    heads = [f"Head {i}" for i in range(1, 5)]
    one = show_heatmaps(identity, xlabel="Keys", ylabel="Queries")
    two = show_heatmaps(
        encoding, xlabel="Dimension", ylabel="Position", figsize=(6, 3), cmap="Blues"
    )
    three = show_heatmaps(weights, "Keys", "Queries", heads, (7, 3.5))
    for shown, values in (one, identity), (two, encoding), (three, weights):
        assert shown.axes.shape == values.shape[:2]
        equal(shown, values)
    assert limits(one) == {(0, 1)} and words(one).count("Keys") == words(one).count("Queries") == 1
    assert two.axes[0, 0].images[0].get_cmap().name == "Blues"
    assert titles(three) == [heads, [""] * 4]
    np.testing.assert_allclose(two.figure.get_size_inches(), (6, 3))
    np.testing.assert_allclose(three.figure.get_size_inches(), (7, 3.5))


def test_any_number_of_axes_and_three_or_four_keys_are_no_colours():
    """matplotlib#8780, #8571, pyannote PR#97, Automold#12."""
    for shape in [(3, 4), (1, 2, 3, 4), (3, 2, 3, 4), (2, 1, 1, 1), (5, 5, 3), (5, 5, 4)]:
        shown = heatmaps(random_weights(*shape))
        assert shown.axes.shape == (1, 1, *shape)[-4:-2], shape
        equal(shown, random_weights(*shape))


def test_any_real_type_of_numpy_and_pytorch(torch):
    values = [[0, 1, 1], [1, 0, 0]]
    whole = ["int8", "int64", "uint8", "bool", "float16", "float32", "float64"]
    for array in [np.array(values).astype(name) for name in whole] + [
        torch.tensor(values).to(getattr(torch, name)) for name in [*whole, "bfloat16"]
    ]:
        shown = heatmaps(array)
        equal(shown, values)
        assert limits(shown) == {(0, 1)}, array.dtype
    small = torch.full((1, 1, 4, 5), 0.2).bfloat16()
    assert limits(heatmaps(small)) == {(0, 0.2)}, "bfloat16 keeps the scale of weights"
    with pytest.raises(TypeError, match="real numbers; got complex64"):
        heatmaps(torch.ones(2, 2, dtype=torch.complex64))


def test_tensors_lists_and_what_is_masked_already(torch):
    """Yolo-Detect-Layer-Visualization#1, Transformers-Tutorials PR#178; d2l takes tensors alone.

    On another device: gradcam_plus_plus#10, Open3D-ML PR#81.
    """
    values = random_weights(2, 3, 4)
    tensors = [torch.tensor(panel, requires_grad=True) for panel in values]
    for given_as in (values.tolist(), list(values), tuple(values), tensors):
        equal(heatmaps(given_as), values)
    weights = torch.softmax(torch.stack(tensors), dim=-1)
    equal(heatmaps(weights), weights.detach().numpy())
    assert weights.requires_grad
    on_device = Mock(spec=["detach"])  # which, as on a GPU, turns into an array in one way alone
    on_device.detach().cpu().double().numpy.return_value = np.eye(2)
    equal(heatmaps(on_device), np.eye(2))
    masked = [np.ma.array([[1.0, 2.0]], mask=[[False, hide]]) for hide in (True, False)]
    equal(heatmaps(masked), [[[1, np.nan]], [[1, 2]]])
    beyond = np.ma.array([[1.0, -1.7e308]], mask=[[False, True]])
    equal(heatmaps(beyond), [[1, np.nan]])


def test_input_is_never_written_to_and_a_later_change_of_it_changes_no_figure():
    values, mask = random_weights(3, 3), np.tri(3, dtype=bool)
    before, expected = (values.copy(), mask.copy()), heatmaps(values.copy(), mask=mask.copy())
    shown = heatmaps(values, mask=mask)
    np.testing.assert_array_equal(values, before[0])
    np.testing.assert_array_equal(mask, before[1])
    values[:], mask[:] = 7.0, True
    assert shown.png() == expected.png() and shown.html() == expected.html()


# ----------------------------------------------------------------------------------- the one scale


def test_the_scale_of_what_is_never_negative_starts_at_zero():
    ends = {0.004: 0.01, 0.01: 0.01, 0.011: 0.02, 0.05: 0.05, 0.06: 0.1, 0.2: 0.2, 0.21: 1, 1: 1}
    ends |= {1.00001: 1, 0: 1, 37.5: 37.5}  # the first of them is the rounding of a softmax
    for largest, end in ends.items():
        assert limits(heatmaps([[[0, largest / 2]], [[0, largest]]])) == {(0, end)}, largest


BARS = {
    "small": (np.full((1, 30), 0.04), {}, (0, 0.05), ["0", "0.025", "0.05"]),
    "weights": (np.eye(3) * 0.5, {"label": "a label"}, (0, 1), ["0", "0.5", "1", "a label"]),
    "signed": ([[[1, -0.5]], [[0.25, -3]]], {}, (-3, 3), ["−3", "0", "3"]),
    "given": ([[0.1, 0.9]], {"vmin": 0.2, "vmax": 0.6}, (0.2, 0.6), ["≤ 0.2", "0.4", "≥ 0.6"]),
    "one end": ([[0.1, 0.9]], {"vmax": 2}, (0, 2), ["0", "1", "2"]),
    "log": ([[0.9, 0.1], [0.999, 0.001]], {"norm": "log"}, (0.001, 1), ["0.001", "0.0316", "1"]),
    "none": (np.eye(3), {"colorbar": False, "annot": False}, (0, 1), []),
}


@pytest.mark.parametrize(("values", "options", "ends", "said"), BARS.values(), ids=BARS)
def test_the_bar_says_where_the_scale_begins_and_ends(values, options, ends, said):
    shown = heatmaps(values, **options)
    (found,) = limits(shown)
    np.testing.assert_allclose(found, ends)
    bar = [w for w in words(shown) if w.strip("≤≥ ").lstrip("−")[:2] not in ("Ke", "Qu")]
    assert set(said) <= set(bar)
    assert ("0.5" in bar) == ("0.5" in said)
    if "norm" in options:
        norm = shown.axes[0, 0].images[0].norm
        assert [round(float(norm(x)), 4) for x in (0.0, 0.001, 10**-1.5, 1.0)] == [0, 0, 0.5, 1]


def test_only_the_usual_one_hue_gives_way_to_two_where_there_is_a_sign():
    reds = matplotlib.colormaps["Reds"]
    for least, cmap, used in (
        (-1, "Reds", "RdBu_r"), (0, "Reds", "weights"), (-1, "Blues", "Blues"), (-1, reds, "Reds"),
    ):  # fmt: skip
        shown = heatmaps([[1.0, least]], cmap=cmap)
        assert shown.axes[0, 0].images[0].get_cmap().name == used


@settings(many, max_examples=12)
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
    assert low <= 0 < high and low in (0, -high)
    assert low <= values.min() + 1e-6 and values.max() <= high * 1.005
    equal(shown, values)


# ------------------------------------------------------------------------------ rows that sum to 1

loud = pytest.mark.filterwarnings("error:matrices. row:UserWarning")
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


@loud
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


@loud
@pytest.mark.parametrize(("matrices", "mask"), RIGHT.values(), ids=RIGHT)
def test_no_warning_for_weights_and_for_what_is_none(matrices, mask):
    heatmaps(matrices, mask=mask)


# ------------------------------------------------------------------------------ masked is not zero


def test_masked_cells_are_hatched_and_a_weight_of_zero_is_not():
    values = np.array([[0.0, 0.0], [1.0, 0.0]])
    shown = heatmaps(values, mask=np.array([[True, False], [True, True]]), annot=False)
    panel = pixels(shown, shown.axes[0, 0])
    zero, masked, other = (
        {tuple(p) for p in cell(panel, (2, 2), *at)} for at in ((0, 0), (0, 1), (1, 1))
    )
    assert zero == other == {(243, 240, 236)}  # the pale end of the ramp, all over
    assert len(masked) > 1 and zero.isdisjoint(masked)


def test_the_ways_to_mask(torch):
    allowed = np.tri(3, 4, 1, dtype=bool)  # three queries, four keys: the last one sees every key
    values = random_weights(3, 4)
    hidden = np.where(allowed, values, 99.0)
    for shown in (
        *(heatmaps(hidden, mask=m) for m in (allowed, "causal", allowed.tolist())),
        heatmaps(hidden, mask=torch.tensor(allowed)),
        heatmaps(np.ma.array(hidden, mask=~allowed)),
        *(heatmaps(np.where(allowed, values, x)) for x in (np.nan, -np.inf)),
    ):
        equal(shown, np.where(allowed, values, np.nan))
        assert limits(shown) == {(0, 1)}  # 99 is masked: it moves nothing
    for queries, keys in (3, 3), (2, 5), (4, 2):
        seen = [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]
        shown = heatmaps(np.ones((queries, keys)), mask="causal")
        np.testing.assert_array_equal(np.isfinite(drawn(shown.axes[0, 0])), seen)
    padding = np.array([[True, True, False], [True, False, False]]).reshape(2, 1, 1, 3)
    shown = heatmaps(np.ones((2, 4, 5, 3)), mask=padding)
    expected = np.broadcast_to(padding, (2, 4, 5, 3))
    np.testing.assert_array_equal(np.isfinite(panels(shown)), expected)
    nothing = heatmaps(np.full((2, 2), np.nan))
    assert limits(nothing) == {(0, 1)}
    assert nothing.alt == "Heatmap of 2 × 2 values (Queries × Keys), all masked."


# -------------------------------------------------------------------------------- numbers in cells


def annotations(shown):
    """Return what is written into the cells of the first panel, by (query, key)."""
    return {
        (round(t.get_position()[1]), round(t.get_position()[0])): t for t in shown.axes[0, 0].texts
    }


def test_numbers_in_cells():
    """Two decimals, none if all are whole; a true minus, no negative zero; zeros are dimmed."""
    causal = annotations(heatmaps([[0.5, 0.254], [0.0, 1.0]], mask="causal"))
    for values, expected in {
        ((-1.5, -0.001), (250.5, 3.0)): ["−1.50", "0.00", "250", "3.00"],
        ((0, 3), (12, 1)): ["0", "3", "12", "1"],
    }.items():
        found = annotations(heatmaps(np.array(values)))
        assert [found[place].get_text() for place in np.ndindex(2, 2)] == expected
    assert {place: text.get_text() for place, text in causal.items()} == {
        (0, 0): "0.50", (1, 0): "0.00", (1, 1): "1.00",
    }  # fmt: skip
    found = annotations(heatmaps([[0.0, 0.3]]))
    assert matplotlib.colors.to_rgb(found[0, 1].get_color()) == (0, 0, 0)
    assert min(matplotlib.colors.to_rgb(found[0, 0].get_color())) > 0.3


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
    count = len(annotations(heatmaps(random_weights(*shape), annot=annot)))
    assert count == written * shape[2] * shape[3]


# ---------------------------------------------------------------------------------- page and phone


@pytest.mark.parametrize(
    "shape", [(10, 10), (2, 5), (3, 6), (16, 40), (6, 5), (3, 1, 3, 8), (1, 2, 2, 3), (2, 2, 3, 3)]
)
def test_it_is_nearly_as_wide_as_the_page_and_lower_than_a_screen(shape):
    width, height = heatmaps(random_weights(*shape)).figure.get_size_inches()
    assert 0.7 * COLUMN < width <= COLUMN and height <= 4.8


def test_on_a_phone_panels_wrap_in_order_and_none_is_lost():
    weights = random_weights(3, 4, 4, 4)  # twelve panels
    names = [[f"Head {row}.{column}" for column in range(4)] for row in range(3)]
    shown = heatmaps(weights, titles=names)
    small = shown.narrow
    assert small.figure.get_size_inches()[0] <= PHONE and small.axes.shape == (6, 2)
    equal(small, weights)
    assert np.ravel(titles(small)).tolist() == np.ravel(names).tolist()
    assert limits(small) == limits(shown)
    assert f"--phone:url({data_address(small.svg().encode(), 'image/svg+xml')})" in shown.html()
    named = heatmaps(random_weights(3, 3, 4, 4), titles=list("abc"), row_titles=list("xyz")).narrow
    assert [ax.get_title() for ax in named.axes.flat if ax.images] == [
        f"{row}, {column}" for row in "xyz" for column in "abc"
    ]
    fits = heatmaps(np.eye(3), colorbar=False)
    assert fits.figure.get_size_inches()[0] <= PHONE
    assert fits.narrow is None and "--phone" not in fits.html()


def test_a_label_of_two_hundred_letters_stays_within_the_figure():
    long = "attention " * 20
    shown = heatmaps(random_weights(1, 4, 3, 3), titles=[long] * 4, xticks=[long] * 3)
    for one in (shown, shown.narrow):
        inside(one)


# ------------------------------------------------------------------------------------ what it costs


def artists(shown):
    """Return how many things matplotlib has to draw in the panels."""
    children = [ax.get_children() for ax in shown.axes.flat if ax.get_visible()]
    return sum(artist.get_visible() for each in children for artist in each)


def test_many_panels_cost_a_few_things_each_long_sequences_no_more_and_none_stays_open():
    """matplotlib#10655, #16550, #26150; bertviz#82; Axelrod PR#184, time-attention#2, pypnf#5."""
    before = plt.get_fignums()
    names = [f"Head {i}" for i in range(12)]
    many = heatmaps(random_weights(8, 12, 16, 16), titles=names, mask="causal")
    inner = many.axes[3, 5]
    assert not inner.axison and len(inner.images) == 1 and not inner.lines
    assert len(inner.artists) <= 2 and len(inner.texts) == 0
    assert many.svg().count("<image") == 97 and many.svg().count("<pattern") == 1
    assert len(many.svg()) / 97 < 4500, "the numbers alone are 16 x 16 x 4 bytes, in base 64"
    short, long = (heatmaps(random_weights(4, n, n), mask="causal") for n in (16, 128))
    assert artists(long) == artists(short)
    assert plt.get_fignums() == before
