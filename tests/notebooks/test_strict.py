"""The comparison of notebooks finds what it is there to find: a tampered cell for each hole."""

import base64
import copy
import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from d2lmini.exercises import find
from scripts import notebooks
from tests.notebooks import strict

ROOT = Path(__file__).resolve().parents[2]
PRINT, PICTURE = 'print("2 + 3 =", 2 + 3)', 'Image.new("RGB", (4, 3), "red")'
ORDER = 'print("first"); display(HTML("<b>then</b>", metadata={"alt": "then"})); print("last")'
SOURCES = {
    "imports": "import numpy as np\nfrom PIL import Image\n"
    "from IPython.display import HTML, clear_output, display",
    "print": PRINT,
    "colour": PICTURE,
    "fails": "_ = 6 * 7",
    "file": "_ = 6 * 7",
    "hidden": '"hidden by the semicolon";',
    "order": ORDER,
    "described": ORDER,
    "cleared": 'print("half"); clear_output(); print("all")',
    "bar": 'bar = display(HTML("0 %"), display_id=True); bar.update(HTML("100 %"))',
}
NUMBER = {name: number for number, name in enumerate(SOURCES)}


def tampered(good, changes):
    """Return a copy of a notebook in which these places, named by their way there, are changed."""
    made = copy.deepcopy(good)
    for way, value in changes.items():
        *steps, last = [int(step) if step.isdecimal() else step for step in way.split()]
        place = made.cells[NUMBER[steps.pop(0)]] if steps[0] in NUMBER else made
        for step in steps:
            place = place[step]
        place[last] = value
    return nbformat.writes(made)


def picture_of(colour, size=(4, 3), pixel=None, **options):
    file, picture = io.BytesIO(), Image.new("RGB", size, colour)
    if pixel:
        picture.putpixel((2, 1), pixel)
    picture.save(file, "PNG", **options)
    return base64.b64encode(file.getvalue()).decode() + "\n"


