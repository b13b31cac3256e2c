"""What is shown: plain text, cards, hints and solutions, in a notebook and out of it."""

import re
import subprocess
import sys
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from answers import assert_fits_a_terminal, graded, run_text
from answers import softmax as right

from d2lmini.exercises import Result, cards, check, exercises, find, grade, hint, solution


def read(html):
    """Return the names of all elements, and the text; every element is closed in order."""
    root = ElementTree.fromstring(f"<body>{html}</body>")
    return [element.tag for element in root.iter()][1:], "".join(root.itertext())


@pytest.fixture
def notebook(monkeypatch):
    """Pretend to be in a notebook's kernel, and collect what is displayed."""
    shown = []
    shell = type("ZMQInteractiveShell", (), {})()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    display = types.ModuleType("IPython.display")
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def stub(scores): ...


def test_check_gives_the_function_back_and_grade_shows_nothing(capsys):
    grade(stub, name="softmax")
    assert capsys.readouterr() == ("", "")
    assert check(right) is right
    assert check(name="softmax")(stub) is stub
    right_one, todo = capsys.readouterr().out.splitlines()
    assert right_one == f"✓ my_softmax: correct on all {len(find('softmax').cases())} inputs."
    assert todo == "○ my_softmax: not attempted yet. Replace the three dots and run again."


def test_in_a_notebook_results_hints_and_solutions_are_displayed(notebook, capsys, monkeypatch):
    check(stub, name="softmax")
    hint("softmax")
    hint(right)  # by the function itself, and however often the cell is run
    solution("CausalHeads")
    assert capsys.readouterr().out == ""
    result, one, two, answer = notebook
    assert type(result).__name__ == "Result" and one == two
    tags, text = read(one._repr_html_())
    assert tags == ["details", "summary", "p"] * 3 and "open" not in one._repr_html_()
    assert all(hint in text for hint in find("softmax").hints)
    tags, text = read(answer._repr_html_())
    assert tags == ["details", "summary", "pre", "code"]
    assert find("CausalHeads").solution in text
    terminal = type("TerminalInteractiveShell", (), {})()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: terminal)
    hint("attention")
    assert capsys.readouterr().out.startswith("Hint 1 of 3\n")


def test_in_a_terminal_hints_come_one_by_one(capsys):
    for number in (1, 2, 3, 1):
        hint("softmax")
        said = capsys.readouterr().out
        assert said.startswith(f"Hint {number} of 3\n")
        assert said.count("Hint") == 1


RESULTS = [
    grade(lambda scores: right(scores, axis=0), name="softmax"),
    grade(lambda scores: ["<script>alert(1)</script> &"], name="softmax"),
    Result("x", "wrong", "<b>&", (("<i>", "<pre>\n&"),), "<u>"),
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.status)
def test_a_card_says_what_the_text_says_and_needs_no_style_sheet(result):
    html = result._repr_html_()
    tags, text = read(html)
    assert {*tags} <= {"div", "span", "strong", "dl", "dt", "dd", "pre", "p"}
    for part in (result.function, result.head, result.says, *(label for label, _ in result.rows)):
        assert part in text
    assert 'role="status"' in html
    assert not re.search(r"[\";](color:(?!inherit)|background:#)", html), "not the page's own"


@pytest.mark.parametrize("status", cards.COLORS)
def test_the_bar_can_be_seen_on_light_and_dark_pages(status):
    colors = pytest.importorskip("matplotlib.colors")
    from d2lmini.plotting.theme import luminance

    found = re.search("#[0-9a-f]{6}", cards.COLORS[status])[0]
    bar, light, dark = (luminance(colors.to_rgb(c)) for c in (found, "#ffffff", "#14181e"))
    assert 3 * (dark + 0.05) <= bar + 0.05 <= (light + 0.05) / 3


def test_a_report_has_at_most_24_lines():
    rows = tuple((f"argument{i}", "\n".join(["[[1.0, 2.0]]" * 20] * 50)) for i in range(50))
    result = Result("x", "wrong", "head " * 200, rows, "says " * 400)
    assert_fits_a_terminal(repr(result))
    assert "says" in repr(result)
    assert_fits_a_terminal(repr(grade(lambda *a: np.ones((300, 300)), name="attention")))


def test_the_readers_print_options_change_nothing():
    bad = run_text("def softmax(scores):\n    return scores / 3", "softmax")
    before = repr(grade(bad))
    with np.printoptions(precision=1, sign="+", threshold=1, formatter={"float": lambda x: "?"}):
        assert repr(grade(bad)) == before


LIGHT = """
import sys, d2lmini.exercises
assert not {"torch", "matplotlib", "IPython"} & {*sys.modules}
sys.modules["torch"] = sys.modules["IPython"] = sys.modules["matplotlib"] = None
import numpy as np
from d2lmini.exercises import find, grade
exec(find("softmax").solution)
print(grade(my_softmax), grade(find("softmax").mistakes[0].fn, name="softmax"), sep="\\n")
"""


def test_the_import_is_light_and_a_report_is_the_same_in_every_session():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = grade(right, name="softmax"), graded("softmax", find("softmax").mistakes[0].fn)
    assert done.stdout == "".join(f"{result}\n" for result in results)


def test_exercises_are_listed_in_the_order_of_the_book():
    chapters = [exercise.chapter for exercise in exercises()]
    assert chapters == sorted(chapters)
