"""Pictures of what models return: records, tuples of layers, batches; and files for a paper."""

import functools
import io
import pickle
import re
import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager
from matplotlib.ft2font import FT2Font

from d2lmini import AttentionExplorer, AttentionTrace, show_attention_lines, show_figure
from d2lmini.plotting import COLORS, show_heatmaps
from d2lmini.plotting.theme import PALETTES
from tests.plotting.reading import drawn, random_weights, texts

TOKENS = ["the", "cat", "sat"]


def layers(count=2, batch=2, heads=4, n=3, m=3):
    return tuple(random_weights(batch, heads, n, m, spread=1 + i) for i in range(count))


def titles(shown):
    return [ax.get_title() for ax in shown.axes.flat]


def said(shown):
    return [text for text, _, _ in texts(shown)]


# ------------------------------------------------------------------------------------ what comes


@pytest.mark.parametrize("kind", ["tuple", "stack", "record"])
def test_all_layers_and_heads_of_a_model_in_one_call(kind):
    given = layers()
    if kind == "record":
        torch = pytest.importorskip("torch")
        from d2lmini import AttentionRecord, RecordedAttention

        calls = [RecordedAttention(f"l.{i}", torch.tensor(w)) for i, w in enumerate(given)]
        shown = show_heatmaps(AttentionRecord(calls, []), TOKENS, item=1)
    else:
        shown = show_heatmaps(given if kind == "tuple" else np.stack(given), TOKENS, item=1)
    assert shown.axes.shape == (2, 4)
    for (layer, head), ax in np.ndenumerate(shown.axes):
        np.testing.assert_array_equal(drawn(ax), given[layer][1, head])
    assert titles(shown)[:4] == [f"head {i}" for i in range(4)]
    words = said(shown)
    assert {"layer 0", "layer 1", "Queries", "Keys"} <= set(words)
    assert words.count("cat") == 2 + 4, "the tokens stand at each row and below each column"


def test_one_layer_of_a_batch_and_of_no_batch():
    given = layers()[0]
    shown = show_heatmaps(given, item=1)
    assert titles(shown) == [f"head {i}" for i in range(4)]
    np.testing.assert_array_equal(drawn(shown.axes[0, 2]), given[1, 2])
    assert titles(show_heatmaps(given[1])) == [""] * 4, "an array says nothing of its axes"


@pytest.mark.parametrize(
    "mean, shape, axes", [("heads", (1, 2), 1), ("layers", (1, 4), 0), ("both", (1, 1), (0, 1))]
)
def test_means(mean, shape, axes):
    weights = np.stack(layers(batch=1))[:, 0]
    weights[0, 0, 1, 2] = np.nan  # what one head masks does not count
    shown = show_heatmaps(weights, TOKENS, mean=mean)
    assert shown.axes.shape == shape
    expected = np.nanmean(weights, axis=axes).reshape(-1, 3, 3)
    for ax, panel in zip(shown.axes.flat, expected, strict=True):
        np.testing.assert_allclose(drawn(ax), panel)
    first = {"heads": "layer 0", "layers": "head 0", "both": ""}[mean]
    assert titles(shown)[0] == first


def test_the_old_names_and_the_new_draw_the_same():
    weights, keys = random_weights(2, 3), list("abc")
    old = show_heatmaps(weights, "Keys", "Queries", xticks=keys, yticks=["x", "y"])
    new = show_heatmaps(weights, ["x", "y"], keys)
    named = show_heatmaps(weights, xlabel="Keys", ylabel="Queries", keys=keys, queries=["x", "y"])
    assert old.html() == new.html() == named.html()
    trace = [[1, 0], [[1, 0], [0, 1]], [[1], [2]]]
    assert repr(AttentionTrace(*trace, keys=["a", "b"])) == repr(
        AttentionTrace(*trace, labels=["a", "b"])
    )


