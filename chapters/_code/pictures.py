"""The small pictures of the first page, as SVG in the colours of the page, with computed numbers.

```{picture} triangle
[What it asks](the-chapter.ipynb)
```
"""

import base64
import io
import math
from zlib import crc32

import numpy as np
from PIL import Image

import d2lmini
from d2lmini.models import load_readings
from d2lmini.plotting._dark_maps import weight_map

Rows = list[list[float | None]]
# Those of notebooks, after which cell they come, the page to which they lead, and their captions.
PLACES = {"all_heads": ("chapters/07-real-models", "who-looks")}
LEADS = {
    "all_heads": (
        "chapters/atlas",
        "All 270 heads on this text, a column for each of 30 layers. Open them in the atlas.",
    )
}
TEXT = "Zed Quimby likes tea. Mo Larkin likes milk. Zed Quim"


def svg(width: int, height: int, *parts: str) -> str:
    """Return a picture whose words are said by the link beneath it."""
    body = "".join(parts)
    if "masked" in body:  # the hatch, under a name of its own
        name = f"hatch-{crc32(body.encode()):x}"
        body = body.replace('class="masked', f'fill="url(#{name})" class="masked')
        body += f'<pattern id="{name}" width="4" height="4" patternUnits="userSpaceOnUse" '
        body += 'patternTransform="rotate(45)"><path d="M0 0V4" stroke="var(--hatch)"/></pattern>'
    return f'<svg viewBox="0 0 {width} {height}" aria-hidden="true" focusable="false">{body}</svg>'


def cells(x: float, y: float, size: float, rows: Rows, classes: str = "") -> str:
    """Draw weights; what is masked is None."""
    side, made = size - 1, ""
    for i, row in enumerate(rows):
        for j, weight in enumerate(row):
            at = f'x="{x + j * size:g}" y="{y + i * size:g}" width="{side:g}" height="{side:g}"'
            kind = f"ex-square {classes}" if weight is not None else "masked"
            made += f'<rect class="{kind}" {at} style="--w:{weight or 0:.2f}"/>'
    return made


def text(x: float, y: float, words: str, kind: str = "", at: float | None = None) -> str:
    """Write words; on a cell they turn with its weight."""
    style = "" if at is None else f' style="--w:{at:.2f}"'
    return f'<text class="{kind}" x="{x:g}" y="{y:g}"{style}>{words}</text>'


def path(d: str, color: str, width: float = 1.5, more: str = "") -> str:
    """Draw a line."""
    return f'<path d="{d}" fill="none" stroke="var(--{color})" stroke-width="{width:g}"{more}/>'


def corners(width: int, height: int, side: float) -> np.ndarray:
    """Return the corners of a triangle in the middle, (3, 2)."""
    tall = side * math.sqrt(3) / 2
    x, y = (width - side) / 2, (height - tall) / 2
    return np.array([[x, y + tall], [x + side, y + tall], [x + side / 2, y]])


def walk(scores: list[float], ends: np.ndarray) -> str:
    """Return the path of the weights of three scores while the temperature falls."""
    temperatures = np.geomspace(40, 0.1, 40)
    weights = d2lmini.softmax(np.array(scores) / temperatures[:, None])  # (40, 3)
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in weights @ ends)


def triangle(width: int = 272, height: int = 170, side: float = 160) -> str:
    """Draw where three weights go while the temperature falls."""
    ends = corners(width, height, side)
    edge = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in ends) + "Z"
    first = walk([2, 1.55, 0], ends)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--value)"/>' for x, y in ends
    )
    others = [walk(scores, ends) for scores in ([2, 1.2, 1.05], [1.9, 1.9, 0.4])]
    if side < 100:
        return svg(width, height, path(edge, "frame", 1), path(first, "weight", 2.5), dots)
    walks = f"offset-path:path('{first}')"
    point = f'<circle class="walks" r="5.5" fill="var(--weight)" style="{walks}"/>'
    lines = [path(one, "frame") for one in others]
    return svg(
        width, height, path(edge, "frame", 1), *lines, path(first, "weight", 2.5), dots, point
    )


