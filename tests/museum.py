"""The broken code of chapter 9, read from its cells: what a reader sees is what is tested."""

import ast
from pathlib import Path

import nbformat

CHAPTER = Path(__file__).parents[1] / "chapters" / "09-bug-museum.ipynb"
NEEDED = ("imports", "parts", "parts-masks", "attend", "attend-some")  # exhibits are made from them


def exhibits():
    """Return each function of an exhibit by its name."""
    namespace, found = {}, {}
    for cell in nbformat.read(CHAPTER, as_version=4).cells:
        is_exhibit = "exhibit" in cell.metadata.get("tags", [])
        if not is_exhibit and cell.id not in NEEDED:
            continue
        statements = ast.parse(cell.source).body
        if is_exhibit:  # what shows it comes after the definition
            last = max(i for i, node in enumerate(statements) if isinstance(node, ast.FunctionDef))
            statements = statements[: last + 1]
            name = statements[-1].name
        module = ast.Module(statements, type_ignores=[])
        exec(compile(module, f"<{cell.id}>", "exec"), namespace)
        if is_exhibit:
            found[name] = namespace[name]
    return found
