"""What `import d2lmini` promises: what it loads, what it holds, and on what it stands."""

import ast
import re
import subprocess
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import pytest

import d2lmini

PACKAGE = Path(d2lmini.__file__).parent
CORE = [
    "_arrays",
    "attention",
    "datasets",
    "efficient",
    "kernels",
    "masks",
    "retrieval",
    "scores",
    "weights",
]
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
CORE_NAMES = {name for name, module in PUBLIC.items() if module in CORE}


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def imports_of(path):
    """Yield the top-level package of every import, wherever in the file; ours with its module."""
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield ".".join(parts[:2]) if parts[0] == "d2lmini" else parts[0] or name


def test_import_is_light():
    loaded = run_python(
        "import sys, d2lmini; print(*(m for m in ('torch', 'matplotlib') if m in sys.modules))"
    )
    assert loaded == ""


def test_using_the_core_is_light():
    loaded = run_python(
        "import sys, numpy as np, d2lmini as d; x = np.eye(2); d.attention(x, x, x, causal=True);"
        "print(*(m for m in ('torch', 'matplotlib') if m in sys.modules))"
    )
    assert loaded == ""


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_is_documented(name):
    assert name in dir(d2lmini)
    assert name in d2lmini.__all__
    try:
        found = getattr(d2lmini, name)
    except ImportError as error:
        assert any(library in str(error) for library in MISSING)
    else:
        assert found.__doc__.strip()


@pytest.mark.parametrize("library", EXTRAS)
def test_without_a_library_a_name_works_or_says_what_to_install(library):
    said = run_python(
        f"import sys; sys.modules[{library!r}] = None\n"
        "import d2lmini\n"
        "for name in d2lmini.__all__:\n"
        "    try: getattr(d2lmini, name)\n"
        "    except ImportError as error: print(name, '|', error)"
    )
    refused = dict(line.split(" | ") for line in said.splitlines())
    assert refused
    assert not refused.keys() & CORE_NAMES
    for message in refused.values():
        assert "pip install" in message
        assert any(each in message.lower() for each in (library, *MISSING))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        d2lmini.no_such_name  # noqa: B018


@pytest.mark.parametrize("module", CORE)
def test_core_depends_on_nothing_but_arrays(module):
    allowed = {f"d2lmini.{m}" for m in CORE} | {"numpy", "array_api_compat"}
    found = set(imports_of(PACKAGE / f"{module}.py")) - set(sys.stdlib_module_names)
    assert found <= allowed


def test_typed_and_with_its_data():
    files = resources.files(d2lmini)
    assert (files / "py.typed").is_file()
    assert (files / "__init__.pyi").is_file()
    assert any((files / "data").iterdir())


def test_version_is_the_same_everywhere():
    assert f'version = "{d2lmini.__version__}"' in (ROOT / "pyproject.toml").read_text("utf8")
    assert f"version: {d2lmini.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf8")
    assert f"## {d2lmini.__version__}\n" in (ROOT / "CHANGELOG.md").read_text("utf8")


def test_every_name_is_documented():
    page = (PACKAGE.parent / "chapters" / "api.md").read_text("utf8")
    documented = set(re.findall(r"auto(?:function|class):: (?:[\w.]+\.)?(\w+)", page))
    assert PUBLIC.keys() - {"plotting"} <= documented
