"""Pictures of what models return: records, tuples of layers, batches; and files for a paper."""

import functools
import io
import pickle
import re
import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont
from matplotlib.ft2font import FT2Font

from d2lmini import AttentionRecord, RecordedAttention, show_attention_lines
from d2lmini.plotting import show_heatmaps
from d2lmini.plotting.theme import PALETTES
from tests.plotting.reading import apart, drawn, equal, random_weights, texts, titles, words

TOKENS = ["the", "cat", "sat"]
NAMES = [f"head {i}" for i in range(4)]


def layers(count=2, batch=2, heads=4, n=3, m=3):
    return tuple(random_weights(batch, heads, n, m, spread=1 + i) for i in range(count))


def test_all_layers_and_heads_of_a_model_in_one_call(torch):
    given = layers()
    calls = [RecordedAttention(f"l.{i}", torch.tensor(w)) for i, w in enumerate(given)]
    for model_output in given, np.stack(given), AttentionRecord(calls, []):
        shown = show_heatmaps(model_output, TOKENS, item=1)
        assert shown.axes.shape == (2, 4)
        equal(shown, np.stack(given)[:, 1])
        assert titles(shown)[0] == NAMES
        assert {"layer 0", "layer 1", "Queries", "Keys"} <= {*words(shown)}
        assert words(shown).count("cat") == 2 + 4, "the tokens stand at both sides"
    assert titles(show_heatmaps(np.tile(given[0], (1, 2, 1, 1)), item=0))[0][:2] == ["head 0", "1"]
    assert titles(show_heatmaps(given[0][1])) == [[""] * 4], "an array says nothing of its axes"


@pytest.mark.parametrize("mean, axes, first", [("heads", 1, "layer 0"), ("both", (0, 1), "")])
def test_means(mean, axes, first):
    weights = np.stack(layers(batch=1))[:, 0]
    weights[0, 0, 1, 2] = np.nan  # what one head masks does not count
    shown = show_heatmaps(weights, TOKENS, mean=mean)
    assert titles(shown)[0][0] == first and len(shown.axes) == 1
    equal(shown, np.nanmean(weights, axis=axes))


def test_a_panel_in_a_figure_of_your_own():
    left, right = Figure(figsize=(6, 3)).subplots(1, 2)
    weights = random_weights(3, 3)
    shown = show_heatmaps(weights, TOKENS, ax=right)
    np.testing.assert_array_equal(drawn(right), weights)
    assert right.get_xlabel() == "Keys" and right.get_ylabel() == "Queries"
    left.set_title("mine")
    assert "mine" in shown.svg() and "strongest key per query" in shown.alt.lower()
    with pytest.raises(ValueError, match="the figure was changed"):
        shown.svg("dark")
    with pytest.raises(ValueError, match="ax takes one panel, and there are 4; give one, such as"):
        show_heatmaps(random_weights(4, 3, 3), ax=left)


def saved(shown, **options):
    buffer = io.BytesIO()
    shown.savefig(buffer, **options)
    return buffer.getvalue()


def test_a_file_has_the_fonts_that_conferences_ask_for_and_the_colours_of_its_theme():
    shown = show_heatmaps(random_weights(3, 3), TOKENS)
    pdf = saved(shown, format="pdf")
    assert b"/Type3" not in pdf and b"/CIDFontType2" in pdf
    assert b"/Type3" in saved(shown, format="pdf", fonttype=3)
    eps = saved(shown, format="eps")
    assert b"/FontType 42" in eps and b"/FontType 3" not in eps
    assert b">cat</text>" in saved(shown, format="svg", fonttype="none")
    assert b">cat</text>" not in saved(shown, format="svg")
    for wrong in ({"format": "pdf", "fonttype": "none"}, {"fonttype": 1}):
        with pytest.raises(ValueError, match="fonttype must be 42 or 3, or 'none' for SVG"):
            saved(shown, **wrong)
    picture = matplotlib.image.imread(io.BytesIO(saved(shown, format="png", theme="dark")))
    np.testing.assert_allclose(picture[0, 0, :3], to_rgb(PALETTES["dark"]["page"]), atol=0.01)


