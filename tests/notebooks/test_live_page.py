"""The modules of live cells: joined to one, and what a terminal's signs do in them."""

import json

import pytest
import quickjs

from live_cells.extension import PAGE
from live_cells.joining import joined

MODULES = {
    "one": 'import { two } from "./two.mjs";\nconst own = 1;\nexport const sum = () => own + two;',
    "two": "const own = 10;\nexport const two = own;\nexport function three() { return 3; }",
}
ENTRY = 'import * as one from "./one.mjs";\nimport { two, three } from "./two.mjs";\n'


def test_modules_keep_their_own_names_whether_files_or_made_by_the_build(tmp_path):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.mjs").write_text(text)
    for made, folder in ((None, tmp_path), (MODULES, tmp_path / "none")):
        text = joined(folder, f"{ENTRY}found = [one.sum(), two, three()].join();", made)
        assert quickjs.Context().eval(f"var found; {text} found") == "11,10,3"
        assert text.count("const own = 10") == 1


def test_comments_stay_behind_and_another_form_is_refused(tmp_path):
    text = joined(tmp_path, '// said\n/** So. */\n  const a = "// kept";\n\nb; // kept too\n')
    assert text == 'const a = "// kept";\nb; // kept too\n'
    for line in ("export default 1;", 'import a from "./two.mjs";'):
        with pytest.raises(ValueError, match="cannot join: "):
            joined(tmp_path, line)


def shown(*pieces):
    """Return the lines of what was printed in pieces, and the looks of the last one's letters."""
    text = joined(PAGE, 'import { emptyLine, written } from "./terminal.mjs";\n')
    code = """const line = emptyLine(), ended = [];
        for (const piece of given) ended.push(...written(line, piece));
        JSON.stringify([...ended, line.cells])"""
    lines = json.loads(quickjs.Context().eval(f"const given = {json.dumps(pieces)};{text}{code}"))
    words = ["".join(letter for letter, _ in line) for line in lines]
    return words, [look for _, look in lines[-1]]


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (["a\nb"], ["a", "b"]),
        (["\r0 of 3", "\r1 of 3", "\r2 of 3"], ["2 of 3"]),
        (["10 %\r9"], ["90 %"]),  # as a notebook does: the rest stays
        (["done\r\nnext"], ["done", "next"]),
        (["ab\bc"], ["ac"]),
        (["ab\b"], ["a"]),
        (["\b\b"], [""]),
        (["a\n\bb"], ["a", "b"]),
        (["\x1b[31mred\x1b[0m"], ["red"]),
        (["\x1b[3", "1mred\x1b", "[0m."], ["red."]),
        (["12345\r\x1b[Kab"], ["ab"]),
        (["\x1b[1A\x1b[2Ja\x1bMb"], ["ab"]),
        (["\N{GRINNING FACE}x\by"], ["\N{GRINNING FACE}y"]),
    ],
)
def test_signs_do_what_they_do_in_a_notebook(pieces, lines):
    assert shown(*pieces)[0] == lines


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("a\x1b[31mb\x1b[0mc", ["", "ansi-c1", ""]),
        ("\x1b[1;32ma\x1b[22mb\x1b[39mc", ["ansi-bold ansi-c2", "ansi-c2", ""]),
        (  # the nearest of eight; black is the ink
            "\x1b[94ma\x1b[38;5;3mb\x1b[38;2;1;2;3mc\x1b[38;5;200md",
            ["ansi-c4", "ansi-c3", "", "ansi-c5"],
        ),
        ("\x1b[4;41ma\x1b[mb", ["ansi-underlined ansi-c1 ansi-on", ""]),
    ],
)
def test_colours_are_looks(text, looks):
    assert shown(text)[1] == looks
