"""Weights that the reader can change, in a page without Python behind it."""

import json
import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from d2lmini._checks import position
from d2lmini._terminal import for_terminal
from d2lmini.plotting import _inputs as inputs
from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._legible import isolated, quoted
from d2lmini.plotting._tables import script, table_style
from d2lmini.weights import masked_softmax

__all__ = ["AttentionExplorer"]

STILL = '<p class="d2lmini-still">Run this cell to move it.</p>'  # taken away by the script
MOST = 16  # tokens on one side: more do not fit a page
ONE_HOT, EVEN = 0.99, 1.1  # the largest weight from which, and how many times 1/m up to which


class AttentionExplorer:
    """A table of attention weights with a slider for the temperature.

    In a notebook or on a page it shows the weights of each query as a table, filled by Python. A
    small script adds a slider that divides the scores by a temperature from 0.1 to 10, a switch for
    the division by the root of `dimension`, a switch for a causal mask (where the queries are the
    keys as well), and says in words what the weights have become. All of it can be used with the
    keyboard alone, and needs no network and no kernel. Where scripts do not run, the table stays.

    Parameters
    ----------
    scores : array, tensor or list, shape (n, m)
        Dot products of queries and keys, not yet scaled. NaN and -inf count as masked.
    queries, keys : list of str
        The tokens. Without `keys`, the queries are the keys as well.
    dimension : int, optional
        The length d of the vectors; the scores are divided by its root to begin with. Without it
        they are taken as they are.
    mask : boolean array, shape (n, m), or "causal", optional
        True = may attend; holds whatever the reader does.
    query : int, optional
        The position of the query that the remark is about; without it the remark is about all.

    Attributes
    ----------
    weights : array of float64, shape (n, m)
        At the temperature 1, as the table shows at first.
    remark : str
        What the weights are like, in words.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If `scores` is not one matrix or has more than 16 rows or columns, the labels do not match,
        the dimension is not positive, or there is no such query.

    Examples
    --------
    >>> AttentionExplorer([[4, 0], [0, 4]], ["cat", "mat"], dimension=4)
    Attention weights
            cat    mat
    cat    0.88   0.12
    mat    0.12   0.88
    Largest weight 0.88: “cat” → “cat”.
    """

    def __init__(
        self,
        scores: Any,
        queries: Sequence[Any],
        keys: Sequence[Any] | None = None,
        *,
        dimension: int | None = None,
        mask: Any = None,
        query: int | None = None,
    ) -> None:
        values, visible = inputs.read_matrices(scores, "scores")
        if values.shape[:2] != (1, 1):
            raise ValueError(
                f"scores must be one matrix, (queries, keys); got shape {np.shape(scores)}"
            )
        n, m = values.shape[2:]
        if max(n, m) > MOST:
            raise ValueError(f"scores has {n} queries and {m} keys; at most {MOST} fit a page")
        if dimension is not None and (isinstance(dimension, bool) or int(dimension) != dimension):
            raise TypeError(f"dimension must be a whole number; got {dimension!r}")
        if dimension is not None and dimension < 1:
            raise ValueError(f"dimension must be at least 1; got {dimension}")
        self._visible: Bools = (visible & inputs.read_mask(mask, values.shape, "scores"))[0, 0]
        self._scores: Floats = np.where(self._visible, values[0, 0], 0.0)
        sides = inputs.read_sides(queries, queries if keys is None else keys, (n, m))
        self._queries, self._keys = (tokens or [] for tokens in sides)
        self._sequence = keys is None  # only within one sequence is a key later than a query
        self._query = None if query is None else position("query", query, n)
        self._dimension = None if dimension is None else int(dimension)
        self.weights: Floats = masked_softmax(
            self._scores / math.sqrt(dimension or 1), self._visible
        )
        self.remark = self._remark()

    def _remark(self) -> str:
        counts = self._visible.sum(axis=1)
        free = counts > 1
        if self._query is not None:
            free &= np.arange(len(counts)) == self._query
        if not free.any():
            return "No query has a choice."
        weights = np.where(free[:, None], self.weights.round(9), -1.0)
        best = np.unravel_index(np.argmax(weights), self._shape)
        query, key = self._queries[int(best[0])], self._keys[int(best[1])]
        said = [f"Largest weight {self.weights[best]:.2f}: {quoted(query)} → {quoted(key)}."]
        largest = self.weights.max(axis=1)[free]
        if (largest >= ONE_HOT).all():
            said.append(
                "Nearly one-hot: the slope of the softmax is close to 0, and gradients vanish."
            )
        elif (largest <= EVEN / counts[free]).all():
            said.append("Nearly uniform: each output is close to the plain average of the values.")
        return " ".join(said)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self._queries), len(self._keys)

    def _cell(self, query: int, key: int) -> str:
        if not self._visible[query, key]:
            return "–"
        return f"{round(float(self.weights[query, key]), 9):.2f}"

    def __repr__(self) -> str:
        """Return the table as text."""
        n, m = self._shape
        side = max(len(label) for label in self._queries)
        wide = [max(5, len(label)) + 2 for label in self._keys]
        lines = ["Attention weights"]
        lines.append(
            " " * side + "".join(f"{key:>{w}}" for key, w in zip(self._keys, wide, strict=True))
        )
        for q in range(n):
            cells = "".join(f"{self._cell(q, k):>{wide[k]}}" for k in range(m))
            lines.append(f"{self._queries[q]:{side}}{cells}")
        return for_terminal("\n".join([*lines, self.remark]))

    def _repr_html_(self) -> str:
        """Return the table, the remark, and the script that finds them."""
        n, m = self._shape
        head = "".join(f'<th scope="col">{escape(key)}</th>' for key in self._keys)
        body = []
        for q in range(n):
            cells = []
            for k in range(m):
                kind = "more" if self._visible[q, k] else "hidden"
                share = f"{round(float(self.weights[q, k]), 9):.2f}"
                cells.append(
                    f'<td class="d2lmini-{kind}" style="--w:{share}">{self._cell(q, k)}</td>'
                )
            side = f'<th scope="row">{escape(self._queries[q])}</th>'
            body.append(f"<tr>{side}{''.join(cells)}</tr>")
        data = json.dumps(
            {
                "scores": [[float(f"{x:.9g}") for x in row] for row in self._scores],
                "visible": self._visible.astype(int).tolist(),
                "queries": list(map(isolated, self._queries)),
                "keys": list(map(isolated, self._keys)),
                "dimension": self._dimension,
                "query": self._query,
                "sequence": self._sequence,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        return (
            f'<div class="d2lmini-explorer d2lmini-table" data-explorer="{escape(data)}">'
            f"{table_style()}"
            '<div class="d2lmini-scroll" tabindex="0" role="group" aria-label="Weights">'
            "<table><caption>Attention weights (rows: queries, columns: keys)"
            f"</caption><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
            f'</table></div><p class="d2lmini-remark">{escape(self.remark)}</p>'
            f"{STILL}{script('explorer.mjs')}</div>"
        )
