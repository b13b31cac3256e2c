"""What is drawn: the numbers, the one colour scale, what is masked, what is written into cells."""

import warnings
from unittest.mock import Mock

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from d2lmini.plotting import RowSumWarning, show_heatmaps
from d2lmini.plotting._svg import data_address
from d2lmini.plotting.theme import PHONE
from tests.plotting.reading import (
    equal,
    heatmaps,
    limits,
    panels,
    random_weights,
    tick_labels,
    titles,
    words,
)


def test_the_calls_that_readers_bring_with_them():
    encoding = np.sin(np.arange(60)[:, None] / 50 ** (np.arange(32) / 32))[None, None]
    one = show_heatmaps(encoding, xlabel="Dimension", ylabel="Position", figsize=(6, 3))
    heads = [f"Head {i}" for i in range(1, 5)]
    two = show_heatmaps(random_weights(2, 4, 9, 7), "Keys", "Queries", heads, (7, 3.5))
    equal(heatmaps(random_weights(5, 5, 3)), random_weights(5, 5, 3))  # three keys are no colours
    for shown, values, size in (one, encoding, (6, 3)), (two, random_weights(2, 4, 9, 7), (7, 3.5)):
        equal(shown, values)
        np.testing.assert_allclose(shown.figure.get_size_inches(), size)
    assert words(two).count("Keys") == words(two).count("Queries") == 1
    assert titles(two) == [heads, [""] * 4]


def test_any_array_and_lists_of_them(torch):
    """Yolo-Detect-Layer-Visualization#1, Transformers-Tutorials PR#178; d2l takes tensors alone.

    On another device: gradcam_plus_plus#10, Open3D-ML PR#81.
    """
    values = np.array([[0, 1, 1], [1, 0, 0]])
    for kind in ("int64", "bool", "float16", "bfloat16"):
        array = torch.tensor(values).to(getattr(torch, kind))
        for given in (array, [array]) if kind == "bfloat16" else (array, array.numpy()):
            equal(heatmaps(given), values)
    small = torch.full((1, 1, 4, 5), 0.2).bfloat16()
    assert limits(heatmaps(small)) == {(0, 0.2)}, "bfloat16 keeps the scale of weights"
    values = random_weights(2, 3, 4)
    tensors = [torch.tensor(panel, requires_grad=True) for panel in values]
    for given in (values.tolist(), tuple(values), tensors):
        equal(heatmaps(given), values)
    on_device = Mock(spec=["detach"])  # which, as on a GPU, turns into an array in one way alone
    on_device.detach().cpu().double().numpy.return_value = np.eye(2)
    equal(heatmaps(on_device), np.eye(2))
    masked = [np.ma.array([[1.0, -1.7e308]], mask=[[False, True]]), np.ma.array([[1.0, 2.0]])]
    equal(heatmaps(masked), [[[1, np.nan]], [[1, 2]]])


def test_input_is_never_written_to_and_a_later_change_of_it_changes_no_figure():
    values, mask = random_weights(3, 3), np.tri(3, dtype=bool)
    before, expected = (values.copy(), mask.copy()), heatmaps(values.copy(), mask=mask.copy())
    shown = heatmaps(values, mask=mask)
    np.testing.assert_array_equal(values, before[0])
    np.testing.assert_array_equal(mask, before[1])
    values[:], mask[:] = 7.0, True
    assert shown.html() == expected.html()


def test_the_scale_of_what_is_never_negative_starts_at_zero():
    ends = {0.01: 0.01, 0.011: 0.02, 0.2: 0.2, 0.21: 1, 0: 1, 37.5: 37.5}
    ends[1.00001] = 1  # the rounding of a softmax
    for largest, end in ends.items():  # in every panel: matplotlib#11377, iris#2106
        assert limits(heatmaps([[[0, largest / 2]], [[0, largest]]])) == {(0, end)}, largest


# Only the usual one hue gives way to two, where there is a sign.
BARS = {
    "weights": (np.eye(3) * 0.5, {"label": "a label"}, (0, 1), ["0", "0.5", "1", "a label"]),
    "signed": ([[[1, -0.5]], [[0.25, -3]]], {}, (-3, 3), ["−3", "0", "3", "RdBu_r"]),
    "a map": ([[1, -0.5]], {"cmap": "Blues"}, (-1, 1), ["−1", "0", "1", "Blues"]),
    "given": ([[0.1, 0.9]], {"vmin": 0.2, "vmax": 0.6}, (0.2, 0.6), ["≤ 0.2", "0.4", "≥ 0.6"]),
    "log": ([[0.9, 0.1], [0.999, 0.001]], {"norm": "log"}, (0.001, 1), ["0.001", "0.0316", "1"]),
    "none": (np.eye(3), {"colorbar": False, "annot": False}, (0, 1), []),
}


