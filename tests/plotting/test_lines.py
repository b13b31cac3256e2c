"""``show_attention_lines``: one line for each weight, as wide as it is large."""

import warnings

import numpy as np
import pytest
from matplotlib.colors import to_hex

from d2lmini.plotting import RowSumWarning, show_attention_lines
from d2lmini.plotting.theme import PALETTES
from tests.plotting.reading import random_weights, texts, words

TOKENS = ["the", "cat", " sat", "$on$"]
WEIGHTS = random_weights(4, 4)


def lines(shown):
    return shown.axes[0, 0].lines


@pytest.fixture(scope="module")
def four():
    return show_attention_lines(WEIGHTS, TOKENS)


def test_there_is_a_line_for_each_weight_that_can_be_seen(four):
    seen = np.sort(WEIGHTS[WEIGHTS >= 0.02])
    widths = np.sort([line.get_linewidth() for line in lines(four)])
    np.testing.assert_allclose(widths, 0.5 + 5 * seen, atol=1e-5)
    strengths = np.sort([line.get_alpha() for line in lines(four)])
    np.testing.assert_allclose(strengths, 0.18 + 0.72 * seen, atol=1e-3)
    assert {to_hex(line.get_color()) for line in lines(four)} == {PALETTES["light"]["value"]}


def test_a_line_leads_from_its_query_to_its_key():
    shown = show_attention_lines(np.eye(3)[[2, 0, 1]], ["a", "b", "c"], ["x", "y", "z"])
    places = {text: (box.y0 + box.y1) / 2 for text, box, _ in texts(shown)}
    height = shown.figure.bbox.height
    for line, (query, key) in zip(lines(shown), [("a", "z"), ("b", "x"), ("c", "y")], strict=True):
        ends = line.get_ydata()[[0, -1]] * 96
        np.testing.assert_allclose(ends, (height - places[query], height - places[key]), atol=2.5)


def test_tokens_are_shown_as_they_are_and_named(four):
    assert sorted(words(four)) == sorted(["queries", "keys", *["the", "cat", "␣sat", "$on$"] * 2])
    assert not any(artist.get_parse_math() for _, _, artist in texts(four))


def test_nothing_is_cut_or_covered():
    shown = show_attention_lines(
        random_weights(2, 9), ["a long token", "b"], list("abcdefghi"), query=1
    )
    found = texts(shown)
    width, height = shown.figure.canvas.get_width_height()
    for i, (_, box, _) in enumerate(found):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width + 1 and box.y1 <= height + 1
        for _, other, _ in found[:i]:
            assert min(box.x1, other.x1) - max(box.x0, other.x0) < 1 or (
                min(box.y1, other.y1) - max(box.y0, other.y0) < 1
            )
    assert width <= 6.4 * 96


def test_a_very_long_token_leaves_room_for_the_lines():
    token = "incomprehensibilities of the longest kind"
    shown = show_attention_lines(np.eye(2), [token, "b"], query=0)
    assert shown.figure.get_size_inches()[0] <= 6.4
    (short,) = {word for word in words(shown) if word.endswith("…")}
    assert token.startswith(short[:-1]) and token in shown.alt


@pytest.mark.parametrize("query", [2, -2, np.int64(2)])
def test_one_query_is_singled_out(query):
    shown = show_attention_lines(WEIGHTS, TOKENS, query=query)
    hues = [to_hex(line.get_color()) for line in lines(shown)]
    strong = [hue == PALETTES["light"]["value"] for hue in hues]
    assert sum(strong) == (WEIGHTS[2] >= 0.02).sum()
    assert strong == sorted(strong)  # they lie on top
    assert [word for word in words(shown) if word[0] == "0"] == [f"{w:.2f}" for w in WEIGHTS[2]]
    bold = [t for t, _, artist in texts(shown) if artist.get_fontweight() == "bold"]
    assert bold == ["␣sat"]
    assert shown.alt.endswith(
        ", ".join(
            f"“{t}” {w:.2f}"
            for t, w in zip(["the", "cat", "␣sat", "$on$"], WEIGHTS[2], strict=True)
        )
        + "."
    )


