"""``AttentionTrace``: the same numbers as ``attention``, as text, table and drawing."""

import math
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup

from d2lmini.plotting import AttentionTrace
from d2lmini.plotting.theme import PALETTES
from tests.plotting.reading import texts, words

RNG = np.random.default_rng(3)
QUERY, KEY, VALUE = RNG.normal(size=4), RNG.normal(size=(5, 4)), RNG.normal(size=(5, 3))
MASK = np.array([True, True, True, True, False])
TOKENS = ["the", "<cat>", "sat", "$on$", " mat"]


@pytest.fixture(scope="module")
def trace():
    return AttentionTrace(QUERY, KEY, VALUE, mask=MASK, labels=TOKENS, name="sat")


@pytest.fixture(scope="module")
def drawn(trace):
    return trace.plot()


def test_the_steps_are_those_of_the_definition(trace):
    scores = [sum(q * k for q, k in zip(QUERY, key, strict=True)) for key in KEY]
    scaled = [score / math.sqrt(4) for score in scores]
    powers = [math.exp(s) if may else 0.0 for s, may in zip(scaled, MASK, strict=True)]
    weights = [power / sum(powers) for power in powers]
    np.testing.assert_allclose(trace.scores, scores)
    np.testing.assert_allclose(trace.scaled, scaled)
    np.testing.assert_array_equal(trace.masked[:4], trace.scaled[:4])
    assert trace.masked[4] == -np.inf
    np.testing.assert_allclose(trace.weights, weights)
    np.testing.assert_allclose(trace.weighted, np.array(weights)[:, None] * VALUE)
    np.testing.assert_allclose(trace.output, trace.weighted.sum(0))


def test_as_text():
    trace = AttentionTrace([2, 0], [[1, 0], [0, 1]], [10, 20], mask=[True, False], name="on")
    assert str(trace).splitlines() == [
        "Attention of “on” over 2 keys",
        "key     score   scale    mask  softmax   weigh",
        "         q·kᵢ     ÷√2                     αᵢvᵢ",
        "0        2.00    1.41    1.41     1.00   10.00",
        "1        0.00    0.00      −∞     0.00    0.00",
        "output = column sums                     10.00",
    ]


def numbers(trace):
    """Return all numbers as they are written, row by row, then the sums."""
    rows = re.findall(r"[−\d.∞]+\d|−∞", str(trace).split("αᵢvᵢ")[1])
    return rows


def test_the_table_has_the_same_numbers(trace):
    html = trace._repr_html_()
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", html)
    assert cells == numbers(trace)
    assert re.findall(r'<th scope="row">([^<]*)</th>', html) == [
        "the",
        "&lt;cat&gt;",
        "sat",
        "$on$",
        "␣mat",
    ]
    assert html.count('class="d2lmini-off"') == 1
    assert "<small>(5,)</small>" in html and "<small>(5, 3) → (3,)</small>" in html
    assert '<th scope="colgroup" colspan="3">weigh' in html


def test_the_drawing_has_the_same_numbers(trace, drawn):
    found = [word for word in words(drawn) if re.fullmatch(r"−?\d+\.\d\d|−∞", word)]
    expected = numbers(trace)
    assert found == expected
    assert {"key", "score", "÷√4", "hide", "(5,), sums to 1", "(5, 3) → (3,)"} <= set(words(drawn))


def test_bars_are_as_long_as_the_weights(trace, drawn):
    boxes = drawn.axes[0, 0].patches
    lengths = [box.get_width() for box in boxes if abs(box.get_height() - 0.19) < 1e-9]
    np.testing.assert_allclose(lengths[::2], 0.8)
    np.testing.assert_allclose(lengths[1::2], 0.8 * trace.weights, atol=0.0041)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"labels": ["a", "a much longer token here", "b", "c", "d"]},
        {"value": VALUE * 1e5},
        {"value": VALUE[:, 0]},
        {"value": RNG.normal(size=(5, 6)) / 10},
    ],
    ids=["plain", "long label", "large numbers", "one component", "six components"],
)
def test_nothing_is_cut_or_covered(given):
    shown = AttentionTrace(**{"query": QUERY, "key": KEY, "value": VALUE} | given).plot()
    width, height = shown.figure.canvas.get_width_height()
    assert width <= 6.4 * 96
    found = texts(shown)
    for i, (text, box, _) in enumerate(found):
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text
        for other_text, other, _ in found[:i]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            down = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert across < 1.5 or down < 1.5, (text, other_text)


def test_every_number_is_in_the_description(trace, drawn):
    assert drawn.alt == trace.alt
    assert trace.alt.startswith("Attention of “sat” over 5 keys. “the”: score ")
    assert "“␣mat”: score " in trace.alt and "masked, weight 0" in trace.alt
    for number in (*trace.scores, *trace.output):
        assert f"{number:.2f}".replace("-", "−") in trace.alt