def stream(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


# What is seen in the stored file, before anything is run.
ERROR = {"ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": []}
STORED = {
    "execution count None, not 5": {"file execution_count": None},
    "stored stderr: beware": {"file outputs": [stream("beware", "stderr")]},
    "stored error: ZeroDivisionError": {
        "fails metadata tags": ["raises-exception"],
        "fails outputs": [nbformat.v4.new_output("error", **ERROR)],
    },
    "cell 1: excused": {"print metadata tags": ["nbval-ignore-output"]},
    "cell 7: excused": {"described source": f"# NBVAL_SKIP\n{ORDER}"},
}

# What is seen by running it: which test fails, what it says, and of what.
RUN = [
    ("print", "2 + 3 = 6", {"print outputs 0 text": "2 + 3 = 6\n"}),
    ("colour", "12 of 12 pixels differ", {"colour outputs 0 data image/png": picture_of("blue")}),
    ("fails", "ZeroDivisionError", {"fails source": "1 / 0"}),
    (
        "order",
        "the outputs of this run: ['stdout', 'display_data']",
        {
            "order outputs": [
                nbformat.v4.new_output("display_data", {"text/html": "<b>then</b>"}),
                stream("first\nlast\n"),
            ]
        },
    ),
    ("described", "something else", {"described outputs 1 metadata alt": "something else"}),
    ("bar", "stored:      0 %", {"bar outputs 0 data text/html": "0 %"}),
    (
        strict.AGAIN,
        "leaves no files behind: left.txt",
        {"file source": "open('left.txt', 'w').close()"},
    ),
]


def run_tests(folder, *options):
    """Let the plugin compare the notebooks in a folder; return, by file, what each test says."""
    # From the root, where the plugin can be imported, and not with the settings of this project.
    command = [sys.executable, "-m", "pytest", "-p", "tests.notebooks.strict", "-c", "/dev/null"]
    command += ["--rootdir", folder, f"--junitxml={folder / 'report.xml'}", folder, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    outcome = {}
    for case in ElementTree.parse(folder / "report.xml").iter("testcase"):
        name = case.get("classname").removesuffix(".ipynb").split(".")[-1]
        failure = case.find("failure")
        said = None if failure is None else failure.get("message", "") + (failure.text or "")
        outcome.setdefault(name, {})[case.get("name")] = said
    return outcome


def executed(folder, sources):
    """Return a notebook of these cells, executed."""
    cells = [nbformat.v4.new_code_cell(code, id=name) for name, code in sources.items()]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "made.ipynb")
    return notebooks.run(folder / "made.ipynb", folder)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return executed(tmp_path_factory.mktemp("good"), SOURCES)


@pytest.fixture(scope="module")
def report(good, tmp_path_factory):
    """Run the good notebook, one that is tampered with everywhere, and one that is cut off."""
    folder = tmp_path_factory.mktemp("tampered")
    bad = tampered(good, {way: value for *_, changes in RUN for way, value in changes.items()})
    text = notebooks.text_of(good)
    for name, content in {"good": text, "bad": bad, "corrupt": text[:-20]}.items():
        (folder / f"{name}.ipynb").write_text(content)
    return run_tests(folder)


def test_a_good_notebook_passes_and_a_corrupt_one_does_not_stop_the_run(report):
    assert list(report["good"]) == ["stored", *map("Cell {}".format, NUMBER.values()), strict.AGAIN]
    assert set(report["good"].values()) == {None}
    assert list(report["corrupt"]) == ["stored"]
    assert "not a notebook" in report["corrupt"]["stored"]
    untouched = {"hidden", "cleared"}
    assert {name for name in untouched if report["bad"][f"Cell {NUMBER[name]}"]} == set()


@pytest.mark.parametrize("said", STORED)
def test_a_stored_defect_is_found(good, said):
    assert strict.defects(notebooks.text_of(good)) == []
    (found,) = strict.defects(tampered(good, STORED[said]))
    assert said in found


@pytest.mark.parametrize(("test", "said"), [(test, said) for test, said, _ in RUN])
def test_a_difference_is_found(report, test, said):
    name = f"Cell {NUMBER[test]}" if test in NUMBER else test
    assert said in (report["bad"][name] or "passed")


def test_of_a_picture_what_is_seen_is_compared():
    red, again = picture_of("red"), picture_of("red", compress_level=0)
    assert red != again and strict.picture_difference(red, again) == ""
    pixel, wide = picture_of("red", pixel=(240, 0, 0)), picture_of("red", (5, 3))
    assert strict.picture_difference(pixel, red) == "1 of 12 pixels differ"
    assert strict.picture_difference(wide, red) == "5 x 3 pixels, not 4 x 3"


EXERCISE = find("weighted_average")  # whose function has a name of its own
PLAYED = {
    "imports": "import time\nfrom d2lmini import softmax\nfrom d2lmini.exercises import check",
    "fine": "x, y, z = 1, [1], [1]\nx",
    "below": "x",  # a cell below gives it another value
    "itself": "y.append(2)\ny",
    "taken": "softmax.__module__",  # an answer takes its name
    "posed": "@check\ndef softmax(scores):\n    ...",
    "mine": EXERCISE.starter,
    "answered": f"{EXERCISE.function}.__doc__",  # it comes from the answer
    "slow": "for one in z: z = 1\nend = time.process_time() + 0.6\n"
    "while time.process_time() < end: pass",
    "sets": "x = 2",
}


def test_what_does_not_survive_a_reader_who_plays_is_found(tmp_path):
    (tmp_path / "made.ipynb").write_text(notebooks.text_of(executed(tmp_path, PLAYED)))
    wrong = {"below", "itself", "taken", "answered"}
    for costly, expected in ((0.5, wrong), ("inf", wrong | {"slow"})):
        report = run_tests(tmp_path, f"--costly={costly}")["made"]
        said = report.pop(strict.AGAIN)
        assert not any(report.values())
        assert {*re.findall(r"([a-z]+), run again", said)} == expected, said
