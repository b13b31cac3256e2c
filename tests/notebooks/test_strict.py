"""The comparison of notebooks finds what it is there to find: a tampered cell for each hole."""

import base64
import io
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from scripts import notebooks
from tests.notebooks import strict

ROOT = Path(__file__).resolve().parents[2]
PRINT, PICTURE = 'print("2 + 3 =", 2 + 3)', 'Image.new("RGB", (4, 3), "red")'
QUIET = "_ = 7 * 6"
ORDER = 'print("first"); display(HTML("<b>then</b>", metadata={"alt": "then"})); print("last")'
WIDGET = "application/vnd.jupyter.widget-view+json"
SOURCES = {
    "imports": "import os\nfrom PIL import Image\n"
    "from IPython.display import HTML, clear_output, display",
    "print": PRINT,
    "silent": PRINT,
    "unrun": PRINT,
    "colour": PICTURE,
    "pixel": PICTURE,
    "size": PICTURE,
    "png": PICTURE,
    "quiet": QUIET,
    "fails": QUIET,
    "two": QUIET,
    "file": QUIET,
    "hidden": '"hidden by the semicolon";',
    "order": ORDER,
    "described": ORDER,
    "cleared": 'print("half"); clear_output(); print("all")',
    "bar": 'bar = display(HTML("0 %"), display_id=True); bar.update(HTML("100 %"))',
    "parts": 'print("two"); display(HTML("!")); print("parts"); '
    'late = display(HTML("?"), display_id=True)',
    "late": 'late.update(HTML("answered in a later cell"))',
    # What a widget shows: each run gives its model another name.
    "widget": "display({'text/plain': 'bar', "
    f"'{WIDGET}': {{'model_id': os.urandom(4).hex()}}}}, raw=True)",
}
NUMBER = {name: number for number, name in enumerate(SOURCES)}
GONE = object()


def tampered(good, changes):
    """Return a copy of a notebook in which these places, named by their way there, are changed."""
    copy = nbformat.reads(nbformat.writes(good), as_version=4)
    for way, value in changes.items():
        *steps, last = [int(step) if step.isdecimal() else step for step in way.split()]
        place = copy.cells[NUMBER[steps.pop(0)]] if steps[0] in NUMBER else copy
        for step in steps:
            place = place[step]
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return nbformat.writes(copy)


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
    "execution count None, not 4": {"unrun execution_count": None, "unrun outputs": []},
    "execution count 9, not 2": {"print execution_count": 9},
    "cell 4: a result of count 9, not 5": {"colour outputs 0 execution_count": 9},
    "cell 19: there is nothing in it": {"widget source": ""},
    "stored stderr: beware": {"quiet outputs": [stream("beware", "stderr")]},
    "stored error: ZeroDivisionError": {
        "fails source": "1 / 0",
        "fails metadata tags": ["raises-exception"],
        "fails outputs": [nbformat.v4.new_output("error", **ERROR)],
    },
    "excused from comparison by nbval-ignore": {"print metadata tags": ["nbval-ignore-output"]},
    "excused from comparison by NBVAL_SKIP": {"print source": f"# NBVAL_SKIP\n{PRINT}"},
    "excused from comparison by PYTEST_VALIDATE_IGNORE_OUTPUT": {
        "print source": f"# PYTEST_VALIDATE_IGNORE_OUTPUT\n{PRINT}"
    },
    "kernel is not python3": {"metadata kernelspec name": "ir"},
    "at most 1000000": {"metadata filler": "x" * strict.LARGEST},
}