def test_a_long_map_is_not_white():
    """One weight near 1 per row, thinner than a pixel: it keeps its colour, or a log scale does."""
    weights = np.full((1500, 1500), 0.1 / 1500)
    weights[np.arange(1500), np.maximum(np.arange(1500) - 1, 0)] += 0.9
    for options in ({}, {"norm": "log"}):
        ax = show_heatmaps(weights, **options).axes[0, 0]
        (image,) = ax.images
        top = image.get_array().max()
        assert top == weights.max()
        assert image.norm(top) > 0.89 and image.get_array().shape[0] < 1500
    flat = show_heatmaps(weights, reduce="mean").axes[0, 0].images[0]
    assert flat.get_interpolation() == "antialiased" and flat.get_array().shape == (1500, 1500)
    signed = np.zeros((1500, 1500))
    signed[700, 300], signed[701, 300] = -2.0, 1.0
    assert show_heatmaps(signed).axes[0, 0].images[0].get_array().min() == -2.0


def test_a_log_scale_is_said_by_its_bar():
    shown = show_heatmaps([[0.9, 0.1], [0.999, 0.001]], norm="log")
    norm = shown.axes[0, 0].images[0].norm
    assert [round(float(norm(x)), 4) for x in (0.0, 0.001, 10**-1.5, 1.0)] == [0, 0, 0.5, 1]
    assert {"0.001", "0.0316", "1"} <= set(said(shown))


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
    with pytest.raises(
        ValueError, match=r"ax takes one panel, and there are 4; give one, such as x"
    ):
        show_heatmaps(random_weights(4, 3, 3), ax=left)


# ------------------------------------------------------------------------------------- bad input


def advised():
    """Return calls that are refused, the words, and what the words advise."""
    weights = layers()
    one = random_weights(3, 3)
    six = one[None, None, None, None]
    wide = random_weights(2, 3)
    return {
        "6-D": (lambda: show_heatmaps(six), r"a part, such as matrices\[0\]",
                lambda: show_heatmaps(six[0])),
        "1-D": (lambda: show_heatmaps(one[0]), r"x.reshape\(1, 1, queries, keys\)",
                lambda: show_heatmaps(one[:1].reshape(1, 1, 1, 3))),
        "a batch": (lambda: show_heatmaps(weights), r"has a batch of 2: give item=0",
                    lambda: show_heatmaps(weights, item=0)),
        "no such item": (lambda: show_heatmaps(weights, item=2), "= 2: there are 2, from 0 to 1",
                         lambda: show_heatmaps(weights, item=1)),
        "no batch": (lambda: show_heatmaps(one, item=0), "has no batch: leave it out",
                     lambda: show_heatmaps(one)),
        "no layers": (lambda: show_heatmaps(weights[0][0], mean="layers"), "give mean='heads'",
                      lambda: show_heatmaps(weights[0][0], mean="heads")),
        "unequal shapes": (lambda: show_heatmaps((weights[0], weights[0][..., :2])), "one by one",
                           lambda: show_heatmaps(weights[0][..., :2] * 0, item=0)),
        "exchanged": (lambda: show_heatmaps(wide, list("abc"), list("xy")),
                      r"queries and keys are exchanged: there are 2 queries \(rows\) and 3 keys",
                      lambda: show_heatmaps(wide, list("xy"), list("abc"))),
        "exchanged lines": (lambda: show_attention_lines(wide, list("abc"), list("xy")),
                            "queries and keys are exchanged",
                            lambda: show_attention_lines(wide, list("xy"), list("abc"))),
        "exchanged sliders": (lambda: AttentionExplorer(wide, list("abc"), list("xy")),
                              "queries and keys are exchanged",
                              lambda: AttentionExplorer(wide, list("xy"), list("abc"))),
        "heads as lines": (lambda: show_attention_lines(weights[0][0], TOKENS), r"weights\[0\]",
                           lambda: show_attention_lines(weights[0][0][0], TOKENS)),
        "layers as lines": (lambda: show_attention_lines(weights[0], TOKENS), r"weights\[0\]\[0\]",
                            lambda: show_attention_lines(weights[0][0][0], TOKENS)),
        "an item as lines": (lambda: show_attention_lines(weights, TOKENS, item=1),
                             r"weights\[0\]\[1\]\[0\], and no item",
                             lambda: show_attention_lines(weights[0][1][0], TOKENS)),
        "a part and an item": (lambda: show_heatmaps(six, item=0), r"a part, such as matrices\[0\]",
                               lambda: show_heatmaps(six[0], item=0)),
        "negative logs": (lambda: show_heatmaps(-one, norm="log"), "numbers of at least 0",
                          lambda: show_heatmaps(one, norm="log")),
    }  # fmt: skip


