"""Ship the one family that texts, figures and code are set in, with the glyphs that the book uses.

Texts and figures are in Source Serif 4, code in Source Code Pro, formulas in KaTeX's faces. The
style sheet holds them, so no page is ever seen in another face, and no line breaks anew when a file
has come. A drawing is an image, which knows no font of the page around it, so it carries its own.

To cut fonts takes a fifth of a build's time, so what was cut is kept in the user's cache.
"""

import base64
import contextlib
import functools
import hashlib
import html
import io
import logging
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import fontTools
from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

logging.getLogger("fontTools").setLevel("WARNING")  # not each table of each font

FONTS = Path(__file__).parent / "fonts"
KATEX = Path(__file__).parents[1] / "_ext/katex/static/katex/fonts"
NAME = "face.css"
# The family, its weights and slope, and the file with the place on its axes that it is cut from.
# Letters of headings are drawn for their size.
FACES = [
    ("Book", "font-weight: 400 600; font-style: normal", "Serif", {"opsz": 18}),
    ("Book Big", "font-weight: 600; font-style: normal", "Serif", {"opsz": 36, "wght": 600}),
    ("Book", "font-weight: 400 600; font-style: italic", "Serif-Italic", {}),
    ("Book Code", "font-weight: 400 600; font-style: normal", "Code", {}),
]
# The same of formulas, by what KaTeX calls a symbol that is set in it. For large brackets and the
# like a page loads the file.
FORMULA_FACES = {
    "mathbf": ("KaTeX_Main", "font-weight: 700; font-style: normal", "KaTeX_Main-Bold"),
    "mathnormal": ("KaTeX_Math", "font-weight: 400; font-style: italic", "KaTeX_Math-Italic"),
    "": ("KaTeX_Main", "font-weight: 400; font-style: normal", "KaTeX_Main-Regular"),
}
SYMBOL = re.compile(r'<span class="(m(?:ord|bin|rel|open|close|punct|op)\b[^"]*)"[^>]*>([^<]+)')
CUTS = {  # what a drawing carries: the file, the place on its axes, and the name of the cut
    "regular": ("Serif", {"opsz": 14, "wght": 400}, "font-weight: 400 500; font-style: normal"),
    "bold": ("Serif", {"opsz": 14, "wght": 600}, "font-weight: 600 900; font-style: normal"),
    "italic": ("Serif-Italic", {}, "font-weight: 400 500; font-style: italic"),
}
# The name that figures are drawn with: a drawing's own face of that name comes before the system's.
DRAWN = "DejaVu Sans"
TAG = re.compile("<[^>]*>")
CODE = re.compile(r"<(?:pre|code)\b.*?</(?:pre|code)>", re.DOTALL)
FORMULA = re.compile(r'<span class="katex-html".*?(?=</?(?:p|div|li|t[dh]|d[td]|h\d)\b)', re.DOTALL)
NOT_TEXT = re.compile(rf"<(script|style|pre)\b.*?</\1>|{FORMULA.pattern}|{TAG.pattern}", re.DOTALL)

CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
KEPT = Path(CACHE, "queries-keys-and-values")
MONTH = 30 * 24 * 3600  # seconds after which is forgotten what nobody has asked for
SOURCE = Path(__file__).read_bytes()


def file(name: str) -> Path:
    """Return where a font is."""
    return (KATEX if name.startswith("KaTeX") else FONTS) / f"{name}.woff2"


def kept(cut: Callable[..., bytes]) -> Callable[..., bytes]:
    """Let a function that cuts a font ask the cache first; that may be missing or read-only."""

    def ask(name: str, *letters: frozenset[str], **place: float) -> bytes:
        about = (cut.__name__, fontTools.version, [*map(sorted, letters)], place)
        sources = SOURCE + file(name).read_bytes() + repr(about).encode()
        path = KEPT / hashlib.sha256(sources).hexdigest()
        try:
            found = path.read_bytes()
            path.touch()
        except OSError:
            found = cut(name, *letters, **place)
            with contextlib.suppress(OSError):
                KEPT.mkdir(parents=True, exist_ok=True)
                part = path.with_suffix(f".{os.getpid()}")
                part.write_bytes(found)
                part.replace(path)  # whole, or not at all
        return found

    return ask


