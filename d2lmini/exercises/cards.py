"""How results, hints and solutions look: as plain text, and as HTML in a notebook.

Both are the same for the same input, so that stored outputs can be compared. The HTML takes the
page's own text colour and works without style sheets and without scripts.
"""

import html as entities
import sys
import textwrap
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from d2lmini._terminal import for_terminal
from d2lmini.exercises.definition import Result, Status, Tables

__all__ = ["Folded", "html", "in_notebook", "plain", "show", "show_value"]

LARGEST = 10**6  # numbers in an array that is looked into
LONGEST = 24  # lines of a report
WIDTH = 88
SYMBOLS: dict[Status, str] = {"todo": "○", "pass": "✓", "wrong": "✗", "error": "✗"}
COLORS: dict[Status, str] = {  # each at least 3:1 on white and on black
    "todo": "var(--d2l-todo, #808080)",
    "pass": "var(--d2l-pass, #2e9e5b)",
    "wrong": "var(--d2l-wrong, #d9534f)",
    "error": "var(--d2l-wrong, #d9534f)",
}


def show_value(value: Any, precision: int = 3) -> str:
    """Write an argument or an answer in a few lines, whatever the reader's print options are."""
    if not isinstance(value, np.ndarray):
        return _shorten(repr(value), 300)
    if value.size > LARGEST:  # it may take no memory, as a broadcast, and all of it once copied
        return f"an array of {value.size:,} numbers"
    if value.dtype.kind == "f":  # what is written as 0 has no sign: two equal texts are equal
        value = np.where(np.abs(value) < 0.5 * 10.0**-precision, 0.0, value)
    with np.printoptions(
        precision=precision,
        suppress=True,
        floatmode="maxprec_equal",
        threshold=60,
        edgeitems=2,
        linewidth=72,
        sign="-",
        nanstr="nan",
        infstr="inf",
        formatter=None,
    ):
        return np.array2string(value, separator=", ")


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def plain(result: Result) -> str:
    """Return the report as at most 24 lines of text."""
    head = f"{SYMBOLS[result.status]} {result.function}: {result.head}"
    before = textwrap.wrap(_shorten(head, 3 * WIDTH), WIDTH, subsequent_indent="  ")
    after = []
    if result.says:
        after = textwrap.wrap(
            _shorten("→ " + result.says, 5 * WIDTH),
            WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
        )
    rows = _fit(result.rows, LONGEST - len(before) - len(after))
    label_width = max((len(label) for label, _ in rows), default=0) + 2
    middle = []
    for label, text in rows:
        first, *others = text.splitlines() or [""]
        middle.append(f"  {label:<{label_width}}{first}")
        middle += [f"  {'':<{label_width}}{line}" for line in others]
    return for_terminal("\n".join([*before, *middle, *after]))


def html(result: Result) -> str:
    """Return the report as a card."""
    says = f'<p style="margin:.3em 0 0">→ {entities.escape(result.says)}</p>' if result.says else ""
    return (
        f'<div class="d2l-check d2l-{result.status}" role="status" style="border-left:.3em solid '
        f'{COLORS[result.status]};padding:.4em 1em;margin:.3em 0;color:inherit">'
        f'<span aria-hidden="true">{SYMBOLS[result.status]}</span> '
        f"<strong>{entities.escape(result.function)}</strong>: {entities.escape(result.head)}"
        f"{_list(_fit(result.rows, LONGEST - 5))}{_drawn(result.tables)}{says}</div>"
    )


def _drawn(tables: Tables | None) -> str:
    """Draw what was expected, what came back, and how far they are apart, as grids of squares."""
    if tables is None:
        return ""
    want, have = (np.array(table) for table in tables)
    if not (want.size and 2 <= want.size <= 400 and max(want.shape) <= 30):
        return ""
    with np.errstate(all="ignore"):
        apart = np.nan_to_num(np.abs(want - have), nan=np.inf)
        apart[np.isnan(want) & np.isnan(have)] = 0
    finite = np.concatenate([want[np.isfinite(want)], have[np.isfinite(have)]])
    low, high = min(0.0, *finite), max(0.0, *finite)
    wrong = apart > 1e-4 * np.abs(want) + 1e-5
    row, column = np.unravel_index(apart.argmax(), apart.shape)
    words = (
        f"Expected, got, and the distance between them, each {want.shape[0]} by {want.shape[1]}: "
        f"{wrong.sum()} of {wrong.size} numbers differ, most in row {row + 1}, column {column + 1}."
    )
    grids = [
        _grid("expected", (want - low) / (high - low or 1)),
        _grid("got", (have - low) / (high - low or 1)),
        _grid("apart", apart / (apart[np.isfinite(apart)].max(initial=0) or 1)),
    ]
    return (
        f'<div role="img" aria-label="{words}" style="display:flex;flex-wrap:wrap;gap:1em;'
        f'margin:.5em 0">{"".join(grids)}</div>'
    )


