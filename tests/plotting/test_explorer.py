"""``AttentionExplorer``: a table that Python fills and a script makes live."""

import json
import re
from html import unescape

import numpy as np
import pytest

from d2lmini import masked_softmax
from d2lmini.plotting import AttentionExplorer

SCORES = np.random.default_rng(5).normal(size=(4, 4)) * 3
TOKENS = ["the", "<cat>", 'say "sat"', " on"]


def cells(html):
    return re.findall(r"<td class[^>]*>([^<]*)</td>", html)


def test_the_table_is_filled_by_python():
    explorer, weights = AttentionExplorer(SCORES, TOKENS, dimension=4), masked_softmax(SCORES / 2)
    html = explorer._repr_html_()
    np.testing.assert_allclose(explorer.weights, weights)
    assert cells(html) == [f"{w:.2f}" for w in weights.ravel()]
    for line, row in zip(str(explorer).splitlines()[2:], weights, strict=False):
        assert line.split()[-4:] == [f"{w:.2f}" for w in row]
    assert "<cat>" not in html and "&lt;cat&gt;" in html
    assert AttentionExplorer(SCORES * (1 + 1e-15), TOKENS, dimension=4)._repr_html_() == html
    assert not re.search(r"https?://|import |fetch|eval", re.search(r"<script>.*", html, re.S)[0])
    data = json.loads(unescape(re.search(r'data-explorer="([^"]*)"', html)[1]))
    np.testing.assert_allclose(data["scores"], SCORES, rtol=1e-8)
    assert data["keys"] == ["the", "<cat>", 'say "sat"', "␣on"] and data["dimension"] == 4
    html = AttentionExplorer(SCORES, TOKENS, mask="causal")._repr_html_()
    assert cells(html)[:4] == ["1.00", "–", "–", "–"]
    same = AttentionExplorer(np.where(np.tri(4) > 0, SCORES, -np.inf), TOKENS)
    assert same._repr_html_() == html


REMARKS = {
    "Largest weight 0.69: “a” → “a”.": np.eye(3) * 1.5,
    "Nearly one-hot: the slope of the softmax is close to 0, and gradients": np.eye(3) * 6,
    "Nearly uniform: each output is close to the plain average": np.eye(3) * 0.05,
    "Largest weight 0.38: “a” → “a”.": np.eye(3) * 0.2,
    "No query has a choice.": np.where(np.eye(3) > 0, 1.0, np.nan),
}


@pytest.mark.parametrize("remark", REMARKS)
def test_the_remark_says_what_the_weights_are_like(remark):
    shown = AttentionExplorer(REMARKS[remark], list("abc"))
    assert remark in shown.remark
    assert ("Nearly" in shown.remark) == ("Nearly" in remark)
    assert f'<p class="d2lmini-remark">{shown.remark}</p>' in shown._repr_html_()
    assert str(shown).endswith(shown.remark)


def test_the_remark_is_about_the_query_that_is_asked_for():
    scores = np.diag([9.0, 0.5, 0.0])
    assert AttentionExplorer(scores, list("abc")).remark.startswith("Largest weight 1.00: “a”")
    one = AttentionExplorer(scores, list("abc"), query=1)
    assert one.remark == "Largest weight 0.45: “b” → “b”."
    assert AttentionExplorer(scores, list("abc"), query=2).remark.endswith("of the values.")
