"""What an explorable computes is what the library computes, and what it starts from stands there.

The formulas run in QuickJS, which the book needs anyway.
"""

import json
import re
from functools import cache, partial

import numpy as np
import pytest
import quickjs

import d2lmini
import d2lmini.models
from chapters._code import explorables
from tests.book import checks
from tests.book.building import ROOT

FOLDER = ROOT / "chapters/_static/explorables"
CASES = 200
LETTERS = np.array(list("abcdeilmnorst ABÉü"))


@cache
def engine():
    """Return what computes a call in the words of math.mjs, exhibits.mjs and encoder.mjs."""
    files = [FOLDER / f"{name}.mjs" for name in ("math", "exhibits", "encoder")]
    source = re.sub("(?m)^(export |import .*)", "", "".join(f.read_text("utf8") for f in files))
    context = quickjs.Context()
    context.eval(f"{source}; const buffer = bytes => new Uint8Array(bytes).buffer; 0")
    return context.eval("(code, given) => JSON.stringify(eval(code)(...JSON.parse(given)))")


def js(code, *given):
    """Return what a function in JavaScript gives for these arguments."""
    return json.loads(engine()(code, json.dumps(given)))


def run(function, arguments):
    """Return what a function gives for each list of arguments."""
    return js(f"all => all.map(a => {function}(...a))", arguments)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def compare(function, cases, expected):
    """Compare what a function of math.mjs gives for each case with what the library gives."""
    given = [[x.tolist() if hasattr(x, "tolist") else x for x in case] for case in cases]
    for one, case in zip(run(function, given), cases, strict=True):
        wanted = expected(*case)
        for key, value in wanted.items() if isinstance(wanted, dict) else [(None, wanted)]:
            close(one if key is None else one[key], value)


def test_numbers_are_rounded_as_python_rounds_them(rng):
    numbers = [*np.arange(-40, 41) / 16, *rng.normal(0, 1, CASES), 8.345, 1.115, -0.001]
    for digits in (0, 1, 2, 3):
        wanted = [f"{round(x, digits) or 0.0:.{digits}f}".replace("-", "−") for x in numbers]
        assert run("fixed", [[float(x), digits] for x in numbers]) == wanted


def test_lookup(rng):
    score = d2lmini.dot_product_score

    def expected(query, keys, values):
        output, weights = d2lmini.attention(query[None], keys, values, score=score)
        scores = score(query[None], keys)
        return {"scores": scores[0], "weights": weights[0], "output": output[0]}

    cases = [  # with scores from -10,000 to 10,000
        (rng.normal(0, 30, 2), rng.normal(0, 20, (m, 2)), rng.normal(0, 20, (m, 1)))
        for m in rng.integers(1, 9, CASES)
    ]
    compare("lookup", cases, expected)


def test_trigram_scores(rng):
    names, _ = d2lmini.load_incomes()
    asked = ["".join(rng.choice(LETTERS, length)) for length in rng.integers(0, 15, CASES)]
    asked[:4] = ["alise marlo", "", "Bruna Kellner", "e\u0301"]
    encode = d2lmini.TrigramEncoder(names)
    close(run("trigramScores", [[one, names] for one in asked]), encode(asked) @ encode(names).T)


def test_smoothing(rng):
    def line(x, y, width, mask=None):
        x, y, score = x[:, None], y[:, None], partial(d2lmini.gaussian_score, width=width)
        return d2lmini.attention(x, x, y, mask=mask, score=score).output[:, 0]

    def error(x, y, width):
        return np.sqrt(((line(x, y, width, ~np.eye(7, dtype=bool)) - y) ** 2).mean())

    cases = [
        (np.sort(rng.normal(0, 9, 7)), rng.normal(0, 5, 7), float(rng.uniform(0.5, 9)))
        for _ in range(CASES)
    ]
    compare("smooth", cases, line)
    compare("leftOutError", cases, error)


