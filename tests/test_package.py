"""What `import d2lmini` promises: what it loads, what it holds, and on what it stands."""

import ast
import functools
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import d2lmini
from scripts import layout

PACKAGE = Path(d2lmini.__file__).parent
ROOT = Path(__file__).parents[1]
EXTRAS = ("torch", "matplotlib")
MISSING = [library for library in EXTRAS if not find_spec(library)]
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text("utf8"))
PUBLIC = {
    alias.asname or alias.name: node.module
    for node in STUB.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}


def run_python(code, *arguments):
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


IMPORTS = {  # the packages that each module imports; ours with the module
    path.stem: {re.match(r"d2lmini\.\w+|\w+", name)[0] for name in layout.imports(path) if name}
    - set(sys.stdlib_module_names)
    for path in PACKAGE.glob("*.py")
}
MODULES = {name for name, found in IMPORTS.items() if {"torch", "d2lmini._torch"} & found}
CORE = IMPORTS.keys() - MODULES - {"__init__"}
CORE_NAMES = {name for name, module in PUBLIC.items() if module in CORE}


def test_what_needs_no_pytorch_does_not_load_it():
    loaded = run_python("""if True:
        import sys, numpy as np, d2lmini as d
        x = np.eye(2)
        d.attention(x, x, x, causal=True), d.split_heads(x, 2)
        d.multi_head_attention(x, x, x, x, x, x, x, num_heads=2)
        print(*(m for m in ('torch', 'matplotlib') if m in sys.modules))""")
    assert loaded == ""


def test_every_public_name_resolves_and_is_documented():
    for name in PUBLIC.keys() - ({*without("torch")[0]} if "torch" in MISSING else set()):
        assert getattr(d2lmini, name).__doc__.strip()
        assert name in dir(d2lmini) and name in d2lmini.__all__


# Where a library is missing: which names are, and what each way to ask for them says.
ASKED = """
import json, sys
library, public = sys.argv[1], json.loads(sys.argv[2])
sys.modules[library] = None
import d2lmini
gone = [name for name in public if not hasattr(d2lmini, name)]
said = []
ways = "from d2lmini import {}", "d2lmini.{}", "from d2lmini.{1} import {0}"
for name in gone:
    for way in ways[: 3 if public[name] else 2]:
        try: exec(way.format(name, (public[name] or "").removeprefix("d2lmini.")))
        except (AttributeError, ImportError) as error:
            said.append([way, type(error).__name__, str(error)])
exec("from d2lmini import *")
print(json.dumps([gone, said, d2lmini.__all__]))
"""


@functools.cache
def without(library):
    return json.loads(run_python(ASKED, library, json.dumps(PUBLIC)))


@pytest.mark.parametrize("library", EXTRAS)
def test_without_a_library_names_say_what_to_install_and_the_others_work(library):
    gone, said, everything = without(library)
    assert len(gone) > 3 and len(said) >= 2 * len(gone)
    install = [f"pip install {each}" for each in (library, *MISSING)]
    for how, kind, message in said:
        assert kind == ("ImportError" if "import" in how else "AttributeError"), how
        assert any(each in message for each in install), (how, message)
    assert set(everything) == PUBLIC.keys() - set(gone) >= CORE_NAMES


def test_core_depends_on_nothing_but_arrays_and_a_file_on_pytorch_or_not():
    ours = {f"d2lmini.{name}" for name in CORE} | {"numpy", "array_api_compat", "lazy_loader"}
    assert {module: IMPORTS[module] - ours for module in CORE if IMPORTS[module] - ours} == {}
    defined = {PUBLIC[name] for name in without("torch")[0]}
    assert defined | {"_torch", "_watch"} == MODULES


def test_version_is_the_same_everywhere_and_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        d2lmini.no_such_name  # noqa: B018
    assert f'version = "{d2lmini.__version__}"' in (ROOT / "pyproject.toml").read_text("utf8")
    cited = (ROOT / "CITATION.cff").read_text("utf8")
    assert cited.count(f"version: {d2lmini.__version__}\n") == 2
    assert f"## {d2lmini.__version__}\n" in (ROOT / "CHANGELOG.md").read_text("utf8")
