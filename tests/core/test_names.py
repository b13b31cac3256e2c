"""Names that are misspelt, and the encoder that finds them: against plain loops and PyTorch."""

import math

import numpy as np
import oracles
import pytest

from d2lmini import KeyValueStore, NameEncoder, load_incomes, load_names, misspell
from d2lmini.names import KINDS, NEIGHBOURS, TRAINED

rng = np.random.default_rng


@pytest.fixture(scope="module")
def encode():
    return NameEncoder.load()


# The slips


SLIPS = {
    "consonant": [("fisher", "phisher"), ("murphy", "murfy")],
    "vowel": [("kelly", "kellie")],
    "silent": [("knight", "night"), ("clark", "clarke")],
    "doubled": [("miller", "miler"), ("diner", "dinner")],
    "left out": [("jones", "jons")],
    "repeated": [("jones", "joones")],
    "exchanged": [("jones", "jnoes")],
    "neighbour": [("jones", "jomes")],
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_the_slips_that_its_name_says_and_leaves_letters_only(kind):
    for name, slip in SLIPS[kind]:
        assert slip in KINDS[kind](name)
    for name in load_names().held_out:
        assert all(slip.isascii() and slip.isalpha() for slip in KINDS[kind](name)), name


def test_a_finger_slips_as_plain_loops_say():
    for name in ("li", "garcia", "a"):
        for i, letter in enumerate(name):
            rest = name[:i], name[i + 1 :]
            assert rest[0] + letter * 2 + rest[1] in KINDS["repeated"](name)
            assert {rest[0] + near + rest[1] for near in NEIGHBOURS[letter]} <= {
                *KINDS["neighbour"](name)
            }
        assert len(KINDS["left out"](name)) == (len(name) if len(name) > 1 else 0)
        assert len(KINDS["exchanged"](name)) == len(name) - 1
        assert all(sorted(slip) == sorted(name) for slip in KINDS["exchanged"](name))


def test_neighbours_are_mutual_and_near():
    assert set(NEIGHBOURS) == set("abcdefghijklmnopqrstuvwxyz")
    assert all(a in NEIGHBOURS[b] for a in NEIGHBOURS for b in NEIGHBOURS[a])
    assert set(NEIGHBOURS["g"]) == set("tyfhvb") and set(NEIGHBOURS["p"]) == {"o", "l"}


def test_what_comes_out_is_misspelt_and_drawn_from_what_there_is():
    draw = rng(0)
    for name in load_names().held_out[:200]:
        for slips in (1, 2, 3):
            assert misspell(name, rng=draw, slips=slips) != name
        assert misspell(name, rng=draw, kinds=["exchanged", "left out"]) in {
            *KINDS["exchanged"](name),
            *KINDS["left out"](name),
        }


def test_every_kind_is_drawn_about_equally_often():
    counts = dict.fromkeys(KINDS, 0)
    draw = rng(0)
    for _ in range(4000):
        slip = misspell("phillis", rng=draw)
        found = [kind for kind in KINDS if slip in KINDS[kind]("phillis")]
        for kind in found:
            counts[kind] += 1 / len(found)
    expected = 4000 / len(KINDS)
    slack = 5 * math.sqrt(expected)  # five standard deviations of a count
    near = {kind: count for kind, count in counts.items() if abs(count - expected) > 2 * slack}
    assert not near, f"{near} of {expected:.0f} each, with ambiguous slips shared out"


def test_a_seed_repeats_and_no_slip_changes_nothing():
    assert misspell("garcia", rng=rng(3), slips=3) == misspell("garcia", rng=rng(3), slips=3)
    assert misspell("garcia", rng=rng(0), slips=0) == "garcia"
    assert misspell("", rng=rng(0), slips=0) == ""
    assert set(KINDS) - set(TRAINED) == {"neighbour"}  # which is left for the test


# The encoder


def by_loops(name, weights):
    """Return the vector of one name, from the definition, letter by letter and head by head."""
    w = {key: value.tolist() for key, value in weights.items()}
    n, d, heads = len(name), len(w["question"]), 4
    waves = oracles.sinusoidal_positions(n, d, 10_000)

    def times(matrix, vector):
        return [math.fsum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]

    def plus(*vectors):
        return [math.fsum(entries) for entries in zip(*vectors, strict=True)]

    def normed(vector):
        mean = math.fsum(vector) / d
        variance = math.fsum((a - mean) ** 2 for a in vector) / d
        return [(a - mean) / math.sqrt(variance + 1e-5) for a in vector]

    def attend(at, queries, keys):
        q, k, v = (
            [times(w[f"{at}.w_{one}.weight"], row) for row in rows]
            for one, rows in zip("qkv", (queries, keys, keys), strict=True)
        )
        size = d // heads
        parts = [slice(h * size, (h + 1) * size) for h in range(heads)]
        each = [oracles.attention(*([row[part] for row in x] for x in (q, k, v))) for part in parts]
        joined = np.concatenate([output for output, _ in each], axis=-1)
        return [times(w[f"{at}.w_o.weight"], row) for row in joined.tolist()]

    x = [plus(w["letters.weight"][ord(c) - 97], waves[i]) for i, c in enumerate(name)]
    for layer in range(2):
        at = f"blocks.{layer}."
        h = [normed(row) for row in x]
        x = [plus(row, more) for row, more in zip(x, attend(at + "attend", h, h), strict=True)]
        for row in x:
            wide = plus(times(w[at + "widen.weight"], normed(row)), w[at + "widen.bias"])
            back = times(w[at + "narrow.weight"], [max(a, 0) for a in wide])
            row[:] = plus(row, back, w[at + "narrow.bias"])
    (pooled,) = attend("pool", [w["question"]], x)
    return np.array(pooled) / math.hypot(*pooled)


@pytest.mark.parametrize("name", ["garcia", "li", "a", "featherstone"])
def test_a_vector_is_what_the_loops_give(encode, name):
    np.testing.assert_allclose(encode([name])[0], by_loops(name, encode.weights), atol=1e-10)


def test_it_computes_what_the_module_does():
    torch = pytest.importorskip("torch")
    from d2lmini.models import NameModel

    torch.manual_seed(0)
    model = NameModel().double()
    names = ["garcia", "li", "o", "featherstone"]
    with torch.no_grad():
        theirs = model(names).numpy()
    np.testing.assert_allclose(NameEncoder(model.state_dict())(names), theirs, atol=1e-12)


def test_what_is_read_is_what_is_encoded(encode):
    reading = encode.read("O'Brien")
    assert reading.letters == "obrien"
    assert reading.weights.shape == (2, 4, 6, 6) and reading.pooled.shape == (4, 6)
    np.testing.assert_allclose(reading.weights.sum(axis=-1), 1)
    np.testing.assert_allclose(reading.pooled.sum(axis=-1), 1)
    np.testing.assert_allclose(reading.vector, encode(["obrien"])[0], atol=1e-12)


def test_padding_order_and_company_do_not_matter(encode):
    names = [*load_names().held_out[:300], "featherstonehaugh", "", "o"]
    together = encode(names)
    alone = np.concatenate([encode([name]) for name in names[-20:]])
    np.testing.assert_allclose(together[-20:], alone, atol=1e-12)
    np.testing.assert_allclose(encode(names[::-1]), together[::-1], atol=1e-12)
    assert not np.allclose(encode(["amy"]), encode(["may"]), atol=0.01), "letters have places"


def test_it_finds_names_that_it_has_not_learned(encode):
    """As chapter 10 says of many more; a quarter of the names is enough to notice a fault."""
    names = load_names().held_out
    draw, keys = rng(7), encode(names)
    asked = [misspell(name, rng=draw, kinds=TRAINED) for name in names[:250]]
    right = ((encode(asked) @ keys.T).argmax(axis=-1) == np.arange(250)).mean()
    assert right > 0.95, f"{right:.3f} found after one slip, and chapter 10 says about .98"


def test_the_table_of_chapter_1(encode):
    names, incomes = load_incomes()
    answer = KeyValueStore(names, incomes).attend("alise marlo", encode=encode, temperature=0.07)
    assert names[answer.weights.argmax()] == "Alice Marlow"


FOLDED = {
    **{"MÜLLER": "muller", "d'Angelo": "dangelo", "Østergård": "ostergard", "É": "e"},
    **{"Łukasz": "lukasz", "Strauß": "strauss", "ﬁsher": "fisher"},
}


@pytest.mark.parametrize(("text", "letters"), FOLDED.items())
def test_what_is_no_plain_letter_is_folded(encode, text, letters):
    np.testing.assert_array_equal(encode([text]), encode([letters]))
    assert encode.read(text).letters == letters


@pytest.mark.parametrize("text", ["Alice Marlow", " Smith-Jones", "St. John", "Li Li Lee"])
def test_several_words_are_summed_in_any_order(encode, text):
    words = text.lower().replace("-", " ").replace(".", "").split()
    total = encode(words).sum(axis=0)
    np.testing.assert_allclose(encode([text])[0], total / np.linalg.norm(total), atol=1e-12)
    np.testing.assert_allclose(encode([" ".join(words[::-1])]), encode([text]), atol=1e-12)
    with pytest.raises(ValueError, match=f"{len(words)} words; give one at a time"):
        encode.read(text)


def test_a_name_without_letters_fits_nobody_and_other_edges(encode):
    assert not encode(["", " -' "]).any()
    with pytest.raises(ValueError, match="no letters"):
        encode.read(" ")
    assert (encode([]).shape, encode(["a" * 64]).shape) == ((0, 64), (1, 64))
    store = KeyValueStore(["Li", "Ortiz"], [1.0, 3.0])
    assert store.attend("", encode=encode).output == pytest.approx(2.0)
    one = KeyValueStore(["Ortiz"], [75.0])
    assert one.attend("quite another", encode=encode).output == 75.0
