"""The gate for words from outside: legal, visible, in their own direction, in every figure."""

import io
import json
import re
import sys
import unicodedata
import xml.etree.ElementTree as ET
from html import escape, unescape

import numpy as np
import pytest
from matplotlib.figure import Figure

from d2lmini._terminal import for_terminal
from d2lmini.models import minilm, smollm
from d2lmini.models.stored import StoredReading
from d2lmini.plotting import (
    AttentionExplorer,
    AttentionTrace,
    Diagram,
    show_attention_lines,
    show_figure,
    show_heatmaps,
)
from d2lmini.plotting._legible import _UNSEEN, ILLEGAL, isolated, legible
from d2lmini.plotting._svg import from_matplotlib
from d2lmini.plotting.trace import Step

KEYS = np.array([[1.0, 0.0], [0.0, 1.0]])
WEIGHTS = [[0.75, 0.25], [0.5, 0.5]]
EVERY = [chr(code) for code in range(sys.maxunicode + 1)]

pytestmark = pytest.mark.filterwarnings("ignore:Glyph:UserWarning", "ignore:Matplotlib:UserWarning")


def on_axes(word):
    @show_figure(width=20, height=6, alt=word + ".", show=False)
    def figure(ax):
        ax.set(title=word, xlabel=word, xticks=[0.5], xticklabels=[word])
        ax.text(0.5, 0.5, word)

    return figure


def on_a_sheet(word):
    @show_figure(canvas=True, width=90, height=3, alt="a drawing", show=False)
    def figure(ax):
        Diagram(ax).text((45, 1), word)

    return figure


HEATMAP = {"xlabel": "Keys", "ylabel": "Queries", "show": False}
DRAWINGS = {
    "heatmap": lambda w: show_heatmaps(
        WEIGHTS, w, w, [w], xticks=[w, "b"], yticks=["a", w], label=w, show=False
    ),
    "described": lambda w: show_heatmaps(WEIGHTS, alt=f"a {w}", row_titles=[w], **HEATMAP),
    "lines": lambda w: show_attention_lines(WEIGHTS, [w, "b"], ["a", w], query=0, show=False),
    "ledger": lambda w: AttentionTrace(
        [1, 0], KEYS, KEYS[:, :1], labels=[w, "b"], components=["y"]
    ).plot(show=False),
    "axes": on_axes,
    "diagram": on_a_sheet,
}


def test_every_character_leaves_the_gate_legal_and_visible():
    for character in EVERY:
        passed = legible(f"a{character}")[1:]
        assert passed and not ILLEGAL.search(passed)
        for each in passed:
            unseen = unicodedata.category(each) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
            assert not unseen or each == " ", hex(ord(character))
        assert legible(f"a{passed}") == f"a{passed}"


@pytest.mark.weekly
def test_what_passes_the_gate_can_be_parsed_whatever_it_is():
    for start in range(0, len(EVERY), 4096):
        ET.fromstring("<a>" + legible("".join(EVERY[start : start + 4096])).translate(
            {ord("<"): "&lt;", ord("&"): "&amp;"}) + "</a>")  # fmt: skip


NEEDY = [*map(chr, range(0x20)), *"\x7f\x85\xa0\xad\u034f\u061c\u1160\u200b\u200d\u202e\u2028"]
NEEDY += [*"\u2800\u3000\ufe00\ufeff\ufffe\uffff\ud83d\ue000\U000e0001<&>]\"'\u0301\u05d0\u732b"]
BATCHES = ["".join(NEEDY[i : i + 10]) for i in range(0, len(NEEDY), 10)]


@pytest.mark.parametrize("kind", DRAWINGS)
@pytest.mark.parametrize("word", BATCHES, ids=ascii)
def test_every_drawing_is_legal_whatever_is_in_it(kind, word):
    shown = DRAWINGS[kind](word)
    for theme in ("light", "dark"):
        root = ET.fromstring(shown.svg(theme))
        for text in root.itertext():
            assert not re.search("[\u00a0\u00ad\u200b-\u200f\u2028\u2029\ufeff]", text)
    assert not ILLEGAL.search(shown.html()) and not ILLEGAL.search(shown.alt)


@pytest.fixture(scope="module")
def classes():
    """Return the first and the last code point of each class that anything here tells apart."""
    ends = {}
    for one in EVERY:
        known = unicodedata.category(one), unicodedata.bidirectional(one)
        kind = *known, unicodedata.combining(one) > 0, bool(_UNSEEN.match(one))
        ends.setdefault(kind, [one, one])[1] = one
    return sorted({one for pair in ends.values() for one in pair})


@pytest.mark.parametrize("place", range(len(DRAWINGS)), ids=DRAWINGS)
def test_a_character_of_every_class_is_drawn_legally(place, classes):
    """Each in one kind of drawing: that all words pass the one gate is shown above."""
    assert len(classes) > 100
    draw = [*DRAWINGS.values()][place]
    for start in range(10 * place, len(classes), 10 * len(DRAWINGS)):
        shown = draw("".join(classes[start : start + 10]))
        for theme in ("light", "dark"):
            ET.fromstring(shown.svg(theme))
        assert not ILLEGAL.search(shown.html()) and not ILLEGAL.search(shown.alt)


