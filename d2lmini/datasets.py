"""Small data that ships with the library: names, two time series and a video site in miniature.

Each loader reads one or more files of ``d2lmini/data`` (together about 100 kB); nothing is ever
downloaded. The arrays are made anew by each call: change them as you like, the next call returns
the original numbers. ``d2lmini/data/README.md`` names the source and licence of every file.
"""

import csv
import io
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "load_incomes",
    "load_name_trials",
    "load_names",
    "load_nile",
    "load_sunspots",
    "load_video_titles",
]


class Incomes(NamedTuple):
    """What `load_incomes` returns."""

    names: tuple[str, ...]
    incomes: NDArray[np.float64]  # (8,), in thousands


class Names(NamedTuple):
    """What `load_names` returns."""

    learned: tuple[str, ...]  # 5,000
    held_out: tuple[str, ...]  # 1,000


class NameTrials(NamedTuple):
    """What `load_name_trials` returns."""

    methods: tuple[str, ...]
    asked: tuple[str, ...]
    found: NDArray[np.float64]  # (3, methods, asked), shares
    places: tuple[str, ...]
    looks: NDArray[np.float64]  # (3, layers, heads, places), mean weights
    without: NDArray[np.float64]  # (3, layers + 1, heads), shares; the last row is the pool


class Nile(NamedTuple):
    """What `load_nile` returns."""

    years: NDArray[np.float64]  # (100,)
    flow: NDArray[np.float64]  # (100,), in units of 10⁸ cubic metres a year


class Sunspots(NamedTuple):
    """What `load_sunspots` returns."""

    years: NDArray[np.float64]  # (309,)
    counts: NDArray[np.float64]  # (309,), mean sunspot number of the year


class VideoTitles(NamedTuple):
    """What `load_video_titles` returns."""

    titles: tuple[str, ...]
    keys: NDArray[np.float64]  # (50, 384), one unit vector for each title
    queries: tuple[str, ...]
    query_vectors: NDArray[np.float64]  # (12, 384), one unit vector for each query


def load_incomes() -> Incomes:
    """Return eight invented people and their incomes: a table to look things up in.

    Some names are nearly alike, so that a misspelt one has more than one good match.

    Returns
    -------
    Incomes
        A NamedTuple of ``names``, a tuple of 8 strings, and ``incomes``, float64 of shape (8,), in
        thousands a year (of no particular currency).

    Notes
    -----
    Written for this library; MIT licence.

    Examples
    --------
    >>> from d2lmini import load_incomes
    >>> names, incomes = load_incomes()
    >>> names[0], incomes[0].item(), incomes.mean().item()
    ('Alice Marlow', 32.0, 55.0)
    """
    rows = list(csv.reader(io.StringIO(_text("incomes.csv"))))[1:]
    return Incomes(
        tuple(name for name, _ in rows),
        np.array([float(income) for _, income in rows]),
    )


def load_names() -> Names:
    """Return 6,000 last names, some to learn from and some that are held out for a test.

    They are the most frequent ones of the United States in 1990, the most frequent first. Every
    sixth is held out, so that the two parts are alike in how rare and how foreign their names are.

    Returns
    -------
    Names
        A NamedTuple of ``learned``, a tuple of 5,000 strings, and ``held_out``, a tuple of the
        other 1,000. All are of the letters a to z, in lower case; no name is in both.

    Notes
    -----
    Source: Census of the United States, 1990, in the public domain; taken from the package
    ``names``, which says so.

    Examples
    --------
    >>> from d2lmini import load_names
    >>> learned, held_out = load_names()
    >>> learned[:3], held_out[:3], len(learned), len(held_out)
    (('smith', 'johnson', 'williams'), ('davis', 'thomas', 'garcia'), 5000, 1000)
    """
    names = _text("names.txt").splitlines()
    return Names(
        tuple(name for rank, name in enumerate(names, 1) if rank % 6),
        tuple(names[5::6]),
    )


def load_name_trials() -> NameTrials:
    """Return what three encoders of names found among the 1,000 held-out names, and other methods.

    The three were trained alike but for their seed, and each seed has misspellings of its own.

    Returns
    -------
    NameTrials
        A NamedTuple. ``found`` (3, methods, asked) has the share of names found by each of
        ``methods`` after what ``asked`` names: one to three slips of the kinds that were trained,
        then one slip of each kind. ``looks`` (3, 2, 4, places) has what each head of each layer
        gives to the ``places``, averaged over letters that have one on either side. ``without``
        (3, 3, 4) has the share found after two slips without one of the heads.

    Notes
    -----
    Computed for this library, the distances with RapidFuzz 3.14; MIT licence.

    Examples
    --------
    >>> from d2lmini import load_name_trials
    >>> trials = load_name_trials()
    >>> trials.methods
    ('learned', 'trigrams', 'Levenshtein', 'Damerau', 'Jaro-Winkler')
    >>> bool(trials.found[:, 0, 0].min() > 0.96)
    True
    """
    with np.load(io.BytesIO(_bytes("name_trials.npz"))) as stored:
        methods, asked, places = (tuple(stored[x].tolist()) for x in ("methods", "asked", "places"))
        found, looks, without = (stored[x] for x in ("found", "looks", "without"))
    return NameTrials(methods, asked, found, places, looks, without)