def _grid(title: str, shares: np.ndarray) -> str:
    """Draw numbers between 0 and 1 as squares, the larger the darker; hatched if not finite."""
    squares = "".join(
        f'<span style="width:.8em;height:.8em;border:1px solid #80808066;{_fill(share)}"></span>'
        for share in shares.ravel()
    )
    return (
        f'<div aria-hidden="true"><div style="font-size:.85em">{title}</div><div style="display:'
        f'inline-grid;gap:1px;grid-template-columns:repeat({shares.shape[1]},max-content)">'
        f"{squares}</div></div>"
    )


def _fill(share: float) -> str:
    if not np.isfinite(share):
        return "background:repeating-linear-gradient(135deg,currentColor 0 1px,transparent 1px 3px)"
    return f"background:color-mix(in srgb,currentColor {100 * share:.0f}%,transparent)"


def _list(rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    pairs = "".join(
        f'<dt style="font-weight:400;margin:0;white-space:nowrap">{entities.escape(label)}</dt>'
        f'<dd style="margin:0"><pre style="{PRE}">{entities.escape(text)}</pre></dd>'
        for label, text in rows
    )
    return (
        '<dl style="display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;'
        f'margin:.4em 0;align-items:baseline">{pairs}</dl>'
    )


PRE = (
    "margin:0;padding:0;border:0;background:none;color:inherit;box-shadow:none;"
    "white-space:pre-wrap;overflow-wrap:anywhere"
)


def _fit(rows: tuple[tuple[str, str], ...], budget: int) -> list[tuple[str, str]]:
    """Cut each row to so few lines that all rows together fit into the budget."""
    for allowed in range(8, 0, -1):
        cut = [(label, _first_lines(text, allowed)) for label, text in rows]
        if sum(max(1, len(text.splitlines())) for _, text in cut) <= budget:
            return cut
    return cut[:budget]


def _first_lines(text: str, allowed: int) -> str:
    lines = text.splitlines()
    if len(lines) > allowed:
        lines = [*lines[: allowed - 1], lines[allowed - 1] + " …"]
    return "\n".join(_shorten(line, WIDTH) for line in lines)


@dataclass(frozen=True)
class Folded:
    """Titled texts, each folded away in a notebook and written out in a terminal."""

    items: tuple[tuple[str, str], ...]
    code: bool = False

    def __repr__(self) -> str:
        parts = []
        for title, text in self.items:
            lines = text if self.code else textwrap.fill(text, WIDTH - 4)
            parts.append(f"{title}\n{textwrap.indent(lines, '    ')}")
        return for_terminal("\n".join(parts))

    def _repr_html_(self) -> str:
        parts = []
        for title, text in self.items:
            body = entities.escape(text)
            body = (
                f'<pre style="{PRE};padding:.2em 1.2em"><code style="{PRE}">{body}</code></pre>'
                if self.code
                else f'<p style="margin:.2em 1.2em">{body}</p>'
            )
            parts.append(
                '<details class="d2l-fold" style="margin:.3em 0">'
                f'<summary style="cursor:pointer">{entities.escape(title)}</summary>'
                f"{body}</details>"
            )
        return "".join(parts)


def in_notebook() -> bool:
    """Tell whether this runs in a notebook's kernel rather than in a terminal or a script."""
    shell = _shell()
    return shell is not None and "Terminal" not in type(shell).__name__


def _shell() -> Any:
    ipython = sys.modules.get("IPython")  # a running shell has been imported
    return ipython.get_ipython() if ipython is not None else None


def show(thing: Result | Folded) -> None:
    """Display in a notebook, print elsewhere."""
    if in_notebook():
        import_module("IPython.display").display(thing)
    else:
        print(repr(thing))
