"""What the drawings that answer to the reader start from, and where each of them stands.

Each is a module in `chapters/_static/explorables/`, without any dependency, and a function here,
which gives what it starts from, the numbers that stand there until it runs (and where no script
does), and the sentence that says what is seen. All of these come from `d2lmini`; tests compare the
modules with it, and their first sentences with the ones from here.
"""

import html
import json
import string
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import nbformat
import numpy as np

import d2lmini
import d2lmini.models
from d2lmini.models.stored import read_npz

from .drawings import KEYS, QUERY, VALUES

# Each with its page and, in a notebook, the cell after which it comes: the one that draws the
# figure it belongs to. A page that is no notebook says where: ```{explorable} lookup
PLACES = {
    "lookup": ("chapters/index", ""),
    "names": ("chapters/01-database-analogy", "mechanism"),
    "triangle": ("chapters/02-softmax-weighting", "figure-path"),
    "nile": ("chapters/02-softmax-weighting", "figure-nile"),
    "masks": ("chapters/03-scaled-dot-product", "masks-figure"),
    "training": ("chapters/04-projections", "before-after"),
    "heads": ("chapters/05-multi-head-attention", "heads-figure"),
    "rotary": ("chapters/06-choosing-q-k-v", "rotary-drawing"),
    "readings": ("chapters/07-real-models", "two-heads"),
    "told": ("chapters/07-real-models", "told-figure"),
    "atlas": ("chapters/atlas", ""),
    "sentence": ("chapters/atlas", ""),
    "tiles": ("chapters/08-attention-at-scale", "halves-figure"),
    "museum": ("chapters/09-bug-museum", "no-scale"),
    "learned": ("chapters/10-the-lookup-learned", "back"),
}


BEFORE = "before"  # it comes in the place of the figure of the cell before it


@dataclass
class Start:
    """What an explorable starts from: its settings, a table of numbers, and a sentence."""

    title: str
    settings: dict
    head: tuple[str, ...]
    rows: list[tuple]
    says: str  # after a bar, what it invites to: paper, and a page without scripts, leave it out
    size: tuple[int, int]  # of its drawing
    controls: int
    replaces: str = ""  # the drawing in whose place it comes: BEFORE, or one of the page
    tall: int = 0  # pixels that its drawing takes on a phone, if its parts stand there in a column
    files: dict[str, bytes] = field(default_factory=dict)  # what it loads when it is asked
    bars: int | None = None  # the column of weights that are bars where no script runs
    asked: str = ""  # the query, and what comes out in each column, until a script says it
    gives: tuple = ()
    invites: str = field(init=False)

    def __post_init__(self) -> None:
        """Know the end of the sentence, which asks for an act."""
        start, _, self.invites = self.says.partition("|")
        self.says = start + self.invites


def lookup() -> Start:
    """Return the lookup of the first page."""
    score = d2lmini.dot_product_score
    output, weights = d2lmini.attention(QUERY, KEYS, VALUES, score=score)
    best = int(weights[0].argmax())
    keys, values = KEYS.astype(int).tolist(), VALUES.astype(int).tolist()
    key = f"({', '.join(map(str, keys[best]))})"
    rows = [
        (f"({k[0]}, {k[1]})", f"{s:.1f}", f"{w:.2f}", v[0])
        for k, s, w, v in zip(keys, score(QUERY, KEYS)[0], weights[0], values, strict=True)
    ]
    says = (
        f"The query ({QUERY[0, 0]:.1f}, {QUERY[0, 1]:.1f}) fits the key {key} best, which gets "
        f"{weights[0, best]:.2f} of the weight, and the output is {output[0, 0]:.2f}. |Turn the "
        "query towards another key, then make it longer."
    )
    settings = {"query": QUERY[0].tolist(), "keys": keys, "values": values}
    head = ("key", "score", "weight", "value")
    return Start(
        "A query among three keys", settings, head, rows, says, (500, 244), 2, "drawing-idea"
    )


