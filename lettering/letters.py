"""Set the words of a drawing in one size, whatever size the drawing has on a page.

A page shows a drawing larger than it was drawn, and a phone smaller; its words would follow. Here
they are set again, in the size that is wanted on the page: each stays where it was anchored, and
its capitals are in the middle of where they were.
"""

import html
import math
import re
from collections import defaultdict
from statistics import mean

from d2lmini.plotting._text import CAPITAL, text_width
from d2lmini.plotting.diagram import LINE

DESK, PHONE = 14, 12  # pixels: the words of every drawing, on a desk and on a phone
HEAD, LARGE = 17 / 14, 12.5  # how much larger are words that were drawn larger than so many points
RESULT, HUGE = 30 / 14, 18  # and what comes out
INDEX = 0.85  # of its letter; drawn as 0.7, which would be too small on a phone
SET_CAPITAL = 0.67  # of the size, in the face of the book
MONO = re.compile("font-family: 'DejaVu Sans Mono'[^;]*")  # figures have one face
TABULAR = "font-family: DejaVu Sans; font-variant-numeric: tabular-nums"
WORDS = re.compile(r'<text style="([^"]*)"([^>]*)>([^<]*)</text>')
FORMULA = re.compile(
    r'(<g(?: style="[^"]*")? transform="[^"]*)("><text>)((?:<tspan[^>]*>[^<]*</tspan>)+)'
)
SIZE = re.compile(r"font-size: ([\d.]+)px")
GLYPHS = re.compile(r'<tspan x="(?:[^"]* )?([\d.-]+)"([^>]*)>([^<]*)</tspan>')
PLACE = re.compile(r' x="([\d.-]+)" y="([\d.-]+)"')
MOVED = re.compile(r"translate\(([\d.-]+) ([\d.-]+)\)(?: rotate\(([\d.-]+)\))?")
VIEW = re.compile(r'width="[^"]*" height="[^"]*" viewBox="0 0 (\S+) ([^" ]+)"')
FLUSH = 0.3  # points: as near as a width that is measured again comes
TURNED, BEGUN = -1, -2
ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}


def lettered(svg: bytes, shown: float, wanted: float) -> bytes:
    """Return a drawing whose words are so many pixels high where it is shown so many pixels wide.

    What would be cut at its sides makes it wider.
    """
    text = svg.decode()
    width, height = map(float, VIEW.search(text).groups())
    left, right, done = 0.0, width, ""
    for _ in range(20):  # a wider drawing is shown smaller, so that words are larger in it
        letters = Letters(text, wanted * (right - left) / shown)
        before, done = done, FORMULA.sub(letters.formula, WORDS.sub(letters.word, text))
        if before == done:
            break
        left, right = min(left, *letters.sides), max(right, *letters.sides)
    view = f'width="{right - left:.2f}" height="{height:g}" '
    view += f'viewBox="{left:.2f} 0 {right - left:.2f} {height:g}"'
    return VIEW.sub(view, done, count=1).encode()


def wide_in(content: str, size: float) -> float:
    """Return how wide words are in the face that they were measured with, in points."""
    return text_width(html.unescape(content), size) * 72


def size_in(style: str) -> float:
    """Return the size of letters that a style says."""
    return float(SIZE.search(style)[1])


