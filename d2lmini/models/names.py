"""The encoder of names as a PyTorch module, and its training (chapter 10)."""

from collections.abc import Sequence

import numpy as np

from d2lmini._checks import positive_number, whole_number
from d2lmini._torch import Tensor, functional, nn, torch
from d2lmini.masks import padding_mask
from d2lmini.models.training import progress
from d2lmini.multihead import MultiHeadAttention
from d2lmini.names import HEADS, TRAINED, letter_numbers, misspell, single_words
from d2lmini.positions import sinusoidal_positions

__all__ = ["NameModel", "train_names"]

BATCH = 128  # names of a step of training
RATE, WARM_UP = 3e-3, 40  # the learning rate, and in how many steps it is reached


class NameBlock(nn.Module):
    """The block of chapter 6, with a normalisation that has nothing to learn."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.attend = MultiHeadAttention(width, HEADS)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attend(self.norm(x), mask=mask).output  # (k, n, d)
        hidden: Tensor = self.widen(self.norm(x)).relu()
        return x + self.narrow(hidden)


class NameModel(nn.Module):
    """Read names letter by letter, and return a unit vector for each.

    Two blocks of a Transformer over letters and their positions; then one learned query collects
    what the letters have become. `d2lmini.NameEncoder` computes the same in NumPy.

    Parameters
    ----------
    width : int
        d, the length of the vectors.
    num_layers : int

    Examples
    --------
    >>> tuple(NameModel()(["smith", "li"]).shape)
    (2, 64)
    """

    def __init__(self, width: int = 64, num_layers: int = 2) -> None:
        super().__init__()
        width = whole_number("width", width, at_least=1)
        self.letters = nn.Embedding(26, width)
        nn.init.normal_(self.letters.weight, std=0.5)  # as loud as the positions
        self.blocks = nn.ModuleList(
            NameBlock(width) for _ in range(whole_number("num_layers", num_layers, at_least=1))
        )
        self.question = nn.Parameter(torch.randn(width))
        self.pool = MultiHeadAttention(width, HEADS)

    def forward(self, names: Sequence[str]) -> Tensor:
        """Return the vectors of k names.

        Parameters
        ----------
        names : sequence of k str

        Returns
        -------
        tensor, shape (k, width)
            Rows of length 1, and 0 for a name without letters.

        Raises
        ------
        TypeError, ValueError
            If `names` is not a sequence of strings, or one cannot be read, as for a `NameEncoder`,
            or has several words.
        """
        letters = single_words("names", names)
        rows = torch.from_numpy(letter_numbers(letters))  # (k, n)
        lengths = torch.tensor([len(name) for name in letters], dtype=torch.long)
        mask = padding_mask(lengths, rows.shape[1])  # (k, 1, n)
        x = self.letters(rows)  # (k, n, width)
        x = x + sinusoidal_positions(x.shape[1], x.shape[2], like=x)
        for block in self.blocks:
            x = block(x, mask)
        question = self.question.expand(len(letters), 1, -1)
        pooled = self.pool(question, x, mask=mask).output[:, 0]  # (k, width)
        return functional.normalize(pooled, dim=-1)


def train_names(
    seed: int, names: Sequence[str], *, steps: int = 650, temperature: float = 0.07
) -> NameModel:
    """Train a model to find each of 128 misspelt names among the 128 right ones.

    The loss is −ln of the attention weight on the right name, at this temperature. Each name gets
    one, two or three slips of the kinds in ``d2lmini.names.TRAINED``. The learning rate rises in
    the first 40 steps, and falls along a cosine from then on.

    Parameters
    ----------
    seed : int
        Of the first weights, and of names and slips.
    names : sequence of str
        At least 128 names to learn from.
    steps : int
    temperature : float

    Returns
    -------
    NameModel
        In float64; it is trained in float32, which is twice as fast.

    Examples
    --------
    >>> from d2lmini import load_names
    >>> model = train_names(0, load_names().learned, steps=1)
    >>> sum(parameter.numel() for parameter in model.parameters())
    84032
    """
    temperature = positive_number("temperature", temperature)
    names = single_words("names", names)
    if len(names) < BATCH:
        raise ValueError(f"a step takes {BATCH} different names, got {len(names)} to learn from")
    draw = np.random.default_rng(whole_number("seed", seed, at_least=0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = NameModel()
    adam = torch.optim.Adam(model.parameters())

    for step in progress(whole_number("steps", steps, at_least=0), "names"):
        right = draw.choice(names, BATCH, replace=False).tolist()
        slips = draw.integers(1, 4, len(right)).tolist()
        asked = [
            misspell(name, rng=draw, slips=n, kinds=TRAINED)
            for name, n in zip(right, slips, strict=True)
        ]
        scores = model(asked) @ model(right).T / temperature  # (128, 128)
        loss = functional.cross_entropy(scores, torch.arange(BATCH))
        falling = (1 + np.cos(np.pi * step / steps)) / 2
        adam.param_groups[0]["lr"] = RATE * min(1, (step + 1) / WARM_UP) * falling
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
    return model.double()
