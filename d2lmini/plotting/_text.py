"""How much room words take: all pictures are laid out by it, before anything is drawn."""

import difflib
import math
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from matplotlib import font_manager
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from d2lmini.plotting.theme import BOOK_FACE, FACE, Face

LINE = 1.25 / 72  # inches of height for each point of size


def read_face(font: Any) -> Face:
    """Return a face that is named, or the family and size in matplotlib's settings."""
    if font is None:
        return BOOK_FACE
    if isinstance(font, Mapping):  # rcParams
        kept = {name: font[name] for name in font if name.startswith("font.")}
        size = float(kept.pop("font.size")) / 10
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}
        return Face(tuple(settings.items()), size)
    names = [font] if isinstance(font, str) else list(font)
    known = {face.name for face in font_manager.fontManager.ttflist}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), sorted(known), n=1, cutoff=0)
            raise ValueError(f"font: matplotlib knows no face {name!r}; did you mean {near[0]!r}?")
    return Face((("font.family", (*names, "DejaVu Sans")),), 1.0)


def points(size: float) -> float:
    """Return a size of text as it is drawn, if the user's settings count."""
    return size * FACE.get().size


def text_width(text: str, size: float, *, bold: bool = False, formula: bool = False) -> float:
    """Return the width of a line of text in the face that is set, in inches."""
    return _text_width(text, points(size), bold, formula, FACE.get())


@lru_cache(maxsize=4096)
def _text_width(text: str, size: float, bold: bool, formula: bool, face: Face) -> float:
    family = face.family()
    font = FontProperties(family=family, size=size, weight="bold" if bold else "normal")
    with warnings.catch_warnings():  # a glyph that the font lacks warns when it is drawn
        warnings.simplefilter("ignore")
        return float(text_to_path.get_text_width_height_descent(text, font, formula)[0]) / 72


def block_width(text: str, size: float) -> float:
    """Return the width of the widest line."""
    return max(text_width(line, size) for line in text.split("\n"))


def block_height(text: str, size: float) -> float:
    """Return the height of a text of one or more lines; 0 for no text."""
    return (text.count("\n") + 1) * points(size) * LINE if text else 0.0


def wrap(text: str, width: float, size: float, longest: float = math.inf) -> str:
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


def shortened(text: str, longest: float, size: float) -> str:
    """Shorten a label that would take the place of the picture."""
    if text_width(text, size) <= longest:
        return text
    keep = next(n for n in range(len(text), 0, -1) if text_width(text[:n] + "…", size) <= longest)
    return text[:keep].rstrip() + "…"