def names() -> Start:
    """Return the lookup of the first chapter, by a name that is typed."""
    people, incomes = d2lmini.load_incomes()
    asked, temperature = "alise marlo", 0.1
    encode = d2lmini.TrigramEncoder(people)
    scores = (encode([asked]) @ encode(people).T)[0]
    weights = d2lmini.softmax(scores / temperature)
    best = int(weights.argmax())
    rows = [
        (name, f"{s:.2f}", f"{w:.2f}", f"{v:.0f}")
        for name, s, w, v in zip(people, scores, weights, incomes, strict=True)
    ]
    says = (
        f"“{asked}” fits {people[best]} best, with {weights[best]:.2f} of the weight, and the "
        f"answer is {weights @ incomes:.1f}. |Type on, and see who gains."
    )
    settings = {
        "asked": asked,
        "names": list(people),
        "values": incomes.astype(int).tolist(),
        "temperature": temperature,
    }
    head = ("key", "score", "weight", "value")
    return Start("Eight names and their weights", settings, head, rows, says, (350, 268), 1, BEFORE)


def learned() -> Start:
    """Return the same eight people for the last chapter and the first page, and what is learned."""
    start, learns = names(), d2lmini.NameEncoder.load()
    asked, people, values = (start.settings[name] for name in ("asked", "names", "values"))
    by_trigrams, as_learned = (
        d2lmini.softmax((encode([asked]) @ encode(people).T)[0] / start.settings["temperature"])
        for encode in (d2lmini.TrigramEncoder(people), learns)
    )
    rows = [
        (name, f"{one:.2f}", f"{other:.2f}", value)
        for name, one, other, value in zip(people, by_trigrams, as_learned, values, strict=True)
    ]
    shapes = [[name, *np.atleast_2d(w).shape] for name, w in learns.weights.items()]
    matrices = b"".join(w.astype("<f2").tobytes() for w in learns.weights.values())
    settings = {**start.settings, "file": "name-encoder.bin", "shapes": shapes}
    head = ("key", "weight by letters in a row", "weight as learned", "value")
    made = Start("By letters in a row, and as learned", settings, head, rows, "", (640, 246), 2)
    made.says, made.invites, made.asked, made.bars = start.says, start.invites, asked, 0
    made.tall = 396
    made.gives = (f"{by_trigrams @ values:.1f}", f"{as_learned @ values:.1f}")
    made.files = {"name-encoder.bin": matrices}
    return made


def triangle() -> Start:
    """Return the three scores of the second chapter, and their temperature."""
    scores = np.array([2.0, 1.0, 0.0])
    values = np.array([[2.0, 6.0], [6.0, 2.0], [1.0, 1.0]])
    weights = d2lmini.softmax(scores)
    best = "ABC"[int(weights.argmax())]
    rows = [
        (name, f"{s:.0f}", f"{w:.2f}", f"({v[0]:.0f}, {v[1]:.0f})")
        for name, s, w, v in zip("ABC", scores, weights, values, strict=True)
    ]
    says = (
        f"With the weights {', '.join(f'{w:.2f}' for w in weights)} the point leans to {best}. "
        "|Lower the temperature and watch the path into a corner."
    )
    settings = {"scores": scores.tolist(), "values": values.tolist()}
    head = ("entry", "score", "weight", "value")
    return Start("A point between three values", settings, head, rows, says, (480, 300), 5, BEFORE)


def nile() -> Start:
    """Return the regression of the second chapter, by its width."""
    years, flow = d2lmini.load_nile()
    time, level, others = years[:, None], flow[:, None], ~np.eye(len(years), dtype=bool)

    def error(width: float) -> float:
        score = partial(d2lmini.gaussian_score, width=width)
        estimate = d2lmini.attention(time, time, level, mask=others, score=score).output
        return float(np.sqrt(np.mean((estimate - level) ** 2)))

    width, year, early = 2.0, 1913, years < 1899
    smooth = d2lmini.nadaraya_watson(time, time, level, width=width).output[:, 0]
    rows = [(f"{w:.1f}", f"{error(w):.0f}") for w in (0.5, 1.0, 2.0, 3.0, 10.0, 50.0)]
    says = (
        f"With a width of {width:.1f} years the answer for {year} is "
        f"{smooth[years == year][0]:.0f}. If every year is estimated from the others alone, the "
        f"error is {error(width):.0f}. The line shows the fall around 1899. |Is there a width with "
        "a smaller error?"
    )
    means = [(1871, 1898, flow[early].mean()), (1899, 1970, flow[~early].mean())]
    settings = {"years": years.astype(int).tolist(), "flow": flow.tolist(), "width": width}
    settings |= {"year": year, "means": [[a, b, round(float(mean))] for a, b, mean in means]}
    settings["least"] = min(error(w) for w in np.geomspace(0.3, 50, 200))
    head = ("width", "error from the others")
    return Start(
        "The Nile and a line through it", settings, head, rows, says, (480, 342), 2, BEFORE
    )


