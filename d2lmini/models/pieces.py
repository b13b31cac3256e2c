"""How SmolLM2 cuts a text into pieces: bytes, joined pair by pair (chapter 7)."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby, pairwise

__all__ = ["BytePieces"]

# A word takes the blank before it; an ending such as 's stands alone; so do blanks in a row.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_letters() -> list[str]:
    """Return a printable letter for each byte: itself where it has one, else one from 256 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


LETTERS = byte_letters()
BYTES = {letter: byte for byte, letter in enumerate(LETTERS)}


class BytePieces:
    """A vocabulary of pieces, and the order in which neighbouring pieces are joined.

    Every text can be cut, since each single byte is a piece.

    Parameters
    ----------
    pieces : list of str
        The vocabulary, one printable letter for each byte.
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
        self.rank = {tuple(pair.split(" ")): i for i, pair in enumerate(merges)}

    def encode(self, text: str) -> list[int]:
        """Return the number of each piece of a text."""
        return [self.id[piece] for word in _words(text) for piece in self._joined(word)]

    def decode(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of some pieces; a piece may end within a letter."""
        return bytes(BYTES[letter] for i in ids for letter in self.pieces[i])

    def _joined(self, word: str) -> list[str]:
        pieces = [LETTERS[byte] for byte in word.encode()]
        while ranked := [pair for pair in pairwise(pieces) if pair in self.rank]:
            left, right = min(ranked, key=self.rank.__getitem__)
            joined: list[str] = []
            for piece in pieces:
                if joined and (joined[-1], piece) == (left, right):
                    joined[-1] += piece
                else:
                    joined.append(piece)
            pieces = joined
        return pieces


def _words(text: str) -> list[str]:
    """Cut a text where no piece may cross: each digit alone, then words and what lies between."""
    words: list[str] = []
    for digits, run in groupby(text, lambda letter: unicodedata.category(letter)[0] == "N"):
        letters = [*run]
        words += letters if digits else WORD.findall("".join(letters))
    return words
