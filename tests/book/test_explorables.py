"""What an explorable computes is what the library computes, and what it starts from stands there.

The formulas run in Node where it is there, and in QuickJS, which the book needs anyway, elsewhere.
"""

import json
import re
import shutil
import subprocess
from functools import partial

import numpy as np
import pytest
import quickjs

import d2lmini
import d2lmini.models
from chapters._code import explorables
from tests.book import checks
from tests.book.building import ROOT

FOLDER = ROOT / "chapters/_static/explorables"
NODE = shutil.which("node")
CASES = 200
LETTERS = np.array(list("abcdeilmnorst ABÉü"))


def run(function, arguments):
    """Return what a function of math.mjs or exhibits.mjs gives for each list of arguments."""
    given = json.dumps(arguments)
    files = [FOLDER / "math.mjs", FOLDER / "exhibits.mjs"]
    source = re.sub("(?m)^(export |import .*)", "", "".join(f.read_text("utf8") for f in files))
    if NODE:
        one, two = (f"await import({json.dumps(file.as_uri())})" for file in files)
        code = f"const m = {{...{one}, ...{two}}};"
        code += "let all = ''; for await (const part of process.stdin) all += part;"
        code += f"console.log(JSON.stringify(JSON.parse(all).map(a => m.{function}(...a))))"
        command = [NODE, "--input-type=module", "--eval", code]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    context = quickjs.Context()
    context.eval(source + ";0")
    call = f"f = given => JSON.stringify(JSON.parse(given).map(a => {function}(...a)))"
    return json.loads(context.eval(f"({call})")(given))


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


def test_lookup(rng):
    score = d2lmini.dot_product_score

    def expected(query, keys, values):
        output, weights = d2lmini.attention(query[None], keys, values, score=score)
        scores = score(query[None], keys)
        return {"scores": scores[0], "weights": weights[0], "output": output[0]}

    sizes = rng.integers(1, 9, CASES)
    drawn = (
        (rng.normal(0, 3, 2), rng.normal(0, 2, (m, 2)), rng.normal(0, 20, (m, 1))) for m in sizes
    )
    compare("lookup", list(drawn), expected)


def test_softmax_far_from_zero():
    scores = [[1000.0, 999.0, -1000.0], [0.0], [-700.0, -701.0]]
    compare("softmax", [[np.array(row)] for row in scores], d2lmini.softmax)


def test_trigram_scores(rng):
    names, _ = d2lmini.load_incomes()
    asked = ["".join(rng.choice(LETTERS, length)) for length in rng.integers(0, 15, CASES)]
    asked[:4] = ["alise marlo", "", "Bruna Kellner", "e\u0301"]
    encode = d2lmini.TrigramEncoder(names)
    close(run("trigramScores", [[one, names] for one in asked]), encode(asked) @ encode(names).T)


def test_smoothing(rng):
    def line(x, y, width):
        return d2lmini.nadaraya_watson(*axes(x, y), width=width).output[:, 0]

    def error(x, y, width):
        score, others = partial(d2lmini.gaussian_score, width=width), ~np.eye(7, dtype=bool)
        estimate = d2lmini.attention(*axes(x, y), mask=others, score=score).output[:, 0]
        return np.sqrt(((estimate - y) ** 2).mean())

    def axes(x, y):
        return x[:, None], x[:, None], y[:, None]

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
    assert any(not seen.any() for *_, seen in cases)
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

    sizes = rng.integers(2, 9, CASES)
    drawn = (
        (rng.integers(0, m, 2), rng.normal(50, 20, m), rng.uniform(0, 60), count) for m in sizes
    )
    compare("heads", list(drawn), expected)


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
        products, width, heads = case
        n, m = products.shape
        weights, right = with_mistake(bug, *case), with_mistake("", *case)
        close(one, weights)
        alone = np.zeros((n, m))
        for i in range(n):
            end = i + m - n + 1
            alone[i, :end] = with_mistake(bug, products[i : i + 1, :end], width, heads)[0]
        assert kept == [
            np.allclose(weights, right, atol=1e-9, rtol=0),
            np.allclose(weights.sum(axis=-1), 1, atol=1e-9, rtol=0),
            not np.triu(weights, m - n + 1).any(),
            np.allclose(weights, alone, atol=1e-9, rtol=0),
        ]
    assert all(all(kept) for kept in tests) == (bug == "")


def test_half_precision():
    bits = list(range(0x7C00))  # all that are finite and not negative
    expected = np.array(bits, dtype=np.uint16).view(np.float16).astype(float)
    close(run("half", [[one] for one in bits]), expected)


