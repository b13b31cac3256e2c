"""What may be given to ``show_heatmaps``, and what is said about the rest."""

from typing import NamedTuple

import numpy as np
import pytest

from d2lmini.plotting import show_heatmaps
from tests.plotting.reading import drawn, heatmaps, limits, random_weights

# ---------------------------------------------------------------------------- kinds of arrays


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (1, 2, 3, 4), (3, 2, 3, 4), (2, 1, 1, 1)])
def test_axes_are_always_two_dimensional(shape):
    """matplotlib#8780, #8571, pyannote PR#97, Automold#12."""
    values = random_weights(*shape)
    shown = heatmaps(values)
    panels = values.reshape((1,) * (4 - values.ndim) + values.shape)
    assert shown.axes.shape == panels.shape[:2]
    for row, column in np.ndindex(shown.axes.shape):
        np.testing.assert_array_equal(drawn(shown.axes[row, column]), panels[row, column])


@pytest.mark.parametrize("channels", [3, 4])
def test_three_or_four_keys_are_no_colours(channels):
    shown = heatmaps(np.ones((5, 5, channels)) / channels)
    assert shown.axes.shape == (1, 5)
    assert drawn(shown.axes[0, 0]).shape == (5, channels)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"]
)
def test_any_real_numpy_type(dtype):
    values = np.array([[0, 1, 1], [1, 0, 0]]).astype(dtype)
    shown = heatmaps(values)
    np.testing.assert_array_equal(drawn(shown.axes[0, 0]), values.astype(float))
    assert limits(shown) == {(0, 1)}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "bool"])
def test_any_real_torch_type(torch, dtype):
    values = torch.tensor([[0, 1, 1], [1, 0, 0]]).to(getattr(torch, dtype))
    np.testing.assert_array_equal(drawn(heatmaps(values).axes[0, 0]), [[0, 1, 1], [1, 0, 0]])


def test_a_tensor_with_gradients_is_drawn_and_keeps_them(torch):
    """Yolo-Detect-Layer-Visualization#1, Transformers-Tutorials PR#178."""
    values = torch.rand(1, 1, 2, 3, requires_grad=True, dtype=torch.float64)
    weights = torch.softmax(values, dim=-1)
    shown = heatmaps(weights)
    np.testing.assert_array_equal(drawn(shown.axes[0, 0]), weights.detach().numpy()[0, 0])
    assert weights.requires_grad


def test_bfloat16_weights_keep_the_scale_of_weights(torch):
    assert limits(heatmaps(torch.full((1, 1, 4, 5), 0.2).bfloat16())) == {(0, 0.2)}


def test_lists_of_numbers_arrays_and_tensors(torch):
    """d2l 1.0.3 takes tensors alone."""
    values = random_weights(2, 3, 4)
    for given in (
        values.tolist(),
        list(values),
        tuple(values),
        [torch.tensor(panel, requires_grad=True) for panel in values],
    ):
        shown = heatmaps(given)
        for panel, ax in zip(values, shown.axes[0], strict=True):
            np.testing.assert_array_equal(drawn(ax), panel)


def test_a_list_of_masked_arrays_stays_masked():
    panels = [np.ma.array([[1.0, 2.0]], mask=[[False, hide]]) for hide in (True, False)]
    shown = heatmaps(panels)
    np.testing.assert_array_equal(drawn(shown.axes[0, 0]), [[1, np.nan]])
    np.testing.assert_array_equal(drawn(shown.axes[0, 1]), [[1, 2]])


def test_mask_may_be_a_list():
    shown = heatmaps(np.ones((1, 2)), mask=[[True, False]])
    np.testing.assert_array_equal(drawn(shown.axes[0, 0]), [[1, np.nan]])


# ------------------------------------------------------------------------------------- errors


class Attention(NamedTuple):
    """Stand for what ``attention`` returns."""

    output: object
    weights: object