def forget() -> None:
    """Drop from the cache what nobody has asked for."""
    for path in KEPT.glob("*"):
        if time.time() - path.stat().st_mtime > MONTH:
            path.unlink(missing_ok=True)


@functools.cache
@kept
def unpacked(name: str, **place: float) -> bytes:
    """Return a file that is not packed as WOFF 2, at a place on its axes.

    Of a packed font all outlines are read, whichever are wanted; of this one those that are.
    """
    plain = io.BytesIO()
    with TTFont(file(name), recalcTimestamp=False) as font:
        if place:
            instantiateVariableFont(font, place, inplace=True)
        font.flavor = None
        font.save(plain)
    return plain.getvalue()


@kept
def subset_of(name: str, letters: frozenset[str], **place: float) -> bytes:
    """Return a file, as WOFF 2, with no more than these letters."""
    options = subset.Options(flavor="woff2", notdef_outline=True)
    options.layout_features = ["kern", "tnum", "lnum", "liga", "mark", "mkmk", "ccmp"]
    packed = io.BytesIO()
    with subset.load_font(io.BytesIO(unpacked(name, **place)), options) as font:
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes={ord(letter) for letter in letters})
        subsetter.subset(font)
        subset.save_font(font, packed, options)
    return packed.getvalue()


@functools.cache
def embedded(cut: str, letters: frozenset[str]) -> str:
    """Return the rule that gives a drawing a cut of the face."""
    name, place, says = CUTS[cut]
    address = base64.b64encode(subset_of(name, letters, **place)).decode()
    return (
        f'@font-face {{ font-family: "{DRAWN}"; {says}; '
        f'src: url("data:font/woff2;base64,{address}") format("woff2") }}'
    )


def with_face(svg: bytes) -> bytes:
    """Return a drawing that carries the letters of its words."""
    text = svg.decode()
    words = html.unescape(re.sub(r"<[^>]*>", "", text))
    letters = frozenset(words) - frozenset("\n\t")
    if not letters:
        return svg
    cuts = ["regular"]
    if re.search(r"font(-weight)?: ?(bold|[6-9]00)", text):
        cuts.append("bold")
    if re.search("italic|oblique", text):
        cuts.append("italic")
    rules = "".join(embedded(cut, letters) for cut in cuts)
    head, end, rest = text.partition(">")
    return f"{head}{end}<style>{rules}</style>{rest}".encode()


def rule(family: str, says: str, letters: frozenset[str], name: str, **place: float) -> str:
    """Return the rule for a face that the style sheet holds; other letters come from elsewhere."""
    held = ",".join(f"U+{ord(letter):X}" for letter in sorted(letters))
    address = base64.b64encode(subset_of(name, letters, **place)).decode()
    return (
        f'@font-face {{ font-family: "{family}"; {says}; unicode-range: {held}; '
        f'src: url("data:font/woff2;base64,{address}") format("woff2"); }}'
    )


def write(app, out: Path) -> None:
    """Write the style sheet with the letters of all pages, and of what scripts write on them."""
    pages = [path.read_text("utf8") for path in out.rglob("*.html")]
    always = set(map(chr, range(0x20, 0x7F))).union(*(p.read_text() for p in out.rglob("*.mjs")))
    text = always.union(*(html.unescape(NOT_TEXT.sub(" ", page)) for page in pages))
    code = always.union(*(html.unescape(TAG.sub(" ", c)) for p in pages for c in CODE.findall(p)))
    rules = []
    for family, says, name, place in FACES:
        letters = frozenset((code if name == "Code" else text) - {"\n", "\t"})
        rules.append(rule(family, says, letters, name, **place))
    formulas = "".join(part for page in pages for part in FORMULA.findall(page))
    symbols: dict[str, set[str]] = {}
    for kinds, word in SYMBOL.findall(formulas):
        kind = next(kind for kind in FORMULA_FACES if kind in kinds)
        symbols.setdefault(kind, set()).update(html.unescape(word))
    for kind, letters in symbols.items():
        family, says, name = FORMULA_FACES[kind]
        rules.append(rule(family, says, frozenset(letters), name))
    (out / "_static" / NAME).write_text("\n".join(rules) + "\n", "utf8")
    for path in (out / "_static/katex/fonts").glob("*.woff2"):
        path.write_bytes(subset_of(path.stem, frozenset(html.unescape(TAG.sub("", formulas)))))
    forget()