def load_nile() -> Nile:
    """Return the yearly flow of the Nile at Aswan, 1871 to 1970: a noisy series with a step.

    The level falls around 1899, from a mean of 1098 before to 850 from then on.

    Returns
    -------
    Nile
        A NamedTuple of ``years`` and ``flow``, both float64 of shape (100,). The unit of flow is
        10⁸ cubic metres a year. No year is missing.

    Notes
    -----
    Source: Cobb (1978), *The problem of the Nile*, Biometrika 65(2); taken from statsmodels, which
    marks the data as public domain.

    Examples
    --------
    >>> from d2lmini import load_nile
    >>> years, flow = load_nile()
    >>> years[0].item(), flow[0].item(), flow.shape
    (1871.0, 1120.0, (100,))
    >>> flow[years < 1899].mean().round().item(), flow[years >= 1899].mean().round().item()
    (1098.0, 850.0)
    """
    return Nile(*_columns("nile.csv"))


def load_sunspots() -> Sunspots:
    """Return the yearly sunspot number, 1700 to 2008: a series that nearly repeats.

    It rises and falls about every eleven years, each time to another height.

    Returns
    -------
    Sunspots
        A NamedTuple of ``years`` and ``counts``, both float64 of shape (309,). A count is the mean
        sunspot number of its year, without a unit. No year is missing.

    Notes
    -----
    Source: National Geophysical Data Center of the United States; taken from statsmodels, which
    marks the data as public domain. These are the numbers as they were before the revision of
    2015; later tables use another scale.

    Examples
    --------
    >>> from d2lmini import load_sunspots
    >>> years, counts = load_sunspots()
    >>> years[[0, -1]], counts.shape
    (array([1700., 2008.]), (309,))
    >>> years[counts.argmax()].item(), counts.max().item()
    (1957.0, 190.2)
    """
    return Sunspots(*_columns("sunspots.csv"))


def load_video_titles() -> VideoTitles:
    r"""Return fifty invented video titles, twelve queries, and an embedding of each.

    The embeddings are vectors of length 1, so the dot product of two is their cosine. Divide it by
    a temperature near 0.05 before the softmax: at temperature 1 a query reads all fifty titles
    nearly alike. The value :math:`1/\sqrt{384} \approx 0.051` is what scaled dot product does to
    vectors whose entries have root mean square 1, such as :math:`\sqrt{384}\,k`:

    .. math:: \frac{(\sqrt{384}\,q) \cdot (\sqrt{384}\,k)}{\sqrt{384}}
              = \frac{q \cdot k}{1 / \sqrt{384}}

    Returns
    -------
    VideoTitles
        A NamedTuple of ``titles``, a tuple of 50 strings; ``keys``, float64 of shape (50, 384), row
        i for title i; ``queries``, a tuple of 12 strings; ``query_vectors``, float64 of shape
        (12, 384). The last query, "corporate tax law", has no good answer here.

    Notes
    -----
    Titles and queries were written for this library; MIT licence. The embeddings were computed
    with all-MiniLM-L6-v2 (weights Apache 2.0): Wang et al. (2020), MiniLM, trained for sentences as
    in Reimers and Gurevych (2019). They are stored in float16, good to three digits, and brought
    back to length 1 in float64.

    Examples
    --------
    >>> from d2lmini import load_video_titles
    >>> titles, keys, queries, query_vectors = load_video_titles()
    >>> cosines = keys @ query_vectors[queries.index("deep learning")]  # (50,)
    >>> titles[cosines.argmax()]
    'Neural networks explained visually'
    >>> from d2lmini import softmax
    >>> softmax(cosines / 0.05).max().round(2).item(), softmax(cosines).max().round(2).item()
    (0.91, 0.03)
    """
    with np.load(io.BytesIO(_bytes("video_vectors.npz"))) as vectors:
        keys, query_vectors = (_unit(vectors[name]) for name in ("keys", "query_vectors"))
    return VideoTitles(
        tuple(_text("video_titles.txt").splitlines()),
        keys,
        tuple(_text("video_queries.txt").splitlines()),
        query_vectors,
    )


def _bytes(name: str) -> bytes:
    return (files("d2lmini") / "data" / name).read_bytes()


def _text(name: str) -> str:
    return _bytes(name).decode("utf-8")


def _columns(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read the two columns of a file with one line of headings."""
    table = np.loadtxt(io.StringIO(_text(name)), delimiter=",", skiprows=1)
    return table[:, 0].copy(), table[:, 1].copy()


def _unit(vectors: NDArray[np.float16]) -> NDArray[np.float64]:
    """Return each row, in float64, with length 1."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    unit: NDArray[np.float64] = exact / lengths
    return unit
