"""Close the holes of nbval: every notebook, whole, with its pictures, or the run fails.

A pytest plugin, loaded by the conftest at the root, that patches nbval.
"""

import base64
import copy
import io
import itertools
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import nbformat
import pytest

from tests import proved

CELL_TIMEOUT = 300  # seconds; a dead kernel would hold the run for nbval's own 2000
LARGEST = 1_000_000  # bytes of a stored notebook: some viewers show nothing of a larger one
AGAIN = "every cell again"
ROUNDING = 2  # levels of 255 by which a pixel may differ from machine to machine
IMAGES = ("image/png", "image/jpeg")
DRAWN = ("image/svg+xml", "text/html")  # the other forms of a figure
HOW_TO_MEND = """\
Where a cell fails that is run again, two cells use one name for two things, or a cell changes what
it is given. Give each thing a name of its own, make what is changed in the cell that changes it,
and call a learner's function `my_…`. A cell that goes on with a training has the tag `trains`."""
ADDRESS = re.compile(r"at 0x[0-9a-fA-F]{6,}")


def excuses(cell) -> set[str]:
    """Return the marks of a cell by which nbval would not run it, or not compare it."""
    from nbval.plugin import comment_markers, metadata_tags

    comments = {line.strip().lstrip("#").strip() for line in cell.source.splitlines()}
    marks = {*cell.metadata.get("tags", [])} & {*metadata_tags}
    marks |= comments & {*comment_markers}
    return {mark for mark in marks if "check" not in mark.lower() and "raises" not in mark.lower()}


def defects(text: str) -> list[str]:
    """Say what is wrong with a stored notebook, before any of it is run."""
    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # anything from a broken bracket to a missing key
        return [f"not a notebook: {type(error).__name__}: {str(error)[:200]}"]
    found = []
    if len(text.encode()) > LARGEST:
        found.append(
            f"{len(text.encode())} bytes; at most {LARGEST}: draw fewer or smaller figures"
        )
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        found.append(f"format {notebook.nbformat}.{notebook.nbformat_minor}; 4.5 has cell ids")
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        found.append("the kernel is not python3")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    count = 0  # of what the kernel has run; nothing is not counted
    for number, cell in enumerate(code):
        here = f"cell {number}"
        if not cell.source.strip():
            found.append(f"{here}: there is nothing in it; delete it")
            continue
        count += 1
        if cell.execution_count != count:
            found.append(f"{here}: execution count {cell.execution_count}, not {count}")
        for output in cell.outputs:
            if output.get("execution_count", count) != count:
                found.append(f"{here}: a result of count {output.execution_count}, not {count}")
            if output.output_type == "error":
                found.append(f"{here}: stored error: {output.ename}: {output.evalue}")
            if output.output_type == "stream" and output.name == "stderr":
                found.append(f"{here}: stored stderr: {output.text.strip()[:200]}")
        if (marks := excuses(cell)) and "# not compared:" not in cell.source:
            found.append(
                f"{here}: excused from comparison by {', '.join(sorted(marks))} without a "
                "'# not compared: reason' line"
            )
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
    Streams are joined where they are compared: the engine finds an output by its number, when a
    later cell updates it.
    """
    from nbclient.exceptions import CellExecutionComplete

    cell = client.nb.cells[number]
    cell.outputs, client.clear_before_next_output = [], False
    for message in messages:
        try:
            client.process_message(message, cell, number)
        except CellExecutionComplete:
            break
    return cell.outputs


def differences(new: list, old: list, *, pictures: bool = True) -> list[str]:
    """Say how the outputs of this run differ from the stored ones, in order; [] if not at all."""
    from nbval.plugin import coalesce_streams

    found = []
    new = coalesce_streams(copy.deepcopy(new))
    kinds = [[kind_of(output) for output in outputs] for outputs in (new, old)]
    if kinds[0] != kinds[1]:
        return [f"the outputs of this run: {kinds[0]}, stored: {kinds[1]}"]
    for number, (mine, stored) in enumerate(zip(new, old, strict=True)):
        here = f"output {number}"
        for name in ("text", "metadata", "ename", "evalue"):
            if plain(mine.get(name)) != plain(stored.get(name)):
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
            elif plain(data[kind]) != plain(old_data[kind]):
                found.append(unlike(f"{here}, {kind}", data[kind], old_data[kind]))
    return found


def name_of(message) -> str | None:
    """Return the name by which what a message shows may be shown anew later."""
    return (message["content"].get("transient") or {}).get("display_id")


def kind_of(output) -> str:
    """Name an output: a stream by its name, anything else by its kind."""
    return output.name if output.output_type == "stream" else output.output_type


def plain(value):
    """Leave out what is another in each run: addresses in memory, the names of widgets' models."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if key != "model_id"}
    return ADDRESS.sub("at 0x", value) if isinstance(value, str) else value