@pytest.mark.weekly
def test_no_code_point_leaves_a_drawing_that_does_not_parse(monkeypatch):
    """Whatever matplotlib writes into the text of a drawing, escaped as it does."""
    for start in range(0, len(EVERY), 4096):
        text = escape("".join(EVERY[start : start + 4096]))

        def write(figure, buffer, text=text, **options):
            buffer.write(f'<?xml version="1.0"?><svg viewBox="0 0 9 9"><text>{text}</text></svg>')

        monkeypatch.setattr(Figure, "savefig", write)
        ET.fromstring(from_matplotlib(Figure()))


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        pytest.param("\x1b", r"\x1b", id="flamegraph-rs/flamegraph#166"),
        pytest.param("\x07", r"\x07", id="huggingface/tokenizers#203"),
        pytest.param("\u200b", r"\u200b", id="zero-width space"),
        pytest.param("\u00a0", r"\xa0", id="no-break space"),
        pytest.param("soft\u00ad", r"soft\xad", id="soft hyphen"),
        pytest.param("\ufffe", r"\ufffe", id="no character"),
        pytest.param("\u3164", r"\u3164", id="a letter that is blank"),
        pytest.param("\u0301", "◌\u0301", id="a mark on nothing"),
        pytest.param("❤\ufe0f", "❤\ufe0f", id="a picture keeps its form"),
        pytest.param(" the", "␣the", id="a space"),
        pytest.param("\r\n", "⏎", id="a line break"),
        pytest.param("\r", r"\x0d", id="half a line break"),
    ],
)
def test_a_token_is_shown_as_it_is_named(token, shown):
    figure = show_heatmaps(WEIGHTS, xticks=[token, "b"], **HEATMAP)
    root = ET.fromstring(figure.svg())
    assert shown in ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert f"“{shown}”" in figure.alt
    table = AttentionExplorer(WEIGHTS, [token, "b"])._repr_html_()
    assert f">{shown}</th>" in table and not ILLEGAL.search(table)


@pytest.mark.parametrize("word", ["שלום", "سلام", "٣", "a שלום"], ids=lambda w: "ud-annotatrix#70")
def test_a_word_from_right_to_left_does_not_turn_its_sentence(word):
    wrapped = f"“\u2068{word}\u2069”"
    assert isolated(word) == wrapped[1:-1] and isolated("cat") == "cat"
    heatmap = show_heatmaps(WEIGHTS, word, "Queries", xticks=[word, "b"], show=False)
    lines = show_attention_lines(WEIGHTS, [word, "b"], show=False)
    chosen = show_attention_lines(WEIGHTS, [word, "b"], query=0, show=False)
    trace = AttentionTrace([1, 0], KEYS, KEYS, labels=[word, "b"], name=word)
    explorer = AttentionExplorer([[4, 0], [0, 1]], [word, "b"])
    for said in (heatmap.alt, lines.alt, chosen.alt, trace.alt, explorer.remark):
        assert wrapped in said and word not in said.replace(f"\u2068{word}\u2069", "")
    data = unescape(re.search('data-explorer="([^"]*)"', explorer._repr_html_())[1])
    assert json.loads(data)["queries"][0] == isolated(word)
    again = show_heatmaps(WEIGHTS, alt=heatmap.alt, **HEATMAP)
    assert again.alt == heatmap.alt


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8", "cp437"])
@pytest.mark.parametrize("source", ["import-linter#309"])
def test_a_description_can_be_printed_in_any_encoding(source, encoding, monkeypatch):
    tokens = ["猫 ", "שלום"]
    things = [
        show_heatmaps(WEIGHTS, xticks=tokens, **HEATMAP),
        AttentionTrace([1, 0], KEYS, KEYS, labels=tokens, mask=[True, False]),
        AttentionExplorer(WEIGHTS, tokens, dimension=2),
        Step("α", "q·kᵢ", "(…, 2)"),
        smollm.Reading(tuple(tokens), WEIGHTS),
        minilm.LayerReading(tuple(tokens), WEIGHTS, KEYS, KEYS),
        StoredReading(tuple(tokens), WEIGHTS, (("猫", 0.5),)),
    ]
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    for thing in things:
        print(thing)
    printed = repr(things[0]), for_terminal("“a” → −1")
    stream.flush()
    text = stream.buffer.getvalue().decode(encoding)
    monkeypatch.undo()
    assert "Heatmap of 2" in text and "Attention of one query over 2 keys" in text
    if encoding == "ascii":
        assert printed[1] == '"a" -> -1' and r"\u732b_" in printed[0]
    if encoding == "utf-8":
        assert printed[0] == things[0].alt
