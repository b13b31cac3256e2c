"""An invented little English and French, and vocabularies that turn words into numbers."""

import difflib
import itertools
from collections.abc import Iterable, Sequence

from d2lmini._torch import Tensor, torch

__all__ = ["Vocabulary", "phrases", "sentence"]

ARTICLES = {"the": ("le", "la"), "a": ("un", "une")}  # masculine, feminine
SIZES = {
    "small": ("petit", "petite"),
    "big": ("grand", "grande"),
    "pretty": ("joli", "jolie"),
    "new": ("nouveau", "nouvelle"),
    "bad": ("mauvais", "mauvaise"),
}
COLOURS = {
    "black": ("noir", "noire"),
    "green": ("vert", "verte"),
    "white": ("blanc", "blanche"),
    "blue": ("bleu", "bleue"),
    "grey": ("gris", "grise"),
}
NOUNS = {
    "cat": ("chat", 0), "dog": ("chien", 0), "hat": ("chapeau", 0), "book": ("livre", 0),
    "garden": ("jardin", 0), "bread": ("pain", 0), "house": ("maison", 1), "table": ("table", 1),
    "flower": ("fleur", 1), "car": ("voiture", 1), "chair": ("chaise", 1), "key": ("clé", 1),
}  # fmt: skip
PAD, START, END = "<pad>", "<start>", "<end>"


def phrases() -> list[tuple[str, str]]:
    """Return every English phrase with its French.

    An article, perhaps a size, perhaps a colour, and a noun. In French the colour follows the
    noun, and article and adjectives take its gender.

    Returns
    -------
    list of (str, str)

    Examples
    --------
    >>> len(phrases())
    864
    >>> phrases()[72]
    ('the small cat', 'le petit chat')
    """
    return [
        _phrase(article, size, colour, noun)
        for article in ARTICLES
        for size in (None, *SIZES)
        for colour in (None, *COLOURS)
        for noun in NOUNS
    ]


def _phrase(article: str, size: str | None, colour: str | None, noun: str) -> tuple[str, str]:
    french, gender = NOUNS[noun]
    english = [article, size, colour, noun]
    parts = [
        ARTICLES[article][gender],
        SIZES[size][gender] if size else None,
        french,
        COLOURS[colour][gender] if colour else None,
    ]
    return " ".join(filter(None, english)), " ".join(filter(None, parts))


def sentence(numbers: Sequence[int]) -> str:
    """Return a French sentence of two clauses, chosen by eight whole numbers.

    Each clause is an article, perhaps a size, a noun, *est*, and a colour of the noun's gender.

    Parameters
    ----------
    numbers : sequence of 8 int
        Article, size, noun and colour of each clause; any whole numbers.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If there are not eight.

    Examples
    --------
    >>> sentence([0, 1, 0, 0, 1, 2, 6, 2])
    'le petit chat est noir et une grande maison est blanche'
    """
    if len(numbers) != 8:
        raise ValueError(f"a sentence is chosen by 8 numbers, got {len(numbers)}")
    return " et ".join(_clause(*numbers[i : i + 4]) for i in (0, 4))


def _clause(article: int, size: int, noun: int, colour: int) -> str:
    french, gender = [*NOUNS.values()][noun % len(NOUNS)]

    def pick(words: dict[str, tuple[str, str]], which: int) -> str:
        return [*words.values()][which % len(words)][gender]

    which = size % (len(SIZES) + 1)  # 0: none
    sizes = [pick(SIZES, which - 1)] if which else []
    return " ".join([pick(ARTICLES, article), *sizes, french, "est", pick(COLOURS, colour)])


def check_tokens(name: str, tokens: Tensor, count: int) -> None:
    """Raise TypeError or ValueError unless tokens (..., n) are numbers from 0 to count - 1."""
    if not isinstance(tokens, torch.Tensor) or tokens.dtype not in (torch.int32, torch.int64):
        kind = getattr(tokens, "dtype", type(tokens).__name__)
        raise TypeError(f"{name} must be a tensor of whole numbers, int64 or int32, got {kind}")
    if tokens.ndim < 1:
        raise ValueError(f"{name} must have shape (..., n), got one number")
    if tokens.numel() and not 0 <= tokens.min() <= tokens.max() < count:
        raise ValueError(
            f"{name} must be numbers from 0 to {count - 1}, got {tokens.min()} to {tokens.max()}"
        )


def _check_list(texts: Iterable[str]) -> None:
    if isinstance(texts, str):
        raise TypeError(f"texts must be a list of strings; write [{texts!r}]")


class Vocabulary:
    """Number the words of some texts, and turn texts into arrays of numbers and back.

    Parameters
    ----------
    texts : iterable of str
        Every word in them gets a number, in alphabetical order after three signs: 0 for padding,
        1 for the start of a text, 2 for its end.

    Raises
    ------
    TypeError
        If `texts` is one string.
    ValueError
        If there is no word at all.

    Examples
    --------
    >>> words = Vocabulary(["le chat", "le chien"])
    >>> words.encode(["le chien", "chat"], signs=True)
    tensor([[1, 5, 4, 2],
            [1, 3, 2, 0]])
    >>> words.decode([1, 5, 4, 2, 0])
    'le chien'
    """

    def __init__(self, texts: Iterable[str]) -> None:
        _check_list(texts)
        found = sorted({word for text in texts for word in text.split()})
        if not found:
            raise ValueError("a vocabulary needs at least one word; the texts have none")
        self.words = [PAD, START, END, *found]
        self._number = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, texts: Sequence[str], *, signs: bool = False) -> Tensor:
        """Return the numbers of the words: (texts, length of the longest), padded with 0.

        Parameters
        ----------
        texts : sequence of str
        signs : bool
            Put the start before each text and the end after it.

        Returns
        -------
        integer tensor, shape (texts, n)

        Raises
        ------
        TypeError
            If `texts` is one string, or one of them is no string.
        ValueError
            If there is no text, a text is empty, or a word has no number; the message names the
            nearest words.
        """
        _check_list(texts)
        if not len(texts):
            raise ValueError("there is no text to encode")
        rows = [self._numbers(text) for text in texts]
        if signs:
            rows = [[1, *row, 2] for row in rows]
        padded = itertools.zip_longest(*rows, fillvalue=0)
        return torch.tensor([*zip(*padded, strict=True)])

    def _numbers(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"a text must be a string, got {type(text).__name__}")
        if not text.split():
            raise ValueError("a text is empty; give at least one word")
        for word in text.split():
            if word not in self._number:
                near = difflib.get_close_matches(word, self.words[3:], 3, 0)
                raise ValueError(
                    f"{word!r} is not in the vocabulary of {len(self) - 3} words; the nearest are "
                    + ", ".join(near)
                )
        return [self._number[word] for word in text.split()]

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the words up to the end, without the signs.

        Parameters
        ----------
        numbers : iterable of int

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If a number has no word.
        """
        words = []
        for number in map(int, numbers):
            if not 0 <= number < len(self):
                raise ValueError(
                    f"{number} is not the number of a word; they go to {len(self) - 1}"
                )
            if number == 2:
                break
            if number > 2:
                words.append(self.words[number])
        return " ".join(words)
