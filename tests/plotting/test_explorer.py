"""``AttentionExplorer``: a table that Python fills and a script makes live."""

import json
import re
from html import unescape

import numpy as np
import pytest

from d2lmini import masked_softmax
from d2lmini.plotting import AttentionExplorer
from tests.plotting.test_shown import run_python

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
    noisy = AttentionExplorer(SCORES * (1 + 1e-15), TOKENS, dimension=4)
    assert noisy._repr_html_() == html == explorer._repr_html_()
    plain = AttentionExplorer(SCORES, TOKENS)
    np.testing.assert_allclose(plain.weights, masked_softmax(SCORES))
    # The script is the same in every output, and the data is not in it.
    other = AttentionExplorer(np.eye(2), ["x", "y"])._repr_html_()
    script = re.search(r"<script>.*?</script>", html, re.S)[0]
    assert script in other and html.count("<script") == 1
    assert not re.search(r"https?://|import |fetch|eval", script)
    data = json.loads(unescape(re.search(r'data-explorer="([^"]*)"', html)[1]))
    np.testing.assert_allclose(data["scores"], SCORES, rtol=1e-8)
    assert data["keys"] == ["the", "<cat>", 'say "sat"', "␣on"] and data["dimension"] == 4


def test_masked_cells():
    html = AttentionExplorer(SCORES, TOKENS, mask="causal")._repr_html_()
    assert cells(html)[:4] == ["1.00", "–", "–", "–"]
    assert html.count('class="d2lmini-hidden"') == 6
    same = AttentionExplorer(np.where(np.tri(4) > 0, SCORES, -np.inf), TOKENS)
    assert same._repr_html_() == html


REMARKS = {
    "Largest weight 0.69: “a” → “a”.": np.eye(3) * 1.5,
    "Nearly one-hot: the slope of the softmax is close to 0, and gradients": np.eye(3) * 9,
    "Nearly uniform: each output is close to the plain average": np.eye(3) * 0.05,
    "No query has a choice.": np.where(np.eye(3) > 0, 1.0, np.nan),
}


@pytest.mark.parametrize("remark", REMARKS)
def test_the_remark_says_what_the_weights_are_like(remark):
    shown = AttentionExplorer(REMARKS[remark], list("abc"))
    assert remark in shown.remark
    assert ("Nearly" in shown.remark) == ("Nearly" in remark)
    assert f'<p role="status">{shown.remark}</p>' in shown._repr_html_()
    assert "Run this cell to move it." in shown._repr_html_()  # where scripts are taken away
    assert str(shown).endswith(shown.remark)


def test_it_needs_neither_matplotlib_nor_torch():
    code = (
        "from d2lmini.plotting import AttentionExplorer; import sys; "
        "AttentionExplorer([[1, 0]], ['a'], ['b', 'c'])._repr_html_(); "
        "print({'matplotlib', 'torch', 'IPython'} & {*sys.modules})"
    )
    assert run_python(code) == "set()"