# What is seen by running it: which test fails, what it says, and of what.
AGAIN = "every cell again"
RUN = [
    ("print", "2 + 3 = 6", {"print outputs 0 text": "2 + 3 = 6\n"}),
    ("silent", "Cell outputs differ", {"silent outputs": []}),
    ("stored", "execution count None, not 4", STORED["execution count None, not 4"]),
    ("colour", "12 of 12 pixels differ", {"colour outputs 0 data image/png": picture_of("blue")}),
    (
        "pixel",
        "1 of 12 pixels differ",
        {"pixel outputs 0 data image/png": picture_of("red", pixel=(240, 0, 0))},
    ),
    (
        "size",
        "4 x 3 pixels, not 5 x 3",
        {"size outputs 0 data image/png": picture_of("red", (5, 3))},
    ),
    ("png", "image/png", {"png outputs 0 data image/png": GONE}),
    ("quiet", "stderr", {"quiet source": "import sys; print('beware', file=sys.stderr)"}),
    ("fails", "ZeroDivisionError", {"fails source": "1 / 0"}),
    (
        "order",
        "the outputs of this run: ['stdout', 'display_data']",
        {
            "order outputs": [
                stream("first\nlast\n"),
                nbformat.v4.new_output("display_data", {"text/html": "<b>then</b>"}),
            ][::-1]
        },
    ),
    ("described", "something else", {"described outputs 1 metadata alt": "something else"}),
    ("updated", "stored:      0 %", {"bar outputs 0 data text/html": "0 %"}),
    ("updated", "stored:      ?", {"parts outputs 2 data text/html": "?"}),
    ("widget", "'version': 3", {f"widget outputs 0 data {WIDGET} version": 3}),
    (AGAIN, "leaves no files behind: left.txt", {"file source": "open('left.txt', 'w').close()"}),
    (
        AGAIN,
        "imports, run again",
        {
            "imports source": f'{SOURCES["imports"]}\nprint("x" in dir())',
            "imports outputs": [stream("False\n")],
            "two source": "x = 7 * 6",
        },
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


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Return a small notebook, executed."""
    path = tmp_path_factory.mktemp("good") / "good.ipynb"
    cells = [nbformat.v4.new_code_cell(code, id=name) for name, code in SOURCES.items()]
    cells[NUMBER["parts"]].metadata.tags = ["trains"]  # what it shows is finished by the next cell
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return notebooks.run(path, path.parent)


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
    assert list(report["good"]) == [
        "stored",
        *map("Cell {}".format, NUMBER.values()),
        "updated",
        AGAIN,
    ]
    assert set(report["good"].values()) == {None}
    assert list(report["corrupt"]) == ["stored", "updated"]
    assert "not a notebook" in report["corrupt"]["stored"]
    untouched = {"hidden", "cleared", "late"}
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


def test_compression_is_not_compared(good):
    data = good.cells[NUMBER["colour"]].outputs[0].data["image/png"]
    recompressed = picture_of("red", compress_level=0)
    assert recompressed.strip() != data.strip()
    assert strict.picture_difference(recompressed, data) == ""


def test_what_was_proved_holds_until_code_or_outputs_change(good, tmp_path):
    runs, path = [], tmp_path / "one.ipynb"
    for text in ("# A", "# B"):
        good = nbformat.reads(nbformat.writes(good), 4)
        good.cells.insert(0, nbformat.v4.new_markdown_cell(text, id="text"))
        for changes in ({}, {"cells 2 source": "1"}, {"cells 2 outputs": []}):
            path.write_text(tampered(good, changes))
            runs.append(strict.run_of(path))
        del good.cells[0]
    assert runs[:3] == runs[3:] and len({*runs}) == 3


def test_this_run_compares_the_chapters(request):
    assert request.config.option.nbval
    assert request.config.option.nbval_cell_timeout <= strict.CELL_TIMEOUT


def test_pictures_can_be_left_out(good, tmp_path):
    """The weekly run on new versions compares all but the pictures."""
    changes = {said: change for _, said, change in RUN}
    for said in ("12 of 12 pixels differ", "2 + 3 = 6"):
        copy = nbformat.reads(tampered(good, changes[said]), 4)
        del copy.cells[NUMBER["colour"] + 1 :]
        nbformat.write(copy, tmp_path / f"{said[0]}.ipynb")
    report = run_tests(tmp_path, "--any-pictures")
    assert not any(report["1"].values()) and report["2"]["Cell 1"]