EMBEDDING = {  # of chapter 3: food, technology, action, person
    "i": [-1, -1, 0, 2],
    "like": [1, 1, 2, 0],
    "to": [0, 0, 1, 0],
    "the": [0, 0, -1, 0],
    "eat": [3, 0, 2, 0],
    "phone": [0, 3, 0, 0],
    "apple": [2, 2, 0, 0],
}


def masks() -> Start:
    """Return the two sentences of the third chapter, under a causal mask."""
    sentences = [["i", "like", "the", "apple", "phone"], ["i", "like", "to", "eat", "apple"]]
    words = sentences[0]
    x = np.array([EMBEDDING[word] for word in words], dtype=float)
    asks = words.index("apple")
    output, weights = (part[asks] for part in d2lmini.attention(x, x, x, causal=True))
    best = int(weights.argmax())
    scores = x @ x[asks]
    rows = [
        (word, *(f"{a:.2f}".replace("-", "−") if i <= asks else "–" for a in (s, s / 2, w)))
        for i, (word, s, w) in enumerate(zip(words, scores, weights, strict=True))
    ]
    says = (
        f"10 of 25 cells are hidden. “apple” does not see “phone”. Its largest weight, "
        f"{weights[best]:.2f}, is on “{words[best]}”, and the answer has {output[0]:.2f} of food "
        f"and {output[1]:.2f} of technology. |Choose another word, or the other sentence."
    )
    settings = {
        "sentences": sentences,
        "embedding": EMBEDDING,
        "components": ["food", "tech", "action", "person"],
    }
    head = ("word", "score", "scaled", "weight")
    return Start(
        "A mask and what a word sees", settings, head, rows, says, (620, 325), 2, BEFORE, 683
    )


def heads() -> Start:
    """Return the question of the fifth chapter, asked by one head."""
    people, incomes = d2lmini.load_incomes()
    first = [name.split()[0] for name in people]
    pair, factor, m = [first.index("Alice"), first.index("Carmen")], 40, len(people)
    eye = np.eye(m)
    query = factor * np.concatenate([eye[pair[0]], eye[pair[1]]])[None]
    key, value = np.hstack([eye, eye]), incomes[:, None]
    output, weights = d2lmini.attention(query, key, value)
    rows = [
        (name, f"{w:.2f}", f"{v:.0f}")
        for name, w, v in zip(first, weights[0], incomes, strict=True)
    ]
    wanted = " and ".join(f"{incomes[i]:.0f}" for i in pair)
    says = (
        "One head has one row of weights for both questions and returns one number, "
        f"{output[0, 0]:.1f}, from which nobody can tell {wanted} apart. |Give it two heads."
    )
    settings = {
        "names": first,
        "values": incomes.astype(int).tolist(),
        "pair": pair,
        "factor": factor,
    }
    head = ("key", "weight", "value")
    return Start(
        "The weights of one head or two", settings, head, rows, says, (480, 362), 4, BEFORE
    )


STEPS = range(0, 61, 4)


