"""Draw chapters/_static/card.png, the picture of the book that the README and other sites show.

python scripts/card.py
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

from d2lmini import TrigramEncoder, load_incomes, softmax
from d2lmini.plotting.theme import COLORS

matplotlib.use("agg")
from matplotlib import font_manager
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "chapters" / "_static" / "card.png"
sys.path.append(str(ROOT))
from lettering.face import unpacked  # noqa: E402

WIDTH, HEIGHT, DPI = 1200, 630, 100  # what other sites expect
ASKED, PEOPLE = "alise marlo", 5  # the lookup of the first page, and how many rows of it
PAGE = "#fffdf9"  # of theme.css
CUTS = {  # as the cuts of drawings in lettering/face.py, and one for the title
    "text": ("Serif", {"opsz": 24, "wght": 400}),
    "bold": ("Serif", {"opsz": 24, "wght": 600}),
    "title": ("Serif", {"opsz": 60, "wght": 600}),
    "italic": ("Serif-Italic", {}),
}


def faces(folder: Path) -> dict[str, font_manager.FontProperties]:
    """Return the cuts of the book's face, unpacked into a folder."""
    made = {}
    for name, (file, place) in CUTS.items():
        (folder / f"{name}.ttf").write_bytes(unpacked(file, **place))
        made[name] = font_manager.FontProperties(fname=folder / f"{name}.ttf")
    return made


def draw(cuts: dict[str, font_manager.FontProperties]) -> Figure:
    """Return the picture: the title, and the lookup of the first page."""
    names, incomes = load_incomes()
    encode = TrigramEncoder(names)
    weights = softmax((encode([ASKED]) @ encode(names).T)[0] / 0.1)
    figure = plt.figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=PAGE)

    def write(x, y, text, color="ink", size=24.0, cut="text", **how):
        style = {"color": COLORS[color], "size": size, "fontproperties": cuts[cut]}
        return figure.text(x / WIDTH, y / HEIGHT, text, **style, **how)

    def box(x, y, width, height, color):
        corner = (x / WIDTH, y / HEIGHT)
        size = (width / WIDTH, height / HEIGHT)
        place = {"transform": figure.transFigure, "linewidth": 0}
        figure.add_artist(Rectangle(corner, *size, color=color, **place))

    x, renderer = 70.0, FigureCanvasAgg(figure).get_renderer()
    for word, color in (
        ("Queries", "query"),
        (", ", "ink"),
        ("Keys", "key"),
        (" and ", "ink"),
        ("Values", "value"),
    ):
        shown = write(x, 505, word.replace(" ", "\N{NO-BREAK SPACE}"), color, 56, "title")
        x = shown.get_window_extent(renderer).x1
    write(72, 440, "A name, misspelt, still finds its row. That is attention.", "muted", 26)
    columns = (
        ("query", 70, 262),
        ("key", 332, 248),
        ("weight", 580, 270),
        ("value", 850, 120),
        ("output", 970, 160),
    )
    for name, left, wide in columns:
        box(left, 396, wide, 7, COLORS[name])
        write(left, 352, name, name, 20, "bold")
    write(70, 205, ASKED, "query", 36, "italic")
    for row in range(PEOPLE):
        y = 300 - 56 * row
        write(332, y, names[row], "key")
        box(580, y - 5, max(1.5, 190 * weights[row]), 28, COLORS["weight"])
        write(592 + 190 * weights[row], y, f"{weights[row]:.2f}", size=20)
        write(850, y, f"{incomes[row]:.0f}", "value")
    write(970, 195, f"{weights @ incomes:.1f}", "output", 48, "title")
    return figure


def main(path: Path = PICTURE) -> None:
    """Write the picture, the same bytes every time."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        with TemporaryDirectory() as folder:
            draw(faces(Path(folder))).savefig(path, metadata={"Software": None})
    plt.close("all")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
