"""Names that are misspelt, and the encoder that finds them, beside the same in PyTorch."""

import numpy as np
import pytest

from d2lmini import KeyValueStore, NameEncoder, load_names, misspell
from d2lmini.names import KINDS, TRAINED

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
    for name in load_names().held_out[:200]:
        assert all(slip.isascii() and slip.isalpha() for slip in KINDS[kind](name)), name
        assert misspell(name, rng=rng(0)) != name


# The encoder


def test_it_computes_what_the_module_does(torch):
    """A Transformer of layers that each stand beside plain loops in tests of their own."""
    from d2lmini.models import NameModel

    torch.manual_seed(0)
    model, names = NameModel().double(), ["garcia", "li", "o", "featherstone"]
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


@pytest.mark.parametrize(
    "text, letters", [("MÜLLER", "muller"), ("d'Angelo", "dangelo"), ("Strauß", "strauss")]
)
def test_what_is_no_plain_letter_is_folded(encode, text, letters):
    np.testing.assert_array_equal(encode([text]), encode([letters]))


@pytest.mark.parametrize("text", ["Alice Marlow", " Smith-Jones"])
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
