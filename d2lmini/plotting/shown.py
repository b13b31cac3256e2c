"""What a ``show_…`` function returns: a figure that is on the page already, and can be kept."""

import d2lmini.plotting._matplotlib  # noqa: F401

# isort: split

import base64
import io
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Container
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from d2lmini._terminal import for_terminal
from d2lmini.plotting._svg import data_address, from_matplotlib
from d2lmini.plotting._text import boxes
from d2lmini.plotting.theme import (
    CSS_DPI,
    FACE,
    PALETTES,
    PNG_DPI,
    book_style,
    drawing_for,
    drawing_in,
    running_shell,
)

__all__ = ["Shown"]

# What would differ from one run, or one version, to the next, by file format.
_UNSTAMPED: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

# A page shows whether it is dark by the colour of its words, which a style can read: 0 for dark
# words, 1 for light ones. The limit lies between the darkest colour that words have on a dark page
# and the lightest on a light one, so that it holds within coloured words as well.
LIGHT_WORDS = ".3*r + .6*g + .1*b - 120"
SHARE = f"clamp(0,({LIGHT_WORDS})*9,1)"
# Some pages say that they are dark and leave the words black, each thing in them choosing its own
# colours. In the words of this book's theme, Colab, JupyterLab and VS Code (whose one theme of high
# contrast is dark unless it says "light" as well).
DARK_HOSTS = (
    "html[data-theme=dark]",
    "html[theme=dark]",
    "[data-jp-theme-light=false]",
    ".vscode-dark",
    ".vscode-high-contrast:not(.vscode-high-contrast-light)",
)
SHARE_IF_SAID = f"clamp(0,max({LIGHT_WORDS},1 - r - g - b)*9,1)"
KNOWS_WORDS = "(color:rgb(from currentColor r g b))"  # browsers since 2024
# Older ones: what the page says; where it says nothing, the setting of the reader's system.
_SILENT = (
    "html:is(:not([data-theme]),[data-theme=auto]):not([theme]) "
    "body:not([data-jp-theme-light],[data-vscode-theme-kind])"
)


def _in_dark_hosts(element: str) -> str:
    return ",".join(f"{host} {element}" for host in DARK_HOSTS)


DARK_STYLE = (
    "<style>.d2lmini-drawing{display:inline-block;position:relative;max-width:100%;"
    f"--share:{SHARE}}}{_in_dark_hosts('.d2lmini-drawing')}{{--share:{SHARE_IF_SAID}}}"
    f"@supports {KNOWS_WORDS}{{.d2lmini-drawing::after{{content:'';position:absolute;inset:0;"
    "pointer-events:none;background:var(--dark) 0 0/100% 100%;"
    "mask:linear-gradient(rgb(from currentColor 0 0 0/var(--share)) 0 0)}}"
    f"@supports not {KNOWS_WORDS}{{{_in_dark_hosts('.d2lmini-drawing>img')}"
    "{content:var(--dark)}@media (prefers-color-scheme:dark){"
    f"{_SILENT} .d2lmini-drawing>img{{content:var(--dark)}}}}}}"
    "@media print{.d2lmini-drawing::after{display:none}"
    ".d2lmini-drawing>img{content:normal!important}}</style>"
)