@cache
def trained() -> dict:
    """Return what the head of the fourth chapter finds while it learns, by the chapter's code."""
    path = Path(__file__).parents[1] / "04-projections.ipynb"
    code = {cell.id: cell.source for cell in nbformat.read(path, 4).cells}
    names: dict = {}
    for cell in ("imports", "alphabet", "head-class", "deal", "raw-task", "train", "training"):
        with redirect_stdout(None):
            exec(code[cell], names)  # the book's own
    head, deal, torch = names["random_head"](), names["deal"], names["torch"]
    cards, askers = ["A3", "B7", "C4", "D1", "E5", "F9", "G2", "H6"], list("abcdefgh")
    symbols = [*string.ascii_uppercase, *string.ascii_lowercase, *string.digits]
    parts = [[names["table"][symbols.index(s)] for s in word] for word in cards + askers]
    one_deal = torch.from_numpy(
        names["rescale"](np.stack([np.sum(part, axis=0) for part in parts]))
    )
    kept: dict = {"weights": [], "found": [], "right": []}

    def look() -> None:
        with torch.no_grad():
            output, weights = head(names["test_tokens"])
            shown = head(one_deal)[1][8:]
        right = output[:, 8:].argmax(dim=-1) == names["test_digits"]
        kept["weights"].append((50 * shown).round().int().tolist())  # as fine as colours tell
        kept["found"].append(round(names["found"](weights), 2))
        kept["right"].append(round(right.double().mean().item(), 2))

    taken = 0

    def deal_and_look(rng, count):  # the training deals once before each step
        nonlocal taken
        if taken in STEPS:
            look()
        taken += 1
        return deal(rng, count)

    names["deal"] = deal_and_look
    names["train"](head, *head.parameters(), steps=STEPS[-1])
    look()
    return {"steps": [*STEPS], **kept, "tokens": cards + askers}


def training() -> Start:
    """Return the training of the fourth chapter."""
    kept = trained()
    found, right = kept["found"], kept["right"]
    rows = [(s, f"{f:.2f}", f"{r:.2f}") for s, f, r in zip(STEPS, found, right, strict=True)]
    says = (
        f"Before the first step the letters find {found[0]:.2f} of their partners and name "
        f"{right[0]:.2f} of the digits. The rows are noise. |Let it learn, and watch whether "
        "finding or reading comes first."
    )
    head = ("steps", "partners found", "digits right")
    return Start(
        "Weights while they are learned", kept, head, rows[::3], says, (520, 366), 2, BEFORE
    )


def rotary() -> Start:
    """Return a query and a key of the sixth chapter, rotated by their positions."""
    query, key, base = np.array([1.0, 0, 1, 0]), np.array([0.8, 0.6, 0.9, 0.3]), 100.0

    def score(place: int, distance: int) -> float:
        asks = d2lmini.rotary(query[None], start=place + distance, base=base)
        found = d2lmini.rotary(key[None], start=place, base=base)
        return float(d2lmini.dot_product_score(asks, found)[0, 0])

    places = [(3, 1), (23, 21), (5, 1), (25, 21)]
    rows = [(i, j, i - j, f"{score(j, i - j):.2f}".replace("-", "−")) for i, j in places]
    shown = f"{score(1, 2):.2f}".replace("-", "−")
    says = (
        f"With the query at 3 and the key at 1, the score is {shown}. |Move both through the text: "
        "the arrows rotate, and the score stays. Then change the distance."
    )
    settings = {"query": query.tolist(), "key": key.tolist(), "base": base, "furthest": 20}
    head = ("query at", "key at", "distance", "score")
    title = "A query, a key and their score"
    return Start(title, settings, head, rows, says, (490, 208), 2, BEFORE)


def readings() -> Start:
    """Return the heads of the language model of the seventh chapter, each beside one of them."""
    layer, head, beside = 18, 6, (16, 0)  # 19.7 and 17.1, as the chapter calls them
    reading = next(iter(stored().values()))
    weights = reading.weights[layer, head]

    def lower(square: np.ndarray) -> list[list[float]]:
        return [[round(float(w), 4) for w in row[: i + 1]] for i, row in enumerate(square)]

    row = weights[-1]
    best = int(row.argmax())
    rows = [
        (f"“{reading.pieces[i].strip()}”", f"{row[i]:.2f}")
        for i in np.argsort(-row, kind="stable")[:4]
    ]
    says = (
        f"In head 19.7, “{reading.pieces[-1].strip()}” takes {row[best]:.2f} from "
        f"“{reading.pieces[best].strip()}”, the token that followed its earlier occurrence. "
        "|Ask from another token, or try head 17.1."
    )
    settings = {
        "texts": [
            {"pieces": list(one.pieces), "file": f"reading-{i}.bin"}
            for i, one in enumerate(stored().values())
        ],
        "layer": layer,
        "head": head,
        "beside": list(beside),
        "before": lower(reading.weights[beside]),
        "rows": lower(weights),
    }
    title, head = "Two heads on a text", ("from", "taken")
    files = {f"reading-{i}.bin": stored_weights(text) for i, text in enumerate(stored())}
    return Start(title, settings, head, rows, says, (640, 296), 4, BEFORE, files=files)


