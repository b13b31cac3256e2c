"""The one gate for words from outside: legal in every file, visible, and in their own direction."""

import re
import unicodedata

# Characters that leave no mark though their category says that they are letters, marks or signs.
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0"
_BLANK += "\ufff0-\ufff8\U0001d159\U000e0000-\U000e0fff"
_NO_CHARACTER = "\ufdd0-\ufdef" + "".join(
    chr(plane + end) for plane in range(0, 0x110000, 0x10000) for end in (0xFFFE, 0xFFFF)
)
_UNSEEN = re.compile(f"[{_BLANK}{_NO_CHARACTER}]")
_CONTROLS = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
ISOLATES = "\u2066\u2067\u2068\u2069"


def escaped(character: str) -> str:
    r"""Write a character as Python does in a string.

    >>> escaped("\x1b"), escaped("\u200b"), escaped("\U000e0001")
    ('\\x1b', '\\u200b', '\\U000e0001')
    """
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else (f"\\U{code:08x}")
    )


def legible(text: str, keep: str = "") -> str:
    r"""Write out every character that cannot be seen, or that no file of XML may hold.

    A mark that stands on no letter gets a dotted circle. What is in ``keep`` stays as it is.

    >>> legible("a\x1b"), legible("\u200b"), legible("\u0301")
    ('a\\x1b', '\\u200b', '◌́')
    """
    if text.isascii() and text.isprintable():
        return text
    written: list[str] = []
    bare = True  # no letter for a mark to stand on
    for character in text:
        category = unicodedata.category(character)
        if character in keep or character == " ":
            written.append(character)
            bare = True
        elif category in _CONTROLS or category == "Zs" or _UNSEEN.match(character):
            emoji = character == "\ufe0f" and not bare  # picture or letter: the one before shows it
            written.append(character if emoji else escaped(character))
        else:
            written.append("◌" + character if category[0] == "M" and bare else character)
            bare = False
    return "".join(written)


def legal(text: str) -> str:
    """Write out what no file of XML may hold, and leave all else."""
    return ILLEGAL.sub(lambda found: escaped(found[0]), text)


def isolated(word: str) -> str:
    """Wrap a word that runs from right to left, so that it does not turn the sentence around it.

    >>> isolated("cat"), isolated("\u05d0") == "\u2068\u05d0\u2069"
    ('cat', True)
    """
    turns = any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in word)
    return f"\u2068{word}\u2069" if turns else word


def quoted(word: str) -> str:
    """Name a word from outside in a sentence.

    >>> quoted("cat")
    '“cat”'
    """
    return f"“{isolated(word)}”"