def ledger() -> str:
    """Draw what happens between a score and a weight, for four keys of which one is masked."""
    query, keys = (
        np.array([2.0, 1, 0, 1]),
        np.array([[1, 1, 0, 1.2], [0, 0.8, 1, 0], [-1, 1, 1, 0], [1, 0, 2, 0.6]]),
    )
    scores = keys @ query
    scaled, seen = scores / 2, [True, True, True, False]
    weights = d2lmini.masked_softmax(scaled[None], np.array([seen]))[0]
    made = ""
    for column, head in enumerate(("score", "÷ √d", "mask", "weight")):
        x = 39 + 63 * column
        made += text(x, 26, head, "middle weight" if column == 3 else "middle quiet")
        for row in range(4):
            y, step = 36 + 32 * row, f"step step-{column}"
            shown = (scores, scaled, scaled, weights)[column][row]
            if column >= 2 and not seen[row]:
                made += f'<rect class="masked {step}" x="{x - 25}" y="{y}" width="50" height="26"/>'
            elif column == 3:
                made += f'<rect class="ex-square {step}" x="{x - 25}" y="{y}" width="50" '
                made += f'height="26" style="--w:{shown:.2f}"/>'
                made += text(x, y + 18, f"{shown:.2f}", f"middle ex-on {step}", shown)
            else:
                number = f"{shown:.1f}".replace("-", "−")
                made += text(x, y + 18, number, f"middle {step}")
    return svg(272, 170, made)


def wall() -> str:
    """Draw the heads of 15 layers on one sentence."""
    return squares(9, 24, "")


def all_heads() -> str:
    """Draw the heads of all 30 layers, as what leads to them."""
    words = (
        "All 270 heads on this text, a column for each of 30 layers: most have one dark line at "
    )
    words += "their left edge, some a diagonal, and a few a dark cell in their last row."
    return squares(0, 30, words)


def squares(first: int, last: int, alt: str) -> str:
    """Draw the heads of some layers, once for each theme; on a link what is seen is said."""
    weights = load_readings()[TEXT].weights[first:last].swapaxes(0, 1)  # (9, layers, n, n)
    layers, n = weights.shape[1:3]
    kept = np.zeros((9, layers, n + 1, n + 1))
    kept[..., :n, :n] = weights
    seen = np.zeros((n + 1, n + 1), bool)
    seen[:n, :n] = np.tri(n, dtype=bool)
    flat = kept.swapaxes(1, 2).reshape(9 * (n + 1), layers * (n + 1))
    steps = 15 if layers < 30 else 8  # as fine as what is loaded with its page may be
    level = 1 + (flat * (steps - 1)).round().astype(np.uint8)  # 0 is no weight
    level[~np.tile(seen, (9, layers))] = 0
    made, kind = "", "" if alt else " decorative"
    for theme in ("light", "dark"):
        image = Image.fromarray(level, "P")
        colors = (weight_map(theme)(np.linspace(0, 1, steps))[:, :3] * 255).round().astype(int)
        image.putpalette([0, 0, 0, *colors.ravel().tolist()])
        file = io.BytesIO()
        image.save(file, "PNG", transparency=0, bits=4, optimize=True)
        data = base64.b64encode(file.getvalue()).decode()
        made += f'<img class="in-{theme}{kind}" src="data:image/png;base64,{data}" alt="{alt}" '
        made += f'width="{layers * (n + 1)}" height="{9 * (n + 1)}"/>'
    return made


def causal(count: int, late: bool) -> Rows:
    """Return causal weights, or those of a mask that begins one key too late."""
    x = np.array([[math.sin(3.0 * i + j * j) for j in range(2)] for i in range(count)])
    mask = np.tri(count, k=int(late)) > 0
    weights = d2lmini.attention(2 * x, 2 * x, x, mask=mask).weights
    return [
        [float(w) if may else None for w, may in zip(row, rule, strict=True)]
        for row, rule in zip(weights, mask, strict=True)
    ]


