"""The look of the book's figures: five colours with a meaning, and quiet axes."""

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple

from d2lmini._lazy import WHAT_TO_INSTALL

__all__ = ["COLORS", "PALETTES", "use_theme"]

PALETTES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "light": MappingProxyType(
            {
                "query": "#3569e7",  # blue
                "key": "#b05a00",  # amber
                "value": "#0a6862",  # teal
                "output": "#8518a3",  # purple
                "weight": "#95120c",  # the red of a heatmap, for the weights that it shows
                "ink": "#1f2329",  # text
                "muted": "#64707e",  # what stands back: a second curve, a small remark
                "grid": "#dfe3e8",  # lines behind the data
                "page": "#ffffff",
            }
        ),
        "dark": MappingProxyType(
            {
                "query": "#5d92f3",
                "key": "#f9a031",
                "value": "#23d89d",
                "output": "#dcadf8",
                "weight": "#f25f53",
                "ink": "#ced6dd",
                "muted": "#8f9baa",
                "grid": "#2c3239",
                "page": "#121212",
            }
        ),
    }
)

# What a weight of 0, 1/2 and 1 looks like wherever it is an area; between them OKLab is mixed.
# Words on it are black, on a dark page white, below TURN, and the other way round above.
RAMP: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "light": ("#f4f1ec", "#e39a86", "#95120c"),
        "dark": ("#24211f", "#884038", "#f25f53"),
    }
)
TURN = 0.775
HATCH: Mapping[str, str] = MappingProxyType({"light": "#cbc3b3", "dark": "#4d473f"})  # masked


class Face(NamedTuple):
    """Faces, of which the first that has a character draws it, and sizes other than the book's."""

    family: tuple[str, ...]
    sizes: tuple[tuple[str, float], ...] = ()  # points, by the settings of matplotlib


BOOK_FACE = Face(("DejaVu Sans",))
FACE: ContextVar[Face] = ContextVar("d2lmini_face", default=BOOK_FACE)
_theme: ContextVar[str] = ContextVar("d2lmini_theme", default="light")


class _Colors(Mapping[str, str]):
    def __getitem__(self, name: str) -> str:
        palette = PALETTES[_theme.get()]
        if name not in palette:
            raise KeyError(f"there is no colour {name!r}; there are {', '.join(palette)}")
        return palette[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PALETTES["light"])

    def __len__(self) -> int:
        return len(PALETTES["light"])

    def __repr__(self) -> str:
        return f"COLORS({dict(self)})"


COLORS: Mapping[str, str] = _Colors()
"""One colour each for query, key, value, output and weight, the same wherever they are shown.

Besides these five: ``ink``, ``muted``, ``grid`` and ``page``. Looked up while
`show_figure` draws for the dark page, a name gives the colour of the dark page; everywhere else
that of the light one. All but the grid have a contrast of at least 4.5:1 to their page, so they
serve for text as well, and the five stay distinct for readers without one kind of cones.
"""


def page_theme() -> str:
    """Return the page that is drawn for, "light" or "dark"."""
    return _theme.get()


def hatch_color() -> str:
    """Return the colour of the lines over what is masked, on the page that is drawn for."""
    return HATCH[_theme.get()]


@contextmanager
def drawing_for(theme: str) -> Iterator[None]:
    """Let `COLORS` give the colours of one page, "light" or "dark"."""
    token = _theme.set(theme)
    try:
        yield
    finally:
        _theme.reset(token)


@contextmanager
def drawing_in(face: Face) -> Iterator[None]:
    """Set all words in a face."""
    token = FACE.set(face)
    try:
        yield
    finally:
        FACE.reset(token)


CSS_DPI = 96  # an inch on a page is 96 pixels of CSS
PNG_DPI = 2 * CSS_DPI  # sharp on a dense screen
MAX_WIDTH = 6.4  # inches: no browser on a desk shrinks a figure below its size in a notebook
COLUMN = 5.4  # a page of the book draws larger; what is wider has smaller words there
PHONE = 3.6  # inches: the column of a page on a phone

_TEXT: dict[Any, Any] = {
    # The font that comes with matplotlib: the same on every machine.
    "font.family": ["DejaVu Sans"],
    "text.color": PALETTES["light"]["ink"],
    "figure.dpi": CSS_DPI,
    "savefig.dpi": PNG_DPI,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "d2lmini",
}