def test_both_pages(drawn):
    for theme, palette in PALETTES.items():
        for name in ("key", "value", "output", "weight", "ink", "page"):
            assert palette[name] in drawn.svg(theme)


def test_the_last_bits_change_nothing(trace, drawn):
    noisy = AttentionTrace(
        QUERY * (1 + 1e-14), KEY * (1 - 1e-14), VALUE, mask=MASK, labels=TOKENS, name="sat"
    )
    assert noisy._repr_html_() == trace._repr_html_()
    assert noisy.plot().html() == drawn.html()


def test_a_query_with_no_key_has_the_output_zero():
    trace = AttentionTrace(QUERY, KEY, VALUE, mask=np.zeros(5, bool))
    assert not trace.weights.any() and not trace.output.any()
    assert trace.plot().alt.endswith("Output: (0.00, 0.00, 0.00).")


def test_tensors_lists_and_one_row_queries(torch, trace):
    given = [torch.tensor(x, requires_grad=True) for x in (QUERY[None], KEY, VALUE)]
    same = AttentionTrace(*given, mask=torch.tensor(MASK)[None], labels=TOKENS, name="sat")
    assert str(same) == str(trace)
    lists = AttentionTrace(QUERY.tolist(), KEY.tolist(), VALUE.tolist(), mask=MASK.tolist())
    np.testing.assert_allclose(lists.output, trace.output)


def test_input_is_never_written_to():
    before = QUERY.copy(), KEY.copy(), VALUE.copy()
    AttentionTrace(QUERY, KEY, VALUE, mask=MASK).plot()
    for now, then in zip((QUERY, KEY, VALUE), before, strict=True):
        np.testing.assert_array_equal(now, then)


BAD = {
    "two queries": (
        {"query": np.ones((2, 4))},
        ValueError,
        r"one query, \(d,\); got shape \(2, 4\)",
    ),
    "no keys": ({"key": np.ones((0, 4))}, ValueError, r"at least one key; got \(0, 4\)"),
    "another width": ({"query": np.ones(3)}, ValueError, "query has 3 components and key has 4"),
    "few values": (
        {"value": np.ones((4, 3))},
        ValueError,
        r"each of the 5 keys; got shape \(4, 3\)",
    ),
    "NaN": ({"value": VALUE * np.nan}, ValueError, r"value must be finite; got nan at \(0, 0\)"),
    "words": ({"key": [["a"]]}, TypeError, "key must hold real numbers; got <U1"),
    "mask of numbers": ({"mask": np.ones(5)}, TypeError, "mask must be boolean"),
    "mask of another length": (
        {"mask": np.ones(4, bool)},
        ValueError,
        r"mask of shape \(4,\) does not",
    ),
    "mask for two": (
        {"mask": np.ones((2, 5), bool)},
        ValueError,
        r"\(5,\), for one query; got \(2, 5\)",
    ),
    "few labels": ({"labels": ["a"]}, ValueError, "labels: got 1 key label for 5 keys"),
    "few components": (
        {"components": ["food", "drink"]},
        ValueError,
        "got 2 component labels for 3 components",
    ),
    "a name of no kind": ({"name": 3}, TypeError, "name must be a string; got int"),
}


@pytest.mark.parametrize(("given", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_told_in_words(given, error, message):
    with pytest.raises(error, match=message):
        AttentionTrace(**{"query": QUERY, "key": KEY, "value": VALUE} | given)


def test_what_does_not_fit_a_page_is_refused_and_can_be_printed():
    long = AttentionTrace(QUERY, np.ones((33, 4)), np.ones(33))
    with pytest.raises(ValueError, match="a drawing holds 32 keys; got 33"):
        long.plot()
    wide = AttentionTrace(QUERY, KEY, np.ones((5, 40)))
    with pytest.raises(
        ValueError,
        match=r"40 components and these labels need .* trace fewer, such as value\[:, :3\]",
    ):
        wide.plot()
    assert str(long).count("\n") == 33 + 3 and "output" in str(wide)


def test_components_are_named_wherever_they_stand():
    named = AttentionTrace(
        [1.0, 0], np.eye(2), np.eye(2, 3), labels=["p", "q"], components=["food", "<b>", "person"]
    )
    assert repr(named).splitlines()[3].split() == ["food", "<b>", "person"]
    assert "adds (food 0.67, <b> 0.00, person 0.00)" in named.alt
    assert named.alt.endswith("Output: (food 0.67, <b> 0.33, person 0.00).")
    heads = [head.get_text() for head in BeautifulSoup(named._repr_html_(), "html.parser")("th")]
    assert heads[6:9] == ["food", "<b>", "person"]
    drawn = {text.get_text() for text in named.plot(show=False).axes.flat[0].texts}
    assert {"food", "<b>", "person"} <= drawn
