"""Read a finished figure back: its numbers, its pixels and its words."""

import numpy as np
from matplotlib.text import Text

from d2lmini.plotting import show_heatmaps


def heatmaps(matrices, **kwargs):
    """Make a figure with the usual labels."""
    return show_heatmaps(matrices, "Keys", "Queries", **kwargs)


def drawn(ax):
    """Return the numbers of one panel, NaN where nothing is drawn."""
    (image,) = ax.images
    return np.ma.filled(image.get_array(), np.nan)


def panels(shown):
    """Return the numbers of all panels, (rows, columns, queries, keys), NaN where masked."""
    return np.array([[drawn(ax) for ax in row] for row in shown.axes])


def equal(shown, expected):
    """See that exactly these numbers are drawn, given with or without rows and columns."""
    found = panels(shown)
    np.testing.assert_array_equal(found, np.reshape(expected, found.shape))


def titles(shown):
    """Return the titles of all panels, row by row."""
    return [[ax.get_title() for ax in row] for row in shown.axes]


def inside(shown, spare=0.5):
    """See that no word is cut by the edge of the figure; return all texts."""
    found, whole = texts(shown), shown.figure.bbox
    for text, box, _ in found:
        assert box.x0 >= -spare and box.x1 <= whole.x1 + spare, text
        assert box.y0 >= -spare and box.y1 <= whole.y1 + spare, text
    return found


def overlap(a, b, spare=1):
    """Whether two boxes share more than so many pixels, in both directions."""
    across, down = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
    return across > spare and down > spare


def apart(shown, spare=1):
    """See that no word is cut, nor covers another."""
    found = inside(shown)
    for i, (text, box, _) in enumerate(found):
        for other, near, _ in found[:i]:
            assert not overlap(box, near, spare), f"{text} and {other} meet"


def limits(shown):
    """Return the ends of the colour scale of every panel, as a set."""
    return {ax.images[0].get_clim() for ax in shown.axes.flat}


def texts(shown):
    """Return all visible texts of the figure with their boxes in pixels."""
    renderer = shown.figure.canvas.get_renderer()
    shown.figure.draw(renderer)
    found = shown.figure.findobj(lambda artist: isinstance(artist, Text))
    return [
        (text.get_text(), text.get_window_extent(renderer), text)
        for text in found
        if text.get_visible() and text.get_text()
    ]


def words(shown):
    """Return the visible texts alone."""
    return [text for text, _, _ in texts(shown)]


def tick_labels(axis):
    """Return the labels of an axis in order."""
    return [label.get_text() for label in axis.get_ticklabels()]


def random_weights(*shape, spread=2.0):
    """Return rows of positive numbers that sum to 1."""
    exp = np.exp(np.random.default_rng(0).normal(0, spread, shape))
    return exp / exp.sum(-1, keepdims=True)
