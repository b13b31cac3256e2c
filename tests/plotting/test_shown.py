"""What comes back: the same bytes on every run, shown once, and no more imported than needed."""

import base64
import hashlib
import io
import os
import pickle
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import pytest
from matplotlib.backends.backend_pdf import PdfPages

from d2lmini.plotting import show_attention_lines, show_heatmaps
from tests.plotting.reading import heatmaps, random_weights

ROOT = Path(__file__).parents[2]

EXAMPLE = """
import hashlib, numpy as np
from d2lmini.plotting import show_attention_lines, show_heatmaps
w = np.tri(5) / np.arange(1, 6)[:, None]
shown = show_heatmaps(np.stack([w, w[::-1]]), "Keys", "Queries", ["a", "b"], mask="causal",
                      xticks=list("vwxyz"), label="weight")
"""
HOSTILE_SETTINGS = """
font.size: 30
font.family: serif
savefig.dpi: 40
savefig.bbox: tight
savefig.transparent: true
figure.dpi: 300
axes.grid: true
image.origin: lower
image.cmap: viridis
text.color: red
xtick.top: true
hatch.linewidth: 9
figure.constrained_layout.use: true
"""


def run_python(code, **environment):
    """Run a program in a process of its own and return what it prints."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path} | environment
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def example():
    """Draw the example in this process."""
    scope = {}
    exec(EXAMPLE, scope)
    return scope["shown"]


def test_the_same_bytes_in_a_fresh_process_whatever_its_settings_and_no_more_imports(tmp_path):
    """What is loaded without a call, and what is said where a library is missing: test_package."""
    (tmp_path / "matplotlibrc").write_text(HOSTILE_SETTINGS)
    code = EXAMPLE + (
        "print(hashlib.sha256(shown.png() + shown.html().encode()).hexdigest())\n"
        "from d2lmini.plotting import use_theme; use_theme(); import sys\n"
        "print({'torch', 'matplotlib.pyplot', 'IPython'} & {*sys.modules}, shown.alt[:10])"
    )
    printed = run_python(code, MATPLOTLIBRC=str(tmp_path / "matplotlibrc"), PYTHONHASHSEED="7")
    shown = example()
    digest = hashlib.sha256(shown.png() + shown.html().encode()).hexdigest()
    assert printed.splitlines() == [digest, "set() 2 heatmaps"]
    # Nor does another format, saved in between, change the bytes; and no file is stamped.
    before = shown.png()
    for ending in ("png", "svg", "pdf"):
        for name, figure in (("a", shown), ("b", example())):
            figure.savefig(tmp_path / f"{name}.{ending}")
        saved = (tmp_path / f"a.{ending}").read_bytes()
        assert saved == (tmp_path / f"b.{ending}").read_bytes()
        for stamp in (b"Software", b"CreationDate", b"<dc:date>", b"Matplotlib v"):
            assert stamp not in saved
    buffer = io.BytesIO()
    shown.savefig(buffer, format="png", dpi=96, metadata={"Title": "Two heads"})
    assert b"Two heads" in buffer.getvalue() and b"Software" not in buffer.getvalue()
    width = struct.unpack(">I", buffer.getvalue()[16:20])[0]
    assert width == round(shown.figure.get_size_inches()[0] * 96)
    assert shown.png() == before


def test_every_format_of_matplotlib_is_saved_or_told_what_it_lacks(tmp_path):
    """matplotlib#25401."""
    shown = heatmaps(np.eye(2))
    kinds = sorted(shown.figure.canvas.get_supported_filetypes())
    assert {"jpg", "webp", "tif", "pgf", "svgz", "eps"} <= set(kinds)
    for kind in kinds:
        path = tmp_path / f"figure.{kind}"
        if kind == "pgf" and not shutil.which("xelatex"):
            with pytest.raises(RuntimeError, match="XeLaTeX, which is not installed"):
                shown.savefig(path)
            continue
        shown.savefig(path, metadata={})
        assert path.stat().st_size > 200
    shown.savefig(io.BytesIO(), format="tif")
    shown.savefig(str(tmp_path / "figure.JPG"), dpi=50, bbox_inches="tight")
    shown.savefig(os.fsencode(tmp_path / "figure.webp"), transparent=True)
    shown.savefig(tmp_path / "figure")
    assert (tmp_path / "figure.png").exists()
    with pytest.raises(ValueError, match=r"there is no format 'docx'; there are .*png"):
        shown.savefig(tmp_path / "figure.docx")
    with PdfPages(tmp_path / "pages.pdf") as pages:
        for how in {}, {"format": "pdf"}, {"metadata": {"Title": "x"}}:
            shown.savefig(pages, **how)
        assert pages.get_pagecount() == 3