def unlike(where: str, new, old) -> str:
    """Show two values that differ, from a little before the first difference."""
    one, two = (str(value).strip() for value in (new, old))
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False))
    start = max(len(list(same)) - 40, 0)
    one, two = (text[start : start + 300] for text in (one, two))
    return f"{where}\n  of this run: {one}\n  stored:      {two}"


class Asked(pytest.Item):
    """One more test of a notebook, besides its cells: it fails with what a function finds."""

    def __init__(self, *, look, **more):
        super().__init__(**more)
        self.look = look

    def runtest(self):
        if found := self.look():
            pytest.fail(f"{self.path.name}: " + "\n".join(found), pytrace=False)


def play(file) -> list[str]:
    """Ask in the kernel that has run a chapter whether any cell can be run again."""
    from tests.notebooks.playing import Player

    notebook, pictures = nbformat.from_dict(file.nb), not file.config.option.any_pictures
    failures = Player(notebook, file.kernel.km, pictures=pictures).play()
    if left := sorted(path.name for path in file.folder.iterdir()):
        failures.append(f"a notebook leaves no files behind: {', '.join(left)}")
    return [*failures, HOW_TO_MEND] if failures else []


def run_of(path: Path) -> str:
    """Return what a run does and is compared with: a chapter without its Markdown."""
    text = path.read_text("utf-8")
    try:
        cells = json.loads(text)["cells"]
        return json.dumps([cell for cell in cells if cell["cell_type"] != "markdown"])
    except (ValueError, KeyError, TypeError):  # "stored" says what it is
        return text


def stamp(config, path: Path) -> Path | None:
    """Return the file that is there once a chapter has passed as it is now; `.again`, in all ways.

    It depends on its own code and outputs, on the library but for the exercises of other chapters,
    and on what runs and compares it. A chapter that the command line names is always run.
    """
    kept = proved.folder(config, "chapters") if path.parent == proved.ROOT / "chapters" else None
    if kept is None or any(path == Path(one.split("::")[0]).resolve() for one in config.args):
        return None
    parts = proved.files(
        *("d2lmini", "tests/notebooks", "scripts/notebooks.py", "live_cells"),
        besides=rf"exercises.chapter(?!{int(path.name[:2])}\.py)\d+\.py",
    )
    environment = [os.environ.get(name) for name in proved.KERNELS]
    key = proved.key(parts, run_of(path), environment, config.option.any_pictures)
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
    setup, teardown = file.setup, file.teardown

    def execute(self, source, allow_stdin=None):
        """As Jupyter does: with a history, a ";" at the end hides the value."""
        options = {"allow_stdin": allow_stdin, "stop_on_error": False}
        return self.kc.execute(source, store_history=True, **options)

    def collect_strictly(self):
        """Look at the stored file first; one that cannot be read must not stop the others."""

        def asked(name, look):
            return Asked.from_parent(self, name=name, look=look)

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
        self.messages, self.waiting = [], []
        self.client = NotebookClient(nbformat.from_dict(self.nb), record_timing=False)
        self.client.reset_execution_trackers()
        if cells:  # the tests that have not passed yet
            self.left |= {cell.name for cell in cells} | {"stored", "updated", AGAIN}
        yield from cells
        # outputs with a name: any later cell may have changed them
        yield asked("updated", lambda: [said for look in self.waiting for said in look()])
        if cells:
            played = asked(AGAIN, lambda: play(self))
            played.add_marker("again")
            yield played

    def start_elsewhere(self):
        """Run it in an empty folder: a notebook runs wherever it is opened."""
        if not self.left:
            return
        setup(self)
        self.folder = Path(tempfile.mkdtemp(prefix="notebook-"))
        from tests.notebooks.playing import WATCH

        start = f"__import__('os').chdir({str(self.folder)!r}); {WATCH}"
        self.kernel.kc.execute(start, silent=True)

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

        def compare():
            return differences(new, self.cell.outputs, pictures=not any_pictures)

        self.comparison_traceback = compare()
        named = any(map(name_of, mine))
        if named:
            self.parent.waiting.append(lambda: [f"{self.name}: {said}" for said in compare()])
        return named or not self.comparison_traceback

    nbval.kernel.RunningKernel.execute_cell_input = execute
    file.collect, file.get_kernel_message = collect_strictly, keep_message
    file.setup, file.teardown = start_elsewhere, stop
    cell.compare_outputs = compare_strictly