class Shown:
    """A finished figure with its description, drawn for a light page and for a dark one.

    As the last line of the cell that made it, it stays silent, because it was shown when it was
    made. On its own in a later cell, or made with ``show=False``, it shows itself.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        As drawn for a light page. Not known to pyplot: there is nothing to close. What you change
        in it is in every form from then on, but for the dark drawing, which is then refused.
    axes : array of matplotlib.axes.Axes, shape (rows, columns)
        The panels, always two-dimensional.
    alt : str
        The description that stands for the picture where it cannot be seen.

    Notes
    -----
    A notebook keeps three forms of it. ``text/html`` is one ``<img>`` whose address holds the
    light drawing as SVG and whose ``alt`` is the description; a style beside it lays the dark
    drawing over it where the words of the page are light. ``image/png`` has two pixels for each
    pixel of the page, for paper and for viewers without HTML. ``text/plain`` is the description.

    An ``<img>``, because viewers remove a drawing that is written into the page, and often styles
    and scripts: then the light drawing on its own white ground is left, with its description.

    - Tested, in Chromium: light and dark, on pages of no known host and on such as imitate this
      book, JupyterLab, VS Code (also of high contrast) and Colab; colours that the system forces;
      a narrow screen; without JavaScript; and after a strict sanitiser that keeps nothing but
      plain elements, ``src``, ``alt``, ``width`` and ``height``.
    - Reasoned, from what their projects publish: JupyterLab shows such an image in notebooks that
      are not trusted, and GitHub's preview shows data addresses of SVG. A viewer that removes data
      addresses as well leaves the description. A browser that cannot compute with the colour of
      words (before 2024) knows the hosts by the names of their themes.
    """

    def __init__(
        self,
        draw: Callable[[str], tuple[Figure, np.ndarray[Any, Any]]],
        alt: str,
        more: str = "",
        narrow: Callable[[], "Shown | None"] = lambda: None,
    ) -> None:
        self._face = FACE.get()
        self._draw = draw  # for "light" or "dark"
        self.figure, self.axes = draw("light")
        self.figure.stale = False
        self.alt = alt
        self._dark: Figure | None = None
        self._drawings: dict[str, str] = {}  # SVG for "light" and "dark", once they are asked for
        self._more = more  # HTML that follows the picture
        self._narrow = narrow
        self._on_page = False

    @classmethod
    def around(cls, ax: Axes, alt: str) -> "Shown":
        """Return a figure of one's own, which has one drawing, as it is when it is asked for."""
        figure = ax.get_figure(root=True)
        assert figure is not None
        shown = cls(lambda theme: (figure, np.array([[ax]], dtype=object)), alt)
        shown._drawings["light"] = ""
        figure.stale = True
        return shown

    @cached_property
    def narrow(self) -> "Shown | None":
        """The same for a page on a phone, where this one is too wide for it."""
        with drawing_in(self._face):
            return self._narrow()

    def _is_edited(self) -> bool:
        """Say whether the figure is not what was drawn any more."""
        if self.figure.stale:
            drawn = self._drawings.get("light")
            if drawn is None:
                with drawing_in(self._face):
                    drawn = self._export(self._draw("light")[0])
            self.figure.stale = self._export(self.figure) != drawn
        return bool(self.figure.stale)

    def _export(self, figure: Figure, theme: str = "light") -> str:
        with drawing_in(self._face), drawing_for(theme):
            return from_matplotlib(figure)

    def _figure(self, theme: str) -> Figure:
        if theme not in PALETTES:
            raise ValueError(f"theme must be 'light' or 'dark'; got {theme!r}")
        if theme == "light":
            return self.figure
        if self._is_edited():
            raise ValueError(
                "theme='dark': the figure was changed after it was drawn, and the dark drawing was "
                "not; draw both with @show_figure"
            )
        if self._dark is None:
            with drawing_in(self._face):
                self._dark = self._draw("dark")[0]
        return self._dark

    def __getstate__(self) -> dict[str, Any]:
        """Draw all forms, for a copy or a file: the functions that draw them cannot be kept."""
        if not self._is_edited():
            self.svg("light"), self.svg("dark"), self.narrow
        return {**self.__dict__, "_draw": None, "_narrow": None}

    def __repr__(self) -> str:
        """Return the description: the same words on every run."""
        return for_terminal(self.alt)

    def savefig(
        self,
        fname: Any,
        *,
        theme: str = "light",
        fonttype: int | str = 42,
        **kwargs: Any,
    ) -> None:
        """Save the figure; png, svg and pdf have the same bytes on every run.

        Parameters
        ----------
        fname : path, file object or PdfPages
            Where to; the ending gives the format. Into pages of PDF it goes as the next one.
        theme : "light" or "dark"
            Which of the two drawings.
        fonttype : 42, 3 or "none"
            PDF and EPS get fonts as TrueType (42), which conferences ask for, or as Type 3. An SVG
            gets its text as outlines, or with "none" as text, in whatever face the reader has.
        **kwargs
            As in `matplotlib.figure.Figure.savefig`; ``dpi`` is 192 unless given.

        Raises
        ------
        ValueError
            If matplotlib has no such format, there is no such font type or theme, or `figure` was
            changed and the dark drawing is asked for.
        RuntimeError
            If the format is pgf and XeLaTeX is not installed.

        Warns
        -----
        UserWarning
            If no face has some characters, which become boxes; it names a face that has them.
        """
        if hasattr(fname, "attach_note"):  # matplotlib's PdfPages
            named = "pdf"
            kwargs.setdefault("format", named)
        else:
            named = "" if hasattr(fname, "write") else Path(os.fsdecode(fname)).suffix[1:]
        kind = str(kwargs.get("format") or named or "png").lower()
        figure = self._figure(theme)
        known = figure.canvas.get_supported_filetypes()
        if kind not in known:
            raise ValueError(f"there is no format {kind!r}; there are {', '.join(sorted(known))}")
        if fonttype not in (42, 3, "none") or (fonttype == "none" and not kind.startswith("svg")):
            raise ValueError(f"fonttype must be 42 or 3, or 'none' for SVG; got {fonttype!r}")
        if stamps := _UNSTAMPED.get(kind, {}) | (kwargs.pop("metadata", None) or {}):
            kwargs["metadata"] = stamps  # other formats refuse any, an empty one as well
        before = figure.stale
        with drawing_in(self._face), book_style():
            if kind == "pgf" and not shutil.which(matplotlib.rcParams["pgf.texsystem"]):
                raise RuntimeError("pgf measures its words with XeLaTeX, which is not installed")
            if fonttype == "none":
                matplotlib.rcParams["svg.fonttype"] = "none"
            else:
                matplotlib.rcParams.update({"pdf.fonttype": fonttype, "ps.fonttype": fonttype})
                if hint := boxes(figure):
                    warnings.warn(hint, stacklevel=2)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph .* missing")  # the hint says it
                figure.savefig(fname, **kwargs)
        figure.stale = before

    def svg(self, theme: str = "light") -> str:
        """Return the drawing for a page, "light" or "dark", as SVG."""
        figure = self._figure(theme)
        if theme == "light" and self._is_edited():
            return self._export(figure)
        if theme not in self._drawings:
            self._drawings[theme] = self._export(figure, theme)
            figure.stale = False
        return self._drawings[theme]

    def html(self) -> str:
        """Return the picture for a page of any theme: an image, and what may follow it."""
        width, height = self._size()
        edited = self._is_edited()  # then there is one drawing, for all pages
        shown = [self, None if edited else self.narrow]
        light, dark, *narrow = (
            data_address(drawing.encode(), "image/svg+xml")
            for one in shown
            for drawing in (one.svg("light" if edited else theme) for theme in PALETTES if one)
        )
        phone = ";--phone:url({});--phone-dark:url({})".format(*narrow) if narrow else ""
        return (
            f'<div class="d2lmini-figure">{DARK_STYLE}'
            f'<span class="d2lmini-drawing" style="--dark:url({dark}){phone}">'
            f'<img src="{light}" alt="{escape(self.alt)}" width="{width}" height="{height}" '
            f'style="display:block;margin:0;max-width:100%;height:auto"></span>{self._more}</div>'
        )

    def _size(self) -> tuple[int, int]:
        width, height = (round(inches * CSS_DPI) for inches in self.figure.get_size_inches())
        return width, height

    def png(self) -> bytes:
        """Return the picture as PNG, two pixels for each pixel of the page, in 128 colours."""
        from PIL import Image  # comes with matplotlib

        full, small = io.BytesIO(), io.BytesIO()
        self.savefig(full, format="png", dpi=PNG_DPI)
        colours = Image.open(full).convert("RGB").quantize(128, dither=Image.Dither.NONE)
        colours.save(small, "PNG", optimize=True)  # a third of the size, and no eye sees why
        return small.getvalue()

    def show(self) -> None:
        """Put the picture on the page of a notebook, or into a window of a plain Python prompt.

        In a script, do nothing.
        """
        shell = running_shell()
        if shell is None:
            if hasattr(sys, "ps1"):
                self._open_window()
            return
        from IPython.display import display

        data, metadata = self._repr_mimebundle_(include=shell.display_formatter.active_types)
        display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]
        self._on_page = True

        def cell_is_over() -> None:
            self._on_page = False
            shell.events.unregister("post_execute", cell_is_over)

        shell.events.register("post_execute", cell_is_over)

    def _open_window(self) -> None:
        """Show the picture in a window, where matplotlib can open one."""
        from matplotlib import pyplot

        if matplotlib.get_backend().lower() in (
            "agg",
            "cairo",
            "pdf",
            "pgf",
            "ps",
            "svg",
            "template",
        ):
            return
        window = pyplot.figure(figsize=tuple(self.figure.get_size_inches()))
        page = window.add_axes((0, 0, 1, 1))
        page.axis("off")
        page.imshow(pyplot.imread(io.BytesIO(self.png())))
        pyplot.show(block=False)

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Return what a notebook keeps: the picture in two forms, and the words.

        As IPython asks: only the forms in ``include``, if given, and none of ``exclude``.
        """
        width, height = self._size()
        forms: dict[str, Callable[[], str]] = {
            "text/html": self.html,
            "image/png": lambda: base64.b64encode(self.png()).decode(),
            "text/plain": lambda: self.alt,
        }
        about = {"image/png": {"width": width, "height": height, "alt": self.alt}}
        left = [f for f in forms if (include is None or f in include) and f not in (exclude or ())]
        return {f: forms[f]() for f in left}, {f: about[f] for f in left if f in about}

    def _ipython_display_(self) -> None:
        if not self._on_page:
            self.show()
