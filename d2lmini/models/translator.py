"""A translator that is one cross-attention and two tables of words (chapter 6)."""

from typing import NamedTuple

import numpy as np

from d2lmini._checks import whole_number
from d2lmini._terminal import record
from d2lmini._torch import Tensor, functional, nn, torch
from d2lmini.models.training import train
from d2lmini.models.words import Vocabulary, check_tokens, phrases
from d2lmini.multihead import MultiHeadAttention

__all__ = ["Translation", "Translator", "train_translator"]

LONGEST = 5  # words of a French phrase, with its end
UNSEEN = 200  # phrases that no training sees


class Translation(NamedTuple):
    """A French text, its words, and the weights (heads, French words, English words)."""

    text: str
    words: list[str]
    weights: Tensor

    def __repr__(self) -> str:
        return record(self)


class Translator(nn.Module):
    """Translate word by word: the last French word asks, the English words answer.

    Parameters
    ----------
    english, french : Vocabulary
    num_heads : int
    d_model : int
        Length of the vectors.

    Examples
    --------
    >>> pairs = phrases()
    >>> english, french = (Vocabulary(texts) for texts in zip(*pairs))
    >>> model = Translator(english, french)
    >>> source = english.encode(["the small cat", "a dog"])  # (2, 3)
    >>> tuple(model(source, french.encode(["le", "un"])).shape) == (2, 1, len(french))
    True
    """

    def __init__(
        self,
        english: Vocabulary,
        french: Vocabulary,
        num_heads: int = 2,
        d_model: int = 32,
    ) -> None:
        super().__init__()
        self.english, self.french = english, french
        self.source = nn.Embedding(len(english), d_model)
        self.target = nn.Embedding(len(french), d_model)
        self.attend = MultiHeadAttention(d_model, num_heads)
        for table in (self.source, self.target):  # else phrases are learned by heart
            nn.init.normal_(table.weight, std=0.25)
        self.read = nn.Linear(d_model, len(french))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return a score for each French word to come next.

        Parameters
        ----------
        source : integer tensor, shape (batch, m)
            The English words; 0 is padding.
        target : integer tensor, shape (batch, n)
            The French words so far.

        Returns
        -------
        tensor, shape (batch, n, French words)

        Raises
        ------
        TypeError, ValueError
            If these are not whole numbers in tensors, or one has no word.
        """
        check_tokens("source", source, len(self.english))
        check_tokens("target", target, len(self.french))
        query, key = self.target(target), self.source(source)  # (batch, n, d), (batch, m, d)
        mask = (source != 0)[:, None]  # (batch, 1, m): padding is no word
        mixed = self.attend(query, key, key, mask=mask).output  # (batch, n, d)
        return self.read(query + mixed)

    @torch.no_grad()
    def translate(self, text: str) -> Translation:
        """Translate one phrase, and tell where each word was found.

        Parameters
        ----------
        text : str

        Returns
        -------
        Translation
            ``text``, ``words`` with the end as the last of them, and ``weights`` of shape
            (heads, words, English words).

        Raises
        ------
        TypeError
            If `text` is not a string.
        ValueError
            If it is empty or has an unknown word.
        """
        source = self.english.encode([text])
        written = self._write(source)[0]
        query, key = self.target(written[None, :-1]), self.source(source)
        weights = self.attend(query, key, key, need_weights=True).weights[0]
        numbers = written[1:].tolist()
        count = numbers.index(2) + 1 if 2 in numbers else len(numbers)
        words = [self.french.words[number] for number in numbers[:count]]
        return Translation(self.french.decode(numbers), words, weights[:, :count])

    def _write(self, source: Tensor) -> Tensor:
        """Write the best next word, again and again: (batch, 1 + LONGEST), start included."""
        written = torch.ones(len(source), 1, dtype=torch.long)
        for _ in range(LONGEST):
            best = self(source, written)[:, -1:].argmax(dim=-1)
            written = torch.cat([written, best], dim=1)
        return written

    @torch.no_grad()
    def accuracy(self, pairs: list[tuple[str, str]]) -> float:
        """Return the share of phrases that are translated without a mistake.

        Parameters
        ----------
        pairs : list of (str, str)

        Returns
        -------
        float
        """
        written = self._write(self.english.encode([english for english, _ in pairs]))
        right = [
            self.french.decode(row) == french
            for row, (_, french) in zip(written, pairs, strict=True)
        ]
        return sum(right) / len(right)


def train_translator(
    seed: int, *, num_heads: int = 2, steps: int = 300
) -> tuple[Translator, list[tuple[str, str]]]:
    """Train a translator on 664 of the 864 phrases.

    Parameters
    ----------
    seed : int
        Of the first weights, of the choice of phrases and of their order.
    num_heads : int
    steps : int
        Of 64 phrases each.

    Returns
    -------
    model : Translator
    unseen : list of (str, str)
        The 200 phrases that it has not been shown.

    Examples
    --------
    >>> model, unseen = train_translator(1, steps=2)
    >>> len(unseen)
    200
    """
    pairs = phrases()
    english, french = (Vocabulary(texts) for texts in zip(*pairs, strict=True))
    source = english.encode([one for one, _ in pairs])
    target = french.encode([other for _, other in pairs], signs=True)
    target[target == 0] = 2  # after the end comes the end
    draw = np.random.default_rng(whole_number("seed", seed, at_least=0))
    order = draw.permutation(len(pairs))
    seen, unseen = order[:-UNSEEN], order[-UNSEEN:]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Translator(english, french, num_heads).double()

    def loss_of_step(_: int) -> Tensor:
        batch = torch.from_numpy(draw.choice(seen, 64))
        scores = model(source[batch], target[batch, :-1])
        return functional.cross_entropy(scores.mT, target[batch, 1:])

    train(model, loss_of_step, steps=steps, learning_rate=5e-3, label="translator")
    return model, [pairs[i] for i in unseen]