def test_masked(rng):
    def expected(query, keys, values, seen):
        output, weights = d2lmini.attention(query[None], keys, values, mask=seen[None])
        return {"weights": weights[0], "output": output[0]}

    cases = []
    for m in rng.integers(1, 8, CASES):
        keys, values = rng.normal(0, 2, (m, 3)), rng.normal(0, 9, (m, 2))
        cases.append((rng.normal(0, 2, 3), keys, values, rng.random(m) > 0.4))
    compare("masked", cases, expected)


@pytest.mark.parametrize("count", [1, 2])
def test_heads(rng, count):
    def expected(asked, values, factor, count):
        eye, w_q = np.eye(len(values)), factor * np.eye(2 * len(values))
        query, w_k = np.concatenate(eye[asked])[None], np.hstack([eye, eye])
        w_v, w_o = np.ones((1, count)), np.eye(count)
        result = d2lmini.multi_head_attention(
            query, eye, values[:, None], w_q, w_k, w_v, w_o, num_heads=count
        )
        return {"output": result.output[0], "weights": result.weights[:, 0]}

    cases = [
        (rng.integers(0, m, 2), rng.normal(50, 20, m), rng.uniform(0, 60), count)
        for m in rng.integers(2, 9, CASES)
    ]
    compare("heads", cases, expected)


def test_rotary(rng):
    sizes = zip(*rng.integers(1, 5, (2, CASES)), rng.uniform(2, 1e4, CASES), strict=True)
    cases = [(rng.normal(0, 2, 2 * pairs), 15 * int(at), float(base)) for pairs, at, base in sizes]
    compare("rotary", cases, lambda x, at, base: d2lmini.rotary(x[None], start=at, base=base)[0])


def test_online(rng):
    cases = [
        (rng.normal(0, 5, m), rng.normal(0, 9, m), int(size))
        for m, size in zip(*rng.integers(1, 9, (2, CASES)), strict=True)
    ]
    found = run("online", [[a.tolist(), v.tolist(), size] for a, v, size in cases])
    for steps, (scores, values, size) in zip(found, cases, strict=True):
        ends = [min(end, len(scores)) for end in range(size, len(scores) + size, size)]
        for step, end in zip(steps, ends, strict=True):
            e = np.exp(scores[:end] - scores[:end].max())
            close([step["largest"], step["total"]], [scores[:end].max(), e.sum()])
            close(step["mixed"], e @ values[:end])
            close(step["output"], d2lmini.softmax(scores[:end]) @ values[:end])


def with_mistake(bug, products, width, heads):
    """Return the weights of chapter 9's exhibits, written with the library."""
    n, m = products.shape
    sees = {
        "upside": ~d2lmini.causal_mask(n, m, like=products),
        "late": np.tri(n, m, m - n + 1, dtype=bool),
        "corner": np.tri(n, m, dtype=bool),
    }.get(bug, d2lmini.causal_mask(n, m, like=products))
    scores = products / np.sqrt(width * heads if bug == "width" else width)
    if bug == "axis":
        return d2lmini.masked_softmax(scores.T, sees.T).T
    return d2lmini.masked_softmax(scores, sees)


@pytest.mark.parametrize("bug", ["", "upside", "late", "corner", "width", "axis"])
def test_mistakes(rng, bug):
    cases = []
    for n, more in zip(*rng.integers(1, 5, (2, CASES)), strict=True):
        cases.append((rng.normal(0, 5, (n, n + more - 1)), int(rng.integers(1, 9)), 4))
    given = [[bug, products.tolist(), width, heads] for products, width, heads in cases]
    tests = run("holds", given)
    for one, kept, case in zip(run("exhibit", given), tests, cases, strict=True):
        products, *sizes = case
        n, m = products.shape
        weights, right = with_mistake(bug, *case), with_mistake("", *case)
        close(one, weights)
        alone = np.zeros((n, m))
        for i in range(n):
            end = i + m - n + 1
            alone[i, :end] = with_mistake(bug, products[i : i + 1, :end], *sizes)[0]
        assert kept == [
            np.allclose(weights, right, atol=1e-9, rtol=0),
            np.allclose(weights.sum(axis=-1), 1, atol=1e-9, rtol=0),
            not np.triu(weights, m - n + 1).any(),
            np.allclose(weights, alone, atol=1e-9, rtol=0),
        ]
    assert all(all(kept) for kept in tests) == (bug == "")


