"""What chapters 6 to 9 say of the language model holds for all texts that are stored."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

from d2lmini.models import load_trials

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
PATHS = [path for n in "6789" for path in sorted(CHAPTERS.glob(f"0{n}-*.ipynb"))]
TRIALS = load_trials()
COPIES = {"without_one": "without_alone", "without_others": "without_loud"}  # of one text, of all
NUMBERS = {name for name, x in TRIALS._asdict().items() if isinstance(x, np.ndarray)}
BASE = TRIALS.without_looking[:, 0]
EARLIER = TRIALS.place_weights[..., 0] / TRIALS.place_weights.sum(axis=-1)
CHANGE = TRIALS.fact_chances[:, 1:] - TRIALS.fact_chances[:, :1]

# A sentence of chapter 7, for how many it must hold, and whether it holds for each that is stored.
CLAIMS = {
    "In all 20 texts the query can do without head 17.1": (20, TRIALS.patch[:, 1, 0] > 0.95),
    "while the keys lose something": (20, TRIALS.patch[:, 0, 1] < TRIALS.patch[:, 0, 0]),
    "comes first every time": (
        20,
        TRIALS.lead.argmax(axis=1) == TRIALS.parts.index("17.1"),
    ),
    "in twelve of the 20 texts the answer is among the ten": (12, TRIALS.rank[:, 1] < 10),
    "stays below 20 % up to layer 29": (20, TRIALS.lens[:, :29].max(axis=1) < 0.2),
    "and is above 49 % after layer 30": (20, TRIALS.lens[:, 29] > 0.49),
    "needed for some names and not for others": (8, TRIALS.without_alone[:, 0] < BASE - 0.1),
    "leaves four answers below one half": (4, TRIALS.without_alone[:, 5] < 0.5),
    "as many as head 19.7": (4, TRIALS.without_alone[:, 0] < 0.5),
    "and its control for none": (20, TRIALS.without_alone[:, 1] > BASE - 0.1),
    "all 20 answers lose": (20, TRIALS.without_alone[:, 2] < BASE),
    "half of them fall below one half": (10, TRIALS.without_alone[:, 2] < 0.5),
    "The eight are needed for lookups": (20, TRIALS.without_looking[:, 8] < 0.27),
    "and for none of these eight texts": (8, np.abs(CHANGE[:, 0]) < 0.07),
    "and the loud ones the other way round": (8, CHANGE[:, 1] < -0.2),
    "Three of 20 lookups do miss the loud heads": (3, TRIALS.without_loud[:, 8] < BASE - 0.2),
    "the right way in all twelve comparisons": (12, EARLIER[..., 0] > EARLIER[..., 1]),
    "on average four forms lean to the earlier place": (4, EARLIER.mean(axis=(1, 2)) > 0.5),
}


def cells(path, kind):
    notebook = json.loads(path.read_text("utf8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


@pytest.mark.parametrize("sentence", CLAIMS)
def test_a_claim_holds_for_every_text_that_is_stored(sentence):
    holds_for, each = CLAIMS[sentence]
    text = re.sub(r"\s+", " ", " ".join(cells(PATHS[1], "markdown")))
    assert sentence in text, "the chapter no longer says this: take the line out, or mend it"
    assert each.sum() == holds_for, f"{each.sum()} of {each.size}, not {holds_for}: say so there"


def rests_on_one(code):
    """Return what is read of one text alone, though more are stored."""
    tree = ast.parse(re.sub(r"^( *)%", r"\1pass  #", code, flags=re.MULTILINE))
    once, whole = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            if isinstance(index, ast.Constant) and isinstance(index.value, int):
                once.add((id(node.value), node.value.attr))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if node.attr in COPIES:
                once.add((id(node), node.attr))
            elif (id(node), node.attr) not in once:
                whole.add(node.attr)
    return {name for _, name in once if name in {*NUMBERS, *COPIES}} - whole


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_nothing_is_read_of_one_text_where_more_are_stored(path):
    found = rests_on_one("\n".join(cells(path, "code")))
    assert not found, f"{sorted(found)}: read it for all texts, and say median and range"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("print(trials.patch[0])", {"patch"}),
        ("print(trials.patch[0, 1], np.median(trials.rank[:, 1]))", {"patch"}),
        ("print(trials.patch[0], np.median(trials.patch, axis=0))", set()),
        ("print(lookup.without_one[18, 6])", {"without_one"}),
        ("print(readings[text].weights[18, 6])", set()),
    ],
)
def test_a_claim_on_one_text_is_found(code, found):
    assert rests_on_one(code) == found
