"""Attention without a softmax: features that are summed once for all queries (chapter 8)."""

from collections.abc import Callable
from typing import Any

from d2lmini._arrays import floating, on_one_batch, rounding_ignored, widened
from d2lmini._checks import check_flag, check_rows, check_same_space
from d2lmini._types import A
from d2lmini.masks import _no_later_key

__all__ = ["linear_attention"]

CHUNK = 64  # tokens between two states of the recurrence


def _linear_attention(xp: Any, query: A, key: A, value: A) -> A:
    """φ(Q) (φ(K)ᵀ V) / φ(Q) Σ φ(k), of the features φ(Q) (..., n, f) and φ(K) (..., m, f)."""
    mixed = query @ (key.mT @ value)  # (..., n, f) @ ((..., f, m) @ (..., m, d_v))
    return _divided(xp, mixed, query @ xp.sum(key, axis=-2, keepdims=True).mT)


def _causal_linear_attention(xp: Any, query: A, key: A, value: A) -> A:
    """Do so as a recurrence: some queries at a time see the sums of all keys before them."""
    n, m = query.shape[-2], key.shape[-2]
    past = max(m - n, 0)  # keys before the first query's own
    state = key[..., :past, :].mT @ value[..., :past, :]  # (..., f, d_v)
    normaliser = xp.sum(key[..., :past, :], axis=-2, keepdims=True).mT  # (..., f, 1)
    blind = max(n - m, 0)
    outputs = [xp.zeros_like(query[..., :blind, :] @ state)]
    for top in range(blind, n, CHUNK):
        q = query[..., top : min(top + CHUNK, n), :]
        own = slice(top + m - n, min(top + CHUNK, n) + m - n)
        k, v = key[..., own, :], value[..., own, :]
        weights = q @ k.mT  # (..., CHUNK, CHUNK)
        positions = xp.arange(q.shape[-2], device=q.device)
        weights = xp.where(_no_later_key(positions[:, None], positions), weights, 0.0)
        total = xp.sum(weights, axis=-1, keepdims=True) + q @ normaliser
        outputs.append(_divided(xp, weights @ v + q @ state, total))
        state = state + k.mT @ v
        normaliser = normaliser + xp.sum(k, axis=-2, keepdims=True).mT
    return xp.concat(outputs, axis=-2)


def _divided(xp: Any, mixed: A, total: A) -> A:
    """Divide by the sum of the weights; 0 where there is none."""
    return xp.where(total == 0, 0.0, mixed / xp.where(total == 0, 1.0, total))


def _elu_plus_one(xp: Any, x: A) -> A:
    """Return x + 1 above 0, and e to the x below."""
    return xp.where(x > 0, x + 1, xp.exp(xp.where(x > 0, 0.0, x)))


def linear_attention(
    query: A,
    key: A,
    value: A,
    *,
    feature_map: Callable[[A], A] | None = None,
    causal: bool = False,
) -> A:
    r"""Weigh by a product of features, so that keys and values can be summed once for all queries.

    .. math:: \text{output}_i = \frac{\phi(q_i)^\top \sum_j \phi(k_j)\, v_j^\top}
        {\phi(q_i)^\top \sum_j \phi(k_j)}

    The work grows with n + m. What is given up: the weights are no softmax. They are never as
    sharp, because f features cannot tell more than f keys apart. It is exactly `attention` with
    the score :math:`\log(\phi(q)^\top \phi(k))`.

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)
    value : array, shape (..., m, d_v)
    feature_map : callable, optional
        φ, from (..., n, d) to (..., n, f), with features that are not negative; elu(x) + 1 unless
        given.
    causal : bool
        Hide later keys (see `causal_mask`). The sums are then those of the keys so far: what has
        been read is kept as f × d_v numbers, however much it was.

    Returns
    -------
    array, shape (..., n, d_v)
        The output alone.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, NumPy and PyTorch are mixed, `causal` is
        not a bool, or `feature_map` is not a function that returns an array.
    ValueError
        If shapes do not fit together.

    References
    ----------
    Katharopoulos et al., "Transformers are RNNs: fast autoregressive transformers with linear
    attention", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 24).reshape(8, 3)
    >>> linear_attention(x, x, x, causal=True).shape
    (8, 3)
    """
    xp, query, key, value = floating(query=query, key=key, value=value)
    check_rows(query, key, value)
    check_same_space(query, key)
    check_flag("causal", causal)
    dtype = value.dtype
    with rounding_ignored(value, invalid=True):
        if feature_map is None:
            query, key = (_elu_plus_one(xp, x) for x in widened(xp, query, key))
        else:
            query, key = _features(feature_map, query, "query"), _features(feature_map, key, "key")
        query, key, value = widened(xp, query, key, value)  # sums over a sequence outgrow 16 bits
        _, query, key, value = floating(query=query, key=key, value=value)
        attend = _causal_linear_attention if causal else _linear_attention
        return xp.astype(attend(xp, *on_one_batch(xp, query, key, value)), dtype, copy=False)


def _features(feature_map: Callable[[A], A], x: A, name: str) -> A:
    """Return the features of queries or keys, checked."""
    if not callable(feature_map):
        raise TypeError(f"feature_map must be a function of an array, got {feature_map!r:.40}")
    features = feature_map(x)
    _, features, _ = floating(**{f"feature_map({name})": features, name: x})
    if tuple(features.shape[:-1]) != tuple(x.shape[:-1]):
        raise ValueError(
            f"feature_map must return shape (..., n, f) for (..., n, d): it made "
            f"{tuple(features.shape)} of the {name} {tuple(x.shape)}"
        )
    return features