def test_the_training_that_is_scrubbed_is_the_chapter_s():
    kept = explorables.trained()
    assert kept["steps"] == [*range(0, 61, 4)]
    assert kept["found"][0] < 0.2 and kept["right"][0] < 0.2, "noise, before a step is taken"
    assert kept["found"][-1] > 0.99 and kept["right"][-1] > 0.99
    last = np.array(kept["weights"][-1])  # (8, 16), in fiftieths
    assert (last.argmax(axis=1) == np.arange(8)).all()
    assert (abs(last.sum(axis=-1) - 50) <= 8).all(), "16 roundings of a half each"


def test_a_page_reads_the_weights_that_are_stored(rng):
    readings = d2lmini.models.load_readings()
    files = explorables.readings().files
    for number, text in enumerate(explorables.stored()):
        reading, file = readings[text], [*files[f"reading-{number}.bin"]]
        n, chosen = len(reading.pieces), np.stack([rng.integers(30, size=9), range(9)], 1)
        code = "(file, n, chosen) => chosen.map(one => rowsOf(buffer(file), n, ...one))"
        for rows, (layer, head) in zip(js(code, file, n, chosen.tolist()), chosen, strict=True):
            weights = reading.weights[layer, head]
            for i, row in enumerate(rows):
                close(row, weights[i, : i + 1].astype(float))
            assert not np.triu(weights, 1).any()


def encoder(start, code, *given):
    """Return what code makes of `given` with the matrices `w` of an explorable."""
    file, shapes = [*start.files[start.settings["file"]]], start.settings["shapes"]
    whole = f"(file, shapes, ...given) => {{ const w = matrices(buffer(file), shapes); {code} }}"
    return js(whole, file, shapes, *given)


NAMES = ["alise marlo", "o", "Müller-Lüdenscheidt", "d'Angelo", "Łukasz", "", " - "]


def test_a_page_encodes_names_as_the_library_does():
    code = "return given[0].map(name => encoded(w, folded(name)))"
    close(encoder(explorables.learned(), code, NAMES), d2lmini.NameEncoder.load()(NAMES))
    assert js("names => names.map(folded)", ["Иван", "visitor 7", "a" * 65]) == [None] * 3


def test_a_page_reads_a_sentence_as_the_library_does(rng):
    layer, start = d2lmini.models.MiniLMLayer.load(), explorables.sentence()
    most, known = start.settings["most"], start.settings["words"]
    sentences = [rng.choice(layer.words, n).tolist() for n in range(1, most + 1)]
    rows = [[known.index(w) for w in ["[CLS]", *s, "[SEP]"]] for s in sentences]
    found = encoder(start, "return given[0].map(rows => firstLayer(w, rows, 12))", rows)
    for weights, words in zip(found, sentences, strict=True):
        wanted = layer.read(" ".join(words)).weights
        np.testing.assert_allclose(weights, wanted, atol=0.005)  # the file has 16 bits a number
        assert np.diag(wanted[2], -1).min() > 0.9, "the page says that head 1.3 looks one back"


HEADS = {"output": [41.6], "weights": [[0.64]]}
TILES = {"total": 2, "mixed": 18, "output": 9, "fade": 0.33}
FIVE = [f"mistake {i}" for i in range(5)]
LEVEL = [0.125] * 8