def told() -> Start:
    """Return who told head 19.7 where to look, for some texts of the seventh chapter."""
    trials = d2lmini.models.load_trials()
    texts = []
    for begins in "Zed", "Captain", "Alice", "Paris":
        tokens, scores = next(trials.scores[t] for t in trials.scores if t.startswith(begins))
        n = len(tokens)
        leads = scores - (scores.sum(axis=1, keepdims=True) - scores) / (n - 1)  # (181, n)
        order = np.argsort(-leads, axis=0, kind="stable")[:6]
        weights = d2lmini.softmax(scores.sum(axis=0))
        by = trials.parts.index("17.1")
        others = np.delete(leads, by, axis=0)
        spans = np.stack([others.min(axis=0), others.max(axis=0), leads[by]], axis=1)  # (n, 3)
        texts.append(
            {
                "tokens": list(tokens),
                "weights": weights.round(3).tolist(),
                "leads": leads.sum(axis=0).round(3).tolist(),
                "tops": [
                    [[trials.parts[i], round(float(leads[i, key]), 3)] for i in order[:, key]]
                    for key in range(n)
                ],
                "spans": spans.round(1).tolist(),
                "start": 1 + int(weights[1:].argmax()),
            }
        )
    first = texts[0]
    key = first["start"]
    rows = [(name, f"{lead:.1f}") for name, lead in first["tops"][key]]
    says = (
        f"Head 19.7 gives {first['weights'][key]:.2f} to “{first['tokens'][key]}”, whose score is "
        f"{first['leads'][key]:.1f} above the mean of the other keys. Of this, head 17.1 "
        f"gives {first['tops'][key][0][1]:.1f}. |Choose another key, or a text with nothing to "
        "look up."
    )
    twenty = np.sort(trials.lead, axis=1)[:, [0, -2, -1]].round(1).tolist()  # 17.1 comes first
    settings = {"texts": texts, "twenty": twenty}
    title, head = "The parts of a score", ("wrote", "part of the lead")
    return Start(title, settings, head, rows, says, (640, 248), 2, BEFORE)


@cache
def stored() -> dict:
    """Return the readings of the seventh chapter, the one that it begins with first."""
    readings = d2lmini.models.load_readings()
    return dict(sorted(readings.items(), key=lambda one: not one[0].startswith("Zed")))


def stored_weights(text: str) -> bytes:
    """Return the weights of all heads on a text: each row up to itself, in two bytes a number."""
    weights = stored()[text].weights
    lower = np.tril_indices(weights.shape[-1])
    return weights[..., lower[0], lower[1]].astype("<f2").tobytes()


HABITS = {  # of a head, as chapter 7 measures them: what they say of it, more than half of the time
    "up": "looks up “by”",
    "one": "looks one token back",
    "first": "rests on the first token",
}


def habits() -> dict[str, np.ndarray]:
    """Return how far each head of the language model has each habit, from 0 to 1: (30, 9) each."""
    reading = next(iter(stored().values()))
    weights, later = reading.weights, np.arange(2, len(reading.pieces))
    return {
        "up": weights[:, :, -1, reading.pieces.index("by")],
        "one": weights[:, :, later, later - 1].mean(axis=-1),
        "first": weights[:, :, later, 0].mean(axis=-1),
    }


