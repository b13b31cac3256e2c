"""The comparison of notebooks finds what it is there to find: one tampered copy for each hole."""

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
SOURCES = [
    "from PIL import Image",
    'print("2 + 3 =", 2 + 3)',
    'Image.new("RGB", (4, 3), "red")',
    "_ = 7 * 6",
    '"hidden by the semicolon";',
    "from IPython.display import HTML, clear_output, display",
    'print("first"); display(HTML("<b>then</b>", metadata={"alt": "then"})); print("last")',
    'print("half"); clear_output(); print("all")',
    'bar = display(HTML("0 %"), display_id=True); bar.update(HTML("100 %"))',
    'print("two"); display(HTML("!")); print("parts"); late = display(HTML("?"), display_id=True)',
    'late.update(HTML("answered in a later cell"))',
    # What a widget shows: each run gives its model another name.
    "import os; kind = 'application/vnd.jupyter.widget-view+json'; "
    "display({'text/plain': 'bar', kind: {'model_id': os.urandom(4).hex()}}, raw=True)",
]
PRINT, PICTURE, QUIET, ORDER = 1, 2, 3, 6


def picture_of(colour, size=(4, 3)):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode() + "\n"


def changed_text(nb):
    nb.cells[PRINT].outputs[0].text = "2 + 3 = 6\n"


def missing_output(nb):
    nb.cells[PRINT].outputs = []


def never_run(nb):
    nb.cells[PRINT].execution_count = None
    nb.cells[PRINT].outputs = []


def out_of_order(nb):
    nb.cells[PRINT].execution_count = 9


def wrong_png(nb):
    nb.cells[PICTURE].outputs[0].data["image/png"] = picture_of("blue")


def one_wrong_pixel(nb):
    data = nb.cells[PICTURE].outputs[0].data
    picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    picture.putpixel((2, 1), (240, 0, 0))
    file = io.BytesIO()
    picture.save(file, "PNG")
    data["image/png"] = base64.b64encode(file.getvalue()).decode()


def other_size(nb):
    nb.cells[PICTURE].outputs[0].data["image/png"] = picture_of("red", (5, 3))


def missing_png(nb):
    del nb.cells[PICTURE].outputs[0].data["image/png"]


def stored_stderr(nb):
    nb.cells[PRINT].outputs.append(nbformat.v4.new_output("stream", name="stderr", text="beware"))


def new_stderr(nb):
    nb.cells[QUIET].source = "import sys; print('beware', file=sys.stderr)"


def stored_error(nb):
    nb.cells[QUIET].source = "1 / 0"
    nb.cells[QUIET].metadata.tags = ["raises-exception"]
    nb.cells[QUIET].outputs = [
        nbformat.v4.new_output(
            "error", ename="ZeroDivisionError", evalue="division by zero", traceback=[]
        )
    ]


def new_error(nb):
    nb.cells[QUIET].source = "1 / 0"


def excused(nb):
    nb.cells[PRINT].metadata.tags = ["nbval-ignore-output"]


def skipped(nb):
    nb.cells[PRINT].source = "# NBVAL_SKIP\n" + nb.cells[PRINT].source


def excused_by_an_old_mark(nb):
    nb.cells[PRINT].source = "# PYTEST_VALIDATE_IGNORE_OUTPUT\n" + nb.cells[PRINT].source


def swapped_outputs(nb):
    outputs = nb.cells[ORDER].outputs
    outputs[0], outputs[1] = outputs[1], outputs[0]


def other_description(nb):
    nb.cells[ORDER].outputs[1].metadata["alt"] = "something else"


def unfinished_bar(nb):
    nb.cells[8].outputs[0].data["text/html"] = "0 %"


def used_for_two_things(nb):
    nb.cells[0].source += '\nprint("x" in dir())'
    nb.cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text="False\n")]
    nb.cells[QUIET].source = "x = 7 * 6"


def leaves_a_file(nb):
    nb.cells[QUIET].source = "open('left.txt', 'w').close()"


def as_before_the_update(nb):
    nb.cells[9].outputs[2].data["text/html"] = "?"


def other_widget(nb):
    (data,) = (output.data for output in nb.cells[11].outputs)
    data["application/vnd.jupyter.widget-view+json"]["version"] = 3


def count_of_a_result(nb):
    nb.cells[PICTURE].outputs[0].execution_count = 9


def nothing_in_it(nb):
    nb.cells.insert(0, nbformat.v4.new_code_cell("", id="empty"))


def another_kernel(nb):
    nb.metadata.kernelspec.name = "ir"


def too_large(nb):
    nb.cells.append(nbformat.v4.new_markdown_cell("x" * strict.LARGEST, id="large"))


# What is seen in the stored file, before anything is run.
STORED = {
    never_run: "execution count None, not 2",
    out_of_order: "execution count 9, not 2",
    count_of_a_result: "cell 2: a result of count 9, not 3",
    nothing_in_it: "cell 0: there is nothing in it",
    stored_stderr: "stored stderr: beware",
    stored_error: "stored error: ZeroDivisionError",
    excused: "excused from comparison",
    skipped: "excused from comparison",
    excused_by_an_old_mark: "excused from comparison by PYTEST_VALIDATE_IGNORE_OUTPUT",
    another_kernel: "kernel is not python3",
    too_large: "at most 1000000",
}

