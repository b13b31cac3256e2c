"""Two layers that continue a pattern: what followed the last time? (chapter 6)."""

import numpy as np
from numpy.typing import NDArray

from d2lmini._checks import whole_number
from d2lmini._torch import Tensor, functional, nn, torch
from d2lmini.models.training import train
from d2lmini.models.words import check_tokens
from d2lmini.multihead import MultiHeadAttention

__all__ = ["InductionModel", "repeated_letters", "train_induction"]

DISTINCT, COPIED = 14, 6  # letters of a text before it repeats itself, and after


class InductionModel(nn.Module):
    """Layers of causal attention alone, one head each, whose outputs are added to what went in.

    Parameters
    ----------
    num_layers : int
    d_model : int

    Examples
    --------
    >>> scores, weights = InductionModel()(torch.zeros(3, 19, dtype=torch.long))
    >>> tuple(scores.shape), [tuple(each.shape) for each in weights]
    ((3, 19, 26), [(3, 19, 19), (3, 19, 19)])
    """

    def __init__(self, num_layers: int = 2, d_model: int = 64) -> None:
        super().__init__()
        self.letters = nn.Embedding(26, d_model)
        self.places = nn.Embedding(DISTINCT + COPIED, d_model)
        self.layers = nn.ModuleList(
            MultiHeadAttention(d_model, 1)
            for _ in range(whole_number("num_layers", num_layers, at_least=1))
        )
        self.read = nn.Linear(d_model, 26, bias=False)

    def forward(self, tokens: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return a score for each next letter, and the weights of every layer.

        Parameters
        ----------
        tokens : integer tensor, shape (batch, n)
            Letters from 0 to 25.

        Returns
        -------
        scores : tensor, shape (batch, n, 26)
        weights : list of tensors, shape (batch, n, n)

        Raises
        ------
        TypeError
            If `tokens` are not whole numbers in a tensor.
        ValueError
            If there are more letters than the model has positions, or other numbers.
        """
        check_tokens("tokens", tokens, 26)
        n = tokens.shape[-1]
        if n > self.places.num_embeddings:
            raise ValueError(
                f"the text has {n} letters and the model {self.places.num_embeddings} positions"
            )
        x, weights = self.letters(tokens) + self.places.weight[:n], []  # (batch, n, d_model)
        for layer in self.layers:
            collected = layer(x, causal=True, need_weights=True)
            x = x + collected.output
            weights.append(collected.weights[:, 0])
        return self.read(x), weights

    @torch.no_grad()
    def accuracy(self, seed: int, count: int = 500) -> float:
        """Return the share of copied letters, but the first of each text, that it foretells.

        Parameters
        ----------
        seed : int
        count : int
            How many texts.

        Returns
        -------
        float
        """
        tokens, _ = repeated_letters(np.random.default_rng(seed), count)
        best = self(tokens[:, :-1])[0].argmax(dim=-1)  # (count, 19)
        return (best[:, DISTINCT:] == tokens[:, DISTINCT + 1 :]).double().mean().item()


def repeated_letters(draw: np.random.Generator, count: int) -> tuple[Tensor, NDArray[np.int64]]:
    """Return texts of 14 different letters, of which 6 neighbours are then said once more.

    Which six differs from text to text, so that position alone does not tell what comes.

    Parameters
    ----------
    draw : numpy.random.Generator
    count : int

    Returns
    -------
    tokens : integer tensor, shape (count, 20)
    begins : integer array, shape (count,)
        Where the six letters stand the first time.

    Examples
    --------
    >>> tokens, begins = repeated_letters(np.random.default_rng(0), 2)
    >>> first = begins[0]
    >>> bool((tokens[0, first : first + 6] == tokens[0, 14:]).all())
    True
    """
    count = whole_number("count", count, at_least=0)
    letters = draw.permuted(np.tile(np.arange(26), (count, 1)), axis=1)[:, :DISTINCT]
    begins = draw.integers(0, DISTINCT - COPIED + 1, count)
    again = np.take_along_axis(letters, begins[:, None] + np.arange(COPIED), axis=1)
    return torch.from_numpy(np.concatenate([letters, again], axis=1)), begins


def train_induction(seed: int, *, num_layers: int = 2, steps: int = 400) -> InductionModel:
    """Train a model to foretell the repeated letters.

    Parameters
    ----------
    seed : int
        Of the first weights and of the texts.
    num_layers : int
    steps : int
        Of 32 new texts each.

    Returns
    -------
    InductionModel

    Examples
    --------
    >>> len(train_induction(1, num_layers=1, steps=1).layers)
    1
    """
    draw = np.random.default_rng(whole_number("seed", seed, at_least=0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = InductionModel(num_layers).double()

    def loss_of_step(_: int) -> Tensor:
        tokens, _begins = repeated_letters(draw, 32)
        scores, _weights = model(tokens[:, :-1])
        return functional.cross_entropy(scores[:, DISTINCT:].mT, tokens[:, DISTINCT + 1 :])

    train(model, loss_of_step, steps=steps, learning_rate=3e-3, label="induction")
    return model