@pytest.mark.parametrize(("values", "options", "ends", "said"), BARS.values(), ids=BARS)
def test_the_bar_says_where_the_scale_begins_and_ends(values, options, ends, said):
    shown = heatmaps(values, **options)
    (found,) = limits(shown)
    np.testing.assert_allclose(found, ends)
    bar = [w for w in words(shown) if w.strip("≤≥ ").lstrip("−")[:2] not in ("Ke", "Qu")]
    assert set(said) <= {*bar, shown.axes[0, 0].images[0].get_cmap().name}
    assert ("0.5" in bar) == ("0.5" in said)
    if "norm" in options:
        norm = shown.axes[0, 0].images[0].norm
        assert [round(float(norm(x)), 4) for x in (0.0, 0.001, 10**-1.5, 1.0)] == [0, 0, 0.5, 1]


loud = pytest.mark.filterwarnings("error:matrices. row:UserWarning")
PAIR = [np.eye(2), [[0.5, 0.5], [0.2, 0.2]]]
ANYTHING = np.where(np.tri(4), [[1], [0.5], [1 / 3], [0.25]], 0.9)
SUMS = {
    "too much": ([[0.5, 0.5], [0.9, 0.9]], None, "row 1 sums to 1.8, not to 1; it is drawn"),
    "a little": ([[0.55, 0.5], [0.5, 0.5]], None, "row 0 sums to 1.05, not to 1"),
    "one of many": ([PAIR], None, r"row 1 of panel \(0, 1\) sums to 0.4, not to 1"),
    "masked after the softmax": (np.full((4, 4), 0.25), "causal", "row 0 sums to 0.25"),
    "many keys": (np.full((2, 100), 0.012), None, "row 0 sums to 1.2"),
    "rounded to two decimals": (random_weights(16, 16).round(2), None, ""),
    "half precision": (random_weights(8, 8).astype(np.float16), None, ""),
    "a query with no key": ([[0.3, 0.7], [0.0, 0.0]], None, ""),
    "masked cells hold anything": (ANYTHING, "causal", ""),
    "scores": ([[0.5, 1.5], [0.1, 0.2]], None, ""),
}


@loud
@pytest.mark.parametrize(("matrices", "mask", "message"), SUMS.values(), ids=SUMS)
def test_wrong_sums_are_drawn_with_a_warning_that_can_be_turned_off(matrices, mask, message):
    if message:
        with pytest.warns(RowSumWarning, match="^matrices: " + message) as caught:
            shown = show_heatmaps(matrices, "Keys", "Queries", mask=mask)
        assert len(caught) == 1 and caught[0].filename == __file__
        assert mask or equal(shown, matrices) is None
        warnings.simplefilter("ignore", RowSumWarning)
    heatmaps(matrices, mask=mask)


def test_the_ways_to_mask(torch):
    allowed = np.tri(3, 4, 1, dtype=bool)  # three queries, four keys: the last one sees every key
    values = random_weights(3, 4)
    hidden = np.where(allowed, values, 99.0)
    for shown in (
        *(heatmaps(hidden, mask=m) for m in ("causal", allowed.tolist(), torch.tensor(allowed))),
        heatmaps(np.ma.array(hidden, mask=~allowed)),
        *(heatmaps(np.where(allowed, values, x)) for x in (np.nan, -np.inf)),
    ):
        equal(shown, np.where(allowed, values, np.nan))
        assert limits(shown) == {(0, 1)}  # 99 is masked: it moves nothing
    padding = np.array([[True, True, False], [True, False, False]]).reshape(2, 1, 1, 3)
    shown = heatmaps(np.ones((2, 4, 5, 3)), mask=padding)
    expected = np.broadcast_to(padding, (2, 4, 5, 3))
    np.testing.assert_array_equal(np.isfinite(panels(shown)), expected)
    nothing = heatmaps(np.full((2, 2), np.nan))
    assert nothing.alt == "Heatmap of 2 × 2 values (Queries × Keys), all masked."


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
    grey = annotations(heatmaps([[0.0, 0.3]]))[0, 0].get_color()
    assert min(matplotlib.colors.to_rgb(grey)) > 0.3


def test_small_matrices_are_annotated():
    for shape, annot, written in (
        ((1, 1, 8, 8), "auto", 64), ((1, 1, 9, 8), "auto", 0), ((1, 3, 2, 2), "auto", 0),
        ((1, 1, 1, 64), "auto", 0), ((1, 1, 10, 10), True, 100), ((1, 1, 2, 2), False, 0),
    ):  # fmt: skip
        assert len(annotations(heatmaps(random_weights(*shape), annot=annot))) == written, shape


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
    named = heatmaps(random_weights(1, 3, 4, 4), titles=list("abc"), row_titles=["x"]).narrow
    assert [ax.get_title() for ax in named.axes.flat if ax.images] == ["x, a", "x, b", "x, c"]
    assert tick_labels(named.axes[0, 1].xaxis), "below the shorter column too"
    assert "--phone" not in heatmaps(np.eye(3), colorbar=False).html(), "it fits"


def test_many_panels_cost_a_few_things_each_and_none_stays_open():
    """matplotlib#10655, #16550, #26150; bertviz#82; Axelrod PR#184, time-attention#2, pypnf#5."""
    before = plt.get_fignums()
    many = heatmaps(random_weights(8, 12, 16, 16), mask="causal").svg()
    assert many.count("<image") == 97 and many.count("<pattern") == 1
    assert len(many) / 97 < 4500, "the numbers alone are 16 x 16 x 4 bytes, in base 64"
    assert plt.get_fignums() == before