# What is seen by running it: which test fails, and what it says. A copy has one in each cell.
AGAIN = "every cell again"
COPIES = {
    "first": {
        changed_text: ("Cell 1", "2 + 3 = 6"),
        wrong_png: ("Cell 2", "12 of 12 pixels differ"),
        new_stderr: ("Cell 3", "stderr"),
        swapped_outputs: ("Cell 6", "the outputs of this run: ['stdout', 'display_data']"),
        unfinished_bar: ("updated", "stored:      0 %"),
        other_widget: ("Cell 11", "'version': 3"),
    },
    "second": {
        missing_output: ("Cell 1", "Cell outputs differ"),
        one_wrong_pixel: ("Cell 2", "1 of 12 pixels differ"),
        new_error: ("Cell 3", "ZeroDivisionError"),
        other_description: ("Cell 6", "something else"),
        as_before_the_update: ("updated", "stored:      ?"),
    },
    "third": {
        never_run: ("stored", STORED[never_run]),
        other_size: ("Cell 2", "4 x 3 pixels, not 5 x 3"),
        leaves_a_file: (AGAIN, "leaves no files behind: left.txt"),
    },
    "fourth": {
        missing_png: ("Cell 2", "image/png"),
        used_for_two_things: (AGAIN, "c0, run again"),
    },
}
RUN = {
    tamper: (copy, *said) for copy, tampers in COPIES.items() for tamper, said in tampers.items()
}


def tampered(good, *tampers):
    copy = nbformat.reads(nbformat.writes(good), as_version=4)
    for tamper in tampers:
        tamper(copy)
    return nbformat.writes(copy)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Return a small notebook, executed."""
    folder = tmp_path_factory.mktemp("good")
    cells = [nbformat.v4.new_code_cell(s, id=f"c{i}") for i, s in enumerate(SOURCES)]
    cells[9].metadata.tags = ["trains"]  # what it shows is finished by the next cell
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "good.ipynb")
    return notebooks.run(folder / "good.ipynb", folder)


@pytest.fixture(scope="module")
def report(good, tmp_path_factory):
    """Run the good notebook and the tampered copies in one pytest; return failures by file."""
    folder = tmp_path_factory.mktemp("tampered")
    (folder / "good.ipynb").write_text(notebooks.text_of(good))
    (folder / "corrupt.ipynb").write_text(notebooks.text_of(good)[:-20])
    for name, tampers in COPIES.items():
        (folder / f"{name}.ipynb").write_text(tampered(good, *tampers))
    # From the root, where the plugin can be imported, and not with the settings of this project.
    command = [sys.executable, "-m", "pytest", "-p", "tests.notebooks.strict", "-c", "/dev/null"]
    command += ["--rootdir", str(folder), f"--junitxml={folder / 'report.xml'}", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    outcome = {}
    for case in ElementTree.parse(folder / "report.xml").iter("testcase"):
        name = case.get("classname").removesuffix(".ipynb").split(".")[-1]
        failure = case.find("failure")
        said = None if failure is None else failure.get("message", "") + (failure.text or "")
        outcome.setdefault(name, {})[case.get("name")] = said
    return outcome


def test_good_notebook_passes(report):
    cells = [f"Cell {i}" for i in range(len(SOURCES))]
    assert list(report["good"]) == ["stored", *cells, "updated", AGAIN]
    assert set(report["good"].values()) == {None}


@pytest.mark.parametrize("tamper", STORED, ids=lambda tamper: tamper.__name__)
def test_stored_defect_is_found(good, tamper):
    assert strict.defects(notebooks.text_of(good)) == []
    (found,) = strict.defects(tampered(good, tamper))
    assert STORED[tamper] in found


@pytest.mark.parametrize("tamper", RUN, ids=lambda tamper: tamper.__name__)
def test_difference_is_found(report, tamper):
    copy, test, message = RUN[tamper]
    said = report[copy][test]
    assert said is not None, report[copy]
    assert message in said


def test_corrupt_file_is_reported_and_does_not_stop_the_run(report):
    assert list(report["corrupt"]) == ["stored", "updated"]
    assert "not a notebook" in report["corrupt"]["stored"]
    assert len(report) == len(COPIES) + 2


def test_compression_is_not_compared(good):
    data = good.cells[PICTURE].outputs[0].data["image/png"]
    file = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(data))).save(file, "PNG", compress_level=0)
    recompressed = base64.b64encode(file.getvalue()).decode()
    assert recompressed != data.strip()
    assert strict.picture_difference(recompressed, data) == ""


def test_this_run_compares_the_chapters(request):
    assert request.config.option.nbval
    assert request.config.option.nbval_cell_timeout <= strict.CELL_TIMEOUT


@pytest.mark.parametrize("tamper, status", [(wrong_png, 0), (changed_text, 1)])
def test_pictures_can_be_left_out(good, tmp_path, tamper, status):
    """The weekly run on new versions compares all but the pictures."""
    path = tmp_path / "one.ipynb"
    path.write_text(tampered(good, tamper))
    command = [sys.executable, "-m", "pytest", "-p", "tests.notebooks.strict", "-c", "/dev/null"]
    command += ["--any-pictures", "--rootdir", str(tmp_path), str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
