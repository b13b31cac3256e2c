"""What a picture of weights shows, in words and as a table; and how numbers are written."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from d2lmini.plotting._heatmap_layout import Words
from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._legible import isolated, quoted

DESCRIBED = 8  # panels that get a sentence each
LISTED = 8  # queries whose strongest key is named
TABLED = 288  # cells that are listed as numbers
VERY_LARGE = 1e6  # numbers from here on are written with a power of 10
EQUAL = 0.005  # numbers closer than this look the same with two decimals


def true_minus(text: str) -> str:
    """Write a true minus, and no minus before 0.

    >>> true_minus("-1.50"), true_minus("-0.00")
    ('−1.50', '0.00')
    """
    if text.startswith("-"):
        return text[1:] if not text.strip("-0.") else "−" + text[1:]
    return text


def three_digits(value: float) -> str:
    """Write a number with three digits at most, large ones whole, very large ones with a power.

    >>> three_digits(0.12345), three_digits(-12345.6), three_digits(1e300)
    ('0.123', '−12,346', '1e+300')
    """
    return true_minus(f"{value:.3g}" if not 1000 <= abs(value) < VERY_LARGE else f"{value:,.0f}")


def two_decimals(value: float) -> str:
    """Write a number with two decimals, a very large one with a power.

    >>> two_decimals(-0.125), two_decimals(2.0**62)
    ('−0.12', '4.61e+18')
    """
    return true_minus(f"{value:.2f}" if abs(value) < VERY_LARGE else f"{value:.3g}")


def rounded(value: float, largest: float) -> str:
    """Round to two digits of the largest number.

    >>> rounded(0.876, 0.876), rounded(1e-5, 0.876), rounded(1.0, 1.0)
    ('0.88', 'about 0', '1')
    """
    value = round(value, 9)  # the last bits may differ from one machine to the next
    unit = 10.0 ** (math.floor(math.log10(round(largest, 9) or 1.0)) - 1)
    text = three_digits(round(round(value / unit, 4)) * unit)
    return "about 0" if text == "0" and value else text


def describe(values: Floats, visible: Bools, words: Words) -> str:
    """Say in sentences what there is to see: all panels, then each of the first few."""
    rows, columns, queries, keys = words.shape
    panels = rows * columns
    axes = " × ".join(isolated(name) for name in (words.ylabel, words.xlabel) if name)
    size = f"{queries} × {keys} values" + (f" ({axes})" if axes else "")
    if panels == 1:
        what = f"Heatmap of {size}"
    else:
        grid = [f"{rows} rows" if rows > 1 else "", f"{columns} columns" if columns > 1 else ""]
        what = f"{panels} heatmaps in {' and '.join(filter(None, grid))}, each of {size}"
    seen = values[visible]
    if not seen.size:
        return f"{what}, all masked."
    largest = float(abs(seen).max())
    low, high = (rounded(float(end), largest) for end in (seen.min(), seen.max()))
    asked = "quer" in words.ylabel.lower() or "key" in words.xlabel.lower()
    sides = ("query", "key") if asked else ("row", "column")
    if asked and words.ylabel and "quer" not in words.ylabel.lower():
        sides = (words.ylabel.lower(), "key")  # a row for each head, or for each score
    sentences = [f"{what}, " + (f"from {low} to {high}." if low != high else f"all {low}.")]
    for row, column in list(np.ndindex(rows, columns))[:DESCRIBED]:
        panel = values[row, column], visible[row, column]
        said = describe_panel(*panel, words.yticks, words.xticks, sides=sides)
        if panels == 1 and low == high and said.startswith("uniform"):
            continue
        name = _panel_name(words, row, column)
        if panels > 1:
            sentences.append(f"{name or f'Panel {row * columns + column + 1}'}: {said}.")
        else:
            sentences.append(f"{said[0].upper()}{said[1:]}.")
    if panels > DESCRIBED:
        at = np.unravel_index(np.argmax(np.where(visible, values.round(6), -np.inf)), values.shape)
        row, column, query, key = (int(i) for i in at)
        place = _panel_name(words, row, column) or f"panel {row * columns + column + 1}"
        sentences.append(
            f"{panels - DESCRIBED} more panels. The largest value of all is in {place}, at "
            f"{_place((query, key), words.yticks, words.xticks, sides)}."
        )
    return " ".join(sentences)


def _panel_name(words: Words, row: int, column: int) -> str:
    """Return what stands beside and above a panel."""
    beside = words.row_titles[row] if words.row_titles else ""
    above = words.titles[row][column]
    if not above and row and words.titles[0][column] and not any(map(any, words.titles[1:])):
        above = words.titles[0][column]  # one title for the column
    return ", ".join(isolated(each.replace("\n", " ")) for each in (beside, above) if each)


def describe_panel(
    weights: Floats,
    visible: Bools,
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
    *,
    sides: tuple[str, str] = ("query", "key"),
) -> str:
    """Say what one matrix shows: its mask, then its pattern or the strongest key of each query.

    ``sides`` are the words for a row and a column.

    >>> import numpy as np
    >>> describe_panel(np.eye(3), np.ones((3, 3), bool), None, None)
    'identity: 1 on the diagonal, 0 elsewhere'
    >>> describe_panel(np.array([[0.2, 0.8]]), np.ones((1, 2), bool), ["cat"], ["a", "cat"])
    'strongest key per query: “cat” → “cat” (0.80)'
    """
    weights = np.round(weights, 6)
    seen = weights[visible]
    if not seen.size:
        return "all masked"
    n, m = weights.shape
    mask = _describe_mask(visible)
    low, high = float(seen.min()), float(seen.max())
    if high - low < 1e-3 * max(1.0, abs(high), abs(low)):
        return f"{mask}uniform, every value {three_digits(round((low + high) / 2, 3))}"
    if n == m and np.array_equal(seen, np.eye(n)[visible]):
        return f"{mask}identity: 1 on the diagonal, 0 elsewhere"
    equal = np.where(visible, 1 / np.maximum(visible.sum(axis=1, keepdims=True), 1), 0.0)
    if mask and float(abs(np.where(visible, weights, 0.0) - equal).max()) < 1e-3:
        return f"{mask}uniform over what each {sides[0]} may attend to"
    live = np.where(visible, weights, -np.inf)
    best = live.argmax(axis=1)
    if low < -1e-6:
        least = np.argwhere(np.where(visible, weights, np.inf) == low)[0]
        most = np.argwhere(live == high)[0]
        return (
            f"{mask}largest value {two_decimals(high)} at {_place(most, rows, columns, sides)}, "
            f"smallest {two_decimals(low)} at {_place(least, rows, columns, sides)}"
        )
    present = np.flatnonzero(visible.any(axis=1)).tolist()
    if n <= LISTED:
        told = [_strongest(live[i], _named(rows, i), columns) for i in present]
        none = [_named(rows, i) for i in range(n) if i not in present]
        hidden = f"; all masked for {', '.join(none)}" if none else ""
        strongest = f"strongest {sides[1]} per {sides[0]}"
        return f"{mask}{strongest}: {', '.join(told)}{hidden}"
    shifts = best[present] - np.array(present)
    common = int(np.bincount(shifts - shifts.min()).argmax() + shifts.min())
    pattern = ""
    if n == m and abs(common) <= 1 and float((shifts == common).mean()) > 0.7:
        where = {0: "its own position", -1: "the position before", 1: "the next position"}[common]
        pattern = f"in most rows the largest value is at {where}; "
    choice: Bools = visible.sum(axis=1) > (1 if m > 1 else 0)
    some = bool(choice.any())
    tops = np.where(choice, live.max(axis=1), -np.inf) if some else live.max(axis=1)
    i = int(tops.argmax())
    among = " where there is a choice" if some and not choice[present].all() else ""
    at = _place((i, best[i]), rows, columns, sides)
    return f"{mask}{pattern}largest value{among} {two_decimals(live[i, best[i]])} at {at}"


def _describe_mask(visible: Bools) -> str:
    n, m = visible.shape
    masked = int((~visible).sum())
    if masked and np.array_equal(visible, np.tri(n, m, m - n, dtype=bool)):
        return "causal mask; "
    return f"{masked} of {n * m} cells masked; " if masked else ""


def _place(
    at: Any, rows: Sequence[str] | None, columns: Sequence[str] | None, sides: tuple[str, str]
) -> str:
    row, column = (int(i) for i in at)
    return f"{sides[0]} {_named(rows, row)}, {sides[1]} {_named(columns, column)}"


def _named(labels: Sequence[str] | None, position: int) -> str:
    return str(position) if labels is None else quoted(labels[position])


def _strongest(row: Floats, query: str, keys: Sequence[str] | None) -> str:
    """Name the strongest key of a query, or all of them if several look the same."""
    top = float(row.max())
    ties = np.flatnonzero(row > top - max(EQUAL, 1e-9 * abs(top))).tolist()
    value = two_decimals(top)
    if len(ties) == 1:
        return f"{query} → {_named(keys, ties[0])} ({value})"
    if len(ties) == np.isfinite(row).sum() and len(ties) > 2:
        named = "all keys"
    elif len(ties) > 2 and ties[-1] - ties[0] == len(ties) - 1:
        named = f"{_named(keys, ties[0])} to {_named(keys, ties[-1])}"
    else:
        named = " and ".join(_named(keys, tie) for tie in ties)
    return f"{query} → {named} equally ({value} each)"


def numbers_table(values: Floats, visible: Bools, words: Words) -> str:
    """Return folded tables of the numbers, one for each of a few small panels; else nothing."""
    if visible.size > TABLED:
        return ""
    tables = "".join(
        _table(values[at].round(6), visible[at], words, _panel_name(words, *at))
        for at in np.ndindex(*words.shape[:2])
    )
    return f"<details><summary>Show the numbers</summary>{tables}</details>"


def _table(panel: Floats, shown: Bools, words: Words, name: str) -> str:
    """Return a table of the numbers of a panel."""
    queries, keys = panel.shape
    heads = words.xticks or [str(k) for k in range(keys)]
    sides = words.yticks or [str(q) for q in range(queries)]
    caption = f"{isolated(name)}. " if name else ""
    caption += "Rows: {}. Columns: {}.".format(
        isolated(words.ylabel or "queries"), isolated(words.xlabel or "keys")
    )
    head = "".join(f'<th scope="col">{escape(key)}</th>' for key in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(sides[q])}</th>'
        + "".join(
            f"<td>{two_decimals(panel[q, k]) if shown[q, k] else 'masked'}</td>"
            for k in range(keys)
        )
        + "</tr>"
        for q in range(queries)
    )
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
