"""What chapters 6 to 10 say of a model holds for all texts and trainings that are stored."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import d2lmini
from d2lmini import load_name_trials
from d2lmini.models import load_trials
from d2lmini.models.stored import read_npz

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
PATHS = [path for n in "6789" for path in sorted(CHAPTERS.glob(f"0{n}-*.ipynb"))]
TRIALS = load_trials()
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
RANKS = STORED["form_rank"]  # (35, 8)
NAMES = STORED["alice_chances"]  # (128, 2, 3): name, order of the facts, message
FAILED, BLIND = NAMES[:, 0, 0] < 0.5, STORED["alice_looks"][:, 0, 0] < 0.5
ALIKE = STORED["alice_wrote"][:, 0, 2]
ENCODERS = load_name_trials()
LOOKUP, TRIGRAMS, DAMERAU = (  # (3 encoders, 11): one to three slips, eight kinds
    ENCODERS.found[:, ENCODERS.methods.index(name)] for name in ("learned", "trigrams", "Damerau")
)
LOST = LOOKUP[:, 1, None, None] - ENCODERS.without  # (3, 3, 4): encoder, layer, head
CHANGE = TRIALS.fact_chances[:, 1:] - TRIALS.fact_chances[:, :1]

# A sentence of a chapter, for how many it must hold, and whether it holds for each that is stored.
CLAIMS = {
    "In all 20 texts the query can do without head 17.1": (20, TRIALS.patch[:, 1, 0] > 0.95),
    "while the keys lose something": (20, TRIALS.patch[:, 0, 1] < TRIALS.patch[:, 0, 0]),
    "comes first every time": (20, TRIALS.lead.argmax(axis=1) == TRIALS.parts.index("17.1")),
    "in twelve of the 20 texts the answer is among the ten": (12, TRIALS.rank[:, 1] < 10),
    "needed for some names and not for others": (8, TRIALS.without_alone[:, 0] < BASE - 0.1),
    "head 17.1 comes first in seven": (7, PLAIN[:, 0] > PLAIN[:, 1]),
    "But there it wrote 7.2 at most": (20, PLAIN[:, 0] < 7.25),
    "In all 20 texts this median is above .45": (20, STORED["moved"][:, 0, 0] > 0.45),
    "it is below .06 for a message about another token": (20, STORED["moved"][:, 1, 0] < 0.06),
    "Head 24.3 copies in 15 of the 35 texts": (15, RANKS[:, 1] < 10),
    "and the other seven in none": (0, (np.delete(RANKS, 1, axis=1) < 10).any(axis=1)),
    "alone makes the answer in 34 of the 35 texts": (34, STORED["form_lens"][:, 2] == 0),
    "its median is above .45 in 18 of the 35 texts": (18, STORED["form_moved"][:, 0, 0] > 0.45),
    "(another's stays below .01)": (35, STORED["form_moved"][:, 1, 0] < 0.01),
    "(So they do in all 20 texts below.)": (
        20,
        (STORED["unrotated"][:, 0, 1] < 0.2) & (STORED["unrotated"][:, 1, 1] > 0.9),
    ),
    "into the answer in 19 of 20 texts": (19, STORED["unpacked"][:, 1] == 0),
    "in 34 of 35 lookups": (34, FORMS[:, 1] < FORMS[:, 0] / 2),
    "comes first in all of them": (35, STORED["form_leads"][:, 0] > STORED["form_leads"][:, 1]),
    "where a pair of tokens comes again": (8, ADDED[:, 0, 0] > 0.3),
    "and nothing where a token is new": (8, ADDED[:, 2, 0] < 0.03),
    "in 11 of the 13 texts the answer loses more": (11, RESTING[:, 1] < RESTING[:, 3]),
    "between any two texts the cosine is at least .997": (13 * 13, STORED["rest_alike"] > 0.997),
    "in 12 of the 13 texts the answer changes less": (
        12,
        np.abs(RESTING[:, 2] - RESTING[:, 0]) < np.abs(RESTING[:, 3] - RESTING[:, 0]),
    ),
    "Told second, 127 of 128 names are found": (127, NAMES[:, 1, 0] > 0.5),
    "Told first, 35 are not": (35, FAILED),
    "For three of these": (3, FAILED & BLIND),
    "doesn't help, so the key is at fault": (3, STORED["alice_asked"][:, 0][BLIND] < 0.2),
    "its cosine with the other order's is .34 at most": (3, ALIKE[BLIND] < 0.345),
    "and at least .87 for the other 125": (125, ALIKE[~BLIND] > 0.87),
    "all three names are found (.62 to 1.00)": (3, NAMES[:, 0, 1][BLIND] > 0.615),
    "none is (.04 at most)": (3, NAMES[:, 0, 2][BLIND] < 0.045),
    "For the other 32, head 19.7 does look": (
        32,
        STORED["alice_looks"][:, 0, 0][FAILED & ~BLIND] > 0.75,
    ),
    "only three of the 32 are found": (3, NAMES[:, 0, 1][FAILED & ~BLIND] > 0.5),
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
    "The ranges of the learned lookup and of Damerau do not overlap": (
        3,
        LOOKUP[:, :3].min(axis=0) > DAMERAU[:, :3].max(axis=0),
    ),
    "leads in all four kinds of sound": (
        4,
        LOOKUP[:, 3:7].min(axis=0) > DAMERAU[:, 3:7].max(axis=0),
    ),
    "Damerau leads in two of the four": (2, DAMERAU[:, 7:].min(axis=0) > LOOKUP[:, 7:].max(axis=0)),
    "comes last, behind even the trigrams": (3, LOOKUP[:, 10] < TRIGRAMS[:, 10]),
    "No head comes near one half": (24, ENCODERS.looks[..., ENCODERS.places.index("before")] < 0.4),
    "no encoder loses more than three names in a hundred": (24, LOST[:, :2] < 0.03),
    "costs 1.6 to 8.6 names in a hundred": (
        4,
        np.abs(np.median(np.sort(LOST[:, 2]), axis=0) - [0.016, 0.036, 0.049, 0.086]) < 0.0005,
    ),
}


def cells(path, kind):
    notebook = json.loads(path.read_text("utf8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


LAST = CHAPTERS / "10-the-lookup-learned.ipynb"
TEXTS = {path: re.sub(r"\s+", " ", " ".join(cells(path, "markdown"))) for path in (*PATHS, LAST)}
TEXT = " ".join(TEXTS.values())


@pytest.mark.parametrize("sentence", CLAIMS)
def test_a_claim_holds_for_every_text_that_is_stored(sentence):
    holds_for, each = CLAIMS[sentence]
    assert sentence in TEXT, "the chapter no longer says this: take the line out, or mend it"
    assert each.sum() == holds_for, f"{each.sum()} of {each.size}, not {holds_for}: say so there"


COUNTED = re.compile(
    r"\b(?:all|(?!medians)\w+ of(?: the)?|each of the) (?:\d+|eight|twelve)"
    r" (?:texts|lookups|names|answers|comparisons)\b"
)


def test_each_count_of_texts_is_compared_with_what_is_stored():
    counts, unchecked = 0, []
    for text in TEXTS.values():
        places = [(at := text.find(sentence), at + len(sentence)) for sentence in CLAIMS]
        for start, end in (match.span() for match in COUNTED.finditer(text)):
            counts += 1
            if not any(a < end and start < b for a, b in places if a >= 0):
                unchecked.append(text[max(0, start - 40) : end + 40])
    assert counts > 15 and not unchecked, f"say in CLAIMS what must hold: {unchecked}"


READ = re.compile(rf'[."]({"|".join(sorted(NUMBERS | CONTROLS))})\b(?:"\])?(\[-?\d+[\],])?')


def rests_on_one(code):
    """Return what is read of one text alone, though more are stored."""
    found = READ.findall(code)
    return {name for name, one in found if one} - {name for name, one in found if not one}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_nothing_is_read_of_one_text_where_more_are_stored(path):
    found = rests_on_one("\n".join(cells(path, "code")))
    assert not found, f"{sorted(found)}: read it for all texts, and say median and range"
