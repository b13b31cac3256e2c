"""What `import d2lmini` promises: what it loads, what it holds, and on what it stands."""

import ast
import functools
import re
import subprocess
import sys
from importlib import resources
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


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def imports_of(path):
    """Yield the top-level package of every import; ours with its module."""
    for name in layout.imports(path):
        parts = name.split(".")
        yield ".".join(parts[:2]) if parts[0] == "d2lmini" else parts[0] or name


IMPORTS = {
    path.stem: set(imports_of(path)) - set(sys.stdlib_module_names) for path in PACKAGE.glob("*.py")
}
MODULES = {name for name, found in IMPORTS.items() if {"torch", "d2lmini._torch"} & found}
CORE = IMPORTS.keys() - MODULES - {"__init__"}
CORE_NAMES = {name for name, module in PUBLIC.items() if module in CORE}


@pytest.mark.parametrize(
    "used",
    [
        "",
        "d.attention(x, x, x, causal=True)",
        "d.split_heads(x, 2), d.multi_head_attention(x, x, x, x, x, x, x, num_heads=2)",
    ],
    ids=["imported", "the core used", "the heads used"],
)
def test_what_needs_no_pytorch_does_not_load_it(used):
    loaded = run_python(
        f"import sys, numpy as np, d2lmini as d; x = np.eye(2); {used}\n"
        "print(*(m for m in ('torch', 'matplotlib') if m in sys.modules))"
    )
    assert loaded == ""


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_is_documented(name):
    try:
        found = getattr(d2lmini, name)
    except AttributeError as error:
        assert any(library in str(error).lower() for library in MISSING)
        assert name not in d2lmini.__all__
    else:
        assert found.__doc__.strip()
        assert name in dir(d2lmini)
        assert name in d2lmini.__all__


BLOCKED = "import sys; sys.modules[{!r}] = None\nimport d2lmini\n"


@functools.cache
def not_there(library):
    """Return the names that are missing without a library."""
    code = BLOCKED.format(library) + "print(*(n for n in %r if not hasattr(d2lmini, n)))"
    return run_python(code % [*PUBLIC]).split()


@pytest.mark.parametrize("library", EXTRAS)
@pytest.mark.parametrize("how", ["from d2lmini import {}", "d2lmini.{}", "from {module} import {}"])
def test_without_a_library_a_name_says_what_to_install(library, how):
    """Also where it is imported from the module that defines it."""
    asked = {
        name: how.format(name, module=f"d2lmini.{PUBLIC[name].removeprefix('d2lmini.')}")
        for name in not_there(library)
        if PUBLIC[name] or "module" not in how
    }
    said = run_python(
        BLOCKED.format(library) + f"for name, asks in {asked!r}.items():\n"
        "    try: exec(asks)\n"
        "    except (AttributeError, ImportError) as error: print(type(error).__name__, error)"
    ).splitlines()
    assert len(said) == len(asked) > 3
    kind = "ImportError" if "import" in how else "AttributeError"
    install = [f"pip install {each}" for each in (library, *MISSING)]
    for message in said:
        assert message.startswith(kind)
        assert any(each in message for each in install)


@pytest.mark.parametrize("library", EXTRAS)
def test_without_a_library_what_looks_at_all_names_works(library):
    """Help, Tab, ``hasattr`` and ``import *`` find what is there."""
    found = run_python(
        BLOCKED.format(library) + "import inspect, pydoc, rlcompleter\n"
        "for package in (d2lmini, d2lmini.plotting):\n"
        "    pydoc.render_doc(package)\n"
        "    members = {name for name, _ in inspect.getmembers(package)}\n"
        "    complete = rlcompleter.Completer({'x': package}).complete\n"
        "    listed = {complete('x.', i).strip('()')[2:] for i in range(len(members))}\n"
        "    names = {}\n"
        "    exec(f'from {package.__name__} import *', names)\n"
        "    assert set(package.__all__) == names.keys() - {'__builtins__'} <= members\n"
        "    assert set(package.__all__) <= listed, listed\n"
        "print(*d2lmini.__all__)"
    ).split()
    assert set(found) == PUBLIC.keys() - set(not_there(library))
    assert set(found) >= CORE_NAMES


def test_several_heads_and_the_cache_run_on_numpy():
    said = run_python(
        BLOCKED.format("torch")
        + """
import numpy as np
from d2lmini import KeyValueCache, attention, causal_mask, merge_heads
from d2lmini import multi_head_attention, split_heads

x, one = np.arange(24.0).reshape(2, 3, 4), np.eye(4)
assert (merge_heads(split_heads(x, 2)) == x).all()
options = {"num_heads": 2, "num_kv_heads": 2, "mask": causal_mask(3, like=x)}
output, weights = multi_head_attention(x, x, x, one, one, one, one, **options)
heads = split_heads(x, 2)
expected = attention(heads, heads, heads, causal=True)
assert np.allclose(output, merge_heads(expected.output))
assert np.allclose(weights, expected.weights)
cache = KeyValueCache(window=2)
for t in range(3):
    key, value = cache.append(x[:, t : t + 1], x[:, t : t + 1])
assert (key == x[:, 1:]).all() and len(cache) == 2
print(sys.modules["torch"])
"""
    )
    assert said == "None"


@pytest.mark.parametrize("module", ["heatmaps", "lines", "figures", "trace", "shown"])
def test_a_module_that_draws_says_what_to_install(module):
    code = BLOCKED.format("matplotlib") + f"try: import d2lmini.plotting.{module}\n"
    said = run_python(code + "except ImportError as error: print(error)")
    assert said == "figures need matplotlib: pip install matplotlib"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        d2lmini.no_such_name  # noqa: B018


@pytest.mark.parametrize("module", sorted(CORE))
def test_core_depends_on_nothing_but_arrays(module):
    ours = {f"d2lmini.{name}" for name in CORE}
    assert IMPORTS[module] <= ours | {"numpy", "array_api_compat", "lazy_loader"}


def test_a_file_holds_pytorch_modules_or_needs_no_pytorch():
    defined = {module for name, module in PUBLIC.items() if name in not_there("torch")}
    assert defined | {"_torch", "_watch"} == MODULES


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
    folder = PACKAGE.parent / "chapters" / "api"
    page = "".join(path.read_text("utf8") for path in folder.glob("*.md"))
    documented = set(re.findall(r"auto(?:function|class):: (?:[\w.]+\.)?(\w+)", page))
    assert PUBLIC.keys() - {"plotting"} <= documented
