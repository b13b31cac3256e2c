"""What is shown: plain text, cards, hints and solutions, in a notebook and out of it."""

import subprocess
import sys
import types
from html.parser import HTMLParser

import numpy as np
import pytest
from answers import EXERCISES, assert_fits_a_terminal, graded, on, run_text
from answers import softmax as right

from d2lmini.exercises import Result, cards, check, exercises, find, grade, hint, solution

VOID = {"br", "hr", "img"}


class Checked(HTMLParser):
    """Read HTML, and insist that every element is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.styles = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open
        self.text = "".join(self.text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.styles.append(dict(attributes).get("style") or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


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
    def softmax(scores):
        return right(scores)

    grade(stub, name="softmax")
    assert capsys.readouterr() == ("", "")
    assert check(softmax) is softmax
    assert check(name="softmax")(stub) is stub
    assert check(stub, name="softmax") is stub
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"✓ my_softmax: correct on all {len(find('softmax').cases())} inputs."
    todo = "○ my_softmax: not attempted yet. Replace the ... and run the cell again."
    assert said[1:] == [todo, todo]


def test_in_a_notebook_results_hints_and_solutions_are_displayed(notebook, capsys):
    check(stub, name="softmax")
    hint("softmax")
    hint(right)  # by the function itself, and however often the cell is run
    solution("CausalHeads")
    assert capsys.readouterr().out == ""
    result, one, two, answer = notebook
    assert type(result).__name__ == "Result" and one == two
    page = Checked(one._repr_html_())
    assert page.tags.count("details") == page.tags.count("summary") == 3
    assert "open" not in one._repr_html_()
    assert all(text in page.text for text in find("softmax").hints)
    page = Checked(answer._repr_html_())
    assert page.tags == ["details", "summary", "pre", "code"]
    assert find("CausalHeads").solution in page.text


def test_in_a_terminal_hints_come_one_by_one(capsys):
    for number in (1, 2, 3, 1):
        hint("softmax")
        said = capsys.readouterr().out
        assert said.startswith(f"Hint {number} of 3\n")
        assert said.count("Hint") == 1


def test_the_terminal_of_ipython_is_a_terminal(notebook, monkeypatch, capsys):
    shell = type("TerminalInteractiveShell", (), {})()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    hint("attention")
    assert capsys.readouterr().out.startswith("Hint 1 of 3\n")
    assert not notebook


@pytest.mark.parametrize("function", [hint, solution])
def test_what_has_no_name(function):
    with pytest.raises(TypeError, match=r"hint\('softmax'\)"):
        function(3)
    with pytest.raises(ValueError, match="did you mean 'softmax'"):
        function("sotfmax")


RESULTS = [
    grade(stub, name="softmax"),
    grade(right, name="softmax"),
    grade(lambda scores: right(scores, axis=0), name="softmax"),
    grade(lambda scores: 1 / 0, name="softmax"),
    grade(lambda scores: ["<script>alert(1)</script> &"], name="softmax"),
    Result("x", "wrong", "<b>&", (("<i>", "<pre>\n&"),), "<u>"),
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.status)
def test_a_card_says_what_the_text_says_and_needs_no_style_sheet(result):
    text = result._repr_html_()
    page = Checked(text)
    assert set(page.tags) <= {"div", "span", "strong", "dl", "dt", "dd", "pre", "p"}
    for part in (result.function, result.head, result.says, *(label for label, _ in result.rows)):
        assert part in page.text
    assert "<script" not in text
    assert 'role="status"' in text
    for style in page.styles:  # the page's own text colour, in the dark too
        colors = [rule for rule in style.split(";") if rule.startswith("color:")]
        assert set(colors) <= {"color:inherit"}
        assert "background:#" not in style
    assert text == result._repr_html_()


def contrast(one, two):
    def luminance(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return sum(x * w for x, w in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("status", cards.COLORS)
def test_the_bar_can_be_seen_on_light_and_dark_pages(status):
    color = cards.COLORS[status].split(", ")[1].rstrip(")")
    for ground in ("#ffffff", "#000000", "#14181e"):
        assert contrast(color, ground) >= 3, ground


@pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])
def test_hints_and_solutions_can_be_shown(exercise, capsys):
    hint(exercise.name)
    solution(exercise.name)
    said = capsys.readouterr().out
    assert exercise.solution.splitlines()[0] in said
    widest = max(map(len, said.splitlines()))
    assert widest <= 100, f"a cell of a notebook has room for 100 letters, not {widest}: wrap it"


def test_a_report_has_at_most_24_lines():
    rows = tuple((f"argument{i}", "\n".join(["[[1.0, 2.0]]" * 20] * 50)) for i in range(10))
    result = Result("x", "wrong", "head " * 200, rows, "says " * 400)
    assert_fits_a_terminal(repr(result))
    many = Result("x", "wrong", "head", tuple((str(i), "1") for i in range(100)), "says")
    assert_fits_a_terminal(repr(many))
    assert "says" in repr(many)


def test_a_huge_answer_is_cut(capsys):
    text = repr(grade(lambda *a: np.ones((300, 300)), name="attention"))
    assert_fits_a_terminal(text)
    assert "..." in text


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
from d2lmini.exercises import exercises, grade, hint, solution
for e in exercises():
    print(hint(e.name), solution(e.name), e.starter, file=sys.stderr)
    if not e.needs_torch:
        names = {"np": np}
        exec(e.solution, names)
        assert grade(names[e.function]).status == "pass", e.name
        for m in e.mistakes[:1]:
            result = grade(m.fn, name=e.name)
            assert result.mistake == m.id, (e.name, m.id)
            print("REPORT", e.name, result, result._repr_html_())
"""


def test_the_import_is_light_all_works_without_torch_and_a_report_is_the_same_every_time():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    reports = done.stdout.split("REPORT ")[1:]
    assert len(reports) > 20
    for exercise in exercises(3):
        result = graded(exercise.name, exercise.mistakes[0].fn)
        report = f"{exercise.name} {result} {result._repr_html_()}"
        assert exercise.needs_torch or any(one.startswith(report) for one in reports), report


def test_exercises_are_listed_in_the_order_of_the_book():
    chapters = [exercise.chapter for exercise in exercises()]
    assert chapters == sorted(chapters)
    assert exercises(chapter=3) == tuple(e for e in exercises() if e.chapter == 3)
    assert exercises(chapter=99) == ()
    assert len({exercise.name for exercise in exercises()}) == len(exercises())
