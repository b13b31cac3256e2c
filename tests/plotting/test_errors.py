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
YES = np.ones((1, 1), bool)

VALUE_ERRORS = {
    "heatmaps(3.0)": r"\(queries, keys\); got 0-D of shape \(\)",
    "heatmaps([])": "matrices is an empty list",
    "heatmaps(np.ones((0, 1, 3, 3)))": r"at least one panel.*\(0, 1, 3, 3\)",
    "heatmaps(np.ones((3, 0)))": r"at least one.*\(3, 0\)",
    "heatmaps([[1.0], [1.0, 2.0]])": r"matrices: .*one shape; got \(1,\) and \(2,\)",
    "heatmaps([[1.0, np.inf]])": r"\+inf at \(0, 1\); only -inf and NaN",
    "heatmaps([[1.7e308, -1.7e308]])": r"matrices has numbers as large as 1.7e\+308; at most",
    "heatmaps(np.ones((24, 24, 2, 2)))": "24 x 24 panels, more than 512",
    "heatmaps(np.ones((1, 64, 9, 9)))": r"64 columns.*matrices\[:, :32\]",
    "heatmaps(EYE, xticks=['a'])": "got 1 key label for 3 keys",
    "heatmaps(EYE, yticks=list('ab'))": "yticks: got 2 query labels for 3 queries",
    "heatmaps(SIX, titles=['a', 'b'])": r"has 2 entries; give 3 \(one per column\) or 6 \(one",
    "heatmaps(SIX, titles=[])": "titles has 0 entries; give 3",
    "heatmaps(SIX, titles=list('abcdefg'))": "titles has 7 entries; give 3",
    "heatmaps(SIX, titles=[list('abc')])": "titles has 1 row for 2 rows of panels",
    "heatmaps(SIX, titles=[list('abc'), ['d']])": r"titles\[1\] has 1 title for 3 columns of",
    "heatmaps(SIX, row_titles=list('abc'))": "row_titles has 3 entries for 2 rows of panels",
    "heatmaps(EYE, alt=' ')": "alt is empty",
    "heatmaps(EYE, mask=np.ones((2, 5), bool))": r"\(2, 5\) does not broad.*\(1, 1, 3, 3\);.*\(3",
    "heatmaps(EYE, mask=YES[None, None, None])": "broadcast",
    "heatmaps(EYE, mask='causl')": "'causal'; got 'causl'",
    "heatmaps(EYE, mask=[[True], [True, False]])": "mask: .*one shape",
    "heatmaps(EYE, annot='.2f')": "True, False or 'auto'; got '.2f'",
    "heatmaps(np.eye(60), annot=True, vmax=3)": "needs cells .* wide; 1 x 60 keys leave",
    "heatmaps(EYE, vmin=2, vmax=1)": "vmin must be below vmax; the scale would go from 2 to 1$",
    "heatmaps(EYE, vmin=2)": "from 2 to 1; give both",
    "heatmaps(EYE, vmax=np.nan)": "vmax must be finite; got nan",
    "heatmaps(EYE, cmap='Redz')": "'Redz'; did you mean 'Reds'",
    "heatmaps(EYE, figsize=(1, 2, 3))": "2 numbers.* got 3",
    "heatmaps(EYE, figsize=(-1, 2))": r"0 and 100 .* \(-1, 2\)",
    "heatmaps(EYE, mean='all')": "mean must be",
    "heatmaps(EYE, reduce='min')": "reduce must be",
    "heatmaps(EYE, norm='sqrt')": "norm must be",
    "heatmaps(-random_weights(3, 3), norm='log')": "numbers of at least 0",
    "heatmaps(EYE, font='DejaVu Serf')": "no face 'DejaVu Serf'; did you mean 'DejaVu Serif'",
    "show_heatmaps(EYE, 'x' * 200)": r"1 column of panels does not fit .* in 6\.4 inches",
    "heatmaps(EYE).svg('night')": "theme must be 'light' or 'dark'; got 'night'",
    "show_attention_lines(np.ones(3), TOKENS)": "^weights .*got 1-D",
    "show_attention_lines([[-1.0, 3.0]], ['q'], ['a', 'b'])": "got -1 to 3; are these",
    "show_attention_lines(np.eye(65), [''] * 65)": "65 queries and 65 .* use show_h",
    "show_attention_lines(EYE, ['a'])": "queries: got 1 query label for 3 queries",
    "show_attention_lines(EYE, TOKENS, ['c'])": "keys: got 1 key label for 3 keys",
    "show_attention_lines(EYE, TOKENS, query=3)": "query = 3: there are 3, from 0 to 2",
    "show_attention_lines(EYE, TOKENS, query=-4)": "query = -4: there are 3",
    "show_attention_lines(EYE, TOKENS, alt=' ')": "alt is empty",
    "show_attention_lines([[np.inf, 0]], ['a'], ['b', 'c'])": r"^weights has \+inf",
    "show_attention_lines(np.ones((0, 2)), [], ['b', 'c'])": "^weights must have at least one",
    "show_attention_lines([[1e301, 0]], ['a'], ['b', 'c'])": "^weights has numbers as large",
    "AttentionExplorer(np.ones((2, 2, 2)), ['a', 'b'])": r"one matrix.*\(2, 2, 2\)",
    "AttentionExplorer(np.eye(17), [''] * 17)": "17 queries and 17 keys; at most 16",
    "AttentionExplorer(EYE, ['a'])": "queries: got 1 query label for 3 queries",
    "AttentionExplorer(EYE, TOKENS, dimension=0)": "at least 1; got 0",
    "AttentionExplorer(EYE, TOKENS, mask=np.ones((2, 2), bool))": "broadcast to scores of shape",
    "AttentionExplorer([[np.inf, 0]], ['a'], ['b', 'c'])": r"^scores has \+inf",
    "AttentionExplorer(np.ones(2), ['a'], ['b', 'c'])": "^scores must have shape",
    "AttentionExplorer([[1e301, 0]], ['a'], ['b', 'c'])": "^scores has numbers as large",
    "AttentionWall(np.ones((1, 1, 2, 2)) * 3)": "1; got 3 to 3; scores become weights",
    "AttentionWall(-np.ones((1, 1, 2, 2)))": "between 0 and 1; got -1 to -1",
    "AttentionWall((None, None))": "record_attention",
    "AttentionWall(np.ones((1, 2, 1, 3, 3)) / 3)": "batch of 2: give item=0",
    "AttentionWall(np.zeros((4, 4, 501, 501)))": "4,016,016 .* 4,000,000; give",
    "AttentionWall(EYE[None, None]).save('wall.png')": r"must end in \.html; got 'wall.png'",
    "trace(query=np.ones((2, 4)))": r"one query, \(d,\); got shape \(2, 4\)",
    "trace(key=np.ones((0, 4)))": r"at least one key; got \(0, 4\)",
    "trace(query=np.ones(3))": "query has 3 components and key has 4",
    "trace(value=np.ones((4, 3)))": r"each of the 5 keys; got shape \(4, 3\)",
    "trace(value=np.full((5, 3), np.nan))": r"value must be finite; got nan at \(0, 0\)",
    "trace(mask=np.ones(4, bool))": r"mask of shape \(4,\) does not",
    "trace(mask=np.ones((2, 5), bool))": r"\(5,\), for one query; got \(2, 5\)",
    "trace(labels=['a'])": "labels: got 1 key label for 5 keys",
    "trace(components=['food', 'drink'])": "got 2 component labels for 3 components",
    "trace(key=np.ones((33, 4)), value=np.ones(33)).plot()": "a drawing holds 32 keys; got 33",
    "trace(value=np.ones((5, 40))).plot()": r"40 components .* fewer, such as value\[",
    "figure(alt=' ')": "alt is empty; say what the picture shows",
    "figure(width=0)": "width must lie between 0 and 100 inches; got 0",
    "figure(height=float('nan'))": "height must lie .* got nan",
    "figure(rows=0)": "rows must be at least 1; got 0",
    "figure(canvas=True, rows=2)": "a canvas is one panel; got 2 rows and 1 columns",
    "on_sheet().box((1, 1), 'q', kind='quary')": "kind must be one of query, key",
    "on_sheet().box((5.1, 1), 'query')": "'query' does not fit on the sheet",
    "on_sheet().text((0.1, 1), 'words')": "'words' does not fit",
    "on_sheet().cells((1, 2.7), ['a'], title='keys')": "'keys' does not",
    "on_sheet().arrow((1, 1), (1, 1))": "an arrow needs some way to go",
    "on_sheet().arrow((1, 1), (3, 1), line=0)": "line must be above 0",
    "on_sheet().cells((1, 1), [])": "texts is empty",
    "on_sheet().bars((1, 1), [0.5, -0.1])": "values must be at least 0",
    "on_sheet().bars((1, 1), [])": "values must be at least 0, and at least one",
    "on_sheet().matrix((1, 1))": "needs one shape .*; got none",
    "on_sheet().matrix((1, 1), rows=2, columns=2, values=[[1, 2]])": "needs one shape",
    "on_sheet().matrix((1, 1), rows=0, columns=2)": "at least one row",
    "on_sheet().matrix((1, 1), values=[[-1]])": "values must be finite and at",
    "on_sheet().vector((0, 0), (1, 1))": "there is no plane yet",
}
TYPE_ERRORS = {
    "heatmaps([['a', 'b']])": "real numbers; got <U1",
    "heatmaps(EYE * 1j)": "real numbers; got complex128",
    "heatmaps([[None]])": "real numbers; got object",
    "heatmaps('weights')": "real numbers; got <U7",
    "heatmaps(Attention())": r"Attention, several arrays; give one of \.output, \.w",
    "heatmaps(EYE, xticks='abc')": "xticks must be a list.*'abc'",
    "heatmaps(EYE, yticks=3)": "yticks must be a list.*got int",
    "heatmaps(EYE, titles='Head')": "titles must be a list",
    "heatmaps(EYE, label=3)": "label must be a string; got int",
    "heatmaps(EYE, alt=3)": "alt must be a string; got int",
    "show_heatmaps(EYE, xlabel=3)": "xlabel must be a string; got int",
    "show_heatmaps(EYE, ylabel=3)": "ylabel must be a string; got int",
    "heatmaps(EYE, mask=np.tri(3))": "mask must be boolean, True = may attend; got float64",
    "heatmaps(EYE, vmax='high')": "vmax must be a number; got str",
    "heatmaps(EYE, cmap=3)": "cmap must be a name or .* got 3",
    "heatmaps(EYE, figsize=3)": "figsize must be .* got int",
    "heatmaps(EYE, figsize=('a', 2))": "figsize must be a number",
    "heatmaps(EYE, font=8)": "font must be the name of a face, or rcParams; got int",
    "show_heatmaps(EYE, keys=TOKENS, xticks=TOKENS)": "two names for the same labels|given twice",
    "show_heatmaps(EYE, 'Keys', xlabel='Keys')": "two names for the same labels|given twice",
    "show_attention_lines(EYE, 'abc')": "queries must be a list of strings",
    "show_attention_lines(EYE, TOKENS, query='cat')": "query must be an integer, got str",
    "show_attention_lines(EYE, TOKENS, query=True)": "got bool",
    "show_attention_lines([['x', 'y']], ['a'], ['b', 'c'])": "^weights must hold real",
    "AttentionExplorer([['x', 'y']], ['a'], ['b', 'c'])": "^scores must hold real",
    "AttentionExplorer(EYE, TOKENS, dimension=2.5)": "whole number; got 2.5",
    "AttentionExplorer(EYE, TOKENS, mask=EYE)": "mask must be boolean",
    "trace(key=[['a']])": "key must hold real numbers; got <U1",
    "trace(mask=np.ones(5))": "mask must be boolean",
    "trace(name=3)": "name must be a string; got int",
    "figure(alt=None)": "alt must be a string; got NoneType",
    "figure(columns=2)": "takes 1 arguments for 2 panels; give it one for each",
    "figure(3)": "stands above a function that draws; got 3",
    "show_figure()": "alt",
    "on_sheet().text((1, 1), 3)": "words must be a string; got int",
    "Diagram('axes')": "drawn on axes; got str",
}
# What the words advise, which is then done.
ADVICE = {
    "heatmaps(HEADS[None, None, None])": (r"a part, such as matrices\[0\]", "heatmaps(HEADS[0])"),
    "heatmaps(HEADS[None, None, None], item=0)": (r"such as matrices\[0\]", "heatmaps(HEADS)"),
    "heatmaps(EYE[0])": (r"got 1-D of shape \(3,\); .*reshape\(1, 1, queries, keys\)",
        "heatmaps(EYE[0].reshape(1, 1, 1, 3))"),
    "heatmaps((SIX, SIX))": ("has a batch of 2: give item=0", "heatmaps((SIX, SIX), item=0)"),
    "heatmaps((SIX, SIX), item=2)": ("= 2: there are 2, from 0 to 1", "heatmaps(SIX, item=1)"),
    "heatmaps(EYE, item=0)": ("has no batch: leave it out", "heatmaps(EYE)"),
    "heatmaps(HEADS, mean='layers')": ("give mean='heads'", "heatmaps(HEADS, mean='heads')"),
    "heatmaps((SIX, SIX[..., :2]))": ("one by one", "heatmaps(SIX[..., :2] * 0, item=0)"),
    "show_heatmaps(EYE[:2], list('abc'), list('xy'))": (
        r"queries and keys are exchanged: there are 2 queries \(rows\) and 3 keys",
        "show_heatmaps(EYE[:2], list('xy'), list('abc'))"),
    "show_attention_lines(EYE[:2], list('abc'), list('xy'))": ("queries and keys are exchanged",
        "show_attention_lines(EYE[:2], list('xy'), list('abc'))"),
    "AttentionExplorer(EYE[:2], list('abc'), list('xy'))": ("queries and keys are exchanged",
        "AttentionExplorer(EYE[:2], list('xy'), list('abc'))"),
    "show_attention_lines(HEADS, TOKENS)": (
        r"one matrix, \(queries, keys\); got shape \(2, 3, 3\); give one head, .*weights\[0\]",
        "show_attention_lines(HEADS[0], TOKENS)"),
    "show_attention_lines(HEADS[None], TOKENS)": (r"weights\[0\]\[0\]",
        "show_attention_lines(HEADS[None][0][0], TOKENS)"),
    "show_attention_lines((HEADS[None],) * 2, TOKENS, item=0)": (
        r"weights\[0\]\[0\]\[0\], and no item", "show_attention_lines(HEADS[0], TOKENS)"),
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
