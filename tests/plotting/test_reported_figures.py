"""Faults of other heatmap functions that people reported in public; each id names its source."""

import numpy as np
import pytest

from d2lmini.plotting import show_heatmaps
from tests.plotting.reading import drawn, heatmaps, limits, random_weights, tick_labels, words


def artists(shown):
    """Return how many things matplotlib has to draw in the panels."""
    panels = [ax.get_children() for ax in shown.axes.flat if ax.get_visible()]
    return sum(artist.get_visible() for panel in panels for artist in panel)


def source(*sources):
    """Put the source of a report into the test's id."""
    return pytest.mark.parametrize("_source", [" ".join(sources)], ids=[", ".join(sources)])


@source("matplotlib#11377", "iris#2106", "AnatomyOfMatplotlib#28")
def test_one_bar_for_panels_of_one_scale(_source):
    strong, weak = np.full((4, 4), 0.9), np.eye(4) * 0.1
    shown = heatmaps(np.stack([strong, weak])[None])
    assert limits(shown) == {(0, 1)}
    assert {"0", "0.5", "1"} <= set(words(shown))
    first, second = (ax.images[0] for ax in shown.axes[0])
    assert first.cmap(first.norm(0.1)) == second.cmap(second.norm(0.1))


@source("matplotlib#8780", "matplotlib#8571", "pyannote PR#97", "Automold#12")
@pytest.mark.parametrize("shape", [(1, 1, 3, 4), (1, 5, 3, 4), (5, 1, 3, 4), (3, 4), (2, 3, 4)])
def test_axes_are_never_squeezed(_source, shape):
    axes = heatmaps(np.ones(shape)).axes
    assert axes.ndim == 2
    assert axes[-1, -1].images


@source("Yolo-Detect-Layer-Visualization#1", "Transformers-Tutorials PR#178")
def test_tensor_that_requires_grad(_source, torch):
    values = torch.rand(2, 3, requires_grad=True, dtype=torch.float64)
    np.testing.assert_array_equal(drawn(heatmaps(values).axes[0, 0]), values.detach().numpy())


@source("gradcam_plus_plus#10", "Open3D-ML PR#81")
def test_tensor_on_another_device(_source):
    class OnDevice:
        """A tensor that, as on a GPU, turns into an array only after detach() and cpu()."""

        def __init__(self, place="cuda", attached=True):
            self.place, self.attached = place, attached

        def detach(self):
            return OnDevice(self.place, attached=False)

        def cpu(self):
            return OnDevice("cpu", self.attached)

        def is_floating_point(self):
            return True

        def double(self):
            assert self.place == "cpu"  # some devices have no double precision
            return self

        def numpy(self):
            assert self.place == "cpu" and not self.attached
            return np.eye(2)

    np.testing.assert_array_equal(drawn(heatmaps(OnDevice()).axes[0, 0]), np.eye(2))


@source("d2l 1.0.3, array input")
def test_arrays_and_lists_need_no_detach(_source):
    for given in (np.eye(2)[None, None], [[[[1, 0], [0, 1]]]]):
        np.testing.assert_array_equal(drawn(heatmaps(given).axes[0, 0]), np.eye(2))


@source("d2l 1.0.3, input that is not 4-D")
@pytest.mark.parametrize("shape", [(4,), (1, 1, 1, 2, 2)])
def test_a_shape_that_cannot_be_drawn_is_named(_source, shape):
    with pytest.raises(ValueError, match=str(shape).replace("(", r"\(").replace(")", r"\)")):
        heatmaps(np.ones(shape))


@source("d2l 1.0.3, titles by column only")
def test_each_panel_has_its_own_title(_source):
    shown = heatmaps(np.ones((2, 2, 3, 3)), titles=["a", "b", "c", "d"])
    assert [ax.get_title() for ax in shown.axes.flat] == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match=r"3 entries; give 2 .* or 4"):
        heatmaps(np.ones((2, 2, 3, 3)), titles=["a", "b", "c"])


@source("d2l 1.0.3, one size for every grid")
def test_the_figure_grows_with_the_grid(_source):
    """At first in width, and in height where the page is full."""
    one, eight, many = (
        heatmaps(np.ones((*grid, 9, 9))).figure.get_size_inches()
        for grid in ((1, 1), (2, 4), (4, 4))
    )
    assert eight[0] > 1.2 * one[0] and many[1] > 1.5 * eight[1]


@source("bertviz#101", "bertviz#80")
def test_as_many_labels_as_keys(_source):
    with pytest.raises(ValueError, match="got 3 key labels for 4 keys"):
        heatmaps(np.eye(4), xticks=["a", "b", "c"])


@source("matplotlib#20266", "nine-or-null#14", "mtools PR#639")
@pytest.mark.parametrize("token", ["$$", "$\\foo$", "$5 and $6"])
def test_a_token_is_no_formula(_source, token):
    shown = heatmaps(np.eye(2), xticks=[token, "b"], yticks=["a", token], titles=[token])
    shown.png()
    ax = shown.axes[0, 0]
    assert tick_labels(ax.xaxis)[0] == tick_labels(ax.yaxis)[1] == ax.get_title() == token
    assert not any(label.get_parse_math() for label in ax.get_xticklabels() + ax.get_yticklabels())


@source("missing glyphs")
def test_a_script_that_the_font_lacks_does_not_crash(_source):
    with pytest.warns(UserWarning, match="missing from font"):
        assert heatmaps(np.eye(2), xticks=["猫", "b"]).png()


@source("Axelrod PR#184", "time-attention#2", "pypnf#5")
def test_no_figure_stays_open(_source):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    for _ in range(25):  # matplotlib warns at the 21st
        show_heatmaps(np.eye(2), "Keys", "Queries")
    assert plt.get_fignums() == before


@source("matplotlib#10655", "matplotlib#16550", "matplotlib#26150")
def test_ninety_six_panels_cost_a_few_things_each(_source):
    titles = [f"Head {i}" for i in range(12)]
    many = heatmaps(random_weights(8, 12, 16, 16), titles=titles, mask="causal")
    inner = many.axes[3, 5]
    assert not inner.axison and len(inner.images) == 1 and not inner.lines
    assert len(inner.artists) <= 2 and len(inner.texts) == 0
    assert many.svg().count("<image") == 97 and many.svg().count("<pattern") == 1
    assert len(many.svg()) / 97 < 4500, "the numbers alone are 16 x 16 x 4 bytes, in base 64"


@source("bertviz#82")
def test_long_sequences_need_no_more_things_and_too_many_panels_are_refused(_source):
    short, long = random_weights(4, 16, 16), random_weights(4, 128, 128)
    assert artists(heatmaps(long, mask="causal")) == artists(heatmaps(short, mask="causal"))
    values = np.broadcast_to(long[0], (32, 32, 128, 128))
    with pytest.raises(ValueError, match="32 x 32 panels"):
        heatmaps(values)


@source("observed: no panels")
@pytest.mark.parametrize("shape", [(0, 1, 3, 3), (1, 0, 3, 3), (1, 1, 0, 3), (1, 1, 3, 0)])
def test_nothing_to_draw(_source, shape):
    with pytest.raises(ValueError, match="at least one panel, one query and one key; got shape"):
        heatmaps(np.ones(shape))