def _axes_style() -> dict[Any, Any]:
    """Return quiet axes in the colours of the page that is drawn for."""
    frame = "#8b939d" if COLORS["page"] == "#ffffff" else "#6b747f"
    ink, page = COLORS["ink"], COLORS["page"]
    return {
        "text.color": ink,
        "figure.figsize": (5.2, 3.0),
        "figure.constrained_layout.use": True,
        "figure.facecolor": page,
        "savefig.facecolor": page,
        "font.size": 11,
        "axes.titlesize": 11.5,
        "axes.labelsize": 11,
        "axes.labelcolor": ink,
        "axes.titlecolor": ink,
        "axes.facecolor": page,
        "axes.edgecolor": frame,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": COLORS["grid"],
        "grid.linewidth": 0.7,
        "xtick.labelsize": 10.5,
        "ytick.labelsize": 10.5,
        "xtick.color": frame,
        "ytick.color": frame,
        "xtick.labelcolor": ink,
        "ytick.labelcolor": ink,
        "hatch.color": ink,
        "patch.edgecolor": page,
        "legend.fontsize": 10.5,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "lines.markersize": 5,
    }


def _greys() -> list[str]:
    """Return three greys that are told apart by lightness, and stand out from the page."""
    if COLORS["page"] == "#ffffff":
        return ["#4a5868", "#8a939f", "#14181d"]
    return ["#a3b0bf", "#6c7683", "#eef2f6"]


@contextmanager
def needs_matplotlib() -> Iterator[None]:
    """Say how to get matplotlib where what is inside does not find it.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ImportError(WHAT_TO_INSTALL["matplotlib"], name=error.name) from error


@contextmanager
def book_style(*, axes: bool = False) -> Iterator[None]:
    """Draw with matplotlib's own defaults and the book's font, whatever the user has set.

    ``axes`` adds the quiet axes, in the colours of the page that is drawn for.
    """
    import matplotlib

    with matplotlib.rc_context():
        _set_style(axes=axes)
        yield


def _set_style(*, axes: bool) -> None:
    import matplotlib
    from cycler import cycler

    matplotlib.rcdefaults()
    matplotlib.rcParams.update(_TEXT)
    if (face := FACE.get()) is not BOOK_FACE:
        matplotlib.rcParams["font.family"] = list(face.family)
    if axes:
        matplotlib.rcParams.update(_axes_style())
        matplotlib.rcParams["axes.prop_cycle"] = cycler(color=_greys())


def use_theme() -> None:
    """Make every later figure that is drawn with plain matplotlib look like the book.

    Such a figure has one drawing, for the light page; `show_figure` makes two. Settings of your
    own stay. In a notebook, figures are also stored at twice their size on the page, uncropped,
    with nothing in the file that changes from one run to the next. Lines, bars and points are grey
    until they are given one of `COLORS`: a colour always has a meaning.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import matplotlib
    >>> with matplotlib.rc_context():  # only so that this example leaves no trace
    ...     use_theme()
    ...     matplotlib.rcParams["axes.spines.top"]
    False
    """
    with needs_matplotlib():
        import matplotlib
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of settings that are going out of use
        usual = matplotlib.rcParamsDefault
        names = matplotlib.rcParams.keys() - {"backend"}  # which would be chosen by being read
        own = {n: x for n in names if (x := matplotlib.rcParams[n]) != usual[n]}
        _set_style(axes=True)
        matplotlib.rcParams.update(own)
    _store_sharp_figures()


def _store_sharp_figures() -> None:
    """In a notebook, let pyplot's figures be stored at twice their size, and be reproducible."""
    shell = running_shell()
    if shell is None:
        return
    from matplotlib_inline.config import InlineBackend

    inline: Any = InlineBackend.instance(parent=shell)
    if inline.print_figure_kwargs == {"bbox_inches": "tight"}:  # or it is the user's own
        inline.print_figure_kwargs = {"bbox_inches": None, "metadata": {"Software": None}}
    if inline.figure_formats == {"png"}:
        inline.figure_formats = {"retina"}
    inline._update_figure_formatters()


def running_shell() -> Any:
    """Return the IPython shell that runs this code, or None; IPython is never imported for it."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython else None


def tint(color: str, share: float) -> str:
    """Return the page with a share of a colour over it, as hexadecimal.

    >>> tint("#000000", 0.5)
    '#808080'
    """
    mixed = []
    for start in (1, 3, 5):
        page, full = int(COLORS["page"][start : start + 2], 16), int(color[start : start + 2], 16)
        mixed.append(round(page + share * (full - page) + 1e-6))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def luminance(color: tuple[float, ...]) -> float:
    """Return the relative luminance of an sRGB colour (WCAG 2), from 0 (black) to 1 (white)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(color: tuple[float, ...], ground: tuple[float, ...]) -> float:
    """Return the contrast of two sRGB colours (WCAG 2), from 1 to 21."""
    low, high = sorted((luminance(color), luminance(ground)))
    return (high + 0.05) / (low + 0.05)
