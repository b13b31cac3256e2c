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
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def example():
    """Draw the example in this process."""
    scope = {}
    exec(EXAMPLE, scope)
    return scope["shown"]


# ------------------------------------------------------------------------------------- bytes


def test_the_same_bytes_from_one_object_even_after_another_format(tmp_path):
    shown = example()
    before = shown.png()
    shown.savefig(tmp_path / "figure.svg")
    shown.savefig(tmp_path / "figure.png", dpi=50)
    assert shown.png() == before


def test_the_same_bytes_in_a_fresh_process_whatever_its_settings(tmp_path):
    (tmp_path / "matplotlibrc").write_text(HOSTILE_SETTINGS)
    code = EXAMPLE + "print(hashlib.sha256(shown.png() + shown.html().encode()).hexdigest())"
    printed = run_python(code, MATPLOTLIBRC=str(tmp_path / "matplotlibrc"), PYTHONHASHSEED="7")
    assert printed == hashlib.sha256(example().png() + example().html().encode()).hexdigest()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_saved_files_are_reproducible_and_carry_no_stamp(tmp_path, ending):
    for name in ("a", "b"):
        example().savefig(tmp_path / f"{name}.{ending}")
    saved = (tmp_path / f"a.{ending}").read_bytes()
    assert saved == (tmp_path / f"b.{ending}").read_bytes()
    for stamp in (b"Software", b"CreationDate", b"<dc:date>", b"Matplotlib v"):
        assert stamp not in saved


def test_savefig_keeps_what_it_is_told(tmp_path):
    buffer = io.BytesIO()
    example().savefig(buffer, format="png", dpi=96, metadata={"Title": "Two heads"})
    assert b"Two heads" in buffer.getvalue() and b"Software" not in buffer.getvalue()
    width = struct.unpack(">I", buffer.getvalue()[16:20])[0]
    assert width == round(example().figure.get_size_inches()[0] * 96)


def test_settings_of_the_user_are_left_alone():
    import matplotlib

    with matplotlib.rc_context({"font.size": 23, "lines.linewidth": 7}):
        names = set(matplotlib.rcParams) - {"backend"}  # is chosen when it is first looked at
        before = {name: matplotlib.rcParams[name] for name in names}
        example().png()
        assert {name: matplotlib.rcParams[name] for name in names} == before


@pytest.mark.parametrize("source", ["matplotlib#25401"])
def test_every_format_of_matplotlib_is_saved_or_told_what_it_lacks(source, tmp_path):
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


@pytest.mark.parametrize("how", [{}, {"format": "pdf"}, {"metadata": {"Title": "x"}}], ids=str)
def test_figures_are_pages_of_one_pdf(tmp_path, how):
    shown = heatmaps(np.eye(2))
    with PdfPages(tmp_path / "pages.pdf") as pages:
        shown.savefig(pages, **how)
        shown.savefig(pages, **how)
        assert pages.get_pagecount() == 2


def test_a_figure_comes_back_from_a_pickle():
    made = [heatmaps(np.eye(2), mask="causal"), show_attention_lines(np.eye(2), ["a", "b"])]
    for shown in made:
        back = pickle.loads(pickle.dumps(shown))
        assert back.html() == shown.html() and back.png() == shown.png() and back.alt == shown.alt
        assert back.axes[0, 0].figure is back.figure


# --------------------------------------------------------------------------------- rich output


def test_the_picture_has_two_pixels_for_each_of_the_page():
    data, metadata = example()._repr_mimebundle_()
    png = base64.b64decode(data["image/png"])
    width, height = struct.unpack(">II", png[16:24])
    size = metadata["image/png"]
    assert (width, height) == (2 * size["width"], 2 * size["height"])
    assert size["width"] <= 6.4 * 96


def test_the_words_stand_for_the_picture():
    shown = heatmaps(np.eye(3), alt="The identity.")
    data, metadata = shown._repr_mimebundle_()
    assert repr(shown) == data["text/plain"] == metadata["image/png"]["alt"] == "The identity."
    assert " at 0x" not in repr(heatmaps(random_weights(2, 2)))


def test_only_the_forms_that_are_asked_for_are_made(monkeypatch):
    shown = heatmaps(np.eye(2))
    monkeypatch.setattr(type(shown), "png", lambda self: pytest.fail("drawn for nobody"))
    data, metadata = shown._repr_mimebundle_(include={"text/html", "text/plain"})
    assert (list(data), metadata) == (["text/html", "text/plain"], {})
    assert list(shown._repr_mimebundle_(exclude={"image/png", "text/html"})[0]) == ["text/plain"]


CELLS = [
    "import numpy as np\nfrom d2lmini.plotting import show_heatmaps, use_theme\nuse_theme()",
    "show_heatmaps(np.eye(2), 'Keys', 'Queries')",
    "for size in (2, 3):\n    show_heatmaps(np.eye(size), 'Keys', 'Queries')",
    "shown = show_heatmaps(np.eye(2), 'Keys', 'Queries')\nshown",
    "shown",
    "kept = show_heatmaps(np.eye(2), 'Keys', 'Queries', show=False)",
    "kept",
    "import matplotlib.pyplot as plt\nfigure, ax = plt.subplots()\n_ = ax.plot([1, 2], [2, 1])",
    "plt.get_fignums()",
]


@pytest.fixture(scope="module")
def notebook():
    """Run the cells in a real kernel."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(made, timeout=120, resources={"metadata": {"path": ROOT}})
    client.execute()
    return [cell.outputs for cell in made.cells]


@pytest.mark.parametrize(
    ("cell", "pictures"),
    [(1, [2]), (2, [2, 3]), (3, [2]), (4, [2]), (5, []), (6, [2])],
    ids=["last line", "loop", "call and last line", "later cell", "not shown", "shown later"],
)
def test_a_notebook_shows_each_figure_once(notebook, cell, pictures):
    expected = [
        f"Heatmap of {n} × {n} values (Queries × Keys), from 0 to 1. "
        "Identity: 1 on the diagonal, 0 elsewhere."
        for n in pictures
    ]
    assert [output.data["text/plain"] for output in notebook[cell]] == expected
    for output, size in zip(notebook[cell], pictures, strict=True):
        assert list(output.data) == ["text/html", "image/png", "text/plain"]
        again = show_heatmaps(np.eye(size), "Keys", "Queries")
        assert base64.b64decode(output.data["image/png"]) == again.png()
        assert output.data["text/html"] == again.html()
        assert set(output.metadata["image/png"]) == {"width", "height", "alt"}


def test_other_figures_of_a_notebook_are_sharp_and_carry_no_stamp(notebook):
    (output,) = notebook[7]
    png = base64.b64decode(output.data["image/png"])
    width, height = struct.unpack(">II", png[16:24])
    assert output.metadata["image/png"] == {"width": width // 2, "height": height // 2}
    assert (width, height) == (int(2 * 5.2 * 96), 2 * 3 * 96)
    assert b"Software" not in png
    assert notebook[8][0].data["text/plain"] == "[]"


# ------------------------------------------------------------------------------------- imports


def test_a_script_needs_no_torch_no_pyplot_and_no_ipython():
    """What is loaded without a call, and what is said where a library is missing: test_package."""
    code = EXAMPLE + (
        "from d2lmini.plotting import use_theme; use_theme(); shown.png(); import sys\n"
        "print({'torch', 'matplotlib.pyplot', 'IPython'} & {*sys.modules}, shown.alt[:10])"
    )
    assert run_python(code) == "set() 2 heatmaps"
