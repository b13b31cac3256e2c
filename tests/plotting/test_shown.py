"""What comes back: the same bytes on every run, shown once, and no more imported than needed."""

import base64
import hashlib
import os
import pickle
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
from tests.plotting.reading import heatmaps

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
savefig.bbox: tight
savefig.transparent: true
image.origin: lower
text.color: red
hatch.linewidth: 9
figure.constrained_layout.use: true
"""


def test_the_same_bytes_in_a_fresh_process_whatever_its_settings_and_no_more_imports(tmp_path):
    """What is loaded without a call, and what is said where a library is missing: test_package."""
    (tmp_path / "matplotlibrc").write_text(HOSTILE_SETTINGS)
    code = EXAMPLE + (
        "print(hashlib.sha256(shown.png() + shown.html().encode()).hexdigest())\n"
        "from d2lmini.plotting import use_theme; use_theme(); import sys\n"
        "print({'torch', 'matplotlib.pyplot', 'IPython'} & {*sys.modules}, shown.alt[:10])"
    )
    environment = os.environ | {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc")}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    printed = subprocess.check_output([sys.executable, "-c", code], text=True, env=environment)
    scope, again = {}, {}
    exec(EXAMPLE, scope)
    exec(EXAMPLE, again)
    shown = scope["shown"]
    digest = hashlib.sha256(shown.png() + shown.html().encode()).hexdigest()
    assert printed.splitlines() == [digest, "set() 2 heatmaps"]
    # Nor does another format, saved in between, change the bytes; and no file is stamped.
    for ending in ("png", "svg", "pdf"):
        for name, figure in (("a", shown), ("b", again["shown"])):
            figure.savefig(tmp_path / f"{name}.{ending}")
        saved = (tmp_path / f"a.{ending}").read_bytes()
        assert saved == (tmp_path / f"b.{ending}").read_bytes()
        for stamp in (b"Software", b"CreationDate", b"<dc:date>", b"Matplotlib v"):
            assert stamp not in saved


def test_every_format_of_matplotlib_is_saved_or_told_what_it_lacks(tmp_path):
    """matplotlib#25401."""
    shown = heatmaps(np.eye(2))
    shown.savefig(str(tmp_path / "figure.JPG"), metadata={})
    with pytest.raises(ValueError, match=r"there is no format 'docx'; there are .*png"):
        shown.savefig(tmp_path / "figure.docx")
    with PdfPages(tmp_path / "pages.pdf") as pages:
        shown.savefig(pages, metadata={"Title": "x"})
        assert pages.get_pagecount() == 1


def test_a_figure_comes_back_from_a_pickle():
    for shown in heatmaps(np.eye(2), mask="causal"), show_attention_lines(np.eye(2), ["a", "b"]):
        back = pickle.loads(pickle.dumps(shown))
        assert back.html() == shown.html() and back.png() == shown.png() and back.alt == shown.alt
        assert back.axes[0, 0].figure is back.figure


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
}


def test_a_notebook_shows_each_figure_once_and_others_are_sharp():
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(made, timeout=120, resources={"metadata": {"path": ROOT}})
    client.execute()
    *cells, (plain,) = (cell.outputs for cell in made.cells)
    again = {n: show_heatmaps(np.eye(n), "Keys", "Queries") for n in (2, 3)}
    for outputs, sizes in zip(cells, CELLS.values(), strict=False):
        for output, shown in zip(outputs, [again[n] for n in sizes], strict=True):
            assert list(output.data) == ["text/html", "image/png", "text/plain"]
            assert base64.b64decode(output.data["image/png"]) == shown.png()
            assert output.data["text/html"] == shown.html()
            assert output.metadata["image/png"]["alt"] == shown.alt
    png = base64.b64decode(plain.data["image/png"])
    width, height = struct.unpack(">II", png[16:24])
    assert plain.metadata["image/png"] == {"width": width // 2, "height": height // 2}
    assert (width, height) == (int(2 * 5.2 * 96), 2 * 3 * 96)
