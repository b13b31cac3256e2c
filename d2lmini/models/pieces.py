"""How SmolLM2 cuts a text into pieces: bytes, joined pair by pair (chapter 7)."""

import re
import unicodedata
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby

__all__ = ["BytePieces"]

# A word takes the blank before it; an ending such as 's stands alone; so do blanks in a row.
# Python counts the separators U+001C to U+001F as blanks; the model does not.
BLANK, SIGN = r"[^\S\x1c-\x1f]", r"(?:[^\s\w]|[_\x1c-\x1f])"
WORD = re.compile(rf"'(?:s|t|re|ve|m|ll|d)| ?[^\W_]+| ?{SIGN}+|{BLANK}+(?![\S\x1c-\x1f])|{BLANK}+")


def byte_letters() -> list[str]:
    """Return a printable letter for each byte: itself where it has one, else one from 256 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


LETTERS = byte_letters()
BYTES = {letter: byte for byte, letter in enumerate(LETTERS)}


class BytePieces:
    """A vocabulary of pieces, and the order in which neighbouring pieces are joined.

    Parameters
    ----------
    pieces : list of str
        The vocabulary, one printable letter for each byte. A text can be cut if each of its bytes
        is a piece by itself; the vocabulary of SmolLM2 lacks 21 of the 256, which no English text
        contains.
    merges : list of str
        Pairs of pieces with a blank between, the pair that is joined first in front.

    References
    ----------
    Sennrich et al., "Neural machine translation of rare words with subword units", 2016.

    Examples
    --------
    >>> cut = BytePieces([*LETTERS, "ap", "ple", "apple"], ["a p", "p l", "pl e", "ap ple"])
    >>> [cut.decode([i]).decode() for i in cut.encode("apples")]
    ['apple', 's']
    """

    def __init__(self, pieces: Sequence[str], merges: Sequence[str]) -> None:
        self.pieces = list(pieces)
        self.id = {piece: i for i, piece in enumerate(self.pieces)}
        self.longest = max(map(len, self.pieces), default=1)  # bytes of the longest piece
        self.rank = {tuple(pair.split(" ")): i for i, pair in enumerate(merges)}

    def encode(self, text: str) -> list[int]:
        """Return the number of each piece of a text.

        Raises
        ------
        TypeError
            If the text is none.
        ValueError
            If a letter of the text is half of a surrogate pair, or has a byte that is no piece.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        self._check(text)
        return [self.id[piece] for word in _words(text) for piece in self._joined(word)]

    def fewest(self, text: str) -> int:
        """Return how many pieces a text has at least, without cutting it."""
        return -(-len(text) // self.longest)

    def decode(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of some pieces; a piece may end within a letter.

        Raises
        ------
        ValueError
            If a number is that of no piece.
        """
        for i in ids:
            if not 0 <= i < len(self.pieces):
                raise ValueError(f"ids must be from 0 to {len(self.pieces) - 1}, got {i}")
        return bytes(BYTES[letter] for i in ids for letter in self.pieces[i])

    def _check(self, text: str) -> None:
        """Say which letter of a text cannot be cut, and where it is."""
        unknown = {letter for letter in set(text) if not self._can_cut(letter)}
        if unknown:
            at = next(i for i, letter in enumerate(text) if letter in unknown)
            why = "is half of a surrogate pair, and no letter"
            if not "\ud800" <= text[at] <= "\udfff":
                why = "has a byte that is no piece of this vocabulary"
            raise ValueError(
                f"text cannot be cut: {text[at]!a}, at index {at}, {why}; leave it out or "
                "replace it"
            )

    def _can_cut(self, letter: str) -> bool:
        if "\ud800" <= letter <= "\udfff":
            return False
        return all(LETTERS[byte] in self.id for byte in letter.encode())

    def _joined(self, word: str) -> list[str]:
        """Join neighbours, the pair of lowest rank first, and of equal ones the leftmost."""
        pieces: list[str] = [LETTERS[byte] for byte in word.encode()]  # "" once it was joined
        before = list(range(-1, len(pieces) - 1))
        after = list(range(1, len(pieces) + 1))

        def pair(i: int) -> tuple[int, int, str, str] | None:
            """Return the rank and place of piece i and the next, if they may be joined."""
            if i < 0 or (j := after[i]) == len(pieces):
                return None
            rank = self.rank.get((pieces[i], pieces[j]))
            return None if rank is None else (rank, i, pieces[i], pieces[j])

        queue = [each for each in map(pair, range(len(pieces))) if each]
        heapify(queue)
        while queue:
            candidate = heappop(queue)
            i = candidate[1]
            if pair(i) != candidate:  # one of the two was joined with another piece meanwhile
                continue
            j = after[i]
            pieces[i], pieces[j] = pieces[i] + pieces[j], ""
            after[i] = after[j]
            if after[i] < len(pieces):
                before[after[i]] = i
            for each in (pair(before[i]), pair(i)):
                if each:
                    heappush(queue, each)
        return [piece for piece in pieces if piece]


def _words(text: str) -> list[str]:
    """Cut a text where no piece may cross: each digit alone, then words and what lies between."""
    words: list[str] = []
    for digits, run in groupby(text, lambda letter: unicodedata.category(letter)[0] == "N"):
        letters = [*run]
        words += letters if digits else WORD.findall("".join(letters))
    return words
