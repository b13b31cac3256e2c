"""Pictures of what models return: records, tuples of layers, batches; and files for a paper."""

import functools
import io
import pickle
import re
import sys
import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager
from matplotlib.ft2font import FT2Font

from d2lmini import (
    AttentionRecord,
    AttentionTrace,
    RecordedAttention,
    record_attention,
    show_attention_lines,
    show_figure,
)
from d2lmini.plotting import COLORS, show_heatmaps
from d2lmini.plotting import shown as module
from d2lmini.plotting.theme import PALETTES
from tests.plotting.reading import apart, drawn, equal, random_weights, texts, titles, words

TOKENS = ["the", "cat", "sat"]
NAMES = [f"head {i}" for i in range(4)]


def layers(count=2, batch=2, heads=4, n=3, m=3):
    return tuple(random_weights(batch, heads, n, m, spread=1 + i) for i in range(count))


# ------------------------------------------------------------------------------------ what comes


def test_all_layers_and_heads_of_a_model_in_one_call(torch):
    given = layers()
    calls = [RecordedAttention(f"l.{i}", torch.tensor(w)) for i, w in enumerate(given)]
    for model_output in given, np.stack(given), AttentionRecord(calls, []):
        shown = show_heatmaps(model_output, TOKENS, item=1)
        assert shown.axes.shape == (2, 4)
        equal(shown, np.stack(given)[:, 1])
        assert titles(shown)[0] == NAMES
        said = words(shown)
        assert {"layer 0", "layer 1", "Queries", "Keys"} <= set(said)
        assert said.count("cat") == 2 + 4, "the tokens stand at each row and below each column"
    one = show_heatmaps(given[0], item=1)
    equal(one, given[0][1])
    assert titles(one) == [NAMES]
    assert titles(show_heatmaps(given[0][1])) == [[""] * 4], "an array says nothing of its axes"
    many = titles(show_heatmaps(random_weights(1, 7, 2, 2), item=0))
    assert many == [["head 0", *"123456"]], "the first says of what the others are the numbers"


@pytest.mark.parametrize(
    "mean, shape, axes, first",
    [
        ("heads", (1, 2), 1, "layer 0"),
        ("layers", (1, 4), 0, "head 0"),
        ("both", (1, 1), (0, 1), ""),
    ],
)
def test_means(mean, shape, axes, first):
    weights = np.stack(layers(batch=1))[:, 0]
    weights[0, 0, 1, 2] = np.nan  # what one head masks does not count
    shown = show_heatmaps(weights, TOKENS, mean=mean)
    assert shown.axes.shape == shape and titles(shown)[0][0] == first
    expected = np.nanmean(weights, axis=axes).reshape(-1, 3, 3)
    for ax, panel in zip(shown.axes.flat, expected, strict=True):
        np.testing.assert_allclose(drawn(ax), panel)


def test_the_old_names_and_the_new_draw_the_same():
    weights, keys = random_weights(2, 3), list("abc")
    old = show_heatmaps(weights, "Keys", "Queries", xticks=keys, yticks=["x", "y"])
    new = show_heatmaps(weights, ["x", "y"], keys)
    named = show_heatmaps(weights, xlabel="Keys", ylabel="Queries", keys=keys, queries=["x", "y"])
    assert old.html() == new.html() == named.html()
    trace = functools.partial(AttentionTrace, [1, 0], [[1, 0], [0, 1]], [[1], [2]])
    assert repr(trace(keys=["a", "b"])) == repr(trace(labels=["a", "b"]))


