"""Turn what a first Run imports into bytecode, so that no reader's browser has to compile it.

Pyodide brings its modules as source, and to compile those takes more than half of the time that its
start takes. The build runs this file in Pyodide (see `bytecode.mjs`): a cell that draws imports all
that is wanted, and the modules which it has brought are written again, with their hashes. The rest
stays as it is.
"""

import hashlib
import json
import py_compile
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from live_cells.library import FIRST_RUNS
from live_cells.runner import Runner

PYODIDE = Path("/pyodide")  # where its folder is mounted
STANDARD, PACKAGES = "/lib/python312.zip", "/lib/python3.12/site-packages"


def import_all() -> set[str]:
    """Run what first runs import; return the sources of all modules that are in then."""
    sent: list[str] = []
    for code in FIRST_RUNS:
        runner = Runner(sent.append)
        runner.prepare(json.dumps([{"id": "cell", "code": code}]), "cell")
        if not runner.run("cell"):
            raise RuntimeError(sent[-1])
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    return {file for file in files if file.endswith(".py")}


def compile_within(archive: Path, root: str, used: set[str]) -> None:
    """Write an archive again, with the modules that are used as bytecode in place of source."""
    source, compiled, written = Path("/tmp/source"), Path("/tmp/compiled"), Path("/tmp/written")
    with ZipFile(archive) as old, ZipFile(written, "w", ZIP_DEFLATED) as new:
        for entry in old.infolist():
            content, where = old.read(entry), f"{root}/{entry.filename}"
            if where in used:
                source.write_bytes(content)
                unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
                py_compile.compile(
                    str(source), str(compiled), where, True, invalidation_mode=unchecked
                )
                content = compiled.read_bytes()
                entry.filename += "c"
            new.writestr(entry, content, ZIP_DEFLATED)
    archive.write_bytes(written.read_bytes())


used = import_all()
compile_within(PYODIDE / "python_stdlib.zip", STANDARD, used)
lock = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf8"))
for package in lock["packages"].values():
    wheel = PYODIDE / package["file_name"]
    if wheel.exists():
        compile_within(wheel, PACKAGES, used)
        package["sha256"] = hashlib.sha256(wheel.read_bytes()).hexdigest()
(PYODIDE / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf8")
