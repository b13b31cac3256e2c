"""A recommender: the candidate asks, what somebody has rated answers (chapter 6)."""

from d2lmini._arrays import A, floating
from d2lmini._checks import check_same_space, positive_number
from d2lmini.attention import Attention, attention
from d2lmini.scores import dot_product_score

__all__ = ["recommend"]


def recommend(candidates: A, history: A, ratings: A, *, temperature: float = 0.1) -> Attention[A]:
    """Foretell ratings from those that somebody has given to similar things.

    Parameters
    ----------
    candidates : array, shape (n, d)
        The queries: vectors of what might be shown.
    history : array, shape (m, d)
        The keys: vectors of what has been rated.
    ratings : array, shape (m,)
        The values.
    temperature : float
        The smaller, the more the nearest things count.

    Returns
    -------
    Attention
        ``output`` (n,), the ratings foretold, and ``weights`` (n, m).

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers.
    ValueError
        If the history is empty, or shapes do not fit.

    References
    ----------
    Zhou et al., "Deep interest network for click-through rate prediction", 2018.

    Examples
    --------
    >>> import numpy as np
    >>> seen = np.eye(2)
    >>> recommend(np.array([[0.9, 0.1]]), seen, np.array([1.0, -1.0])).output.round(2)
    array([1.])
    """
    _, candidates, history, ratings = floating(
        candidates=candidates, history=history, ratings=ratings
    )
    temperature = positive_number("temperature", temperature)
    check_same_space(candidates, history)
    if not len(history):
        raise ValueError(
            "the history is empty: nothing answers. Show what is liked by most until there is one"
        )
    if history.ndim != 2 or tuple(ratings.shape) != (len(history),):
        raise ValueError(
            f"each thing in the history (m, d) needs one rating, got ratings of shape "
            f"{tuple(ratings.shape)} for a history of shape {tuple(history.shape)}"
        )
    query = candidates / temperature
    output, weights = attention(query, history, ratings[:, None], score=dot_product_score)
    return Attention(output[..., 0], weights)
