"""``show_attention_lines``: one line for each weight, as wide as it is large."""

import numpy as np
from matplotlib.colors import to_hex

from d2lmini.plotting import show_attention_lines
from d2lmini.plotting.theme import PALETTES
from tests.plotting.reading import apart, random_weights, texts, words

TOKENS, SEEN = ["the", "cat", " sat", "$on$"], ["the", "cat", "␣sat", "$on$"]
WEIGHTS = random_weights(4, 4)
VALUE = PALETTES["light"]["value"]


def lines(shown):
    return shown.axes[0, 0].lines


def test_there_is_a_line_for_each_weight_that_can_be_seen_and_its_tokens_as_they_are(torch):
    four = show_attention_lines(WEIGHTS, TOKENS)
    seen = np.sort(WEIGHTS[WEIGHTS >= 0.02])
    widths = np.sort([line.get_linewidth() for line in lines(four)])
    np.testing.assert_allclose(widths, 0.5 + 5 * seen, atol=1e-5)
    strengths = np.sort([line.get_alpha() for line in lines(four)])
    np.testing.assert_allclose(strengths, 0.18 + 0.72 * seen, atol=1e-3)
    assert {to_hex(line.get_color()) for line in lines(four)} == {VALUE}
    assert sorted(words(four)) == sorted(["queries", "keys", *SEEN * 2])
    assert not any(artist.get_parse_math() for _, _, artist in texts(four))
    said = "Attention as lines from 4 queries to 4 keys. Strongest key per query: “the” → "
    assert four.alt.startswith(said)
    same = torch.tensor(WEIGHTS, requires_grad=True)
    assert show_attention_lines(same, TOKENS).html() == four.html()


def test_a_line_leads_from_its_query_to_its_key():
    shown = show_attention_lines(np.eye(3)[[2, 0, 1]], ["a", "b", "c"], ["x", "y", "z"])
    places = {text: (box.y0 + box.y1) / 2 for text, box, _ in texts(shown)}
    height = shown.figure.bbox.height
    for line, (query, key) in zip(lines(shown), [("a", "z"), ("b", "x"), ("c", "y")], strict=True):
        ends = line.get_ydata()[[0, -1]] * 96
        np.testing.assert_allclose(ends, (height - places[query], height - places[key]), atol=2.5)


def test_nothing_is_cut_or_covered():
    pair, nine = ["a long token", "b"], list("abcdefghi")
    shown = show_attention_lines(random_weights(2, 9), pair, nine, query=1)
    apart(shown)
    places = {text: box.y0 for text, box, _ in texts(shown)}
    assert places["d"] > places["a long token"] > places["f"], "the fewer stand in the middle"
    token = "incomprehensibilities of the longest kind"
    long = show_attention_lines(np.eye(2), [token, "b"], query=0)
    (short,) = {word for word in words(long) if word.endswith("…")}
    assert token.startswith(short[:-1]) and token in long.alt
    for one in (shown, long):
        assert one.figure.get_size_inches()[0] <= 6.4


def test_one_query_is_singled_out():
    shown = show_attention_lines(WEIGHTS, TOKENS, query=-2)
    strong = [to_hex(line.get_color()) == VALUE for line in lines(shown)]
    assert sum(strong) == (WEIGHTS[2] >= 0.02).sum()
    assert strong == sorted(strong)  # they lie on top
    numbers = [f"{w:.2f}" for w in WEIGHTS[2]]
    assert [word for word in words(shown) if word[0] == "0"] == numbers
    assert [t for t, _, word in texts(shown) if word.get_fontweight() == "bold"] == ["␣sat"]
    said = ", ".join(f"“{token}” {number}" for token, number in zip(SEEN, numbers, strict=True))
    assert shown.alt.endswith(f"{said}.")


def test_masked_keys_have_no_line_and_no_number():
    shown = show_attention_lines([[0.4, 0.6, np.nan]], ["q"], ["a", "b", "c"], query=0)
    assert len(lines(shown)) == 2 and words(shown).count("–") == 1
    assert shown.alt.endswith("Query “q” has weights: “a” 0.40, “b” 0.60, “c” masked.")
