"""What is refused, and the words that say why, a line for each; and that the advice helps."""

from typing import NamedTuple

import numpy as np
import pytest

from d2lmini import AttentionWall  # noqa: F401
from d2lmini.plotting import (  # noqa: F401
    AttentionExplorer,
    AttentionTrace,
    Diagram,
    show_attention_lines,
    show_figure,
    show_heatmaps,
)
from d2lmini.plotting.figures import sheet
from tests.plotting.reading import heatmaps, random_weights  # noqa: F401


class Attention(NamedTuple):
    """Stand for what ``attention`` returns."""

    output: object = np.ones((2, 3))
    weights: object = np.ones((2, 4))


def on_sheet():
    return Diagram(sheet(5.2, 3.0)[1][0, 0])


def trace(**given):
    return AttentionTrace(
        **{"query": np.ones(4), "key": np.ones((5, 4)), "value": np.ones((5, 3))} | given
    )


def figure(draw=lambda ax: None, **given):
    return show_figure(**{"alt": "A line."} | given)(draw)


EYE, SIX, TOKENS = np.eye(3), random_weights(2, 3, 4, 4), ["the", "cat", "sat"]
HEADS = np.ones((2, 3, 3)) / 3

VALUE_ERRORS = {
    "heatmaps([])": "matrices is an empty list",
    "heatmaps((None, None))": r"a fused kernel returned no weights.*record_attent",
    "heatmaps(np.ones((3, 0)))": r"at least one.*\(3, 0\)",
    "heatmaps([[1.0], [1.0, 2.0]])": r"matrices: .*one shape; got \(1,\) and \(2,\)",
    "heatmaps([[1.0, np.inf]])": r"\+inf at \(0, 1\); only -inf and NaN",
    "heatmaps([[1.7e308, -1.7e308]])": r"matrices has numbers as large as 1.7e\+308; at most",
    "heatmaps(np.ones((24, 24, 2, 2)))": "24 x 24 panels, more than 512",
    "AttentionExplorer(EYE, TOKENS, query=3)": "query = 3: there are 3, from 0 to 2",
    "heatmaps(EYE, xticks=['a'])": "got 1 key label for 3 keys",
    "heatmaps(SIX, titles=['a', 'b'])": r"has 2 entries; give 3 \(one per column\) or 6 \(one",
    "heatmaps(EYE, mask=np.ones((2, 5), bool))": r"\(2, 5\) does not broad.*\(1, 1, 3, 3\);.*\(3",
    "heatmaps(EYE, mask='causl')": "'causal'; got 'causl'",
    "heatmaps(EYE, vmin=2)": "vmin must be below vmax; .* from 2 to 1; give both",
    "heatmaps(EYE, cmap='Redz')": "'Redz'; did you mean 'Reds'",
    "show_heatmaps(EYE, 'x' * 200)": r"1 column of panels does not fit .* in 6\.4 inches",
    "heatmaps(EYE).svg('night')": "theme must be 'light' or 'dark'; got 'night'",
    "show_attention_lines(EYE, TOKENS, query=-4)": "query = -4: there are 3, from 0 to 2",
    "AttentionWall(-np.ones((1, 1, 2, 2)))": "between 0 and 1; got -1 to -1; scores become weights",
    "AttentionWall(EYE[None, None]).save('wall.png')": r"must end in \.html; got 'wall.png'",
    "trace(query=np.ones((2, 4)))": r"one query, \(d,\); got shape \(2, 4\)",
    "trace(mask=np.ones((2, 5), bool))": r"\(5,\), for one query; got \(2, 5\)",
    "trace(value=np.ones((5, 40))).plot()": r"40 components .* fewer, such as value\[",
    "figure(canvas=True, rows=2)": "a canvas is one panel; got 2 rows and 1 columns",
    "figure(phone=(0, 4))": "width of phone must lie between 0 and 100 inches; got 0",
    "on_sheet().box((1, 1), 'q', kind='quary')": "kind must be one of query, key",
    "on_sheet().box((5.1, 1), 'query')": "'query' does not fit on the sheet",
    "on_sheet().arrow((1, 1), (1, 1))": "an arrow needs some way to go",
    "on_sheet().flow((1, 1), (1, 2), thick=0.1)": "a flow needs a way to the side",
    "on_sheet().flow((1, 1), (2, 2), thick=0)": "and some thickness; got .* 0 thick",
    "on_sheet().arrow((1, 1), (3, 1), line=0)": "line must be above 0",
}
TYPE_ERRORS = {
    "heatmaps(Attention())": r"Attention, several arrays; give one of \.output, \.w",
    "heatmaps(EYE, xticks='abc')": "xticks must be a list.*'abc'",
    "heatmaps(EYE, mask=np.tri(3))": "mask must be boolean, True = may attend; got float64",
    "show_heatmaps(EYE, keys=TOKENS, xticks=TOKENS)": "two names for the same labels|given twice",
    "AttentionExplorer(EYE, TOKENS, dimension=2.5)": "whole number; got 2.5",
}
# What the words advise, which is then done.
ADVICE = {
    "heatmaps(HEADS[None, None, None])": (r"a part, such as matrices\[0\]", "heatmaps(HEADS[0])"),
    "heatmaps(EYE[0])": (r"got 1-D of shape \(3,\); .*reshape\(1, 1, queries, keys\)",
        "heatmaps(EYE[0].reshape(1, 1, 1, 3))"),
    "heatmaps((SIX, SIX))": ("has a batch of 2: give item=0", "heatmaps((SIX, SIX), item=0)"),
    "heatmaps((SIX, SIX), item=2)": ("= 2: there are 2, from 0 to 1", "heatmaps(SIX, item=1)"),
    "heatmaps(EYE, item=0)": ("has no batch: leave it out", "heatmaps(EYE)"),
    "heatmaps(HEADS, mean='layers')": ("give mean='heads'", "heatmaps(HEADS, mean='heads')"),
    "show_heatmaps(EYE[:2], list('abc'), list('xy'))": (
        r"queries and keys are exchanged: there are 2 queries \(rows\) and 3 keys",
        "show_heatmaps(EYE[:2], list('xy'), list('abc'))"),
    "show_attention_lines(HEADS[None], TOKENS)": (
        r"one matrix, \(queries, keys\); got .*give one head, .*weights\[0\]\[0\]",
        "show_attention_lines(HEADS[None][0][0], TOKENS)"),
    "heatmaps(random_weights(30, 30), annot=True)": ("give a larger figsize or annot=False",
        "heatmaps(random_weights(30, 30), annot=True, figsize=(14, 14))"),
}  # fmt: skip


@pytest.mark.parametrize("call", [*VALUE_ERRORS, *TYPE_ERRORS, *ADVICE])
def test_what_is_refused_says_why(call):
    """Too few labels: bertviz#101, #80; not 4-D: d2l 1.0.3."""
    words, advice = ADVICE.get(call, (VALUE_ERRORS.get(call) or TYPE_ERRORS.get(call), "None"))
    with pytest.raises(TypeError if call in TYPE_ERRORS else ValueError, match=words) as refused:
        eval(call)
    assert "heatmaps" in call or "matrices" not in str(refused.value)
    eval(advice)
