"""Faults of other heatmap functions that people reported in public; each id names its source."""

import numpy as np
import pytest

from d2lmini.plotting import show_heatmaps
from tests.plotting.reading import drawn, heatmaps, random_weights


def artists(shown):
    """Return how many things matplotlib has to draw in the panels."""
    panels = [ax.get_children() for ax in shown.axes.flat if ax.get_visible()]
    return sum(artist.get_visible() for panel in panels for artist in panel)


def source(*sources):
    """Put the source of a report into the test's id."""
    return pytest.mark.parametrize("_source", [" ".join(sources)], ids=[", ".join(sources)])


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


@source("d2l 1.0.3, one size for every grid")
def test_the_figure_grows_with_the_grid(_source):
    """At first in width, and in height where the page is full."""
    one, eight, many = (
        heatmaps(np.ones((*grid, 9, 9))).figure.get_size_inches()
        for grid in ((1, 1), (2, 4), (4, 4))
    )
    assert eight[0] > 1.2 * one[0] and many[1] > 1.5 * eight[1]


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
