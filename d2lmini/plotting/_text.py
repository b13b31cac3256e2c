"""How much room words take: all pictures are laid out by it, before anything is drawn."""

import math
import warnings
from functools import lru_cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

LINE = 1.25 / 72  # inches of height for each point of size


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, *, bold: bool = False, formula: bool = False) -> float:
    """Return the width of a line of text in the book's font, in inches."""
    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    with warnings.catch_warnings():  # a glyph that the font lacks warns when it is drawn
        warnings.simplefilter("ignore")
        return float(text_to_path.get_text_width_height_descent(text, font, formula)[0]) / 72


def block_width(text: str, size: float) -> float:
    """Return the width of the widest line."""
    return max(text_width(line, size) for line in text.split("\n"))


def block_height(text: str, size: float) -> float:
    """Return the height of a text of one or more lines; 0 for no text."""
    return (text.count("\n") + 1) * size * LINE if text else 0.0


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
