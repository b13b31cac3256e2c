"""How much room words take: all pictures are laid out by it, before anything is drawn."""

import difflib
import math
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import ScaledTranslation

from d2lmini.plotting.theme import BOOK_FACE, FACE, Face

LINE = 1.25 / 72  # inches of height for each point of size
CAPITAL = 0.73  # height of capitals and digits in DejaVu Sans, as a share of the size


class Size(NamedTuple):
    """A size of words in the book, in points, and the setting of matplotlib for such words."""

    points: float
    setting: str


AnySize: TypeAlias = Size | float
SETTINGS = ("font.size", "xtick.labelsize", "axes.labelsize", "axes.titlesize")


def read_face(font: Any) -> Face:
    """Return a face that is named, or the family and sizes in matplotlib's settings."""
    if font is None:
        return BOOK_FACE
    known = {face.name for face in font_manager.fontManager.ttflist}
    if isinstance(font, Mapping):  # rcParams
        settings = {**matplotlib.rcParams, **font}
        named = settings["font.family"]
        each = [named] if isinstance(named, str) else named
        faces = [face for name in each for face in settings.get(f"font.{name}", [name])]
        lower = {name.lower() for name in known}
        there = [face for face in faces if face.lower() in lower]  # the others would be logged
        if not there:
            warnings.warn(
                f"font: matplotlib knows none of the faces in your settings, {', '.join(faces)}; "
                "DejaVu Sans is used",
                stacklevel=3,
            )
        scales = font_manager.font_scalings
        sizes = [(name, settings[name]) for name in SETTINGS]
        return Face(
            (*there, "DejaVu Sans"),
            tuple((n, scales[s] * settings["font.size"] if s in scales else s) for n, s in sizes),
        )
    if not isinstance(font, str | list | tuple):
        raise TypeError(f"font must be the name of a face, or rcParams; got {type(font).__name__}")
    names = [font] if isinstance(font, str) else font
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), sorted(known), n=1, cutoff=0)
            raise ValueError(f"font: matplotlib knows no face {name!r}; did you mean {near[0]!r}?")
    return Face((*names, "DejaVu Sans"))


@lru_cache
def _file(face: str) -> FT2Font:
    return FT2Font(font_manager.findfont(FontProperties(family=[face])))


def boxes(figure: Figure) -> str:
    """Say which characters would be drawn as boxes, and which face has them; "" if none would."""

    def has(face: str, character: str) -> bool:
        return bool(_file(face).get_char_index(ord(character)))

    lacking: dict[str, list[str]] = {}  # with the faces that have no such character
    texts: list[Any] = figure.findobj(Text)
    for text in texts:
        faces = text.get_fontfamily()
        for c in text.get_text():
            if c.isprintable() and not any(has(face, c) for face in faces):
                lacking[c] = faces
    if not lacking:
        return ""
    known = sorted({face.name for face in font_manager.fontManager.ttflist})
    able = (face for face in known if all(has(face, c) for c in lacking))
    face = next((face for face in able if not face.startswith("Last Resort")), None)  # boxes too
    faces = ", ".join(next(iter(lacking.values())))
    return f"{faces} has no {' '.join([*lacking][:8])}, drawn as boxes; " + (
        f"draw with font={face!r}" if face else "install a face that has them: font=its name"
    )


def points(size: AnySize) -> float:
    """Return a size of words as it is drawn, if the user's settings count."""
    if isinstance(size, Size):
        return dict(FACE.get().sizes).get(size.setting, size.points)
    return size


def text_width(text: str, size: AnySize, *, bold: bool = False, formula: bool = False) -> float:
    """Return the width of a line of text in the face that is set, in inches."""
    return _text_width(text, points(size), bold, formula, FACE.get())


@lru_cache(maxsize=4096)
def _text_width(text: str, size: float, bold: bool, formula: bool, face: Face) -> float:
    font = FontProperties(family=face.family, size=size, weight="bold" if bold else "normal")
    with warnings.catch_warnings():  # a glyph that the font lacks warns when it is drawn
        warnings.simplefilter("ignore")
        return float(text_to_path.get_text_width_height_descent(text, font, formula)[0]) / 72


def put_in_middle(
    ax: Axes, x: float, y: float, line: str, *, size: float, align: str = "center", **style: Any
) -> Text:
    """Write a line whose capitals and digits have their middle at a place, whatever hangs below."""
    lower = ScaledTranslation(0, -CAPITAL * size / 2 / 72, ax.figure.dpi_scale_trans)
    place = ax.transData + lower
    return ax.text(x, y, line, ha=align, va="baseline", fontsize=size, transform=place, **style)


def block_width(text: str, size: AnySize) -> float:
    """Return the width of the widest line."""
    return max(text_width(line, size) for line in text.split("\n"))


def block_height(text: str, size: AnySize) -> float:
    """Return the height of a text of one or more lines; 0 for no text."""
    return (text.count("\n") + 1) * points(size) * LINE if text else 0.0


def wrap(text: str, width: float, size: AnySize, longest: float = math.inf) -> str:
    """Break a text at its spaces into lines that fit a width; break a word that is too long."""
    lines = []
    for paragraph in text.split("\n"):
        lines.append("")
        for word in paragraph.split(" "):
            longer = f"{lines[-1]} {word}" if lines[-1] else word
            if not lines[-1] or text_width(longer, size) <= width:
                lines[-1] = longer
            else:
                lines.append(word)
            while text_width(lines[-1], size) > longest and len(lines[-1]) > 1:
                line = lines.pop()
                fits = [n for n in range(1, len(line)) if text_width(line[:n], size) <= longest]
                end = max(fits, default=1)
                lines += [line[:end], line[end:]]
    return "\n".join(lines)


def shortened(text: str, longest: float, size: AnySize) -> str:
    """Shorten a label that would take the place of the picture."""
    if text_width(text, size) <= longest:
        return text
    keep = next(n for n in range(len(text), 0, -1) if text_width(text[:n] + "…", size) <= longest)
    return text[:keep].rstrip() + "…"
