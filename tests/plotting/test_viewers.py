"""What viewers do with the HTML: each keeps a picture and its description."""

import re
from html import escape

import numpy as np
import pytest
from bs4 import BeautifulSoup

from d2lmini.plotting import AttentionTrace, show_attention_lines
from tests.plotting.reading import heatmaps

# The strictest that is met: plain elements, and of their attributes only what a picture needs.
KEPT = {"img", "p", "br", "small", "details", "summary", "table", "caption", "thead", "tbody"}
KEPT |= {"tfoot", "tr", "th", "td"}
DROPPED = ["style", "script", "svg"]  # with all that is in them


def sanitised(html):
    """Return what GitHub, VS Code or an untrusted notebook leaves."""
    page = BeautifulSoup(html, "html.parser")
    for element in page.find_all(True):
        if element.name in DROPPED:
            element.extract()
        elif element.name not in KEPT:
            element.unwrap()
        else:
            wanted = {"src", "alt", "width", "height"}
            element.attrs = {name: x for name, x in element.attrs.items() if name in wanted}
    return str(page)


TRACE = AttentionTrace([1.0], [[1.0], [2.0]], [3.0, 4.0], labels=["<a>", '"b"'])
PICTURES = {
    "heatmap": heatmaps(np.eye(3), xticks=["<a>", '"b"', "c & d"], yticks=list("xyz")),
    "lines": show_attention_lines(np.eye(2), ['"a"', "<b>"], show=False),
    "ledger": TRACE.plot(),
}
ELSEWHERE = re.compile(r"""(?:src|href)=["'](?!data:|#)|url\((?!#|data:)|@import""")


@pytest.mark.parametrize("shown", PICTURES.values(), ids=PICTURES)
def test_a_picture_with_its_description_is_left_by_the_strictest_sanitiser(shown):
    html, (width, height) = shown.html(), shown.figure.get_size_inches() * 96
    left = BeautifulSoup(sanitised(html), "html.parser")
    (image,) = left("img")  # once, not once for each theme
    assert image["src"].startswith("data:image/svg+xml;base64,")
    assert image["alt"] == shown.alt and f'alt="{escape(shown.alt)}"' in html
    assert (int(image["width"]), int(image["height"])) == (round(width), round(height))
    assert "{" not in left.get_text()
    page = BeautifulSoup(html, "html.parser")
    assert "max-width:100%;height:auto" in page.img["style"], "it can shrink"
    dark = page.select_one(".d2lmini-drawing")["style"].removeprefix("--dark:")
    assert re.fullmatch(r"url\(data:image/svg\+xml;base64,[\w+/=]+\)", dark)
    assert dark != f"url({image['src']})"
    assert not ELSEWHERE.search(html + shown.svg() + shown.svg("dark"))
