"""Close the holes of nbval: every notebook, whole, with its pictures, or the run fails.

A pytest plugin, loaded by the conftest at the root, that patches nbval.
"""

import base64
import io
import re

import nbformat
import pytest

CELL_TIMEOUT = 120  # seconds; a dead kernel would hold the run for nbval's own 2000
LARGEST = 1_000_000  # bytes of a stored notebook
ROUNDING = 2  # levels of 255 by which a pixel may differ from machine to machine
IMAGES = ("image/png", "image/jpeg")
DRAWN = ("image/svg+xml", "text/html")  # the other forms of a figure
EXCUSES = re.compile(r"nbval[-_](ignore[-_]output|skip)", re.IGNORECASE)
ADDRESS = r"at 0x[0-9a-fA-F]{6,}"


def defects(text: str) -> list[str]:
    """Say what is wrong with a stored notebook, before any of it is run."""
    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # anything from a broken bracket to a missing key
        return [f"not a notebook: {type(error).__name__}: {str(error)[:200]}"]
    found = []
    if len(text.encode()) > LARGEST:
        found.append(f"{len(text.encode())} bytes; at most {LARGEST}")
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        found.append(f"format {notebook.nbformat}.{notebook.nbformat_minor}; 4.5 has cell ids")
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        found.append("the kernel is not python3")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code):
        here = f"cell {number}"
        if cell.execution_count != number + 1:
            found.append(f"{here}: execution count {cell.execution_count}, not {number + 1}")
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"{here}: stored error: {output.ename}: {output.evalue}")
            if output.output_type == "stream" and output.name == "stderr":
                found.append(f"{here}: stored stderr: {output.text.strip()[:200]}")
        tags = " ".join(cell.metadata.get("tags", []))
        if EXCUSES.search(tags + cell.source) and "# not compared:" not in cell.source:
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


def pictures_of(outputs):
    """Yield the data that holds each picture among some outputs, with its kind."""
    for output in outputs:
        for kind in IMAGES:
            if kind in output.get("data", {}):
                yield output["data"], kind


def accept_rounding(new, old) -> list[str]:
    """Give each new picture that differs by rounding the old one's bytes; report the others."""
    notes = []
    for (data, kind), (old_data, old_kind) in zip(new, old, strict=False):
        if kind != old_kind:
            break
        if difference := picture_difference(data[kind], old_data[kind]):
            notes.append(f"The {kind} of this run: {difference}")
        else:
            data[kind] = old_data[kind]
    return notes


class StoredNotebook(pytest.Item):
    """One test for what can be seen without running anything."""

    def runtest(self):
        if found := defects(self.path.read_text("utf-8")):
            pytest.fail(f"{self.path.name}: " + "\n".join(found), pytrace=False)


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

    file, cell = nbval.plugin.IPyNbFile, nbval.plugin.IPyNbCell
    collect, setup, compare = file.collect, file.setup, cell.compare_outputs

    def execute(self, source, allow_stdin=None):
        """As Jupyter does: with a history, a ";" at the end hides the value."""
        options = {"allow_stdin": allow_stdin, "stop_on_error": False}
        return self.kc.execute(source, store_history=True, **options)

    def collect_strictly(self):
        """Look at the stored file first; one that cannot be read must not stop the others."""
        yield StoredNotebook.from_parent(self, name="stored")
        try:
            cells = list(collect(self))
        except Exception:  # "stored" fails, and says why
            self.nb, cells = nbformat.v4.new_notebook(), []
        yield from cells

    def setup_strictly(self):
        """Compare pictures, which nbval leaves out, and no memory addresses."""
        setup(self)
        self.sanitize_patterns[ADDRESS] = "at 0x"
        if any_pictures:
            self.skip_compare = [*self.skip_compare, *DRAWN]
        else:
            self.skip_compare = [key for key in self.skip_compare if key not in IMAGES]

    def compare_strictly(self, test, ref, skip_compare=None):
        """Compare pixels: another machine may compress the same ones otherwise."""
        pictures = [] if any_pictures else [pictures_of(test), pictures_of(ref)]
        notes = accept_rounding(*pictures) if pictures else []
        same = compare(self, test, ref, skip_compare)
        self.comparison_traceback += notes
        return same

    nbval.kernel.RunningKernel.execute_cell_input = execute
    file.collect, file.setup = collect_strictly, setup_strictly
    cell.compare_outputs = compare_strictly
