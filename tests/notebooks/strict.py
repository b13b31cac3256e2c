"""Close the holes of nbval: every notebook, whole, with its pictures, or the run fails.

A pytest plugin, loaded by the conftest at the root, that patches nbval. After the last cell of a
notebook it plays with it, as a reader does: see `play`.
"""

import base64
import io
import itertools
import os
import shutil
import tempfile
from pathlib import Path

import nbformat
import psutil
import pytest

from tests import proved

CELL_TIMEOUT = 300  # seconds; a dead kernel would hold the run for nbval's own 2000
LARGEST = 1_000_000  # bytes of a stored notebook: some viewers show nothing of a larger one
AGAIN = "every cell again"
COSTLY = 2.0  # seconds of a processor: what takes longer is run again only in the weekly run
ROUNDING = 2  # levels of 255 by which a pixel may differ from machine to machine
IMAGES = ("image/png", "image/jpeg")
DRAWN = ("image/svg+xml", "text/html")  # the other forms of a figure
HOW_TO_MEND = """\
Two cells use one name for two things, or a cell changes what it is given: give each thing a name of
its own, make what is changed in the cell that changes it, call a learner's function `my_…`."""


def defects(text: str) -> list[str]:
    """Say what is wrong with a stored notebook, before any of it is run."""
    from nbval.plugin import find_comment_markers, find_metadata_tags

    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # anything from a broken bracket to a missing key
        return [f"not a notebook: {type(error).__name__}: {str(error)[:200]}"]
    found = []
    if (size := len(text.encode())) > LARGEST:
        found.append(f"{size} bytes; at most {LARGEST}: draw fewer or smaller figures")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, 1):
        here = f"cell {count - 1}"
        for one in (cell, *cell.outputs):
            if one.get("execution_count", count) != count:
                found.append(f"{here}: execution count {one.execution_count}, not {count}")
            if one.get("output_type") == "error":
                found.append(f"{here}: stored error: {one.ename}: {one.evalue}")
            if one.get("name") == "stderr":
                found.append(f"{here}: stored stderr: {one.text.strip()[:200]}")
        marks = {*find_comment_markers(cell.source), *find_metadata_tags(cell.metadata)}
        if marks & {("check", False), ("skip", True)} and "# not compared:" not in cell.source:
            found.append(f"{here}: excused from comparison without a '# not compared: reason' line")
    return found


def pixels(data: str):
    """Decode a stored picture."""
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        return np.asarray(picture.convert("RGBA"), dtype=int)


def picture_difference(one: str, two: str) -> str:
    """Say how two stored pictures differ; an empty string if only by rounding."""
    if one.strip() == two.strip():
        return ""
    a, b = pixels(one), pixels(two)
    if a.shape != b.shape:
        return f"{a.shape[1]} x {a.shape[0]} pixels, not {b.shape[1]} x {b.shape[0]}"
    far = abs(a - b).max(axis=-1) > ROUNDING
    return f"{far.sum()} of {far.size} pixels differ" if far.any() else ""


def as_stored(client, number: int, messages) -> list:
    """Return the outputs that the storing engine makes of a cell's messages.

    nbval keeps less: no order among kinds, no metadata, nothing of cleared or updated outputs.
    """
    from nbclient.exceptions import CellExecutionComplete
    from nbval.plugin import coalesce_streams

    cell = client.nb.cells[number]
    cell.outputs, client.clear_before_next_output = [], False
    for message in messages:
        try:
            client.process_message(message, cell, number)
        except CellExecutionComplete:
            break
    return coalesce_streams(cell.outputs)


def differences(new: list, old: list, *, pictures: bool = True) -> list[str]:
    """Say how the outputs of this run differ from the stored ones, in order; [] if not at all."""
    found = []
    kinds = [[one.get("name", one.output_type) for one in outputs] for outputs in (new, old)]
    if kinds[0] != kinds[1]:
        return [f"the outputs of this run: {kinds[0]}, stored: {kinds[1]}"]
    for number, (mine, stored) in enumerate(zip(new, old, strict=True)):
        here = f"output {number}"
        for name in ("text", "metadata", "ename", "evalue"):
            if mine.get(name) != stored.get(name):
                found.append(unlike(f"{here}, {name}", mine.get(name), stored.get(name)))
        data, old_data = mine.get("data", {}), stored.get("data", {})
        compared = {*data, *old_data} - (set() if pictures else {*IMAGES, *DRAWN})
        for kind in sorted(compared):
            if kind not in data or kind not in old_data:
                where = "of this run" if kind in old_data else "stored"
                found.append(f"{here}: no {kind} {where}")
            elif kind in IMAGES:
                if difference := picture_difference(data[kind], old_data[kind]):
                    found.append(f"{here}, {kind} of this run: {difference}")
            elif data[kind] != old_data[kind]:
                found.append(unlike(f"{here}, {kind}", data[kind], old_data[kind]))
    return found


