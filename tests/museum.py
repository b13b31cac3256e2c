"""The broken code of chapter 9, read from its cells: what a reader sees is what is tested."""

import ast
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np

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


def draws_one_number_in_one_colour(draw):
    """Tell whether equal numbers of two matrices have the same colour in what is drawn."""
    matrices = [np.array([[0.1, 0.9], [0.2, 0.8]]), np.array([[0.2, 0.8], [0.5, 0.5]])]
    colours = {}
    images = draw(matrices)
    plt.close("all")  # other tests look at what is open
    for image in images:
        numbers = np.ma.getdata(image.get_array()).ravel().tolist()
        for number, colour in zip(numbers, image.to_rgba(numbers).tolist(), strict=True):
            if colours.setdefault(number, colour) != colour:
                return False
    return True