def test_a_size_in_inches_is_kept_to():
    tokens, weights = [f"token{i}" for i in range(8)], random_weights(8, 8)
    small = functools.partial(show_attention_lines, weights, tokens)
    with pytest.raises(ValueError, match="too small for 8 tokens; give at least") as refused:
        small(figsize=(1, 0.5), query=1)
    least = tuple(map(float, re.findall(r"least \((.*), (.*)\)", str(refused.value))[0]))
    lines = [small(figsize=size, query=query) for size in (least, (7, 5)) for query in (None, 1)]
    sizes = [least, least, (7, 5), (7, 5), (2, 2)]
    heatmap = show_heatmaps(weights, tokens, figsize=(2, 2))
    for shown, size in zip([*lines, heatmap], sizes, strict=True):
        assert tuple(shown.figure.get_size_inches()) == size
        (box,) = re.findall(rb"/MediaBox \[([^]]*)\]", saved(shown, format="pdf"))
        np.testing.assert_allclose(np.array(box.split(), float)[2:], np.array(size) * 72, atol=0.01)
    for shown in lines:
        apart(shown, 0.5)


def test_words_have_the_face_and_the_size_that_are_asked_for():
    weights = random_weights(3, 3)
    settings = {"font.family": "serif", "font.size": 9, "xtick.labelsize": "small"}
    settings |= {"axes.labelsize": 7, "axes.titlesize": "x-large"}
    asked = {"cat": 9 * 0.833, "Keys": 7, "keys": 7, "title": 9 * 1.44, "0.00": 9}
    with matplotlib.rc_context(settings):
        large = show_heatmaps(weights, TOKENS, titles=["title"], font=matplotlib.rcParams)
        lines = show_attention_lines(weights, TOKENS, query=0, font=matplotlib.rcParams)
    for shown, kinds in (large, {"cat", "Keys", "title", "0.00"}), (lines, {"cat", "keys", "0.00"}):
        found = {re.sub(r"\d", "0", word): text.get_fontsize() for word, _, text in texts(shown)}
        for kind in kinds:
            assert found[kind] == pytest.approx(asked[kind]), kind
    for serif in (large, lines, show_heatmaps(weights, TOKENS, font="DejaVu Serif")):
        assert "DejaVu Serif" in serif.svg("dark"), "also when it is asked for later"
        assert b"DejaVuSerif" in saved(serif, format="pdf")


def test_characters_that_no_face_has_are_named_with_a_face_that_has_them():
    """The advice is followed: then there is no box, and no warning."""
    stix, usual = (FT2Font(findfont(face)).get_charmap() for face in ("STIXGeneral", "DejaVu Sans"))
    character = chr(max(stix.keys() - usual.keys()))
    tokens = ["a", "b", character]
    shown = show_heatmaps(random_weights(3, 3), tokens)
    with pytest.warns(UserWarning, match=f"DejaVu Sans has no {character}, drawn") as told:
        pdf = saved(shown, format="pdf")
    assert len(told) == 1
    (face,) = re.findall(r"draw with font='(.*)'", str(told[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved(shown, format="svg", fonttype="none")  # there the reader's faces count
        shown = show_heatmaps(random_weights(3, 3), tokens, font=face)
        assert saved(shown, format="pdf") != pdf


def test_what_is_changed_in_a_figure_is_in_every_form_or_refused():
    shown = show_heatmaps(random_weights(2, 4, 3, 3))
    shown.figure.savefig(io.BytesIO(), format="svg")  # to look at it is no change
    untouched = shown.html()
    assert "--phone-dark" in untouched
    shown.axes[0, 0].text(0, 0, "changed")
    assert "changed" in shown.svg() and b"changed" in saved(shown, format="svg", fonttype="none")
    assert shown.html() != untouched and "--phone" not in shown.html()
    for refused in (lambda: shown.svg("dark"), lambda: saved(shown, theme="dark")):
        with pytest.raises(ValueError, match=r"changed after it was drawn.*@show_figure"):
            refused()
    assert "changed" in pickle.loads(pickle.dumps(shown)).svg()