BAD = {
    "0-D": (3.0, {}, ValueError, r"\(queries, keys\); got 0-D of shape \(\)"),
    "1-D": (np.ones(10), {}, ValueError, r"got 1-D of shape \(10,\); .*reshape\(1, 1, queries"),
    "6-D": (np.ones((1,) * 6), {}, ValueError, r"got 6-D of shape \(1, 1, 1, 1, 1, 1\)"),
    "empty list": ([], {}, ValueError, "matrices is an empty list"),
    "no rows": (np.ones((0, 1, 3, 3)), {}, ValueError, r"at least one panel.*\(0, 1, 3, 3\)"),
    "no keys": (np.ones((3, 0)), {}, ValueError, r"at least one.*\(3, 0\)"),
    "ragged": (
        [[1.0], [1.0, 2.0]],
        {},
        ValueError,
        r"matrices: .*one shape; got \(1,\) and \(2,\)",
    ),
    "+inf": ([[1.0, np.inf]], {}, ValueError, r"\+inf at \(0, 1\); only -inf and NaN"),
    "strings": ([["a", "b"]], {}, TypeError, "real numbers; got <U1"),
    "complex": (np.ones((2, 2)) * 1j, {}, TypeError, "real numbers; got complex128"),
    "objects": ([[None]], {}, TypeError, "real numbers; got object"),
    "a string": ("weights", {}, TypeError, "real numbers; got <U7"),
    "attention's result": (
        Attention(np.ones((2, 3)), np.ones((2, 4))),
        {},
        TypeError,
        r"matrices is of type Attention, several arrays; give one of \.output, \.weights",
    ),
    "too many panels": (np.ones((24, 24, 2, 2)), {}, ValueError, "24 x 24 panels, more than 512"),
    "too many columns": (np.ones((1, 64, 9, 9)), {}, ValueError, r"64 columns.*matrices\[:, :32\]"),
    "few key labels": (np.eye(4), {"xticks": ["a"]}, ValueError, "got 1 key label for 4 keys"),
    "many query labels": (
        np.eye(2),
        {"yticks": list("abc")},
        ValueError,
        "yticks: got 3 query labels for 2 queries",
    ),
    "labels in a string": (np.eye(3), {"xticks": "abc"}, TypeError, "xticks must be a list.*'abc'"),
    "labels of no kind": (np.eye(3), {"yticks": 3}, TypeError, "yticks must be a list.*got int"),
    "titles in a string": (np.eye(3), {"titles": "Head"}, TypeError, "titles must be a list"),
    "number as label": (np.eye(3), {"label": 3}, TypeError, "label must be a string; got int"),
    "number as alt": (np.eye(3), {"alt": 3}, TypeError, "alt must be a string; got int"),
    "empty alt": (np.eye(3), {"alt": " "}, ValueError, "alt is empty"),
    "mask of numbers": (
        np.eye(3),
        {"mask": np.tri(3)},
        TypeError,
        "mask must be boolean, True = may attend; got float64",
    ),
    "mask of another shape": (
        np.eye(3),
        {"mask": np.ones((2, 5), bool)},
        ValueError,
        r"mask of shape \(2, 5\) does not broadcast to matrices of shape \(1, 1, 3, 3\);.*\(3, 3\)",
    ),
    "mask with more axes": (np.eye(2), {"mask": np.ones((1,) * 5, bool)}, ValueError, "broadcast"),
    "mask of another name": (np.eye(2), {"mask": "causl"}, ValueError, "'causal'; got 'causl'"),
    "ragged mask": (np.eye(2), {"mask": [[True], [True, False]]}, ValueError, "mask: .*one shape"),
    "annot by format": (
        np.eye(2),
        {"annot": ".2f"},
        ValueError,
        "True, False or 'auto'; got '.2f'",
    ),
    "annot without room": (
        np.eye(60),
        {"annot": True, "vmax": 3},
        ValueError,
        "annot=True needs cells .* inches wide; 1 x 60 keys leave",
    ),
    "limits crossed": (
        np.eye(2),
        {"vmin": 2, "vmax": 1},
        ValueError,
        "vmin must be below vmax; the scale would go from 2 to 1$",
    ),
    "one limit beyond": (np.eye(2), {"vmin": 2}, ValueError, "from 2 to 1; give both"),
    "limit of no kind": (np.eye(2), {"vmax": "high"}, TypeError, "vmax must be a number; got str"),
    "limit not finite": (np.eye(2), {"vmax": np.nan}, ValueError, "vmax must be finite; got nan"),
    "unknown map": (np.eye(2), {"cmap": "Redz"}, ValueError, "'Redz'; did you mean 'Reds'"),
    "map of no kind": (np.eye(2), {"cmap": 3}, TypeError, "cmap must be a name or .* got 3"),
    "size of one number": (np.eye(2), {"figsize": 3}, TypeError, "figsize must be .* got int"),
    "size of three": (np.eye(2), {"figsize": (1, 2, 3)}, ValueError, "2 numbers.* got 3"),
    "size of words": (np.eye(2), {"figsize": ("a", 2)}, TypeError, "figsize must be a number"),
    "negative size": (np.eye(2), {"figsize": (-1, 2)}, ValueError, r"0 and 100 .* \(-1, 2\)"),
}


@pytest.mark.parametrize(("values", "kwargs", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_told_in_words(values, kwargs, error, message):
    """Too few labels: bertviz#101, #80; not 4-D: d2l 1.0.3."""
    with pytest.raises(error, match=message):
        heatmaps(values, **kwargs)


@pytest.mark.parametrize("label", ["xlabel", "ylabel"])
def test_axis_labels_are_strings(label):
    with pytest.raises(TypeError, match=f"{label} must be a string; got int"):
        show_heatmaps(np.eye(2), **{label: 3})


def test_complex_tensors_are_refused_and_not_made_real(torch):
    with pytest.raises(TypeError, match="real numbers; got complex64"):
        heatmaps(torch.ones(2, 2, dtype=torch.complex64))


def test_a_larger_size_makes_room_for_numbers():
    assert len(heatmaps(np.eye(20), annot=True, figsize=(9, 9)).axes[0, 0].texts) == 400