def test_a_long_map_is_not_white():
    """One weight near 1 per row, thinner than a pixel: it keeps its colour, or a log scale does."""
    weights = np.full((1500, 1500), 0.1 / 1500)
    weights[np.arange(1500), np.maximum(np.arange(1500) - 1, 0)] += 0.9
    for options in ({}, {"norm": "log"}):
        (image,) = show_heatmaps(weights, **options).axes[0, 0].images
        top = image.get_array().max()
        assert top == weights.max()
        assert image.norm(top) > 0.89 and image.get_array().shape[0] < 1500
    flat = show_heatmaps(weights, reduce="mean").axes[0, 0].images[0]
    assert flat.get_interpolation() == "antialiased" and flat.get_array().shape == (1500, 1500)
    signed = np.zeros((1500, 1500))
    signed[700, 300], signed[701, 300] = -2.0, 1.0
    assert show_heatmaps(signed).axes[0, 0].images[0].get_array().min() == -2.0


def test_a_panel_in_a_figure_of_your_own():
    figure = Figure(figsize=(6, 3))
    left, right = figure.subplots(1, 2)
    weights = random_weights(3, 3)
    shown = show_heatmaps(weights, TOKENS, ax=right)
    np.testing.assert_array_equal(drawn(right), weights)
    assert right.get_xlabel() == "Keys" and right.get_ylabel() == "Queries"
    assert shown.figure is figure and len(figure.axes) == 2
    left.set_title("mine")
    assert "mine" in shown.svg() and "strongest key per query" in shown.alt.lower()
    with pytest.raises(ValueError, match="the figure was changed"):
        shown.svg("dark")
    with pytest.raises(ValueError, match="ax takes one panel, and there are 4; give one, such as"):
        show_heatmaps(random_weights(4, 3, 3), ax=left)


def test_no_weights_at_all_name_the_usual_cause_and_the_way_out(torch):
    for nothing in (), [], (None, None):
        with pytest.raises(ValueError, match=r"a fused kernel returned no weights.*record_attent"):
            show_heatmaps(nothing)
    model, x = torch.nn.MultiheadAttention(8, 2), torch.zeros(3, 1, 8)
    with record_attention(model) as record:
        assert model(x, x, x, need_weights=False)[1] is None
    assert show_heatmaps(record, TOKENS).axes.shape == (1, 2)


# ----------------------------------------------------------------------------------------- files


def saved(shown, **options):
    buffer = io.BytesIO()
    shown.savefig(buffer, **options)
    return buffer.getvalue()


def test_a_pdf_has_the_fonts_that_conferences_ask_for():
    shown = show_heatmaps(random_weights(3, 3), TOKENS)
    pdf = saved(shown, format="pdf")
    assert b"/Type3" not in pdf and b"/CIDFontType2" in pdf
    assert pdf == saved(shown, format="pdf")
    assert b"/Type3" in saved(shown, format="pdf", fonttype=3)
    eps = saved(shown, format="eps")
    assert b"/FontType 42" in eps and b"/FontType 3" not in eps
    assert b">cat</text>" in saved(shown, format="svg", fonttype="none")
    assert b">cat</text>" not in saved(shown, format="svg")
    for wrong in ({"format": "pdf", "fonttype": "none"}, {"fonttype": 1}):
        with pytest.raises(ValueError, match="fonttype must be 42 or 3, or 'none' for SVG"):
            saved(shown, **wrong)


def test_a_dark_file_has_the_dark_colours():
    shown = show_attention_lines(random_weights(3, 3), TOKENS)
    light, dark = (
        matplotlib.image.imread(io.BytesIO(saved(shown, format="png", theme=theme)))
        for theme in PALETTES
    )
    assert light[0, 0, :3].min() > 0.99 and dark[0, 0, :3].max() < 0.1
    assert light.shape == dark.shape


def has_size(shown, size):
    """Whether it has this size, in inches, also as a PDF."""
    assert tuple(shown.figure.get_size_inches()) == size
    (box,) = re.findall(rb"/MediaBox \[([^]]*)\]", saved(shown, format="pdf"))
    np.testing.assert_allclose(np.array(box.split(), float)[2:], np.array(size) * 72, atol=0.01)


@pytest.mark.parametrize("shape, size", [((1, 1, 8, 8), (2, 2)), ((1, 4, 6, 6), (3.25, 2))])
def test_a_size_in_inches_is_kept_to(shape, size):
    tokens = [f"token{i}" for i in range(shape[-1])]
    has_size(show_heatmaps(random_weights(*shape), tokens, figsize=size), size)