@pytest.mark.skipif(not NODE, reason="Node is not installed, and QuickJS gets no files from here")
def test_a_page_reads_the_weights_that_are_stored(rng, built):
    readings = list(d2lmini.models.load_readings().items())
    chosen = [(int(rng.integers(7)), *map(int, rng.integers([30, 9]))) for _ in range(CASES)]
    folder = built / "_static/explorables"
    files = {text: f"reading-{i}.bin" for i, text in enumerate(explorables.stored())}
    calls = []
    for which, layer, head in chosen:
        text, reading = readings[which]
        calls.append([str(folder / files[text]), len(reading.pieces), layer, head])
    code = f"import {{ rowsOf }} from {json.dumps((FOLDER / 'math.mjs').as_uri())};"
    code += "import { readFileSync } from 'node:fs'; const calls = JSON.parse(readFileSync(0));"
    code += "const file = (name) => { const b = readFileSync(name);"
    code += "return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); };"
    code += "console.log(JSON.stringify(calls.map(([f, ...a]) => rowsOf(file(f), ...a))))"
    command = [NODE, "--input-type=module", "--eval", code]
    done = subprocess.run(
        command, input=json.dumps(calls), capture_output=True, text=True, check=True
    )
    for rows, (which, layer, head) in zip(json.loads(done.stdout), chosen, strict=True):
        weights = readings[which][1].weights[layer, head]
        for i, row in enumerate(rows):
            close(row, weights[i, : i + 1].astype(float))
        assert not np.triu(weights, 1).any()


NAMES = [
    "alise marlo",
    "Zebulon Quirk",
    "o",
    "Müller-Lüdenscheidt",
    "d'Angelo",
    "Łukasz",
    "",
    " - ",
]
STRANGE = ["Иван", "visitor 7", "李", "a" * 65]
# What reads the matrices of a file; `of` is encoder.mjs.
MATRICES = """import { readFileSync } from 'node:fs';
const [file, shapes, ...given] = JSON.parse(readFileSync(0)), b = readFileSync(file);
const w = of.matrices(b.buffer.slice(b.byteOffset, b.byteOffset + b.length), shapes);"""


def encoder(built, settings, code, *given):
    """Return what code makes of `given` with encoder.mjs and the matrices `w` of an explorable."""
    head = f"import * as of from {json.dumps((FOLDER / 'encoder.mjs').as_uri())};{MATRICES}"
    command = [NODE, "--input-type=module", "--eval", f"{head}console.log(JSON.stringify({code}))"]
    file = str(built / "_static/explorables" / settings["file"])
    says = json.dumps([file, settings["shapes"], *given])
    done = subprocess.run(command, input=says, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.skipif(not NODE, reason="Node is not installed, and QuickJS gets no files from here")
def test_a_page_encodes_names_as_the_library_does(built):
    encode, settings = d2lmini.NameEncoder.load(), explorables.learned().settings
    code = "given[0].map(name => of.encoded(w, of.folded(name)))"
    close(encoder(built, settings, code, NAMES), encode(NAMES))
    refused = encoder(built, settings, "given[0].map(name => of.folded(name))", STRANGE)
    assert refused == [None] * len(STRANGE)
    for name in STRANGE:
        with pytest.raises(ValueError, match="letters"):
            encode([name])


@pytest.mark.skipif(not NODE, reason="Node is not installed, and QuickJS gets no files from here")
def test_a_page_reads_a_sentence_as_the_library_does(built, rng):
    layer, settings = d2lmini.models.MiniLMLayer.load(), explorables.sentence().settings
    sentences = [rng.choice(layer.words, n).tolist() for n in range(1, settings["most"] + 1)]
    rows = [[settings["words"].index(w) for w in ["[CLS]", *s, "[SEP]"]] for s in sentences]
    found = encoder(built, settings, "given[0].map(rows => of.firstLayer(w, rows, 12))", rows)
    for weights, words in zip(found, sentences, strict=True):
        wanted = layer.read(" ".join(words)).weights
        np.testing.assert_allclose(weights, wanted, atol=0.005)  # the file has 16 bits a number
        assert np.diag(wanted[2], -1).min() > 0.9, "the page says that head 1.3 looks one back"


def test_the_training_that_is_scrubbed_is_the_chapter_s():
    kept = explorables.trained()
    assert kept["steps"] == [*range(0, 61, 4)]
    assert kept["found"][0] < 0.2 and kept["right"][0] < 0.2, "noise, before a step is taken"
    assert kept["found"][-1] > 0.99 and kept["right"][-1] > 0.99
    last = np.array(kept["weights"][-1])  # (8, 16), in fiftieths
    assert (last.argmax(axis=1) == np.arange(8)).all()
    assert (abs(np.sum(kept["weights"], axis=-1) - 50) <= 8).all(), "16 roundings of a half each"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mjs")), ids=lambda path: path.stem)
def test_each_is_small_and_needs_nothing(path):
    text = path.read_text("utf8")
    assert len(text.encode()) <= 8000, "a phone loads it while its reader waits: 8 kB as written"
    assert all(name.startswith("./") for name in re.findall(r'from "([^"]+)"', text))
    assert "innerHTML" not in text and "http:" not in text.replace("http://www.w3.org", "")


@pytest.mark.parametrize("name", explorables.PLACES)
def test_each_is_in_its_place_with_its_numbers(built, name):
    html = checks.soup(built / f"{explorables.PLACES[name][0]}.html")
    (found,) = html.select(f"[data-explorable={name}]")
    start = getattr(explorables, name)()
    assert found.select_one(".ex-says").get_text() == start.says
    assert len(found.select(".ex-numbers tbody tr")) == len(start.rows)
    assert json.loads(found["data-settings"]) == start.settings
    assert (FOLDER / f"{name}.mjs").exists()
    if start.replaces == explorables.BEFORE:
        assert found.find_previous_sibling().select_one("figure .d2lmini-figure")
    elif start.replaces:
        assert html.select_one(f"#{start.replaces} .d2lmini-figure")
