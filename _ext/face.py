"""Ship the one face that texts and figures are set in: Inter, with the glyphs that the book uses.

A page that waits for a font jumps when it comes, so each page names its fonts in its head, and a
browser that does not have them within the tenth of a second in which it may wait keeps its own for
that page. A drawing is an image, which knows no font of the page around it, so it carries its own.
"""

import base64
import functools
import html
import io
import json
import re
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

FACE = Path(__file__).parent / "face"
NAME = "face.css"
CUTS = {  # the file: its weights and its slope
    "Inter-Regular": "font-weight: 400 500; font-style: normal",
    "Inter-SemiBold": "font-weight: 600 900; font-style: normal",
    "Inter-Italic": "font-weight: 400 500; font-style: italic",
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


@functools.cache
def unpacked(name: str) -> bytes:
    """Return a cut of the face that is not packed as WOFF 2.

    Of a packed font all outlines are read, whichever are wanted; of this one those that are.
    """
    plain = io.BytesIO()
    with TTFont(FACE / f"{name}.woff2", recalcTimestamp=False) as font:
        font.flavor = None
        font.save(plain)
    return plain.getvalue()


def subset_of(name: str, letters: frozenset[str]) -> bytes:
    """Return a cut of the face, as WOFF 2, with no more than these letters."""
    options = subset.Options(flavor="woff2", notdef_outline=True, layout_features=["kern", "tnum"])
    packed = io.BytesIO()
    with subset.load_font(io.BytesIO(unpacked(name)), options) as font:
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes={ord(letter) for letter in letters})
        subsetter.subset(font)
        subset.save_font(font, packed, options)
    return packed.getvalue()


@functools.cache
def embedded(name: str, letters: frozenset[str]) -> str:
    """Return the rule that gives a drawing a cut of the face."""
    address = base64.b64encode(subset_of(name, letters)).decode()
    return (
        f'@font-face {{ font-family: "{DRAWN}"; {CUTS[name]}; '
        f'src: url("data:font/woff2;base64,{address}") format("woff2") }}'
    )


def with_face(svg: bytes) -> bytes:
    """Return a drawing that carries the letters of its words."""
    text = svg.decode()
    words = html.unescape(re.sub(r"<[^>]*>", "", text))
    letters = frozenset(words) - frozenset("\n\t")
    if not letters:
        return svg
    names = ["Inter-Regular"]
    if re.search(r"font(-weight)?: ?(bold|[6-9]00)", text):
        names.append("Inter-SemiBold")
    if re.search("italic|oblique", text):
        names.append("Inter-Italic")
    rules = "".join(embedded(name, letters) for name in names)
    head, end, rest = text.partition(">")
    return f"{head}{end}<style>{rules}</style>{rest}".encode()


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
    fonts = [f"face/{name}" for name in CUTS]
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
    for page in out.rglob("*.html"):
        letters |= set(html.unescape(NOT_TEXT.sub(" ", page.read_text("utf8"))))
    folder = out / "_static/face"
    folder.mkdir(parents=True, exist_ok=True)
    rules = []
    for name, says in CUTS.items():
        (folder / f"{name}.woff2").write_bytes(subset_of(name, frozenset(letters - {"\n", "\t"})))
        rules.append(
            f"@font-face {{ font-family: Inter; {says}; font-display: optional; "
            f'src: url("face/{name}.woff2") format("woff2"); }}'
        )
    (out / "_static" / NAME).write_text("\n".join(rules) + "\n", "utf8")