def unlike(where: str, new, old) -> str:
    """Show two values that differ, from a little before the first difference."""
    one, two = (str(value).strip() for value in (new, old))
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False))
    start = max(len(list(same)) - 40, 0)
    one, two = (text[start : start + 300] for text in (one, two))
    return f"{where}\n  of this run: {one}\n  stored:      {two}"


class Asked(pytest.Item):
    """One more test of a notebook, besides its cells: it fails with what `look` finds."""

    def runtest(self):
        if found := self.look():
            pytest.fail(f"{self.path.name}: " + "\n".join(found), pytrace=False)


def answers(source: str) -> dict[str, str]:
    """Return code that answers the exercise of a cell, by the card that it gives; {} if none."""
    from d2lmini.exercises import find
    from d2lmini.exercises.notebook import checked

    if "@check" not in source:
        return {}
    exercise = find(*checked([source]))
    name, function = f"name={exercise.name!r}", exercise.function
    start = f"from d2lmini.exercises import check, find\nexercise = find({exercise.name!r})\n"
    return {
        "d2l-pass": f"{start}{exercise.solution}\ncheck({function}, {name})",
        "d2l-wrong": f"{start}{function} = check(exercise.mistakes[0].fn, {name})",
    }


def again(cells: list, costly: float):
    """Yield a notebook's cells as a reader plays with them who has run them all.

    The exercises are answered, rightly and then wrongly. Then every other cell is run again, from
    the last to the first: each meets the answers, and what the cells below it have left. (A cell
    in which answers speak is run before there are any.)
    """
    answered = {cell: answers(cell.cell.source) for cell in cells}
    speaks = [cell for cell in cells if "speak(" in cell.cell.source]
    yield from speaks
    for cell in cells:
        if answered[cell]:
            yield cell
        for card, source in answered[cell].items():
            answer = nbformat.from_dict({**cell.cell, "source": source, "metadata": {"card": card}})
            same = {"cell_num": cell.cell_num, "options": cell.options}
            yield type(cell).from_parent(cell.parent, name=card, cell=answer, **same)
    for cell in reversed(cells):
        if not answered[cell] and cell not in speaks and cell.seconds < costly:
            yield cell


def play(file, cells: list) -> list[str]:
    """Run cells again, in the kernel that has run them all; return what is not as stored."""
    from nbval.plugin import NbCellError

    found = []
    for cell in again(cells, file.config.option.costly):
        try:
            cell.runtest()
        except NbCellError as error:
            said = f"{error}\n{error.inner_traceback or ''}"
            found.append(f"{cell.cell.id}, run again ({cell.name}): {said}")
    if left := sorted(path.name for path in file.folder.iterdir()):
        found.append(f"a notebook leaves no files behind: {', '.join(left)}")
    return [*found, HOW_TO_MEND] if found else []


def stamp(config, path: Path) -> Path | None:
    """Return the file that is there once a chapter has passed as it is now; `.again`, in all ways.

    It depends on the notebook, on the library but for the exercises of other chapters, and on what
    runs and compares it. A chapter that the command line names is always run.
    """
    kept = proved.folder(config, "chapters") if path.parent == proved.ROOT / "chapters" else None
    if kept is None or any(path == Path(one.split("::")[0]).resolve() for one in config.args):
        return None
    parts = proved.files(
        *("d2lmini", "tests/notebooks", "scripts/notebooks.py", "live_cells"),
        besides=rf"exercises.chapter(?!{int(path.name[:2])}\.py)\d+\.py",
    )
    environment = [os.environ.get(name) for name in proved.KERNELS]
    key = proved.key([*parts, path], environment, config.option.any_pictures, config.option.costly)
    return kept / f"{path.stem}-{key}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Once all tests of a chapter have passed, note it."""
    report = yield
    left = getattr(item.parent, "left", None)
    if left and call.when == "call" and report.passed:
        left.discard(item.name)
        if left <= {AGAIN} and item.parent.stamp:
            item.parent.stamp.with_suffix(".again" * (not left)).touch()
    return report


