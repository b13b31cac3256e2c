"""The small models of chapter 6: what they learn, what must hold, and bad input."""

from pathlib import Path

import nbformat
import numpy as np
import pytest

import d2lmini

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from d2lmini import models  # noqa: E402
from d2lmini.models import phrases, recommend, sentence  # noqa: E402
from d2lmini.models.words import COLOURS, NOUNS  # noqa: E402

CLOSE = torch.testing.assert_close


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_unseen_phrases_are_translated(seed):
    translator, unseen = models.train_translator(seed)
    assert len(unseen) == 200
    right = translator.accuracy(unseen)
    assert right >= 0.999, f"the chapter says all unseen phrases; seed {seed} gets {right:.3f}"
    weights = translator.translate("a pretty blue flower").weights  # (2, 5, 4)
    alone = weights[:, 0, 0].max()
    assert alone > 0.99, f"the chapter says that one head reads the article alone: {alone:.2f}"


def test_one_head_can_get_stuck_with_words_and_no_gender():
    """The training that the chapter shows; of the seeds 1 to 20 it is the only one."""
    stuck, unseen = models.train_translator(8, num_heads=1)
    assert stuck.accuracy(unseen) < 0.6
    translation = stuck.translate("a pretty blue flower")
    assert translation.text == "un joli fleur bleue"
    assert translation.weights[0, 0, 3] < 0.05, "the article never asks the noun"


@pytest.mark.parametrize("seed", [1, 2])  # the chapter trains another, and says that others do
def test_the_colour_agrees_with_its_own_noun(seed):
    """The last colour of new sentences, whose gender the word before it does not show."""
    model = models.train_language_model(seed)
    genders = dict(NOUNS.values())
    for numbers in np.random.default_rng(77).integers(0, 60, (50, 8)).tolist():
        *before, _colour = sentence(numbers).split()
        tokens = model.vocabulary.encode([" ".join(["<start>", *before])])
        with torch.no_grad():
            shares = model(tokens).output[0, -1].softmax(dim=-1)
        gender = genders[before[-2]]
        right = sum(shares[model.vocabulary.words.index(c[gender])] for c in COLOURS.values())
        assert right > 0.95, f"seed {seed}, {' '.join(before)}: {right:.2f} on its gender"


def test_two_layers_foretell_what_comes_and_one_does_not():
    """Of this seed and two others, chapter 6 asks for the share of right letters too."""
    two, one = models.train_induction(1), models.train_induction(1, num_layers=1)
    right = two.accuracy(9, count=2000)
    assert right >= 0.999, (  # of these seeds on two kinds of CPU kernels the worst had 0.9992
        f"the chapter says that it foretells all letters; seed 1 gets {right:.4f}"
    )
    assert one.accuracy(9) < 0.2, "a key of one layer cannot say what stood before it"
    tokens, begins = models.repeated_letters(np.random.default_rng(3), 50)
    with torch.no_grad():
        _, (first, second) = two(tokens[:, :-1])
    item = np.arange(50)[:, None]
    followed = second[item, np.arange(14, 19), begins[:, None] + np.arange(1, 6)]
    assert first.diagonal(-1, 1, 2)[:, :13].mean() > 0.9  # looks one back
    assert followed.mean() > 0.9  # looks at what followed


def test_training_is_repeatable_and_leaves_the_random_state():
    before = torch.get_rng_state()
    one, other = (models.train_language_model(3, steps=2) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_block_is_that_of_the_framework():
    torch.manual_seed(4)
    theirs = nn.TransformerEncoderLayer(
        6, 3, 10, dropout=0, norm_first=True, batch_first=True, dtype=torch.float64
    )
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_()
    ours = models.TransformerBlock(6, 3, 10).double()
    ours.attend = d2lmini.MultiHeadAttention.from_torch(theirs.self_attn)
    ours.widen, ours.narrow = theirs.linear1, theirs.linear2
    ours.norm_1, ours.norm_2 = theirs.norm1, theirs.norm2
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    hidden = ~torch.ones(5, 5, dtype=torch.bool).tril()
    CLOSE(ours(x, causal=True).output, theirs(x, src_mask=hidden))
    CLOSE(ours(x).output, theirs(x))


def test_a_later_token_never_changes_an_earlier_output():
    torch.manual_seed(5)
    vocabulary = models.Vocabulary([french for _, french in phrases()])
    tokens, other = torch.randint(26, (2, 3, 9))
    for model in models.LanguageModel(vocabulary, 9).double(), models.InductionModel().double():
        whole = model(tokens)[0]
        for t in range(1, 9):
            changed = torch.cat([tokens[:, :t], other[:, t:]], dim=1)
            CLOSE(model(changed)[0][:, :t], whole[:, :t], rtol=0, atol=1e-12)


def test_padding_does_not_change_a_translation():
    translator, _ = models.train_translator(1, steps=3)
    english, french = translator.english.encode, translator.french.encode
    alone = translator(english(["a cat"]), french(["un"]))
    padded = translator(english(["a cat", "the small black dog"]), french(["un", "le"]))
    CLOSE(alone[0], padded[0])


def test_the_meetings_of_the_chapter_are_those_that_were_published():
    from networkx import davis_southern_women_graph

    graph = davis_southern_women_graph()
    named = dict(zip([*graph][:18], "ABCDEFGHIJKLMNOPQR", strict=True))
    letters = ["".join(named[w] for w in named if graph.has_edge(w, m)) for m in [*graph][18:]]
    chapter = Path(__file__).parents[2] / "chapters" / "06-choosing-q-k-v.ipynb"
    (cell,) = (c for c in nbformat.read(chapter, 4).cells if c.id == "real-people-code")
    said = {}
    exec(cell.source.partition("\ncame = ")[0], said)
    assert said["who_came"] == letters


def test_the_nearest_in_the_history_decides():
    seen, ratings = np.eye(3), np.array([1.0, -1.0, 0.5])
    foretold, weights = recommend(np.eye(3)[[1, 2]], seen, ratings)
    np.testing.assert_allclose(foretold, [-1, 0.5], atol=1e-3)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(recommend(np.zeros((1, 3)), seen, ratings).output, ratings.mean())


WORDS = models.Vocabulary(["le chat est noir"])


REFUSED = {
    "WORDS.encode(['le chats'])": "'chats' is not in .* nearest are chat",
    "WORDS.encode('le chat')": r"a list of strings; write \['le chat'\]",
    "models.LanguageModel(WORDS, 2)(of(1, 1, 3))": "3 tokens and the model 2 positions",
    "models.LanguageModel(WORDS, 2)(of(9, 1, 2))": "numbers from 0 to 6",
    "models.LanguageModel(WORDS, 4).write(0, 'le chat est')": "3 words and .* no place left",
    "untrained()(of(999, 1, 1), of(1, 1, 1))": "source must be numbers from 0 to .*, got 999",
    "untrained().translate('a catt')": "'catt' is not in .* nearest are cat",
}


@pytest.mark.parametrize("call", REFUSED)
def test_bad_input_is_named(call):
    names = {
        "untrained": lambda: models.train_translator(1, steps=0)[0],
        "of": lambda number, *shape: torch.full(shape, number),
    }
    with pytest.raises((TypeError, ValueError), match=REFUSED[call]):
        eval(call, globals() | names)