def museum() -> str:
    """Draw a causal mask that is off by one beside the right one."""
    late = "".join(
        f'<rect class="bug" x="{16 + (i + 1) * 18}" y="{34 + i * 18}" width="17" height="17"/>'
        for i in range(5)
    )
    return svg(
        272,
        170,
        cells(16, 34, 18, causal(6, late=True)),
        cells(150, 34, 18, causal(6, late=False)),
        late,
        text(16, 24, "published", "quiet"),
        text(150, 24, "right", "quiet"),
        text(16, 161, "each word sees the next one"),
    )


def bars(x: float, y: float, weights: list[float], long: float, *, left: bool = False) -> str:
    """Draw weights as bars below each other."""
    made = ""
    for i, weight in enumerate(weights):
        wide = max(1.2, long * weight)
        made += f'<rect x="{x - (wide if left else 0):g}" y="{y + 9 * i:g}" width="{wide:.1f}" '
        made += 'height="7" fill="var(--weight)"/>'
    return made


def chapter_1() -> str:
    """Draw the misspelt name and its weights."""
    names, _ = d2lmini.load_incomes()
    encode = d2lmini.TrigramEncoder(names)
    weights = d2lmini.softmax((encode(["alise marlo"]) @ encode(names).T)[0] / 0.1)
    lines = "".join(
        path(f"M36 38C42 38 41 {12 + 9 * i} 47 {12 + 9 * i}", "query", 1, ' opacity=".6"')
        for i in range(len(weights))
    )
    return svg(112, 84, text(0, 42, "alise", "query"), lines, bars(50, 8, [*weights], 58))


def chapter_2() -> str:
    """Draw the triangle again."""
    return triangle(112, 84, 84)


def chapter_3() -> str:
    """Draw a query, a key, and the shadow of one on the other."""
    foot = "M86 22L89.5 67"
    return svg(
        112,
        84,
        path("M14 72L86 22", "query", 2),
        path("M14 72L100 66", "key", 2),
        path(foot, "frame", 1, ' stroke-dasharray="2 3"'),
        path("M14 76L89 71.5", "ink", 3),
        '<circle cx="86" cy="22" r="4" fill="var(--query)"/>',
        '<circle cx="100" cy="66" r="4" fill="var(--key)"/>',
    )


def mesh(x: float, y: float, a: tuple, b: tuple, color: str) -> str:
    """Draw the grid that two directions span."""
    d = ""
    for t in np.linspace(0, 1, 4):
        d += f"M{x + t * b[0]:.1f} {y + t * b[1]:.1f}l{a[0]} {a[1]}"
        d += f"M{x + t * a[0]:.1f} {y + t * a[1]:.1f}l{b[0]} {b[1]}"
    return path(d, color, 1.3)


def chapter_4() -> str:
    """Draw one grid, projected to three others."""
    return svg(
        112,
        84,
        mesh(2, 26, (30, 0), (0, 30), "frame"),
        path("M36 34L52 20M36 42h14M36 50L52 66", "frame"),
        mesh(56, 10, (24, 6), (-2, 18), "query"),
        mesh(86, 32, (22, -8), (3, 18), "key"),
        mesh(56, 54, (28, 4), (10, 20), "value"),
    )


def chapter_5() -> str:
    """Draw one head that mixes two answers, and two heads that do not."""
    one, two = [0.5, 0, 0, 0, 0.5, 0, 0, 0], [[1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0]]
    dot = '<circle cx="12" cy="29" r="6" fill="var(--output)"/>'
    lines = path("M30 9L17 25M30 45L17 33", "value", 3)
    return svg(
        112,
        84,
        dot,
        lines,
        bars(50, 6, one, 36, left=True),
        bars(62, 6, two[0], 24),
        bars(90, 6, two[1], 22),
    )


def chapter_6() -> str:
    """Draw who asks whom under a causal mask."""
    x = [10 + i * 23 for i in range(5)]
    lines = "".join(
        path(f"M{x[i]} 62L{x[j]} 22", "query", 1.3) for i in range(5) for j in range(i + 1)
    )
    dots = "".join(
        f'<circle cx="{at}" cy="{y}" r="4.5" fill="var(--{color})"/>'
        for at in x
        for y, color in ((62, "query"), (22, "key"))
    )
    return svg(112, 84, lines, dots)


