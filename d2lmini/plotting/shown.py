"""What a ``show_…`` function returns: a figure that is on the page already, and can be kept."""

import base64
import io
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from d2lmini.plotting.theme import CSS_DPI, PNG_DPI, book_style, running_shell

__all__ = ["Shown"]

# What would differ from one run, or one version, to the next, by file format.
_UNSTAMPED: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


class Shown:
    """A finished figure with its description.

    As the last line of the cell that made it, it stays silent, because it was shown when it was
    made. On its own in a later cell, or made with ``show=False``, it shows itself.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        Not known to pyplot: there is nothing to close.
    axes : array of matplotlib.axes.Axes, shape (rows, columns)
        The panels, always two-dimensional.
    alt : str
        The description that stands for the picture where it cannot be seen.
    """

    def __init__(self, figure: Figure, axes: np.ndarray[Any, Any], alt: str) -> None:
        self.figure = figure
        self.axes = axes
        self.alt = alt
        self._on_page = False

    def __repr__(self) -> str:
        """Return the description: the same words on every run."""
        return self.alt

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Save the figure, with the same bytes on every run.

        Parameters
        ----------
        fname : path or file object
            Where to; the ending gives the format.
        **kwargs
            As in `matplotlib.figure.Figure.savefig`; ``dpi`` is 192 unless given.
        """
        ending = str(fname).rpartition(".")[-1] if not hasattr(fname, "write") else "png"
        kind = str(kwargs.get("format") or ending).lower()
        kwargs["metadata"] = _UNSTAMPED.get(kind, {}) | (kwargs.get("metadata") or {})
        with book_style():
            self.figure.savefig(fname, **kwargs)

    def png(self) -> bytes:
        """Return the picture as PNG, two pixels for each pixel of the page."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=PNG_DPI)
        return buffer.getvalue()

    def show(self) -> None:
        """Put the picture on the page of a notebook; in a script, do nothing."""
        shell = running_shell()
        if shell is None:
            return
        from IPython.display import display

        data, metadata = self._repr_mimebundle_()
        display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]
        self._on_page = True

        def cell_is_over() -> None:
            self._on_page = False
            shell.events.unregister("post_execute", cell_is_over)

        shell.events.register("post_execute", cell_is_over)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Return what a notebook keeps: the picture at its size on the page, and the words."""
        width, height = (round(inches * CSS_DPI) for inches in self.figure.get_size_inches())
        return (
            {"text/plain": self.alt, "image/png": base64.b64encode(self.png()).decode()},
            {"image/png": {"width": width, "height": height, "alt": self.alt}},
        )

    def _ipython_display_(self) -> None:
        if not self._on_page:
            self.show()