@pytest.mark.parametrize(
    ("name", "given", "said", "unsaid"),
    [  # what has been said wrongly
        ("triangle", [[0.42, 0.16, 0.42], [2, 1, 2]], "by A and C equally", "near"),
        ("triangle", [[0.9, 0.05, 0.05], [3, 0, -3], False, "0.87"], "fell to 0.87", "Lower"),
        ("nile", [8.1, 1913, 850, 140, 130, True, None], "over decades", "forgotten"),
        ("heads", [[0, 0], 1, HEADS, ["Alice"], [32], False], "not 32", "is enough"),
        (
            "heads",
            [[0, 0], 1, {**HEADS, "output": [32.1]}, ["Alice"], [32], False],
            "enough",
            "er.",
        ),
        ("rotary", [1, 14, 1.149, 1.7, 1.15, False], "2 as well", "has changed"),
        ("rotary", [3, 14, 1.149, 1.7, 1.15, True], "any other place", "Which distance"),
        ("answered", ["!!!", FIVE, [0] * 8, LEVEL, 55, LEVEL], "no letters", "three letters"),
        ("training", [40, 0.93, 0.9], "A diagonal shows", "begins"),
        ("museum", ["", FIVE[0], [True] * 4, False, FIVE], "seen all five", "Choose"),
        (
            "museum",
            ["width", FIVE[3], [False, *[True] * 3], False, FIVE],
            "seen all five",
            "other,",
        ),
        ("tiles", [2, 2, 2, TILES, True, True], "Every size", "Change"),
        ("tiles", [1, 1, 4, TILES, True, True], "Every size", "Choose smaller"),
    ],
)
def test_what_is_said_is_so(name, given, said, unsaid):
    source = re.sub("(?m)^(export |import .*)", "", (FOLDER / f"{name}.mjs").read_text("utf8"))
    words = js(f"(...given) => {{ {source}; return sentence(...given); }}", *given)
    assert said in words and unsaid not in words


def test_the_page_of_the_atlas_says_what_is_stored():
    page = " ".join((ROOT / "chapters/atlas.md").read_text("utf8").split())
    found, without = explorables.habits(), d2lmini.models.load_lookup().without_one
    most, up = ((found[name] > 0.5).sum() for name in ("first", "up"))
    weights = next(iter(explorables.stored().values())).weights
    _, nearly, *_ = np.sort(without, axis=None)
    assert without.argmin() == 9 and found["up"][1, 0] < 0.001 and nearly > 4 * without.min()
    assert up == 8 and np.unravel_index(found["up"].argmax(), (30, 9)) == (18, 6)
    for says in (
        f"{most} of the 270 give more than half of their weight",
        f'19.7, the model gives "by" {without[18, 6]:.3f}',
        f'"by" gets {without[1, 0]:.3f}',
        f"looks one back, with {weights[1, 0, -1, -2]:.2f}",
        f"the previous token only {found['one'][1, 0]:.2f} on average",
        f"fits here with {len(d2lmini.models.MiniLMLayer.load().words)} words",
    ):
        assert says in page, f"the atlas does not say: {says}"


@pytest.mark.parametrize("name", explorables.PLACES)
def test_each_is_in_its_place_with_its_numbers(built, name):
    html = checks.soup(built / f"{explorables.PLACES[name][0]}.html")
    (found,) = html.select(f"[data-explorable={name}]")
    start = getattr(explorables, name)()
    assert found.select_one(".ex-says").get_text() == start.says
    assert len(found.select(".ex-numbers tbody tr")) == len(start.rows)
    assert found.select(".ex-fold[open] > .ex-numbers td") and not found.select("input, button")
    assert json.loads(found["data-settings"]) == start.settings
    if start.replaces == explorables.BEFORE:
        assert found.find_previous_sibling().select_one("figure .d2lmini-figure")
    elif start.replaces:
        assert html.select_one(f"#{start.replaces} .d2lmini-figure")


def test_each_is_small():
    for path in ROOT.glob("chapters/_static/explorables/*.mjs"):
        assert path.stat().st_size <= 8000, f"{path.name}: a phone loads it while its reader waits"