def test_words_have_the_face_and_the_size_that_are_asked_for():
    weights = random_weights(3, 3)
    serif = show_heatmaps(weights, TOKENS, font="DejaVu Serif")
    assert "DejaVu Serif" in serif.svg() and "DejaVu Serif" in serif.svg("dark")
    names = re.findall(rb"/BaseFont /([\w+-]+)", saved(serif, format="pdf"))
    assert any(b"DejaVuSerif" in name for name in names)
    settings = {"font.family": "serif", "font.size": 9, "xtick.labelsize": "small"}
    settings |= {"axes.labelsize": 7, "axes.titlesize": "x-large"}
    with matplotlib.rc_context(settings):
        before = dict(matplotlib.rcParams)
        large = show_heatmaps(weights, TOKENS, titles=["title"], font=matplotlib.rcParams)
        lines = show_attention_lines(weights, TOKENS, query=0, font=matplotlib.rcParams)
        assert large.png() and saved(lines, format="svg")
        assert dict(matplotlib.rcParams) == before
        ax = Figure().subplots()
        ax.set(title="title", xlabel="Keys")
        by_matplotlib = {
            "cat": ax.get_xticklabels()[0], "Keys": ax.xaxis.label, "title": ax.title,
            "0.00": ax.text(0, 0, "0.00"),
        }  # fmt: skip
        asked = {word: text.get_fontsize() for word, text in by_matplotlib.items()}
    asked["keys"] = asked["Keys"]
    assert len(set(asked.values())) == 4
    for shown in (large, lines):
        for word, _, text in texts(shown):
            kind = re.sub(r"\d", "0", word)
            if kind in asked:
                assert text.get_fontsize() == pytest.approx(asked[kind]), word
    assert {"cat", "Keys", "title"} <= {*words(large)} and {"cat", "keys"} <= {*words(lines)}
    assert "DejaVu Serif" in large.svg("dark"), "also when it is asked for later"
    lines = show_attention_lines(weights, TOKENS, font=["DejaVu Serif"])
    assert "DejaVu Serif" in lines.svg("dark")


def test_faces_that_are_not_installed_are_said_once_and_not_a_thousand_times(caplog):
    weights = random_weights(3, 3)
    with matplotlib.rc_context(
        {"font.family": "serif", "font.serif": ["No Times", "dejavu serif"]}
    ):
        shown = show_heatmaps(weights, TOKENS, font=matplotlib.rcParams)  # the second is there
        assert "dejavu serif" in shown.svg() and saved(shown, format="pdf")
    with pytest.warns(UserWarning, match="none of the faces in your settings, No Times;") as told:
        shown = show_heatmaps(weights, TOKENS, font={"font.family": "No Times"})
        assert saved(shown, format="pdf") and shown.html()
    assert len(told) == 1 and told[0].filename == __file__
    assert "findfont" not in caplog.text


def test_characters_that_no_face_has_are_named_with_a_face_that_has_them(monkeypatch):
    """The advice is followed: then there is no box, and no warning."""
    stix, usual = (FT2Font(findfont(face)).get_charmap() for face in ("STIXGeneral", "DejaVu Sans"))
    character = chr(max(stix.keys() - usual.keys()))
    tokens = ["a", "b", character]
    for show in (show_heatmaps, show_attention_lines):
        shown = show(random_weights(3, 3), tokens)
        with pytest.warns(UserWarning, match=f"DejaVu Sans has no {character}, drawn") as told:
            pdf = saved(shown, format="pdf")
        assert len(told) == 1
        (face,) = re.findall(r"draw with font='(.*)'", str(told[0].message))
        assert ord(character) in FT2Font(findfont(face)).get_charmap()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            saved(shown, format="svg", fonttype="none")  # there the reader's faces count
            followed = saved(show(random_weights(3, 3), tokens, font=face), format="pdf")
        assert followed != pdf

    @show_figure(alt="A word.")
    def word(ax):
        ax.set_title(character, font=face)  # a text of one's own is asked for its own face

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved(word)
    usual = [face for face in fontManager.ttflist if face.name == "DejaVu Sans"]
    monkeypatch.setattr(fontManager, "ttflist", usual)
    with pytest.warns(UserWarning, match="has no 猫, drawn as boxes; install a face that has them"):
        saved(show_heatmaps(random_weights(3, 3), ["a", "b", "猫"]))