@pytest.mark.parametrize("case", advised())
def test_what_is_refused_says_what_to_do_and_that_works(case):
    refused, words, advice = advised()[case]
    with pytest.raises(ValueError, match=words):
        refused()
    advice()


@pytest.mark.parametrize("nothing", [(), [], (None, None)])
def test_no_weights_at_all_name_the_usual_cause_and_the_way_out(nothing):
    with pytest.raises(ValueError, match=r"a fused kernel returned no weights.*record_attention"):
        show_heatmaps(nothing)
    torch = pytest.importorskip("torch")
    from d2lmini import record_attention

    model, x = torch.nn.MultiheadAttention(8, 2), torch.zeros(3, 1, 8)
    with record_attention(model) as record:
        assert model(x, x, x, need_weights=False)[1] is None
    assert show_heatmaps(record, TOKENS).axes.shape == (1, 2)


def test_two_names_for_one_thing_are_refused():
    for options in ({"keys": TOKENS, "xticks": TOKENS}, {"queries": "Keys", "xlabel": "Keys"}):
        with pytest.raises(TypeError, match=r"two names for the same labels|given twice"):
            show_heatmaps(np.eye(3), **options)
    for name, value in {"mean": "all", "reduce": "min", "norm": "sqrt"}.items():
        with pytest.raises(ValueError, match=f"{name} must be"):
            show_heatmaps(np.eye(3), **{name: value})


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


@pytest.mark.parametrize("shape, size", [((1, 1, 8, 8), (2, 2)), ((1, 4, 6, 6), (3.25, 2))])
def test_a_size_in_inches_is_kept_to(shape, size):
    shown = show_heatmaps(
        random_weights(*shape), [f"token{i}" for i in range(shape[-1])], figsize=size
    )
    assert tuple(shown.figure.get_size_inches()) == size
    (box,) = re.findall(rb"/MediaBox \[([^]]*)\]", saved(shown, format="pdf"))
    np.testing.assert_allclose(np.array(box.split(), float)[2:], np.array(size) * 72, atol=0.01)


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
    assert {"cat", "Keys", "title"} <= set(said(large)) and {"cat", "keys"} <= set(said(lines))
    assert "DejaVu Serif" in large.svg("dark"), "also when it is asked for later"
    lines = show_attention_lines(weights, TOKENS, font=["DejaVu Serif"])
    assert "DejaVu Serif" in lines.svg("dark")
    with pytest.raises(TypeError, match="font must be the name of a face, or rcParams; got int"):
        show_heatmaps(weights, font=8)
    with pytest.raises(ValueError, match="no face 'DejaVu Serf'; did you mean 'DejaVu Serif'"):
        show_heatmaps(weights, font="DejaVu Serf")


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
    (box,) = re.findall(rb"/MediaBox \[([^]]*)\]", saved(shown, format="pdf"))
    np.testing.assert_allclose(np.array(box.split(), float)[2:], np.array(size) * 72, atol=0.01)
    found = texts(shown)
    width, height = shown.figure.canvas.get_width_height()
    for i, (word, box, _) in enumerate(found):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, word
        for other, near, _ in found[:i]:
            apart = min(box.x1, near.x1) - max(box.x0, near.x0) < 0 or (
                min(box.y1, near.y1) - max(box.y0, near.y0) < 1
            )
            assert apart, f"{word} and {other} meet"
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


def test_only_what_is_asked_for_is_drawn():
    drawn_for = []

    from d2lmini.plotting import shown as module

    real = module.from_matplotlib
    module.from_matplotlib = lambda figure: drawn_for.append(figure) or real(figure)
    try:
        shown = show_heatmaps(random_weights(4, 4, 3, 3))
        saved(shown, format="pdf")
        assert drawn_for == []
        shown.svg("dark")
        assert len(drawn_for) == 1
        shown.html()
        assert len(drawn_for) == 4
    finally:
        module.from_matplotlib = real


def test_a_function_draws_when_it_is_given_and_not_later():
    color = "value"

    @show_figure(alt="A line.")
    def line(ax):
        ax.plot([0, 1], color=COLORS[color])

    color = "key"
    assert PALETTES["dark"]["value"] in line.svg("dark")
    assert PALETTES["dark"]["key"] not in line.svg("dark")


def test_a_window_opens_at_a_plain_prompt_only(monkeypatch):
    import sys

    from matplotlib import pyplot

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
