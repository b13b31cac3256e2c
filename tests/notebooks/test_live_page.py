"""What a terminal's signs do in what a live cell prints."""

import json

import pytest
import quickjs

from live_cells.extension import PAGE
from live_cells.joining import joined


def shown(*pieces):
    """Return the lines of what was printed in pieces."""
    text = joined(PAGE, 'import { emptyLine, written } from "./terminal.mjs";\n')
    code = """const line = emptyLine(), ended = [];
        for (const piece of given) ended.push(...written(line, piece));
        JSON.stringify([...ended, line.cells])"""
    lines = json.loads(quickjs.Context().eval(f"const given = {json.dumps(pieces)};{text}{code}"))
    return ["".join(letter for letter, _ in line) for line in lines]


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (["\r0 of 3", "\r1 of 3", "\r2 of 3"], ["2 of 3"]),
        (["10 %\r9"], ["90 %"]),  # as a notebook does: the rest stays
        (["done\r\nnext"], ["done", "next"]),
        (["\b\bab\bc"], ["ac"]),
        (["\x1b[3", "1mred\x1b", "[0m."], ["red."]),
        (["\N{GRINNING FACE}x\by"], ["\N{GRINNING FACE}y"]),
    ],
)
def test_signs_do_what_they_do_in_a_notebook(pieces, lines):
    assert shown(*pieces) == lines
