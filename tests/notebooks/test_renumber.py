"""Figures and formulas are renumbered by a command, in whatever names them."""

import json

from scripts import renumber

FIRST = [
    '# One\n\n$$ a \\tag{1.1a} $$\n\n<a id="eq-1-1"></a>\n$$ b \\tag{1.1} $$',
    "**Figure 1.2.** Moved before the first, as [(1.1)](#eq-1-1) and formula (1.1) say.",
    '<a id="figure-1-1"></a>\n**Figure 1.1.** It was the first.',
    "**Figure 1.2a.** A new one. [Figure 1.2a](#figure-1-2a), not 1.2.",
]
RENUMBERED = [
    '# One\n\n$$ a \\tag{1.1} $$\n\n<a id="eq-1-2"></a>\n$$ b \\tag{1.2} $$',
    "**Figure 1.1.** Moved before the first, as [(1.2)](#eq-1-2) and formula (1.2) say.",
    '<a id="figure-1-2"></a>\n**Figure 1.2.** It was the first.',
    "**Figure 1.3.** A new one. [Figure 1.3](#figure-1-3), not 1.2.",
]
SECOND = (
    "# Two\n\nSee [Figure 1.{0}](01-one.ipynb#figure-1-{0}), [(1.{0})](01-one.ipynb#eq-1-{0}), "
    "[Figure 1.10](01-one.ipynb#figure-1-10), softmax(1.1) and version 1.1.2."
)
CODE = "# The seconds of Figure 1.{}\n2.1"


def written(folder, name, texts, *code):
    cells = [{"cell_type": "markdown", "id": str(i), "source": t} for i, t in enumerate(texts)]
    cells += [{"cell_type": "code", "id": "code", "source": c} for c in code]
    (folder / "chapters").mkdir(exist_ok=True)
    (folder / "chapters" / name).write_text(json.dumps({"cells": cells}), "utf8")


def texts(folder, name):
    cells = json.loads((folder / "chapters" / name).read_text("utf8"))["cells"]
    return [cell["source"] for cell in cells]


def test_everything_is_counted_by_its_place(tmp_path, capsys):
    written(tmp_path, "01-one.ipynb", FIRST)
    written(tmp_path, "02-two.ipynb", [SECOND.format(1)], CODE.format(2))
    assert renumber.main(tmp_path) == 0
    assert texts(tmp_path, "01-one.ipynb") == RENUMBERED
    assert texts(tmp_path, "02-two.ipynb") == [SECOND.format(2), CODE.format(1)]
    said = capsys.readouterr().out
    assert "figure 1.2a is now 1.3\n" in said
    assert "changed chapters/02-two.ipynb: store its outputs again\n" in said
    assert renumber.main(tmp_path) == 0 and capsys.readouterr().out == ""
