"""A causal language model with one Transformer block (chapter 6)."""

from collections.abc import Callable

import numpy as np

from d2lmini._checks import whole_number
from d2lmini._torch import Tensor, functional, nn, torch
from d2lmini.attention import Attention
from d2lmini.models.block import TransformerBlock
from d2lmini.models.training import train
from d2lmini.models.words import Vocabulary, check_tokens, sentence
from d2lmini.positions import sinusoidal_positions

__all__ = ["LanguageModel", "train_language_model"]


class LanguageModel(nn.Module):
    """Score every word as the next one, from the words before it.

    Parameters
    ----------
    vocabulary : Vocabulary
    num_positions : int
        The longest text, its start included.
    d_model, num_heads : int

    Examples
    --------
    >>> model = LanguageModel(Vocabulary(["le chat est noir"]), num_positions=8)
    >>> scores, weights = model(model.vocabulary.encode(["le chat"]))
    >>> tuple(scores.shape), tuple(weights.shape)
    ((1, 2, 7), (1, 2, 2, 2))
    """

    positions: Tensor

    def __init__(
        self, vocabulary: Vocabulary, num_positions: int, d_model: int = 32, num_heads: int = 2
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        most = whole_number("num_positions", num_positions, at_least=1)
        self.embed = nn.Embedding(len(vocabulary), d_model)
        waves = sinusoidal_positions(most, d_model, like=torch.zeros(0))
        self.register_buffer("positions", waves)
        self.block = TransformerBlock(d_model, num_heads)
        self.norm = nn.LayerNorm(d_model)
        self.read = nn.Linear(d_model, len(vocabulary))

    def forward(self, tokens: Tensor) -> Attention[Tensor]:
        """Return a score for each word to come next, after each of the tokens.

        Parameters
        ----------
        tokens : integer tensor, shape (batch, n)

        Returns
        -------
        Attention
            ``output``, the scores (batch, n, words), and ``weights`` (batch, heads, n, n).

        Raises
        ------
        TypeError
            If `tokens` are not whole numbers in a tensor.
        ValueError
            If there are more tokens than positions, or a number has no word.
        """
        check_tokens("tokens", tokens, len(self.vocabulary))
        n, most = tokens.shape[-1], len(self.positions)
        if n > most:
            raise ValueError(
                f"the text has {n} tokens and the model {most} positions; shorten the text or make "
                "a model with a larger num_positions"
            )
        x = self.embed(tokens) + self.positions[:n]  # (batch, n, d_model)
        x, weights = self.block(x, causal=True)
        return Attention(self.read(self.norm(x)), weights)

    @torch.no_grad()
    def write(self, seed: int, begin: str = "") -> str:
        """Draw word after word until a text ends.

        Parameters
        ----------
        seed : int
        begin : str
            The first words.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If a word of `begin` is unknown, or it leaves no position to write at.
        """
        draw = np.random.default_rng(whole_number("seed", seed, at_least=0))
        tokens = torch.ones(1, 1, dtype=torch.long)
        if begin:
            tokens = torch.cat([tokens, self.vocabulary.encode([begin])], dim=1)
        if tokens.shape[1] >= len(self.positions):
            raise ValueError(
                f"begin has {tokens.shape[1] - 1} words and the model {len(self.positions)} "
                "positions, its start included: there is no place left to write"
            )
        while tokens.shape[1] < len(self.positions) and tokens[0, -1] != 2:
            shares = self(tokens).output[0, -1].double().softmax(dim=-1).numpy()
            chosen = draw.choice(len(shares), p=shares / shares.sum())
            tokens = torch.cat([tokens, torch.tensor([[chosen]])], dim=1)
        return self.vocabulary.decode(tokens[0])


def train_language_model(
    seed: int, *, num_heads: int = 2, steps: int = 300, text: Callable[[list[int]], str] = sentence
) -> LanguageModel:
    """Train a language model on French sentences of two clauses.

    Parameters
    ----------
    seed : int
        Of the first weights and of the sentences.
    num_heads : int
    steps : int
        Of 32 new sentences each.
    text : callable
        Makes a sentence of eight numbers.

    Returns
    -------
    LanguageModel

    Examples
    --------
    >>> len(train_language_model(1, steps=1).vocabulary) > 30
    True
    """
    draw = np.random.default_rng(whole_number("seed", seed, at_least=0))

    def some(count: int) -> list[str]:
        return [text(numbers) for numbers in draw.integers(0, 60, (count, 8)).tolist()]

    vocabulary = Vocabulary(some(1000))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LanguageModel(vocabulary, num_positions=13, num_heads=num_heads).double()

    def loss_of_step(_: int) -> Tensor:
        tokens = vocabulary.encode(some(32), signs=True)  # (32, n)
        scores = model(tokens[:, :-1]).output
        return functional.cross_entropy(scores.mT, tokens[:, 1:], ignore_index=0)

    train(model, loss_of_step, steps=steps, learning_rate=5e-3, label="language model")
    return model
