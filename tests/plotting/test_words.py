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
from d2lmini.plotting._legible import ILLEGAL, legible

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
        WEIGHTS, w, w, [w], xticks=[w, "b"], row_titles=[w], label=w, alt=f"a {w}", show=False
    ),
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


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_every_drawing_passes_its_words_through_the_gate(draw):
    shown = draw("\x1b\xa0\xad\u200b\u202e\u2028\ufffe\ud83d<&")
    said = "".join(ET.fromstring(shown.svg()).itertext())
    assert not re.search("[\u00a0\u00ad\u200b-\u200f\u2028\u2029\ufeff]", said)
    assert not ILLEGAL.search(shown.html() + shown.alt)


TOKENS = {
    "flamegraph-rs/flamegraph#166": ("\x1b", r"\x1b"),
    "half a surrogate pair": ("\ud83d", r"\ud83d"),
    "a letter that is blank": ("\u3164", r"\u3164"),
    "a mark on nothing": ("\u0301", "◌\u0301"),
    "a picture keeps its form": ("❤\ufe0f", "❤\ufe0f"),
    "a space": (" the", "␣the"),
}


@pytest.mark.parametrize(("token", "shown"), TOKENS.values(), ids=TOKENS)
def test_a_token_is_shown_as_it_is_named(token, shown):
    figure = show_heatmaps(WEIGHTS, xticks=[token, "b"], **HEATMAP)
    root = ET.fromstring(figure.svg())
    assert shown in ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert f"“{shown}”" in figure.alt
    table = AttentionExplorer(WEIGHTS, [token, "b"])._repr_html_()
    assert f">{shown}</th>" in table and not ILLEGAL.search(table)


@pytest.mark.parametrize("word", ["שלום", "٣"])
def test_a_word_from_right_to_left_does_not_turn_its_sentence(word):
    """ud-annotatrix#70."""
    wrapped = f"“\u2068{word}\u2069”"
    heatmap = show_heatmaps(WEIGHTS, word, "Queries", xticks=[word, "b"], show=False)
    lines = show_attention_lines(WEIGHTS, [word, "b"], query=0, show=False)
    trace = AttentionTrace([1, 0], KEYS, KEYS, labels=[word, "b"], name=word)
    explorer = AttentionExplorer([[4, 0], [0, 1]], [word, "b"])
    for said in (heatmap.alt, lines.alt, trace.alt, explorer.remark):
        assert wrapped in said and word not in said.replace(f"\u2068{word}\u2069", "")
    data = unescape(re.search('data-explorer="([^"]*)"', explorer._repr_html_())[1])
    assert json.loads(data)["queries"][0] == wrapped[1:-1]


def test_a_description_can_be_printed_in_any_encoding(monkeypatch):
    """import-linter#309."""
    tokens = ["猫 ", "שלום"]
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    print(show_heatmaps(WEIGHTS, xticks=tokens, **HEATMAP))
    print(AttentionTrace([1, 0], KEYS, KEYS, labels=tokens, mask=[True, False]))
    print(AttentionExplorer(WEIGHTS, tokens, dimension=2))
    print(smollm.Reading(tuple(tokens), WEIGHTS))
    print(minilm.LayerReading(tuple(tokens), WEIGHTS, KEYS, KEYS))
    print(StoredReading(tuple(tokens), WEIGHTS, (("猫", 0.5),)))
    printed = for_terminal("“a” → −1")
    stream.flush()
    monkeypatch.undo()
    assert printed == '"a" -> -1'
    assert rb"\u732b_" in stream.buffer.getvalue() and for_terminal("猫") == "猫"
