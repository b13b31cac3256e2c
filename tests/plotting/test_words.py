"""The gate for words from outside: legal, visible, in their own direction, in every figure."""

import io
import itertools
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
from tests.plotting.reading import words

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
    unseen = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
    for start in range(0, len(EVERY), 4096):
        some = [one for one in EVERY[start : start + 4096] if one != "z"]
        passed = legible("z".join(["", *some]))  # each on a letter, which no escape has
        parts = passed.split("z")[1:]
        assert len(parts) == len(some) and all(parts)
        assert not {unicodedata.category(each) for each in {*passed} - {" "}} & unseen
        assert legible(passed) == passed and not ILLEGAL.search(passed)
        ET.fromstring(f"<a>{escape(passed)}</a>")


NEEDY = [*map(chr, range(0x20)), *"\x7f\x85\xa0\xad\u034f\u061c\u1160\u200b\u200d\u202e\u2028"]
NEEDY += [*"\u2800\u3000\ufe00\ufeff\ufffe\uffff\ud83d\ue000\U000e0001<&>]\"'\u0301\u05d0\u732b"]
BATCHES = ["".join(NEEDY[i : i + 10]) for i in range(0, len(NEEDY), 10)]


@pytest.mark.parametrize("kind", DRAWINGS)
def test_every_drawing_is_legal_whatever_is_in_it(kind):
    for word in BATCHES:
        shown = DRAWINGS[kind](word)
        for theme in ("light", "dark"):
            for text in ET.fromstring(shown.svg(theme)).itertext():
                assert not re.search("[\u00a0\u00ad\u200b-\u200f\u2028\u2029\ufeff]", text)
        assert not ILLEGAL.search(shown.html()) and not ILLEGAL.search(shown.alt)


def test_a_character_of_every_class_is_drawn_legally():
    """The first and the last code point of each class that anything here tells apart.

    Each in one kind of drawing: that all words pass the one gate is shown above.
    """
    ends = {}
    for one in EVERY:
        known = unicodedata.category(one), unicodedata.bidirectional(one)
        kind = *known, unicodedata.combining(one) > 0, bool(_UNSEEN.match(one))
        ends.setdefault(kind, [one, one])[1] = one
    classes = sorted({one for pair in ends.values() for one in pair})
    assert len(classes) > 100
    starts = range(0, len(classes), 10)
    for start, draw in zip(starts, itertools.cycle(DRAWINGS.values()), strict=False):
        shown = draw("".join(classes[start : start + 10]))
        ET.fromstring(shown.svg())
        assert not ILLEGAL.search(shown.alt + shown._more)


@pytest.mark.weekly
def test_no_code_point_leaves_a_drawing_that_does_not_parse(monkeypatch):
    """Whatever matplotlib writes into the text of a drawing, escaped as it does."""
    for start in range(0, len(EVERY), 4096):
        text = escape("".join(EVERY[start : start + 4096]))

        def write(figure, buffer, text=text, **options):
            buffer.write(f'<?xml version="1.0"?><svg viewBox="0 0 9 9"><text>{text}</text></svg>')

        monkeypatch.setattr(Figure, "savefig", write)
        ET.fromstring(from_matplotlib(Figure()))


TOKENS = {
    "flamegraph-rs/flamegraph#166": ("\x1b", r"\x1b"),
    "huggingface/tokenizers#203": ("\x07", r"\x07"),
    "zero-width space": ("\u200b", r"\u200b"),
    "no-break space": ("\u00a0", r"\xa0"),
    "soft hyphen": ("soft\u00ad", r"soft\xad"),
    "no character": ("\ufffe", r"\ufffe"),
    "a letter that is blank": ("\u3164", r"\u3164"),
    "a mark on nothing": ("\u0301", "◌\u0301"),
    "a picture keeps its form": ("❤\ufe0f", "❤\ufe0f"),
    "a space": (" the", "␣the"),
    "a line break": ("\r\n", "⏎"),
    "half a line break": ("\r", r"\x0d"),
}


@pytest.mark.parametrize(("token", "shown"), TOKENS.values(), ids=TOKENS)
def test_a_token_is_shown_as_it_is_named(token, shown):
    figure = show_heatmaps(WEIGHTS, xticks=[token, "b"], **HEATMAP)
    root = ET.fromstring(figure.svg())
    assert shown in ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert f"“{shown}”" in figure.alt
    table = AttentionExplorer(WEIGHTS, [token, "b"])._repr_html_()
    assert f">{shown}</th>" in table and not ILLEGAL.search(table)


@pytest.mark.parametrize("word", ["שלום", "سلام", "٣", "a שלום"])
def test_a_word_from_right_to_left_does_not_turn_its_sentence(word):
    """ud-annotatrix#70."""
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
def test_a_description_can_be_printed_in_any_encoding(encoding, monkeypatch):
    """import-linter#309."""
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


def test_half_a_surrogate_pair_is_written_out():
    half = "\ud83d"
    named = {"titles": [half], "row_titles": [half], "label": half, "alt": half}
    shown = show_heatmaps(np.eye(2), xticks=[half, "b"], **named)
    assert words(shown).count(r"\ud83d") == 4
    explorer = AttentionExplorer(np.eye(2), [half, "b"])
    lines = show_attention_lines([[0.9, 0.1], [0.4, 0.6]], [half, "b"])
    trace = AttentionTrace([1.0], [[1.0]], [1.0], labels=[half], name=half)
    for html in (shown.html(), explorer._repr_html_(), lines.html(), trace._repr_html_()):
        assert r"\ud83d" in html and html.encode()
