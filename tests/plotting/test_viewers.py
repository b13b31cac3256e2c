"""What viewers do with the HTML: each keeps a picture and its description."""

import re
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

from d2lmini.plotting import AttentionExplorer, AttentionTrace, show_attention_lines
from tests.plotting.reading import heatmaps

VOID = {"img", "br"}
# The strictest that is met: plain elements, and of their attributes only what a picture needs.
KEPT = {
    "img": {"src", "alt", "width", "height"},
    **{tag: set() for tag in ("p", "br", "small", "details", "summary", "table", "caption")},
    **{tag: set() for tag in ("thead", "tbody", "tfoot", "tr", "th", "td")},
}
DROPPED = {"style", "script", "svg"}  # with all that is in them


class Sanitiser(HTMLParser):
    """Keep what is on the list, as GitHub, VS Code or an untrusted notebook do."""

    def __init__(self):
        super().__init__()
        self.kept, self.inside = [], 0

    def handle_starttag(self, tag, attrs):
        self.inside += tag in DROPPED
        if tag in KEPT and not self.inside:
            shown = "".join(f' {k}="{escape(v)}"' for k, v in attrs if k in KEPT[tag])
            self.kept.append(f"<{tag}{shown}>")

    def handle_endtag(self, tag):
        self.inside -= tag in DROPPED
        if tag in KEPT and tag not in VOID and not self.inside:
            self.kept.append(f"</{tag}>")

    def handle_data(self, data):
        if not self.inside:
            self.kept.append(escape(data))


def sanitised(html):
    """Return what is left."""
    sanitiser = Sanitiser()
    sanitiser.feed(html)
    return "".join(sanitiser.kept)


class Tags(HTMLParser):
    """Collect start tags, and see that all are closed."""

    def __init__(self, html):
        super().__init__()
        self.found, self.open = [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID | {"input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


PICTURES = {
    "heatmap": heatmaps(np.eye(3), xticks=["<a>", '"b"', "c & d"], yticks=list("xyz")),
    "lines": show_attention_lines(np.eye(2), ['"a"', "<b>"], show=False),
    "ledger": AttentionTrace([1.0], [[1.0], [2.0]], [3.0, 4.0], labels=["<a>", '"b"']).plot(),
}
TABLES = {
    "trace": AttentionTrace([1.0], [[1.0], [2.0]], [3.0, 4.0], labels=["<a>", '"b"']),
    "explorer": AttentionExplorer(np.eye(2), ["<a>", '"b"'], dimension=4),
}
ELSEWHERE = re.compile(r"""(?:src|href)=["'](?!data:|#)|url\((?!#|data:)|@import""")


@pytest.mark.parametrize("shown", PICTURES.values(), ids=PICTURES)
def test_a_picture_with_its_description_is_left_by_the_strictest_sanitiser(shown):
    html, (width, height) = shown.html(), shown.figure.get_size_inches() * 96
    left = sanitised(html)
    images = [attrs for tag, attrs in Tags(left).found if tag == "img"]
    assert len(images) == 1  # once, not once for each theme
    assert images[0]["src"].startswith("data:image/svg+xml;base64,")
    assert images[0]["alt"] == shown.alt
    assert (int(images[0]["width"]), int(images[0]["height"])) == (round(width), round(height))
    assert "{" not in left.replace(images[0]["src"], "").replace(images[0]["alt"], "")
    tags = Tags(html).found
    (image,) = (attrs for tag, attrs in tags if tag == "img")
    (around,) = (attrs for _, attrs in tags if attrs.get("class") == "d2lmini-drawing")
    assert "max-width:100%;height:auto" in image["style"], "it can shrink"
    dark = around["style"].removeprefix("--dark:")
    assert re.fullmatch(r"url\(data:image/svg\+xml;base64,[\w+/=]+\)", dark)
    assert dark != f"url({image['src']})"
    assert not ELSEWHERE.search(html + shown.svg() + shown.svg("dark"))


@pytest.mark.parametrize("shown", TABLES.values(), ids=TABLES)
def test_after_it_a_table_is_left(shown):
    html = shown._repr_html_()
    left = sanitised(html)
    tags = [tag for tag, _ in Tags(left).found]
    assert tags.count("table") == 1 and tags.count("td") > 3
    assert "&lt;a&gt;" in html and "d2lmini" not in left
    assert not ELSEWHERE.search(html)