def test_masked_keys_have_no_line_and_no_number():
    shown = show_attention_lines([[0.4, 0.6, np.nan]], ["q"], ["a", "b", "c"], query=0)
    assert len(lines(shown)) == 2 and words(shown).count("–") == 1
    assert shown.alt.endswith("Query “q” has weights: “a” 0.40, “b” 0.60, “c” masked.")


def test_all_masked_still_is_a_picture():
    shown = show_attention_lines(np.full((2, 2), np.nan), ["a", "b"])
    assert not lines(shown) and shown.alt.endswith("All masked.")


def test_description_and_pages(four):
    assert four.alt.startswith(
        "Attention as lines from 4 queries to 4 keys. Strongest key per query: “the” → "
    )
    assert PALETTES["dark"]["value"] in four.svg("dark") and PALETTES["dark"]["page"] in four.svg(
        "dark"
    )
    assert show_attention_lines(WEIGHTS, TOKENS, alt="Mine.").alt == "Mine."
    assert show_attention_lines(WEIGHTS, TOKENS).html() == four.html()


def test_the_last_bits_change_nothing(four):
    noisy = WEIGHTS * (1 + 1e-13 * np.random.default_rng(1).normal(size=(4, 4)))
    assert show_attention_lines(noisy, TOKENS).html() == four.html()


def test_tensors(torch, four):
    given = torch.tensor(WEIGHTS, requires_grad=True)
    assert show_attention_lines(given, TOKENS).html() == four.html()


def test_rows_that_do_not_sum_to_one_are_drawn_with_a_warning_that_can_be_turned_off():
    with pytest.warns(RowSumWarning, match=r"row 1 sums to 0.6, not to 1; it is drawn as it is"):
        shown = show_attention_lines([[0.5, 0.5], [0.3, 0.3]], ["a", "b"])
    assert len(lines(shown)) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RowSumWarning)
        show_attention_lines([[0.5, 0.5], [0.3, 0.3]], ["a", "b"])
        warnings.simplefilter("error", RowSumWarning)
        show_attention_lines([[0.5, 0.5], [0, 0]], ["a", "b"])  # a query with no key


BAD = {
    "heads": ((np.ones((2, 3, 3)) / 3, "abc"), TypeError, None),
    "several matrices": (
        (np.ones((2, 3, 3)) / 3, list("abc")),
        ValueError,
        r"one matrix, \(queries, keys\); got shape \(2, 3, 3\); give one head",
    ),
    "1-D": ((np.ones(3), list("abc")), ValueError, "got 1-D"),
    "scores": (
        ([[-1.0, 3.0]], ["q"], ["a", "b"]),
        ValueError,
        "between 0 and 1; got -1 to 3; are these scores, before the softmax",
    ),
    "many": (
        (np.eye(65), [""] * 65),
        ValueError,
        "65 queries and 65 keys; more than 64 lines .* use show_heatmaps",
    ),
    "few labels": ((np.eye(3), ["a"]), ValueError, "queries: got 1 query label for 3 queries"),
    "key labels": (
        (np.eye(2), ["a", "b"], ["c"]),
        ValueError,
        "keys: got 1 key label for 2 keys",
    ),
    "labels in a string": ((np.eye(2), "ab"), TypeError, "queries must be a list of strings"),
}


@pytest.mark.parametrize(("given", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_told_in_words(given, error, message):
    if message is None:
        error, message = ValueError, "one matrix"
    with pytest.raises(error, match=message):
        show_attention_lines(*given)


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (4, ValueError, "query = 4: there are 4, from 0 to 3"),
        (-5, ValueError, "query = -5: there are 4"),
        ("cat", TypeError, "query must be an integer, got str"),
        (True, TypeError, "got bool"),
    ],
)
def test_a_query_that_is_not_there(query, error, message):
    with pytest.raises(error, match=message):
        show_attention_lines(WEIGHTS, TOKENS, query=query)


def test_an_empty_description_is_refused():
    with pytest.raises(ValueError, match="alt is empty"):
        show_attention_lines(WEIGHTS, TOKENS, alt=" ")