def chapter_7() -> str:
    """Draw head 19.7 of the language model."""
    weights, size = load_readings()[TEXT].weights[18, 6], 4.4
    n = len(weights)
    steps = f"v-{size}h-{size}" * n
    ground = f"M16 2V{2 + n * size:g}H{16 + n * size:g}{steps}Z"
    later = f"M{16 + n * size:g} 2V{2 + n * size:g}{steps}Z"
    dark = "".join(
        f'<rect class="ex-square" x="{16 + j * size:.1f}" y="{2 + i * size:.1f}" width="4" '
        f'height="4" style="--w:{weights[i, j]:.2f}"/>'
        for i, j in np.argwhere(weights > 0.03)
    )
    grounds = f'<path d="{ground}" fill="var(--ramp-0)"/><path class="masked" d="{later}"/>'
    return svg(112, 84, grounds, dark)


def chapter_8() -> str:
    """Draw the scores of which only one tile is held."""
    d = "".join(f"M{16 + 10 * j} {2 + 10 * i}h9v9h-9z" for i in range(8) for j in range(8))
    tile = "".join(f"M{16 + 10 * j} {2 + 10 * i}h9v9h-9z" for i in (4, 5) for j in (2, 3))
    return svg(112, 84, f'<path d="{d}" fill="var(--line)"/><path d="{tile}" fill="var(--ink)"/>')


def chapter_9() -> str:
    """Draw the mistake of the museum again."""
    late = "".join(
        f'<rect class="bug" x="{2 + (i + 1) * 10}" y="{14 + i * 10}" width="9" height="9"/>'
        for i in range(4)
    )
    right = cells(60, 14, 10, causal(5, late=False))
    return svg(112, 84, cells(2, 14, 10, causal(5, late=True)), right, late)


def chapter_10() -> str:
    """Draw two directions of the learned vectors of the eight names, and of a misspelt one."""
    names, _ = d2lmini.load_incomes()
    encode = d2lmini.NameEncoder.load()
    vectors = encode([*names, "karmen ordis"])
    places = vectors @ np.linalg.svd(vectors[:-1] - vectors[:-1].mean(axis=0))[2][:2].T
    low, high = places.min(axis=0), places.max(axis=0)
    at = 8 + (places - low) / (high - low) * np.array([96, 66])
    best = int((vectors[:-1] @ vectors[-1]).argmax())
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="var(--key)"/>' for x, y in at[:-1]
    )
    (x, y), (u, v) = at[-1], at[best]
    asks = path(f"M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}", "query")
    return svg(
        112, 84, dots, asks, f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="var(--query)"/>'
    )


class Dots:
    """Ratios as dots, the larger the input the larger the dot, on one scale for all of a page."""

    WIDE, LEFT = 230, 8  # pixels, and where the scale begins

    def __init__(self, ratios: list[float]) -> None:
        self.low, self.high = min([1, *ratios]), max([1, *ratios])
        self.ticks = [tick for tick in (0.5, 1, 2, 4, 8) if self.low <= tick <= self.high]

    def place(self, ratio: float) -> float:
        """Return where a ratio stands."""
        share = math.log(ratio / self.low) / (math.log(self.high / self.low) or 1)
        return self.LEFT + (self.WIDE - 2 * self.LEFT) * share

    def drawn(self, parts: list[str]) -> str:
        """Return one line of the plot."""
        svg = f'<svg class="dots" viewBox="0 0 {self.WIDE} 24" aria-hidden="true">'
        return f"{svg}{''.join(parts)}</svg>"

    def scale(self) -> str:
        """Draw the numbers of the scale."""
        return self.drawn(
            [f'<text x="{self.place(tick):.1f}" y="18">{tick:g}</text>' for tick in self.ticks]
        )

    def row(self, ratios: list[float], sizes: list[int]) -> str:
        """Draw the dots of a row."""
        lines = [f'<path d="M{self.place(tick):.1f} 0V24"/>' for tick in self.ticks]
        return self.drawn(
            lines
            + [
                f'<circle cx="{self.place(x):.1f}" cy="12" r="{2.5 + 1.25 * size:g}"/>'
                for x, size in zip(ratios, sizes, strict=True)
            ]
        )
