"""Let a page's code run in the reader's browser, with nothing loaded before the first Run.

The build works out which cells can (see `plan.py`), gives each a place for its buttons, packs the
library for Python in the browser, and says where that Python comes from:

    live:
      self_host: false   # from Pyodide's public server; true: from this book, and nobody is asked

With `self_host` the build copies Pyodide from the folder that PYODIDE_DIR names, or fetches it
once; either way each file must have the hash that is pinned here. Where there is Node it then turns
into bytecode what a first Run imports, which is half of a reader's wait (see `bytecode.py`).
LIVE_SELF_HOST=1 does the same as the setting: so the published book hosts it. What a page does is
in `page/`.
"""

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import zipfile
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import nbformat
from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from live_cells.joining import AT_ONCE, LOADER, joined
from live_cells.library import LEFT_OUT, PACKED
from live_cells.plan import FOLDED, plan_cells

LOGGER = logging.getLogger(__name__)
HERE = Path(__file__).parent
PAGE = HERE / "page"  # the style and the modules of a page
VERSION = "0.27.7"
CDN = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
NUMPY = "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
# What a first Run fetches, at once; the lock has the hashes of the other wheels.
HASHES = {
    "pyodide.mjs": "sha256-BMBSyBWrsL8pgfo4wt+ljjEg7lKIyVbfKyoV4wF4LF8=",
    "pyodide.asm.js": "sha256-a0yQ3ltxcoc/BPIYhNDp0idOMF/jIRZVj+Pk++NhjVE=",
    "pyodide.asm.wasm": "sha256-pQ3RhD+AWgt8RbYQN+4Neybf6F7+DhjvlaNK0k5AH18=",
    "python_stdlib.zip": "sha256-FmEVNHJuXYrCvY+SZBCy3LjW9JqiSRNGNTO0V6IRXBY=",
    "pyodide-lock.json": "sha256-nEW5FgAadQ9BAvwodJTz6rIVkJx1NcYmog24D9YzPiw=",
    NUMPY: "sha256-67YSQdliuYshWX185DtnZoptW6s6zsT76VhlcyDXzQg=",
}
# How large they are as a server sends them, in kB: by these a page shows how much has come.
SIZES = dict(zip(HASHES, (5, 235, 3137, 2322, 25, 3027), strict=True))
LARGE = 60_000  # bytes of a file that comes only when the models are used
PACKAGES = ("numpy", "matplotlib")
SHIPPED = ("__init__.py", "display.py", "library.py", "plan.py", "runner.py")
PRINTER = "lib/pretty.py"  # how IPython writes a value: a module that needs no other
# At the first such cell in sight; of the others the end of the opening speaks (`theme/page.html`).
NEEDS_TORCH = '<a class="live-mark" href="#run-this-chapter">needs PyTorch</a>'
TO_TRY_IT = 'To try it, <a href="#run-this-chapter">run this chapter</a>.'