def atlas() -> Start:
    """Return all heads of the language model on the first text of the seventh chapter."""
    layer, head = 18, 6  # 19.7, as the chapter calls it
    text, reading = next(iter(stored().items()))
    lookup = d2lmini.models.load_lookup()
    found = habits()
    rows = []
    for name, words in HABITS.items():
        best = [divmod(int(i), 9) for i in np.argsort(-found[name], axis=None)[:3]]
        named = ", ".join(f"{i + 1}.{j + 1} ({found[name][i, j]:.2f})" for i, j in best)
        rows.append((words, int((found[name] > 0.5).sum()), named))
    row = reading.weights[layer, head, -1]
    best = int(row.argmax())
    says = (
        f"Head 19.7 {HABITS['up']}. From “{reading.pieces[-1].strip()}” it looks at "
        f"“{reading.pieces[best].strip()}” most, with {row[best]:.2f}. Without this head the model "
        f"still gives “by” {lookup.without_one[layer, head]:.3f}. |Open another, or sort the wall."
    )
    settings = {
        "tokens": list(reading.pieces),
        "file": "reading-0.bin",
        "place": reading.pieces.index("by"),
        "chance": round(reading.next_pieces[0][1], 3),
        "without": lookup.without_one.round(3).tolist(),
        "first": lookup.first_values[0].round(2).tolist(),
        "layer": layer,
        "head": head,
    }
    title, titles = (
        "The wall of heads",
        ("more than half of the time", "heads of 270", "most of all"),
    )
    files = {"reading-0.bin": stored_weights(text)}
    return Start(title, settings, titles, rows, says, (920, 276), 2, "drawing-atlas", files=files)


def first_layer(places: int) -> dict[str, np.ndarray]:
    """Return what each word and each place adds to the queries and keys of MiniLM's first layer.

    A vector is word + place, less its mean, divided by its spread, and all else is linear: with
    this, ``(parts[word] + parts[place]) / spread[word, place] + same`` is a query and a key.
    """
    with read_npz("minilm_layer.npz") as file:
        w = {name: file[name].astype(np.float64) for name in file if name != "words"}
    x = np.concatenate([w["word"], w["position"][:places]])
    x -= x.mean(axis=1, keepdims=True)
    count = len(w["word"])
    spread = (x[:count, None] + x[count:]).std(axis=-1)
    to_both = np.hstack([w["query_weight"], w["key_weight"]])  # (384, 768)
    same = w["embeddings_shift"] @ to_both + np.hstack([w["query_bias"], w["key_bias"]])
    return {"parts": x * w["embeddings_gain"] @ to_both, "spread": spread, "same": same[None]}


def sentence() -> Start:
    """Return a sentence that the reader may change, read by the first layer of MiniLM."""
    layer, typed, head, most = d2lmini.models.MiniLMLayer.load(), "i like to eat apple", 10, 16
    pieces, weights, _, _ = layer.read(typed)
    asks = pieces.index("apple")
    row = weights[head, asks]
    best, second = (pieces[j] for j in np.argsort(-row)[:2])
    says = (
        f"In head 1.{head + 1}, “apple” takes {row.max():.2f} from “{best}” and "
        f"{np.sort(row)[-2]:.2f} from “{second}”. |Change a word, or try another head."
    )
    found = first_layer(most + 2)
    settings = {
        "typed": typed,
        "words": ["[CLS]", "[SEP]", *layer.words],
        "file": "first-layer.bin",
        "shapes": [[name, *numbers.shape] for name, numbers in found.items()],
        "head": head,
        "asks": asks,
        "rows": weights[head].round(4).tolist(),
        "most": most,
    }
    rows = [(piece, f"{w:.2f}") for piece, w in zip(pieces, row, strict=True)]
    files = {"first-layer.bin": b"".join(x.astype("<f2").tobytes() for x in found.values())}
    title, head = "The first layer of MiniLM", ("word", "weight")
    return Start(title, settings, head, rows, says, (640, 169), 3, tall=196, files=files)