class Letters:
    """How the words of one drawing are set, and how far they reach to its sides."""

    def __init__(self, text: str, usual: float) -> None:
        self.usual = usual
        self.sides = [0.0, 0.0]
        # Where words begin and end, by the block that they are lines of: all that are turned are
        # one, and so is all that is known to begin somewhere, with which a formula may be flush.
        self.blocks: dict[int, int] = {}
        self.heights: dict[int, list[float]] = defaultdict(list)
        self.known: dict[str, list[tuple[int, str, float]]] = {"start": [], "end": []}
        last = 0
        line: tuple[object, float, int] = ("", 0.0, 0)  # a diagram's last: what, height, block
        for found in WORDS.finditer(text):
            style, rest, content = found.groups()
            above = self.blocks.get(last) if found.start() == last else None
            last = found.end()
            if not PLACE.search(rest):
                block = TURNED if "rotate" in rest else above or last
                self.blocks[found.start()] = self.blocks[last] = block
                self.heights[block].append(float(MOVED.search(rest)[2]))
                for name, at in self.ends(rest, wide_in(content, size_in(style))).items():
                    self.known[name].append((block, content, at))
                continue
            x, y = map(float, PLACE.search(rest).groups())
            next_line = line[1] + 72 * LINE * size_in(style)
            same = line[0] == (style, x) and abs(y - next_line) < FLUSH / 5
            block = self.blocks[found.start()] = line[2] if same else found.start()
            self.heights[block].append(y)
            line = (style, x), y, block
            if "start" in style and "rotate" not in rest:
                self.known["start"].append((BEGUN, content, x))

    @staticmethod
    def ends(rest: str, wide: float) -> dict[str, float]:
        """Return where words begin and end, from the left; if they are turned, from the top."""
        x, y, angle = MOVED.search(rest).groups()
        if angle is None:
            return {"start": float(x), "end": float(x) + wide}
        turned = math.sin(math.radians(float(angle)))
        return {"start": float(y), "end": float(y) + wide * turned}

    def anchor(self, block: int, rest: str, content: str, wide: float) -> str:
        """Return at which end most others of a block are flush with this, or "middle"."""
        flush = {
            name: sum(
                of == block and other != content and abs(place - at) < FLUSH
                for of, other, place in self.known[name]
            )
            for name, at in self.ends(rest, wide).items()
        }
        return max(flush, key=lambda name: flush[name]) if any(flush.values()) else "middle"

    def size_of(self, drawn: float) -> float:
        """Return the size of what was drawn in another one."""
        return self.usual * (RESULT if drawn > HUGE else HEAD if drawn > LARGE else 1)

    def word(self, found: re.Match) -> str:
        """Set a line of words about its anchor."""
        style, rest, content = found.groups()
        style = MONO.sub(TABULAR, style)
        drawn = size_in(style)
        size = self.size_of(drawn)
        down = (SET_CAPITAL * size - CAPITAL * drawn) / 2
        wide = wide_in(content, drawn)
        style = SIZE.sub(f"font-size: {size:.2f}px", style)
        block = self.blocks[found.start()]
        if at := PLACE.search(rest):
            x, y = map(float, at.groups())
            down += (size / drawn - 1) * (y - mean(self.heights[block]))
            rest = rest.replace(at[0], f' x="{at[1]}" y="{y + down:.2f}"')
            anchor = re.search(r"text-anchor: (\w+)", style)[1]
        else:
            # They were measured in a wider face: what was in the middle, or at the end, is again.
            anchor = self.anchor(block, rest, content, wide)
            inside = ANCHORS[anchor] * wide
            x, y = map(float, MOVED.search(rest).groups()[:2])
            x += inside
            if block != TURNED:  # as far apart as lines of this size are
                down += (size / drawn - 1) * (y - mean(self.heights[block]))
            style += f"; text-anchor: {anchor}"
            rest += f' x="{inside:.2f}" y="{down:.2f}"'
        if "rotate" not in rest:
            wide *= size / drawn
            self.sides += [x - ANCHORS[anchor] * wide, x + (1 - ANCHORS[anchor]) * wide]
        return f'<text style="{style}"{rest}>{content}</text>'

    def formula(self, found: re.Match) -> str:
        """Set a formula about its middle, and its indices not so small."""
        head, end, glyphs = found.groups()
        parts = GLYPHS.findall(glyphs)
        sizes = [size_in(style) for _, style, _ in parts]
        drawn = max(sizes)
        wide = max(
            float(x) + wide_in(letters[-1:], size)
            for (x, _, letters), size in zip(parts, sizes, strict=True)
        )
        share = self.size_of(drawn) / drawn
        inside = ANCHORS[self.anchor(BEGUN, head, "", wide)] * wide
        moved = f" translate({inside:.2f} {-CAPITAL * drawn / 2:.2f}) scale({share:.3f})"
        moved += f" translate({-inside:.2f} {SET_CAPITAL * drawn / 2:.2f})"
        index = f"font-size: {INDEX * drawn:.2f}px"
        glyphs = SIZE.sub(lambda one: index if float(one[1]) < INDEX * drawn else one[0], glyphs)
        return head + moved + end + glyphs
