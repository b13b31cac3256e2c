"""The recipes of "Use it in your own notebook": each runs by itself, and prints what is printed."""

import doctest
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "chapters" / "recipes.md"
SECTIONS = re.split(r"^## ", PAGE.read_text("utf8"), flags=re.M)[1:]
RECIPES = {section.splitlines()[0]: section for section in SECTIONS}
NEEDS = ("torch", "matplotlib")


def code(section):
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.S | re.M)
    return block


def params():
    """Those with models of transformers run where it is installed, in the weekly run."""
    for title, section in RECIPES.items():
        models = "transformers import" in section
        if not models or find_spec("transformers"):
            yield pytest.param(title, marks=pytest.mark.weekly if models else (), id=title)


@pytest.mark.parametrize("title", [*params()])
def test_a_recipe_prints_what_is_printed(title):
    for library in NEEDS:
        if f"import {library}" in RECIPES[title] or "show_" in RECIPES[title]:
            pytest.importorskip(library)
    test = doctest.DocTestParser().get_doctest(code(RECIPES[title]), {}, title, str(PAGE), 0)
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