def tiles() -> Start:
    """Return the four scores of the eighth chapter, read in tiles."""
    powers, values, size = [1, 2, 3, 6], [12, 24, 0, 8], 2
    scores = np.log(powers)
    rows = []
    for seen in range(size, len(powers) + 1, size):
        largest = scores[:seen].max()
        e = np.exp(scores[:seen] - largest)
        output = d2lmini.softmax(scores[:seen]) @ values[:seen]
        mixed = e @ values[:seen]
        rows.append((seen, f"ln {max(powers[:seen])}", f"{e.sum():.2f}", f"{mixed:.1f}"))
        rows[-1] += (f"{output:.2f}",)
    _, _, total, mixed_values, answer = rows[-1]
    faded = max(powers[:size]) / max(powers)
    says = (
        f"2 of 2 tiles are read. The sum is {total}, the mixed values are {mixed_values}, and the "
        f"output so far is {answer}. What was read before has faded to {faded:.2f}, since a larger "
        "score has come. It is exact, with two scores at a time. |Change the last score."
    )
    settings = {"powers": powers, "values": values, "size": size}
    head = ("keys read", "M", "s", "o", "o / s")
    title = "Four scores in tiles"
    return Start(title, settings, head, rows, says, (640, 274), 3, BEFORE)


def museum() -> Start:
    """Return the weights that the mistakes of the ninth chapter spoil."""
    query = np.array([[2.0, 1, 0, 1], [1, 2, 1, 0], [0, 1, 2, 2]])
    key = np.array([[1.0, 0, 1, 2], [2, 2, 0, 0], [0, 1, 2, 1], [1, 0, 3, 1]])
    weights = d2lmini.attention(query, key, key, causal=True).weights
    rows = [
        (f"token {i + 2}", *(f"{w:.2f}" if w else "–" for w in row), f"{row.sum():.2f}")
        for i, row in enumerate(weights)
    ]
    products = d2lmini.dot_product_score(query, key).astype(int).tolist()
    settings = {"products": products, "width": 4, "heads": 4}
    says = (
        "Without the mistake all four tests hold. |Choose one, say which tests will notice it, and "
        "switch it on."
    )
    head = ("query", "1", "2", "3", "4", "sum")
    title = "Five mistakes and four tests"
    return Start(title, settings, head, rows, says, (540, 169), 2, tall=375)


# --- as they stand in a page ---


@cache
def start(name: str) -> Start:
    """Return what an explorable starts from; some take a second to work out."""
    return globals()[name]()


def written(name: str) -> str:
    """Return an explorable as HTML, as it stands in a page before its script has run."""
    one = start(name)

    def weight_of(cells: list) -> str:  # what its bar shows where no script runs
        return f' style="--w:{cells[one.bars]}"' if one.bars is not None else ""

    settings = html.escape(json.dumps(one.settings, ensure_ascii=False, separators=(",", ":")))
    head = "".join(f'<th scope="col">{html.escape(str(cell))}</th>' for cell in one.head)
    rows = "".join(
        f'<tr{weight_of(others)}><th scope="row">{html.escape(str(first))}</th>'
        + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in others)
        + "</tr>"
        for first, *others in one.rows
    )
    replaces = f' data-replaces="{one.replaces}"' if one.replaces else ""
    width, height = one.size
    style = f"--shape:{width}/{height};--most:{1.25 * width:.0f}px;"
    style += f"--narrow:{one.controls};--wide:{(one.controls + 1) // 2}"
    style += f";--tall:{one.tall}px" if one.tall else ""
    invites = f'<span class="invites">{html.escape(one.invites)}</span>'
    says = html.escape(one.says.removesuffix(one.invites)) + invites
    drawing = "" if one.replaces else '<div class="ex-drawing"></div>'
    asked = f'<caption>query: <span class="query">{html.escape(one.asked)}</span></caption>'
    gives = "".join(f'<td class="output-word">{cell}</td>' for cell in one.gives)
    gives = f'<tfoot><tr><th scope="row" class="output-word">output</th>{gives}</tr></tfoot>'
    return (
        f'<div class="explorable ex-{name}" data-explorable="{name}"{replaces} '
        f'data-settings="{settings}" role="group" aria-label="{one.title}" style="{style}">'
        f'<p class="ex-title">{one.title}</p>{drawing}'
        f'<div class="ex-controls"></div><p class="ex-says">{says}</p>'
        '<details class="ex-fold" open><summary>Show the numbers</summary>'
        f'<table class="ex-numbers">{asked if one.asked else ""}<thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody>{gives if one.gives else ''}</table>"
        "</details></div>"
    )
