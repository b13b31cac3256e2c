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


@pytest.fixture(scope="module")
def explorer():
    return AttentionExplorer(SCORES, TOKENS, dimension=4)


def cells(html):
    return re.findall(r"<td class[^>]*>([^<]*)</td>", html)


def test_the_table_is_filled_by_python(explorer):
    weights = masked_softmax(SCORES / 2)
    np.testing.assert_allclose(explorer.weights, weights)
    assert cells(explorer._repr_html_()) == [f"{w:.2f}" for w in weights.ravel()]
    for line, row in zip(str(explorer).splitlines()[2:], weights, strict=False):
        assert line.split()[-4:] == [f"{w:.2f}" for w in row]


def test_without_a_dimension_scores_are_taken_as_they_are():
    np.testing.assert_allclose(AttentionExplorer(SCORES, TOKENS).weights, masked_softmax(SCORES))


def test_masked_cells():
    shown = AttentionExplorer(SCORES, TOKENS, mask="causal")
    assert cells(shown._repr_html_())[:4] == ["1.00", "–", "–", "–"]
    assert shown._repr_html_().count('class="d2lmini-hidden"') == 6
    same = AttentionExplorer(np.where(np.tri(4) > 0, SCORES, -np.inf), TOKENS)
    assert same._repr_html_() == shown._repr_html_()


@pytest.mark.parametrize(
    ("scores", "remark"),
    [
        (np.eye(3) * 1.5, "Largest weight 0.69: “a” → “a”."),
        (np.eye(3) * 9, "Nearly one-hot: the slope of the softmax is close to 0, and gradients"),
        (np.eye(3) * 0.05, "Nearly uniform: each output is close to the plain average"),
        (np.where(np.eye(3) > 0, 1.0, np.nan), "No query has a choice."),
    ],
)
def test_the_remark_says_what_the_weights_are_like(scores, remark):
    shown = AttentionExplorer(scores, list("abc"))
    assert remark in shown.remark
    assert f'<p role="status">{shown.remark}</p>' in shown._repr_html_()
    assert "Run this cell to move it." in shown._repr_html_()  # where scripts are taken away
    assert str(shown).endswith(shown.remark)


def test_the_script_is_the_same_in_every_output_and_the_data_is_not_in_it(explorer):
    other = AttentionExplorer(np.eye(2), ["x", "y"])._repr_html_()
    html = explorer._repr_html_()
    script = re.search(r"<script>.*?</script>", html, re.S)[0]
    assert script in other and html.count("<script") == 1
    data = json.loads(unescape(re.search(r'data-explorer="([^"]*)"', html)[1]))
    np.testing.assert_allclose(data["scores"], SCORES, rtol=1e-8)
    assert data["keys"] == ["the", "<cat>", 'say "sat"', "␣on"] and data["dimension"] == 4
    assert not re.search(r"https?://|import |fetch|eval", script)


def test_tokens_are_escaped(explorer):
    assert "<cat>" not in explorer._repr_html_() and "&lt;cat&gt;" in explorer._repr_html_()


def test_the_same_bytes_on_every_run(explorer):
    noisy = AttentionExplorer(SCORES * (1 + 1e-15), TOKENS, dimension=4)
    assert noisy._repr_html_() == explorer._repr_html_() == explorer._repr_html_()


def test_it_needs_neither_matplotlib_nor_torch():
    code = (
        "from d2lmini.plotting import AttentionExplorer; import sys; "
        "AttentionExplorer([[1, 0]], ['a'], ['b', 'c'])._repr_html_(); "
        "print({'matplotlib', 'torch', 'IPython'} & {*sys.modules})"
    )
    assert run_python(code) == "set()"


BAD = {
    "heads": ((np.ones((2, 2, 2)), ["a", "b"]), {}, ValueError, r"one matrix.*\(2, 2, 2\)"),
    "large": ((np.eye(17), [""] * 17), {}, ValueError, "17 queries and 17 keys; at most 16"),
    "labels": ((np.eye(2), ["a"]), {}, ValueError, "queries: got 1 query label for 2 queries"),
    "half": ((np.eye(2), ["a", "b"]), {"dimension": 2.5}, TypeError, "whole number; got 2.5"),
    "zero": ((np.eye(2), ["a", "b"]), {"dimension": 0}, ValueError, "at least 1; got 0"),
    "mask": ((np.eye(2), ["a", "b"]), {"mask": np.eye(2)}, TypeError, "mask must be boolean"),
}


@pytest.mark.parametrize(("given", "kwargs", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_told_in_words(given, kwargs, error, message):
    with pytest.raises(error, match=message):
        AttentionExplorer(*given, **kwargs)