def test_a_figure_comes_back_from_a_pickle():
    for shown in heatmaps(np.eye(2), mask="causal"), show_attention_lines(np.eye(2), ["a", "b"]):
        back = pickle.loads(pickle.dumps(shown))
        assert back.html() == shown.html() and back.png() == shown.png() and back.alt == shown.alt
        assert back.axes[0, 0].figure is back.figure


def test_a_notebook_gets_a_picture_of_two_pixels_for_each_and_the_words(monkeypatch):
    shown = heatmaps(np.eye(3), alt="The identity.")
    data, metadata = shown._repr_mimebundle_()
    size = metadata["image/png"]
    width, height = struct.unpack(">II", base64.b64decode(data["image/png"])[16:24])
    assert (width, height) == (2 * size["width"], 2 * size["height"])
    assert size["width"] <= 6.4 * 96
    assert repr(shown) == data["text/plain"] == size["alt"] == "The identity."
    assert " at 0x" not in repr(heatmaps(random_weights(2, 2)))
    monkeypatch.setattr(type(shown), "png", lambda self: pytest.fail("drawn for nobody"))
    data, metadata = shown._repr_mimebundle_(include={"text/html", "text/plain"})
    assert (list(data), metadata) == (["text/html", "text/plain"], {})
    assert list(shown._repr_mimebundle_(exclude={"image/png", "text/html"})[0]) == ["text/plain"]


EYE = "show_heatmaps(np.eye(2), 'Keys', 'Queries'"
SETUP = "import numpy as np\nfrom d2lmini.plotting import show_heatmaps, use_theme\nuse_theme()"
PLAIN = "import matplotlib.pyplot as plt\nfigure, ax = plt.subplots()\n_ = ax.plot([1, 2], [2, 1])"
CELLS = {  # and the sizes of the heatmaps that each shows
    SETUP: [],
    f"{EYE})": [2],
    "for size in (2, 3):\n    show_heatmaps(np.eye(size), 'Keys', 'Queries')": [2, 3],
    f"shown = {EYE})\nshown": [2],
    "shown": [2],
    f"kept = {EYE}, show=False)": [],
    "kept": [2],
    PLAIN: None,
    "plt.get_fignums()": None,
}


def test_a_notebook_shows_each_figure_once_and_others_are_sharp():
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(made, timeout=120, resources={"metadata": {"path": ROOT}})
    client.execute()
    *cells, (plain,), (left,) = (cell.outputs for cell in made.cells)
    again = {n: show_heatmaps(np.eye(n), "Keys", "Queries") for n in (2, 3)}
    for outputs, sizes in zip(cells, CELLS.values(), strict=False):
        for output, shown in zip(outputs, [again[n] for n in sizes], strict=True):
            assert list(output.data) == ["text/html", "image/png", "text/plain"]
            assert output.data["text/plain"] == shown.alt
            assert base64.b64decode(output.data["image/png"]) == shown.png()
            assert output.data["text/html"] == shown.html()
            assert set(output.metadata["image/png"]) == {"width", "height", "alt"}
    png = base64.b64decode(plain.data["image/png"])
    width, height = struct.unpack(">II", png[16:24])
    assert plain.metadata["image/png"] == {"width": width // 2, "height": height // 2}
    assert (width, height) == (int(2 * 5.2 * 96), 2 * 3 * 96)
    assert b"Software" not in png
    assert left.data["text/plain"] == "[]"