def pytest_addoption(parser):
    says = "do not compare pictures: another version of matplotlib draws them otherwise"
    parser.addoption("--any-pictures", action="store_true", help=says)
    says = "seconds of a processor: a cell that takes more is not run again; inf: each is"
    parser.addoption("--costly", type=float, default=COSTLY, help=says)


def pytest_configure(config):
    any_pictures = config.option.any_pictures
    config.option.nbval = True  # without this, `pytest` would pass over the chapters in silence
    config.option.nbval_current_env = config.option.nbval_kernel_name is None
    if config.option.nbval_cell_timeout == 2000:
        config.option.nbval_cell_timeout = CELL_TIMEOUT

    import nbval.kernel
    import nbval.plugin
    from nbclient import NotebookClient

    file, cell = nbval.plugin.IPyNbFile, nbval.plugin.IPyNbCell
    collect, get_message = file.collect, file.get_kernel_message
    setup, teardown, runtest = file.setup, file.teardown, cell.runtest

    def execute(self, source, allow_stdin=None):
        """As Jupyter does: with a history, a ";" at the end hides the value."""
        options = {"allow_stdin": allow_stdin, "stop_on_error": False}
        return self.kc.execute(source, store_history=True, **options)

    def collect_strictly(self):
        """Look at the stored file first; one that cannot be read must not stop the others."""

        def asked(name, look):
            item = Asked.from_parent(self, name=name)
            item.look = look
            return item

        self.left, self.stamp = set(), stamp(self.config, self.path)
        wanted = "" if "again" in self.config.option.markexpr else ".again"
        if self.stamp and self.stamp.with_suffix(wanted).exists():
            self.nb = nbformat.v4.new_notebook()
            # one test in the place of all: they passed, and nothing that they depend on has changed
            yield asked("proved before", lambda: defects(self.path.read_text("utf-8")))
            return
        yield asked("stored", lambda: defects(self.path.read_text("utf-8")))
        try:
            cells = list(collect(self))
        except Exception:  # "stored" fails, and says why
            self.nb, cells = nbformat.v4.new_notebook(), []
        self.messages = []
        self.client = NotebookClient(nbformat.from_dict(self.nb), record_timing=False)
        self.client.reset_execution_trackers()
        if cells:  # the tests that have not passed yet
            self.left |= {cell.name for cell in cells} | {"stored", AGAIN}
        yield from cells
        if cells:
            played = asked(AGAIN, lambda: play(self, cells))
            played.add_marker("again")
            yield played

    def start_elsewhere(self):
        """Run it in an empty folder: a notebook runs wherever it is opened."""
        if not self.left:
            return
        setup(self)
        self.folder = Path(tempfile.mkdtemp(prefix="notebook-"))
        self.kernel.kc.execute(f"__import__('os').chdir({str(self.folder)!r})", silent=True)

    def stop(self):
        if not self.kernel:
            return
        teardown(self)
        shutil.rmtree(self.folder)

    def keep_message(self, timeout=None, stream="iopub"):
        """Keep what the kernel says about a cell."""
        message = get_message(self, timeout=timeout, stream=stream)
        self.messages.append(message)
        return message

    def compare_strictly(self, test, ref, skip_compare=None):
        """Compare what the storing engine would have stored with what it has stored."""
        said, self.parent.messages = self.parent.messages, []
        about = said[-1]["parent_header"].get("msg_id")  # the last one: this cell is done
        mine = [one for one in said if one["parent_header"].get("msg_id") == about]
        position = [c.get("id") for c in self.parent.nb.cells].index(self.cell.get("id"))
        new = as_stored(self.parent.client, position, mine)
        if card := self.cell.metadata.get("card"):
            self.comparison_traceback = [] if card in str(new) else [f"no {card} card: {new}"]
        else:
            found = differences(new, self.cell.outputs, pictures=not any_pictures)
            self.comparison_traceback = found
        return not self.comparison_traceback

    def time_it(self):
        """Note the seconds of a processor that a cell has used."""
        kernel = psutil.Process(self.parent.kernel.km.provisioner.pid)
        before = sum(kernel.cpu_times()[:2])
        runtest(self)
        self.seconds = sum(kernel.cpu_times()[:2]) - before

    nbval.kernel.RunningKernel.execute_cell_input = execute
    file.collect, file.get_kernel_message = collect_strictly, keep_message
    file.setup, file.teardown = start_elsewhere, stop
    cell.compare_outputs, cell.runtest = compare_strictly, time_it
    cell.seconds = 0.0  # until it has run to its end
