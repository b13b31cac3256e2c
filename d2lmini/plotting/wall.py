"""All heads of a model as a wall of small pictures, of which one opens."""

import base64
import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from d2lmini._terminal import for_terminal
from d2lmini.plotting import _inputs as inputs
from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._legible import isolated, legible
from d2lmini.plotting._panels import read_panels
from d2lmini.plotting._tables import script, table_style

__all__ = ["AttentionWall"]

STILL = '<p class="d2lmini-still">Run this cell to see the wall.</p>'  # taken away by the script
MASKED = 255
MOST = 4_000_000  # weights: a page of 5 MB
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem; font-family: system-ui; }}
</style>
<h1>{title}</h1>
{wall}
</html>
"""


class AttentionWall:
    """All heads of a model as a wall of small pictures, of which one opens.

    In a notebook, or in a file of its own, each head is a small heatmap: queries run downwards,
    keys to the right. The wall can be sorted by what heads do more than half of the time; the one
    that is pointed at, or reached with the arrow keys, is drawn large, with its weights over the
    tokens, from whichever query is chosen. It needs no network and no kernel. Where scripts do not
    run, a table of what the heads do stays.

    Parameters
    ----------
    weights : record, tuple of tensors or array, shape (layers, heads, n, m)
        What `record_attention` yields, what models return, or (heads, n, m) of one layer.
    queries, keys : list of str, optional
        The tokens; `queries` serve both sides if they are as many.
    item : int, optional
        Which item of the batch, as for `show_heatmaps`.

    Attributes
    ----------
    weights : float64 array, shape (layers, heads, n, m)
        NaN where masked.
    habits : dict of float64 arrays, shape (layers, heads)
        From 0 to 1: the mean weight, over queries, on the previous token, on the token itself (both
        where queries and keys are as many) and on the first token. The first two queries of such a
        sequence are left out: to them one key is nearly all there is.

    Raises
    ------
    TypeError, ValueError
        As from `show_heatmaps`, for numbers that are no weights, or for more than 4 million.

    Examples
    --------
    >>> one_back = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    >>> wall = AttentionWall([[one_back, [[1, 0, 0, 0]] * 4]], "a b c d".split())
    >>> wall
    2 heads (layers: 1, heads in each: 2) on 4 queries and 4 keys
    the previous token: 1 head more than half of the time, most of all layer 0, head 0 (1.00)
    the token itself: 0 heads more than half of the time, most of all layer 0, head 0 (0.00)
    the first token: 1 head more than half of the time, most of all layer 0, head 1 (1.00)
    >>> wall.save("heads.html")  # doctest: +SKIP
    """

    def __init__(
        self,
        weights: Any,
        queries: Sequence[Any] | None = None,
        keys: Sequence[Any] | None = None,
        *,
        item: int | None = None,
    ) -> None:
        values, visible, _, _ = read_panels(weights, item, name="weights")
        seen = values[visible]
        if seen.size and (seen.min() < -1e-6 or seen.max() > 1.005):
            raise ValueError(
                f"weights must lie between 0 and 1; got {seen.min():.3g} to {seen.max():.3g}; "
                "scores become weights by softmax(scores)"
            )
        if values.size > MOST:
            raise ValueError(
                f"weights has {values.size:,} numbers, and a page holds {MOST:,}; give a part, "
                "such as the first tokens: weights[..., :50, :50]"
            )
        n, m = values.shape[-2:]
        sides = inputs.read_sides(queries, queries if keys is None and n == m else keys, (n, m))
        self._tokens = [
            [str(i) for i in range(count)] if side is None else side
            for side, count in zip(sides, (n, m), strict=True)
        ]
        self.weights: Floats = np.where(visible, values, np.nan)
        self.habits = habits(values, visible)

    def _found(self) -> list[tuple[str, int, str]]:
        """Return, for each habit, how many heads have it and which has it most."""
        rows = []
        for habit, share in self.habits.items():
            layer, head = np.unravel_index(np.argmax(share), share.shape)
            most = f"layer {layer}, head {head} ({share[layer, head]:.2f})"
            rows.append((habit, int((share > 0.5).sum()), most))
        return rows

    def __repr__(self) -> str:
        """Return in words what the heads do."""
        layers, heads, n, m = self.weights.shape
        lines = [
            f"{layers * heads} heads (layers: {layers}, heads in each: {heads}) on {n} queries and "
            f"{m} keys"
        ]
        lines += [
            f"{habit}: {count} {'head' if count == 1 else 'heads'} more than half of the time, "
            f"most of all {most}"
            for habit, count, most in self._found()
        ]
        return for_terminal("\n".join(lines))

    def _repr_html_(self) -> str:
        """Return what the heads do as a table, and the script that puts the wall in its place."""
        shares = np.where(np.isnan(self.weights), MASKED, np.rint(100 * self.weights.clip(0, 1)))
        queries, keys = (list(map(isolated, side)) for side in self._tokens)
        data = {
            "shape": self.weights.shape,
            "shares": base64.b64encode(shares.astype(np.uint8).tobytes()).decode(),
            "habits": {name: share.round(3).tolist() for name, share in self.habits.items()},
            "queries": queries,
            "keys": keys,
        }
        packed = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        body = "".join(
            f'<tr><th scope="row">{habit}</th><td>{count}</td><td>{most}</td></tr>'
            for habit, count, most in self._found()
        )
        return (
            f'<div class="d2lmini-wall d2lmini-table" data-wall="{escape(packed)}">'
            f"{table_style()}{table_style('wall.css')}"
            "<table><caption>Where the heads look</caption><thead><tr><td></td>"
            '<th scope="col">heads more than half of the time</th><th scope="col">most of all</th>'
            f"</tr></thead><tbody>{body}</tbody></table>{STILL}{script('wall.mjs')}</div>"
        )

    def save(self, path: str | os.PathLike[str], *, title: str = "Attention") -> Path:
        """Write the wall as a page that stands by itself, and return its path.

        Parameters
        ----------
        path : str or path
            A file that ends in ``.html``.
        title : str
            The title of the page.

        Returns
        -------
        pathlib.Path
            Where it is.

        Raises
        ------
        ValueError
            If the name does not end in ``.html``.
        OSError
            If the file cannot be written.
        """
        file = Path(path)
        if file.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"path must end in .html; got {os.fspath(path)!r}")
        page = PAGE.format(title=escape(legible(title)), wall=self._repr_html_())
        file.write_text(page, encoding="utf8")
        return file


def habits(values: Floats, visible: Bools) -> dict[str, Floats]:
    """Return the mean weight, over queries, on the previous, the same and the first token."""
    weights = np.where(visible, values, 0.0)
    n, m = weights.shape[-2:]
    if n != m:
        return {"the first token": weights[..., 0].mean(axis=-1)}
    later = weights[..., min(2, n - 1) :, :]
    first = n - later.shape[-2]
    return {
        "the previous token": np.diagonal(later, first - 1, -2, -1).mean(axis=-1)
        if n > 1
        else np.zeros(weights.shape[:2]),
        "the token itself": np.diagonal(later, first, -2, -1).mean(axis=-1),
        "the first token": later[..., 0].mean(axis=-1),
    }
