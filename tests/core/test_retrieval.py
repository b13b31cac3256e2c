"""KeyValueStore and TrigramEncoder: looking things up, exactly and softly."""

import math

import numpy as np
import oracles
import pytest
from comparing import assert_close, dtype_name, each_dtype, many
from hypothesis import given
from hypothesis import strategies as st

from d2lmini import KeyValueStore, TrigramEncoder

NAMES = ["Alice", "Bruno", "Alicia", "Carla"]
INCOMES = [32.0, 58.0, 47.0, 91.0]
TEXTS = st.text("abAB ", max_size=8) | st.text(max_size=8)  # alike, and any at all
KEYS = st.lists(TEXTS, unique=True, max_size=6)


@pytest.fixture
def store():
    return KeyValueStore(NAMES, INCOMES)


@pytest.fixture
def encode():
    return TrigramEncoder(NAMES)


# Exact lookup


@pytest.mark.parametrize(
    "missing, nearest", [("Alica", "'Alicia', 'Alice'"), ("CARLA", "'Carla'"), ("zzz", "'")]
)
def test_it_is_a_dictionary_that_names_the_nearest_of_a_missing_key(store, missing, nearest):
    assert (list(store), len(store), store["Bruno"]) == (NAMES, 4, 58.0)
    assert "Bruno" in store and missing not in store and None not in store
    with pytest.raises(KeyError, match=f"no key '{missing}' among 4 keys; the nearest: {nearest}"):
        store[missing]
    with pytest.raises(TypeError, match="keys are strings, got int"):
        store[3]


def test_values_keep_their_kind():
    whole = KeyValueStore(NAMES, [1, 2, 3, 4])["Bruno"]
    assert (whole, type(whole)) == (2, int)
    half = KeyValueStore(["a"], np.array([[0.5, 1]], dtype=np.float16))["a"]
    assert half.dtype == np.float16


def test_the_contents_cannot_be_changed_from_outside():
    keys, values = ["a", "b"], np.array([[1.0, 2.0], [3.0, 4.0]])
    store = KeyValueStore(keys, values)
    keys.append("c")
    values[:] = 0
    store["a"][:] = 99
    assert list(store) == ["a", "b"]
    assert store["a"].tolist() == [1, 2]


# Soft lookup


def test_attend_is_its_definition(store, encode):
    for temperature in (0.25, 1.0, 3.0):
        output, weights = store.attend("Alise", encode=encode, temperature=temperature)
        scores = [oracles.trigram_similarity("Alise", name, NAMES) for name in NAMES]
        expected = oracles.softmax([score / temperature for score in scores])
        assert_close(weights, expected)
        mixture = math.fsum(w * v for w, v in zip(expected, INCOMES, strict=True))
        assert float(output) == pytest.approx(mixture, rel=1e-12)
    unlike = store.attend("?", encode=encode).weights  # no 3-gram in common with any
    assert_close(unlike, [0.25] * 4)


def test_several_queries_at_once_and_vectors(store, encode):
    queries, identity = ["Alise", "Brunno", "?"], KeyValueStore(NAMES, np.eye(4))
    output, weights = store.attend(queries, encode=encode)
    for i, query in enumerate(queries):
        alone = store.attend(query, encode=encode)
        assert_close(weights[i], alone.weights)
        assert_close(output[i], alone.output, scale=100)
        assert_close(*identity.attend(query, encode=encode))
    assert_close(*identity.attend(queries, encode=encode))
    assert store.attend([], encode=encode).output.shape == (0,)


def test_an_empty_store_answers_zero():
    store = KeyValueStore([], [])
    with pytest.raises(KeyError, match="no key 'a': the store is empty"):
        store["a"]
    output, weights = store.attend("a", encode=TrigramEncoder([]))
    assert (float(output), weights.shape) == (0, (0,))
    vectors = KeyValueStore([], np.zeros((0, 3)))
    assert vectors.attend("a", encode=TrigramEncoder([])).output.tolist() == [0, 0, 0]


def test_tensors_as_values(torch):
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    store = KeyValueStore(["a", "b"], values)

    def encode(texts):
        return torch.tensor([[float(t == "a"), float(t == "b")] for t in texts])

    output, weights = store.attend("a", encode=encode, temperature=0.5)
    assert_close(weights, oracles.softmax([2.0, 0.0]))
    assert dtype_name(output) == "float32"
    output.sum().backward()
    assert torch.allclose(values.grad, weights.detach()[:, None].expand(2, 2))


# The encoder


@many
@given(vocabulary=st.lists(TEXTS, max_size=5), first=TEXTS, second=TEXTS)
def test_the_dot_product_is_the_similarity_of_the_counts(vocabulary, first, second):
    vectors = TrigramEncoder(vocabulary)([first, second])
    expected = oracles.trigram_similarity(first, second, vocabulary)
    assert float(vectors[0] @ vectors[1]) == pytest.approx(expected, abs=1e-12)
    for norm in np.linalg.norm(vectors, axis=1):
        assert norm == 0 or norm == pytest.approx(1)


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-12])
@pytest.mark.parametrize("size", [1.0, 1e10, -1e10, 1e-3])
@each_dtype
def test_at_any_low_temperature_the_best_match_is_the_answer_and_at_a_high_one_the_mean(
    xp, dtype, temperature, size
):
    """Also where score / T does not fit the dtype, or T itself does not."""
    if dtype == "float16" and abs(size) > 1:
        size /= 1e6
    vectors = {"a": [1.0, 0.0], "b": [0.5, 1.0], "c": [0.5, -1.0]}

    def encode(texts):
        return xp.asarray([vectors[text] for text in texts], dtype=getattr(xp, dtype))

    def score(query, key):
        return size * (query @ key.mT)

    store = KeyValueStore(["a", "b", "c"], xp.asarray([1.0, 2.0, 4.0]))
    with np.errstate(all="raise"):
        answer = store.attend("a", encode=encode, score=score, temperature=temperature)
        hot = store.attend("a", encode=encode, temperature=1.7e308)
    expected = ([1, 0, 0], 1) if size > 0 else ([0, 0.5, 0.5], 3)  # of equal ones the mean
    assert (answer.weights.tolist(), float(answer.output)) == expected
    assert_close(hot.output, 7 / 3)


def test_a_score_may_hide_keys_of_a_store():
    """Some, or all of them."""
    store = KeyValueStore(["a", "b"], [1.0, 2.0])
    ones = lambda texts: np.ones((len(texts), 1))  # noqa: E731
    for second, answer in ((0.0, 1.0), (-math.inf, 0.0)):
        score = lambda q, k, first=second: np.array([[first, -math.inf]])  # noqa: E731
        output = store.attend("a", encode=ones, score=score, temperature=1e-310).output
        assert output == answer


def test_an_accent_may_be_written_in_two_ways():
    """In Unicode as one letter, or as a letter and a sign; a soft lookup does not see which."""
    composed, apart = "caf\u00e9", "cafe\u0301"
    encode = TrigramEncoder([composed, "cafe"])
    assert_close(encode([apart]), encode([composed]))
    assert TrigramEncoder([apart]).vocabulary == TrigramEncoder([composed]).vocabulary
