"""``AttentionTrace``: the same numbers as ``attention``, as text, table and drawing."""

import math
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup
from matplotlib.colors import to_hex

from d2lmini.plotting import AttentionTrace
from d2lmini.plotting.theme import COLORS, PALETTES, tint
from tests.plotting.reading import apart, words

RNG = np.random.default_rng(3)
QUERY, KEY, VALUE = RNG.normal(size=4), RNG.normal(size=(5, 4)), RNG.normal(size=(5, 3))
MASK = np.array([True, True, True, True, False])
TOKENS = ["the", "<cat>", "sat", "$on$", " mat"]


@pytest.fixture(scope="module")
def trace():
    return AttentionTrace(QUERY, KEY, VALUE, mask=MASK, labels=TOKENS, name="sat")


def test_the_steps_are_those_of_the_definition(trace):
    scores = [sum(q * k for q, k in zip(QUERY, key, strict=True)) for key in KEY]
    powers = [math.exp(s / 2) if may else 0.0 for s, may in zip(scores, MASK, strict=True)]
    weights = np.array(powers) / sum(powers)
    np.testing.assert_allclose(trace.scores, scores)
    np.testing.assert_allclose(trace.scaled, np.array(scores) / math.sqrt(4))
    np.testing.assert_array_equal(trace.masked, [*trace.scaled[:4], -np.inf])
    np.testing.assert_allclose(trace.weights, weights)
    np.testing.assert_allclose(trace.weighted, weights[:, None] * VALUE)
    np.testing.assert_allclose(trace.output, weights @ VALUE)


def test_text_table_drawing_and_description_have_the_same_numbers(trace):
    numbers = re.findall(r"[−\d.∞]+\d|−∞", str(trace).split("αᵢvᵢ")[1])  # row by row, then the sums
    steps = np.column_stack([trace.scores, trace.scaled, trace.masked, trace.weights])
    said = [float(number.replace("−", "-").replace("∞", "inf")) for number in numbers]
    expected = [*np.hstack([steps, trace.weighted]).ravel(), *trace.output]
    np.testing.assert_allclose(said, expected, atol=0.00501)
    html = trace._repr_html_()
    assert re.findall(r"<td[^>]*>([^<]*)</td>", html) == numbers
    heads = re.findall(r'<th scope="row">([^<]*)</th>', html)
    assert heads == ["the", "&lt;cat&gt;", "sat", "$on$", "␣mat"]
    assert "<small>(5,)</small>" in html and "<small>(5, 3) → (3,)</small>" in html
    tints = [float(w) for w in re.findall(r'(?:more|less)" style="--w:([^"]*)"', html)]
    found = abs(trace.weighted).ravel() / abs(trace.weighted).max()
    np.testing.assert_allclose(tints, found, atol=0.0051)
    drawing = trace.plot()
    shown = words(drawing)
    assert [word for word in shown if re.fullmatch(r"−?\d+\.\d\d|−∞", word)] == numbers
    assert {"key", "score", "÷√4", "hide", "(5,), sums to 1", "(5, 3) → (3,)"} <= set(shown)
    boxes = drawing.axes[0, 0].patches
    least = abs(trace.weighted.min()) / abs(trace.weighted).max()
    grounds = {to_hex(box.get_facecolor()) for box in boxes}
    assert tint(COLORS["muted"], 0.42 * round(least, 2) + 0.03) in grounds, "grey below 0"
    lengths = [box.get_width() for box in boxes if abs(box.get_height() - 0.19) < 1e-9]
    np.testing.assert_allclose(lengths[::2], 0.8)
    np.testing.assert_allclose(lengths[1::2], 0.8 * trace.weights, atol=0.0041)
    assert drawing.alt == trace.alt
    assert trace.alt.startswith("Attention of “sat” over 5 keys. “the”: score ")
    assert "“␣mat”: score " in trace.alt and "masked, weight 0" in trace.alt
    for number in (*trace.scores, *trace.output):
        assert f"{number:.2f}".replace("-", "−") in trace.alt
    for theme, palette in PALETTES.items():
        for name in ("key", "value", "output", "weight", "ink", "page"):
            assert palette[name] in drawing.svg(theme)


SHAPES = {
    "long label": {"labels": ["a", "a much longer token here", "b", "c", "d"]},
    "large numbers": {"value": VALUE * 1e5},
    "six components": {"value": RNG.normal(size=(5, 6)) / 10},
}


@pytest.mark.parametrize("given", SHAPES.values(), ids=SHAPES)
def test_nothing_is_cut_or_covered(given):
    shown = AttentionTrace(**{"query": QUERY, "key": KEY, "value": VALUE} | given).plot()
    assert shown.figure.canvas.get_width_height()[0] <= 6.4 * 96
    assert "none" in words(shown) and "hide" not in words(shown)
    apart(shown, 1.5)


def test_tensors_and_one_row_queries(torch, trace):
    given = [torch.tensor(x, requires_grad=True) for x in (QUERY[None], KEY, VALUE)]
    same = AttentionTrace(*given, mask=torch.tensor(MASK)[None], labels=TOKENS, name="sat")
    assert str(same) == str(trace)


def test_components_are_named_wherever_they_stand():
    names = ["food", "<b>", "person"]
    named = AttentionTrace([1.0, 0], np.eye(2), np.eye(2, 3), components=names)
    assert repr(named).splitlines()[3].split() == names
    assert "adds (food 0.67, <b> 0.00, person 0.00)" in named.alt
    assert named.alt.endswith("Output: (food 0.67, <b> 0.33, person 0.00).")
    heads = [head.get_text() for head in BeautifulSoup(named._repr_html_(), "html.parser")("th")]
    assert heads[6:9] == names and set(names) <= set(words(named.plot(show=False)))
