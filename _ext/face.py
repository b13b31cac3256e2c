"""Ship the one family that texts, figures and code are set in, with the glyphs that the book uses.

Texts and figures are in Source Serif 4, code in Source Code Pro. Until its file has come a text is
in a face of the reader's machine that is stretched to the same widths and heights, so nothing moves
then. A drawing is an image, which knows no font of the page around it, so it carries its own.

To cut fonts takes a fifth of a build's time, so what was cut is kept in the user's cache.
"""

import base64
import contextlib
import functools
import hashlib
import html
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import fontTools
from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

FACE = Path(__file__).parent / "face"
NAME = "face.css"
FILES = {  # the file: its family, its weights and its slope
    "Serif": ("Book", "font-weight: 400 600; font-style: normal"),
    "Serif-Italic": ("Book", "font-weight: 400 600; font-style: italic"),
    "Code": ("Book Code", "font-weight: 400 600; font-style: normal"),
}
# What stands in for them: a family, its weight and slope, the faces that machines have, and how far
# one is stretched, by the widths of the letters of an English text. A large heading is narrower.
LATE = [
    ("Book Late", "400", "normal", "Times New Roman;Liberation Serif;Nimbus Roman", 110.2),
    ("Book Late", "600", "normal", "Times New Roman Bold;Liberation Serif Bold", 105.5),
    ("Book Late", "400", "italic", "Times New Roman Italic;Liberation Serif Italic", 102.7),
    ("Book Big Late", "600", "normal", "Times New Roman Bold;Liberation Serif Bold", 94.6),
    ("Book Code Late", "400", "normal", "Courier New;Liberation Mono", 100),
]
HEIGHTS = {"Book": (103.6, 33.5), "Book Big": (103.6, 33.5), "Book Code": (98.4, 27.3)}  # up, down
CUTS = {  # what a drawing carries: the file, the place on its axes, and the name of the cut
    "regular": ("Serif", {"opsz": 14, "wght": 400}, "font-weight: 400 500; font-style: normal"),
    "bold": ("Serif", {"opsz": 14, "wght": 600}, "font-weight: 600 900; font-style: normal"),
    "italic": ("Serif-Italic", {}, "font-weight: 400 500; font-style: italic"),
}
FORMULAS = [f"katex/fonts/KaTeX_{cut}" for cut in ("Main-Regular", "Main-Bold", "Math-Italic")]
# The name that figures are drawn with: a drawing's own face of that name comes before the system's.
DRAWN = "DejaVu Sans"
NOT_TEXT = re.compile(
    r"<(script|style|pre)\b.*?</\1>"
    r'|<span class="katex-html".*?(?=</?(?:p|div|li|t[dh]|d[td]|h\d)\b)'
    r"|<[^>]*>",
    re.DOTALL,
)

CODE = re.compile(r"<(?:pre|code)\b.*?</(?:pre|code)>", re.DOTALL)


CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
KEPT = Path(CACHE, "queries-keys-and-values")
MONTH = 30 * 24 * 3600  # seconds after which is forgotten what nobody has asked for
SOURCE = Path(__file__).read_bytes()


def kept(cut: Callable[..., bytes]) -> Callable[..., bytes]:
    """Let a function that cuts a font ask the cache first; that may be missing or read-only."""

    def ask(name: str, *letters: frozenset[str], **place: float) -> bytes:
        about = (cut.__name__, fontTools.version, [*map(sorted, letters)], place)
        sources = SOURCE + (FACE / f"{name}.woff2").read_bytes() + repr(about).encode()
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
    with TTFont(FACE / f"{name}.woff2", recalcTimestamp=False) as font:
        if place:
            instantiateVariableFont(font, place, inplace=True)
        font.flavor = None
        font.save(plain)
    return plain.getvalue()


def with_letters(font, letters: Iterable[str], **how) -> bytes:
    """Return a font, as WOFF 2, with no more than these letters."""
    options = subset.Options(flavor="woff2", notdef_outline=True, **how)
    packed = io.BytesIO()
    with subset.load_font(font, options) as opened:
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=map(ord, letters))
        subsetter.subset(opened)
        subset.save_font(opened, packed, options)
    return packed.getvalue()


@kept
def subset_of(name: str, letters: frozenset[str], **place: float) -> bytes:
    """Return a file of the face, at a place on its axes, with these letters."""
    features = ["kern", "tnum", "lnum", "liga", "mark", "mkmk", "ccmp"]
    return with_letters(io.BytesIO(unpacked(name, **place)), letters, layout_features=features)


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


def stand_ins() -> str:
    """Return the rules for the faces that stand in."""
    rules = []
    for family, weight, style, names, stretch in LATE:
        up, down = (100 * part / stretch for part in HEIGHTS[family.removesuffix(" Late")])
        local = ", ".join(f'local("{name}")' for name in names.split(";"))
        rules.append(
            f'@font-face {{ font-family: "{family}"; font-weight: {weight}; font-style: {style}; '
            f"src: {local}; size-adjust: {stretch}%; ascent-override: {up:.1f}%; "
            f"descent-override: {down:.1f}%; line-gap-override: 0%; }}"
        )
    return "\n".join(rules)


# A page on a disk may load its fonts, but not ask for them early.
PRELOAD = """<script>
if (location.protocol !== "file:") for (const href of {addresses})
  document.head.append(Object.assign(document.createElement("link"),
    {{ rel: "preload", as: "font", type: "font/woff2", crossOrigin: "", href }}));
</script>"""


def preload(app, pagename, templatename, context, doctree) -> None:
    """Let a page ask for its fonts before it has read its styles.

    A formula that waits for its font is as wide as another font makes it, and so are the columns
    of a table.
    """
    fonts = [f"face/{name}" for name in FILES]
    body = context.get("body", "")
    if 'class="katex' in body:
        sizes = {"2"} if "large-op" in body else set()  # sums; brackets say their size
        sizes |= set(re.findall(r"delimsizing size([1-4])", body))
        fonts += [*FORMULAS, *(f"katex/fonts/KaTeX_Size{n}-Regular" for n in sorted(sizes))]
    addresses = [context["pathto"](f"_static/{name}.woff2", resource=True) for name in fonts]
    context["metatags"] = context.get("metatags", "") + PRELOAD.format(
        addresses=json.dumps(addresses)
    )
    app.add_css_file(NAME)


def write(app, out: Path) -> None:
    """Write the style sheet, and the fonts with the letters of all pages."""
    letters = set(map(chr, range(0x20, 0x7F))) | set("…–—“”‘’·×→←√✓−≤≥≈")  # also what scripts write
    code = set(letters)
    for page in out.rglob("*.html"):
        text = page.read_text("utf8")
        letters |= set(html.unescape(NOT_TEXT.sub(" ", text)))
        code |= set(html.unescape(re.sub("<[^>]*>", " ", " ".join(CODE.findall(text)))))
    folder = out / "_static/face"
    folder.mkdir(parents=True, exist_ok=True)
    rules = [stand_ins()]
    for name, (family, says) in FILES.items():
        held = frozenset((code if name == "Code" else letters) - {"\n", "\t"})
        (folder / f"{name}.woff2").write_bytes(subset_of(name, held))
        rules.append(
            f'@font-face {{ font-family: "{family}"; {says}; font-display: swap; '
            f'src: url("face/{name}.woff2") format("woff2"); }}'
        )
    (out / "_static" / NAME).write_text("\n".join(rules) + "\n", "utf8")
    forget()