@pytest.mark.parametrize("query", [None, 1])
@pytest.mark.parametrize("size", [(3.25, 2.0), (2.4, 1.6), (7, 5)])
def test_lines_have_the_size_that_is_asked_for_and_no_words_that_meet(size, query):
    weights, tokens = random_weights(3, 7), ["the", "cats", "sat"]
    shown = show_attention_lines(weights, tokens, list("abcdefg"), query=query, figsize=size)
    has_size(shown, size)
    apart(shown, 0.5)
    for line in shown.axes[0, 0].lines:
        assert 0 < line.get_xdata()[0] < line.get_xdata()[-1] < size[0]


def test_lines_that_do_not_fit_say_what_would_and_that_does():
    draw = functools.partial(show_attention_lines, random_weights(3, 3), ["the", "cats", "sat"])
    with pytest.raises(ValueError, match="too small for 3 tokens; give at least") as refused:
        draw(figsize=(1, 0.5))
    size = tuple(map(float, re.findall(r"least \((.*), (.*)\)", str(refused.value))[0]))
    assert tuple(draw(figsize=size).figure.get_size_inches()) == size
    with matplotlib.rc_context({"font.size": 5}):
        draw(figsize=(size[0], size[1] * 0.6), font=matplotlib.rcParams)


def test_what_is_changed_in_a_figure_is_in_every_form_or_refused():
    shown = show_heatmaps(random_weights(2, 4, 3, 3))
    shown.savefig(io.BytesIO())
    shown.figure.savefig(io.BytesIO(), format="svg")  # to look at it is no change
    untouched = shown.html()
    assert "--phone-dark" in untouched and shown.svg("dark") != shown.svg("light")
    shown.axes[0, 0].text(0, 0, "changed")
    assert "changed" in shown.svg() and b"changed" in saved(shown, format="svg", fonttype="none")
    assert shown.html() != untouched and "--phone" not in shown.html()
    for refused in (lambda: shown.svg("dark"), lambda: saved(shown, theme="dark")):
        with pytest.raises(ValueError, match=r"changed after it was drawn.*@show_figure"):
            refused()
    assert "changed" in pickle.loads(pickle.dumps(shown)).svg()


def test_only_what_is_asked_for_is_drawn(monkeypatch):
    made, real = [], module.from_matplotlib
    monkeypatch.setattr(module, "from_matplotlib", lambda figure: made.append(1) or real(figure))
    shown = show_heatmaps(random_weights(4, 4, 3, 3))
    saved(shown, format="pdf")
    assert len(made) == 0
    shown.svg("dark")
    assert len(made) == 1
    shown.html()
    assert len(made) == 4


def test_a_function_draws_when_it_is_given_and_not_later():
    color = "value"

    @show_figure(alt="A line.")
    def line(ax):
        ax.plot([0, 1], color=COLORS[color])

    color = "key"
    assert PALETTES["dark"]["value"] in line.svg("dark")
    assert PALETTES["dark"]["key"] not in line.svg("dark")


def test_a_window_opens_at_a_plain_prompt_only(monkeypatch):
    opened = []
    monkeypatch.delattr(sys, "ps1", raising=False)  # which a shell of IPython leaves behind
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "qtagg")
    monkeypatch.setattr(pyplot, "show", lambda block: opened.append(pyplot.get_fignums()))
    shown = show_heatmaps(np.eye(3))
    assert opened == []
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    shown.show()
    assert len(opened) == 1
    pyplot.close("all")