class FindLiveCells(SphinxPostTransform):
    """Give each code cell a name, and a place for its buttons or for why it has none."""

    default_priority = 290  # after myst_nb has folded what a notebook hides
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Look at the cells of a notebook."""
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix != ".ipynb":
            return
        try:
            cells = nbformat.reads(path.read_text("utf8"), 4).cells
        except Exception:  # what is no notebook is said by who makes a page of it
            return
        planned = {cell.id: cell for cell in plan_cells(cells)}
        self.marked = False
        for node in self.document.findall(nodes.container):
            if node.get("nb_element") != "cell_code":
                continue
            cell = planned.get(cells[node["cell_index"]].get("id"))
            if cell is not None and cell.id and len(node.children):
                node["ids"].append(f"cell-{cell.id}")
                self.place_bar(node, cell)

    def place_bar(self, node: nodes.Element, cell) -> None:
        """Put the place for the buttons after the code."""
        folded_answer = cell.among_exercises and cell.tags & FOLDED
        kind, inside = "live-bar", ""
        if cell.torch and not folded_answer:
            kind = "live-bar live-not"
            if not self.marked and not cell.tags & FOLDED:
                self.marked, inside = True, NEEDS_TORCH
        elif not cell.live:
            return
        elif "d2l-todo" in node.astext():
            kind, inside = "live-bar live-said", TO_TRY_IT
        bar = f'<div class="{kind}">{inside}</div>'
        node.insert(1, nodes.raw("", bar, format="html"))
        if cell.tags & FOLDED:
            node["classes"].append("live-folded")


def pack(large: bool = False) -> bytes:
    """Return the library, what it needs and what runs it as one archive, the same every time.

    Its large files, the weights of models, are an archive of their own: few cells use them.
    """
    files = {f"{HERE.name}/{name}": HERE / name for name in SHIPPED}
    files[f"IPython/{PRINTER}"] = folder_of("IPython") / PRINTER
    for package in map(folder_of, PACKED):
        for path in sorted(package.rglob("*")):
            name = path.relative_to(package.parent)
            if path.is_file() and not LEFT_OUT & set(name.parts):
                files[name.as_posix()] = path
    files = {name: path for name, path in files.items() if large == (path.stat().st_size > LARGE)}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), path.read_bytes(), 8)
    return packed.getvalue()


def folder_of(package: str) -> Path:
    """Return where a package is installed."""
    return Path(find_spec(package).origin).parent


def self_hosts(app) -> bool:
    """Tell whether the book brings Pyodide with it."""
    return bool(app.config.live.get("self_host") or os.environ.get("LIVE_SELF_HOST"))


def fetched(name: str, wanted: str) -> bytes:
    """Return a file of Pyodide, from PYODIDE_DIR or its public server, if it has the right hash."""
    folder = os.environ.get("PYODIDE_DIR")
    if folder:
        content = Path(folder, name).read_bytes()
    else:
        with urlopen(CDN + name, timeout=60) as answer:
            content = answer.read()
    if integrity(hashlib.sha256(content)) != wanted:
        raise ValueError(f"{name} is not the file of Pyodide {VERSION}: its hash differs")
    return content


def integrity(digest) -> str:
    """Return a hash as browsers take it."""
    return f"sha256-{base64.b64encode(digest.digest()).decode()}"


def host_pyodide(folder: Path, library: Path) -> dict[str, str]:
    """Have Pyodide, and the packages that cells import, in the book; return the hashes there."""
    if not folder.exists():
        new = folder.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        fetch_pyodide(new)
        compile_ahead(new, library)
        new.rename(folder)
    return {name: integrity(hashlib.sha256((folder / name).read_bytes())) for name in HASHES}


def fetch_pyodide(folder: Path) -> None:
    """Write Pyodide, and the packages that cells import, as they were published."""
    for name, wanted in HASHES.items():
        (folder / name).write_bytes(fetched(name, wanted))
    lock = json.loads((folder / "pyodide-lock.json").read_text("utf8"))["packages"]
    names, wanted_packages = [*PACKAGES], set()
    while names:
        if (name := names.pop()) not in wanted_packages:
            wanted_packages.add(name)
            names += lock[name]["depends"]
    for package in map(lock.__getitem__, sorted(wanted_packages)):
        if not (folder / package["file_name"]).exists():
            wanted = "sha256-" + base64.b64encode(bytes.fromhex(package["sha256"])).decode()
            (folder / package["file_name"]).write_bytes(fetched(package["file_name"], wanted))


def compile_ahead(folder: Path, library: Path) -> None:
    """Let Pyodide turn into bytecode what a first Run imports; it runs in Node, if that is here."""
    if node := shutil.which("node"):
        subprocess.run([node, HERE / "bytecode.mjs", folder, library], check=True)
    else:
        LOGGER.info("Without Node each first Run compiles Python's own modules: twice the wait.")


def write(app, exception) -> None:
    """Write the archive of the library and where things are."""
    if exception or app.builder.name != "html":
        return
    folder = Path(app.outdir, "_static", "live")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{PACKED[0]}-*.zip"):
        old.unlink()
    shutil.copy(PAGE / "live.css", folder)
    archives, hashes = {}, HASHES
    for kind, archive in (("archive", pack()), ("data", pack(large=True))):
        archives[kind] = f"{PACKED[0]}-{hashlib.sha256(archive).hexdigest()[:12]}.zip"
        (folder / archives[kind]).write_bytes(archive)
    if self_hosts(app):
        hashes = host_pyodide(folder / f"pyodide-{VERSION}", folder / archives["archive"])
    settings = {"pyodide": f"pyodide-{VERSION}/" if self_hosts(app) else CDN, **archives}
    (folder / "live.mjs").write_text(script("cells", settings=settings), "utf8")
    shows = joined(PAGE, 'import { settle, show } from "./output.mjs";\n')
    shows += "export { settle, show };\n"
    (folder / "output.mjs").write_text(shows, "utf8")
    (folder / "worker.mjs").write_text(script("worker", hashes=hashes, sizes=SIZES), "utf8")


def script(name: str, **told: dict) -> str:
    """Return a module with all that it imports, and what the build tells it, as one."""
    said = {
        key: f"export const {key} = {json.dumps(value, separators=(',', ':'))};\n"
        for key, value in told.items()
    }
    return joined(PAGE, (PAGE / f"{name}.mjs").read_text("utf8"), said)


def load(app, pagename, templatename, context, doctree) -> None:
    """Load what brings the cells to life, on the pages that have some."""
    body = context.get("body", "")
    if app.builder.name == "html" and '<div class="live-bar' in body:
        module = context["pathto"]("_static/live/live.mjs", resource=True)
        context["body"] = body + LOADER.format(module=module, start=AT_ONCE)


def setup(app):
    """Register the setting, the transform and what is written."""
    app.add_config_value("live", {}, "html")
    app.add_post_transform(FindLiveCells)
    app.connect("html-page-context", load)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
