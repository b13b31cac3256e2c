"""Drawings as SVG: small, sharp at every size, and with the same bytes on every machine."""

import base64
import io
import re
import struct
import warnings
import zlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from d2lmini.plotting._legible import legal
from d2lmini.plotting.theme import CSS_DPI, book_style

# Verdana is as wide as the font that the layout is measured with; most systems have one of them.
FONTS = "DejaVu Sans,Verdana,sans-serif"
ROUGHEST = 4096  # cells up to which a picture is stored as it is


def number(value: float) -> str:
    """Write a length in pixels with at most two decimals.

    >>> number(3.0), number(0.256), number(-0.001)
    ('3', '0.26', '0')
    """
    # Twice, so that what differs in the last bit is the same before the second rounding.
    text = f"{round(round(value, 6), 2):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def data_address(data: bytes, kind: str) -> str:
    """Return the address of a picture that holds the picture."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def png(colors: Any) -> bytes:
    """Return a small picture of colours, (height, width, 3 or 4) of 8 bits, as PNG.

    A small one is not compressed, since compressors differ from one Python to the next.
    """
    height, width, channels = colors.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), colors.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)
    data = zlib.compress(rows.tobytes(), 0 if height * width <= ROUGHEST else 6)
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


def from_matplotlib(figure: Figure) -> str:
    """Return a figure as a small SVG whose text is text, with nothing that differs between runs."""
    import matplotlib

    buffer = io.StringIO()
    with book_style(axes=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a browser has more fonts
        matplotlib.rcParams["svg.fonttype"] = "none"
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return tidy(legal(buffer.getvalue()), *figure.get_size_inches())


def tidy(svg: str, width: float, height: float) -> str:
    """Shorten what matplotlib writes: round, number the ids in order, drop what is not drawn.

    Names of ids are made from the last bits of numbers; numbered ones are the same everywhere.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"data:image/png;base64,([^\"]*)", _steady_picture, svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<title>.*?</title>", "", svg, flags=re.S)
    svg = re.sub(r'<style type="text/css">.*?</style>', "", svg, flags=re.S)
    w, h = number(width * CSS_DPI), number(height * CSS_DPI)
    svg = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
        rf'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        rf'width="{w}" height="{h}" viewBox="\1" '
        'stroke-linejoin="round" stroke-linecap="butt">',
        svg,
        count=1,
        flags=re.S,
    )
    svg = svg.replace("font-family: 'DejaVu Sans'", f"font-family: {FONTS}")
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        before, name, after = match.groups()
        if before == ' id="' and name not in used:
            return ""
        return before + names.setdefault(name, f"i{len(names)}") + after

    svg = re.sub(r'( id="|url\(#|href="#)([^)"]+)([)"])', renamed, svg)
    svg = re.sub(r"<[^>]*>", lambda tag: _short(tag[0]), svg)
    return re.sub(r">\s+<", "><", svg).strip()


def _steady_picture(address: re.Match[str]) -> str:
    """Store a picture again, in bytes that no compressor has a say in."""
    from PIL import Image  # comes with matplotlib

    picture = Image.open(io.BytesIO(base64.b64decode(address[1])))
    colors = np.asarray(picture.convert("RGBA"))
    return data_address(
        png(colors if (colors[..., 3] < 255).any() else colors[..., :3]), "image/png"
    )


def _short(tag: str) -> str:
    """Round the lengths in a tag; a factor, which may be tiny, keeps its digits."""
    tag = re.sub(r"\s+", " ", tag)
    tag = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", tag)
    if "matrix(" in tag or "scale(" in tag:
        return tag
    return re.sub(r"-?\d+\.\d{3,}", lambda match: number(float(match[0])), tag)
