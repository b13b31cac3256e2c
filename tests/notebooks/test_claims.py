"""What chapters 6 to 9 say of the language model holds for all texts that are stored."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

import d2lmini
from d2lmini.models import load_trials
from d2lmini.models.stored import read_npz

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
PATHS = [path for n in "6789" for path in sorted(CHAPTERS.glob(f"0{n}-*.ipynb"))]
TRIALS = load_trials()
COPIES = {"without_one": "without_alone", "without_others": "without_loud"}  # of one text, of all
NUMBERS = {name for name, x in TRIALS._asdict().items() if isinstance(x, np.ndarray)}
with read_npz("smollm_controls.npz") as file:
    STORED = {name: file[name].astype(float) for name in file if file[name].dtype.kind in "fi"}
CONTROLS = set(STORED)
BASE = TRIALS.without_looking[:, 0]
EARLIER = TRIALS.place_weights[..., 0] / TRIALS.place_weights.sum(axis=-1)
CHANCES = TRIALS.place_chances  # (6, 2, 2, 2): form, order, asked for, place
PLAIN, FORMS, RESTING = (STORED[name] for name in ("plain_leads", "form_chances", "rest_chances"))
ADDED = STORED["prose_surprise"][..., 1:] - STORED["prose_surprise"][..., :1]  # (8, 3, 5)
WINDOWS = Path(d2lmini.__file__).parent / "data/smollm_windows.csv"
SEEN = np.genfromtxt(WINDOWS, delimiter=",", names=True)  # a column for each setting
CHANGE = TRIALS.fact_chances[:, 1:] - TRIALS.fact_chances[:, :1]

# A sentence of a chapter, for how many it must hold, and whether it holds for each that is stored.
CLAIMS = {
    "In all 20 texts the query can do without head 17.1": (20, TRIALS.patch[:, 1, 0] > 0.95),
    "while the keys lose something": (20, TRIALS.patch[:, 0, 1] < TRIALS.patch[:, 0, 0]),
    "comes first every time": (
        20,
        TRIALS.lead.argmax(axis=1) == TRIALS.parts.index("17.1"),
    ),
    "in twelve of the 20 texts the answer is among the ten": (12, TRIALS.rank[:, 1] < 10),
    "in all 20 texts the answer stays below 20 % up to layer 29": (
        20,
        TRIALS.lens[:, :29].max(axis=1) < 0.2,
    ),
    "and is above 49 % after layer 30": (20, TRIALS.lens[:, 29] > 0.49),
    "needed for some names and not for others": (8, TRIALS.without_alone[:, 0] < BASE - 0.1),
    "head 17.1 comes first in seven": (7, PLAIN[:, 0] > PLAIN[:, 1]),
    "But there it wrote 7.2 at most": (20, PLAIN[:, 0] < 7.25),
    "In all 20 texts this median is above .45": (20, STORED["moved"][:, 0, 0] > 0.45),
    "it is below .06 for a message about another token": (20, STORED["moved"][:, 1, 0] < 0.06),
    "(So they do in all 20 texts below.)": (
        20,
        (STORED["unrotated"][:, 0, 1] < 0.2) & (STORED["unrotated"][:, 1, 1] > 0.9),
    ),
    "into the answer in 19 of 20 texts": (19, STORED["unpacked"][:, 1] == 0),
    "in 34 of 35 lookups": (34, FORMS[:, 1] < FORMS[:, 0] / 2),
    "comes first in all of them": (
        35,
        STORED["form_leads"][:, 0] > STORED["form_leads"][:, 1],
    ),
    "where a pair of tokens comes again": (8, ADDED[:, 0, 0] > 0.3),
    "and nothing where a token is new": (8, ADDED[:, 2, 0] < 0.03),
    "in 11 of the 13 texts the answer loses more": (11, RESTING[:, 1] < RESTING[:, 3]),
    "in each of the eight texts, the perplexity is then less than 60 %": (
        8,
        SEEN["newest_32_and_the_first"]
        < 0.6 * np.minimum(SEEN["newest_33"], SEEN["newest_32_and_the_sixth"]),
    ),
    "so does a fresh start": (8, SEEN["newest_33_read_afresh"] < 0.7 * SEEN["newest_33"]),
    "leaves four answers below one half": (4, TRIALS.without_alone[:, 5] < 0.5),
    "as many as head 19.7": (4, TRIALS.without_alone[:, 0] < 0.5),
    "and its control for none": (20, TRIALS.without_alone[:, 1] > BASE - 0.1),
    "all 20 answers lose": (20, TRIALS.without_alone[:, 2] < BASE),
    "half of them fall below one half": (10, TRIALS.without_alone[:, 2] < 0.5),
    "The eight are needed for lookups": (20, TRIALS.without_looking[:, 8] < 0.27),
    "and for none of these eight texts": (8, np.abs(CHANGE[:, 0]) < 0.07),
    "and the loud ones the other way round": (8, CHANGE[:, 1] < -0.2),
    "Three of 20 lookups do miss the loud heads": (3, TRIALS.without_loud[:, 8] < BASE - 0.2),
    "and beats the wrong one in 12 of 24 texts": (
        12,
        np.stack(
            [CHANCES[:, :, 0, 0] > CHANCES[:, :, 0, 1], CHANCES[:, :, 1, 1] > CHANCES[:, :, 1, 0]]
        ),
    ),
    "the right way in all twelve comparisons": (12, EARLIER[..., 0] > EARLIER[..., 1]),
    "on average four forms lean to the earlier place": (4, EARLIER.mean(axis=(1, 2)) > 0.5),
}


def cells(path, kind):
    notebook = json.loads(path.read_text("utf8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


TEXT = re.sub(r"\s+", " ", " ".join(text for path in PATHS for text in cells(path, "markdown")))


@pytest.mark.parametrize("sentence", CLAIMS)
def test_a_claim_holds_for_every_text_that_is_stored(sentence):
    holds_for, each = CLAIMS[sentence]
    assert sentence in TEXT, "the chapter no longer says this: take the line out, or mend it"
    assert each.sum() == holds_for, f"{each.sum()} of {each.size}, not {holds_for}: say so there"


COUNTED = re.compile(
    r"\b(?:all|\d+ of|\w+ of the|each of the) (?:the )?(?:\d+|eight) (?:texts|lookups)\b"
)


def test_each_count_of_texts_in_chapter_7_is_compared_with_what_is_stored():
    text = re.sub(r"\s+", " ", " ".join(cells(PATHS[1], "markdown")).split("## Exercises")[0])
    found = [match.span() for match in COUNTED.finditer(text)]
    places = [(at := text.find(sentence), at + len(sentence)) for sentence in CLAIMS]
    unchecked = [
        text[max(0, start - 40) : end + 40]
        for start, end in found
        if not any(a < end and start < b for a, b in places if a >= 0)
    ]
    assert len(found) > 5 and not unchecked, f"say in CLAIMS what must hold: {unchecked}"


def stored(node):
    """Return which stored array is read, if one is that has a row for each text."""
    if isinstance(node, ast.Attribute) and node.attr in {*NUMBERS, *COPIES}:
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if node.slice.value in CONTROLS else None
    return None


def rests_on_one(code):
    """Return what is read of one text alone, though more are stored, under another name too."""
    tree = ast.parse(re.sub(r"^( *)%", r"\1pass  #", code, flags=re.MULTILINE))
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    queue = [(node, stored(node)) for node in ast.walk(tree) if stored(node)]
    seen, once, whole = set(), set(), set()
    while queue:
        node, name = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(above[node], ast.Subscript) and above[node].value is node:
            node = above[node]
            index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            if isinstance(getattr(index, "operand", index), ast.Constant):
                once.add(name)
                continue
        if isinstance(above[node], ast.Assign) and isinstance(above[node].targets[0], ast.Name):
            alias = above[node].targets[0].id
            queue += [
                (other, name)
                for other in ast.walk(tree)
                if isinstance(other, ast.Name) and other.id == alias and other not in seen
                if isinstance(other.ctx, ast.Load)
            ]
        else:
            (once if name in COPIES else whole).add(name)
    return once - whole


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
        ("ranks = trials.rank[:, 1]\nprint(ranks[0])", {"rank"}),
        ("ranks = trials.rank[:, 1]\nprint(ranks[0], ranks.max())", set()),
        ('print(controls["rest_chances"][-1])', {"rest_chances"}),
        ('for row in controls["rest_chances"]:\n    print(row)', set()),
    ],
)
def test_a_claim_on_one_text_is_found(code, found):
    assert rests_on_one(code) == found
