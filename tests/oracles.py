"""The definitions, as plain loops over Python floats: slow, and easy to check by eye.

They are written from the formulas and share nothing with the library. Each takes arrays of any
kind (or nested lists) and returns float64 NumPy arrays. NumPy serves only to hold the numbers and
to broadcast the batch axes.
"""

import cmath
import itertools
import math

import numpy as np

# Scores of one query with one key: two lists of floats.


def dot_product(q, k):
    return math.fsum(a * b for a, b in zip(q, k, strict=True))


def scaled_dot_product(q, k):
    return dot_product(q, k) / math.sqrt(len(q)) if q else 0.0


def cosine(q, k):
    lengths = math.hypot(*q) * math.hypot(*k)
    return dot_product(q, k) / lengths if lengths > 0 else 0.0


def gaussian(q, k, width=1.0):
    return -(math.dist(q, k) ** 2) / (2 * width**2)


def bilinear(q, k, weight):
    total = 0.0
    for i, a in enumerate(q):
        for j, b in enumerate(k):
            total += a * float(weight[i][j]) * b
    return total


def additive(q, k, w_q, w_k, w_v):
    total = 0.0
    for hidden, out in enumerate(w_v):
        inside = 0.0
        for i, a in enumerate(q):
            inside += a * float(w_q[i][hidden])
        for j, b in enumerate(k):
            inside += b * float(w_k[j][hidden])
        total += float(out) * math.tanh(inside)
    return total


# Kernels: how much a key at some distance weighs, before the weights are made to sum to 1.

KERNELS = {
    "gaussian": lambda distance, width: math.exp(-(distance**2) / (2 * width**2)),
    "boxcar": lambda distance, width: 1.0 if distance <= width else 0.0,
    "triangular": lambda distance, width: max(0.0, 1 - distance / width),
    "epanechnikov": lambda distance, width: max(0.0, 1 - (distance / width) ** 2),
}


# Weights of one row.


def softmax(scores, visible=None):
    """Return exp(a_i) / sum_j exp(a_j) over the visible j, written as 1 / sum_j exp(a_j - a_i)."""
    visible = [True] * len(scores) if visible is None else visible
    seen = [a for a, may in zip(scores, visible, strict=True) if may and a != -math.inf]
    weights = []
    for a, may in zip(scores, visible, strict=True):
        if may and a != -math.inf:
            weights.append(1 / math.fsum(_exp(other - a) for other in seen))
        else:
            weights.append(0.0)
    return weights


def _exp(x):
    return math.exp(x) if x < 700 else math.inf


# Masks: may query i of n attend to key j of m?


def causal(i, j, n, m):
    return j <= i + (m - n)


def sliding_window(i, j, n, m, window):
    position = i + (m - n)
    return position - window < j <= position


def mask_of(rule, n, m):
    """Return the n by m table of a rule."""
    return np.array([[rule(i, j) for j in range(m)] for i in range(n)], dtype=bool).reshape(n, m)


# All of it, for any leading batch axes.


def floats(x):
    """Return x as a float64 NumPy array."""
    return _numpy(x).astype(np.float64)


def _numpy(x):
    numbers = np.array(x.tolist() if hasattr(x, "tolist") else x)
    return numbers.reshape(np.shape(x))  # nested lists forget the axes behind one of size 0


def scores(query, key, score=scaled_dot_product):
    """Return the scores (..., n, m) of every query with every key."""
    query, key = floats(query), floats(key)
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    query, key = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (query, key))
    result = np.empty((*batch, query.shape[-2], key.shape[-2]))
    for b in np.ndindex(batch):
        for i in range(query.shape[-2]):
            for j in range(key.shape[-2]):
                result[(*b, i, j)] = score(query[b][i].tolist(), key[b][j].tolist())
    return result


def masked_softmax(table, mask=True):
    """Return weights (..., n, m), from scores (..., n, m)."""
    table = floats(table)
    visible = np.broadcast_to(_numpy(mask), table.shape)
    result = np.empty(table.shape)
    for row in np.ndindex(table.shape[:-1]):
        result[row] = softmax(table[row].tolist(), visible[row].tolist())
    return result


def weighted_sum(weights, value):
    """Return outputs (..., n, d_v): for each query the sum of all values, each times its weight."""
    value = floats(value)
    batch = np.broadcast_shapes(weights.shape[:-2], value.shape[:-2])
    weights, value = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (weights, value))
    n, m, d_v = (*weights.shape[-2:], value.shape[-1])
    result = np.empty((*batch, n, d_v))
    for b in np.ndindex(batch):
        for i, c in itertools.product(range(n), range(d_v)):
            result[(*b, i, c)] = math.fsum(weights[b][i, j] * value[b][j, c] for j in range(m))
    return result


def attention(query, key, value, mask=True, is_causal=False, score=scaled_dot_product):
    """Return (output, weights) of attention."""
    table = scores(query, key, score)
    n, m = table.shape[-2:]
    if is_causal:
        mask = _numpy(mask).astype(bool) & mask_of(lambda i, j: causal(i, j, n, m), n, m)
    weights = masked_softmax(table, mask)
    return weighted_sum(weights, value), weights


def nadaraya_watson(query, key, value, kernel, width):
    """Return (output, weights) of kernel regression."""
    if kernel == "gaussian":  # the same quotient, where far away no number is too small for it
        return attention(
            query, key, value, score=lambda q, k: -(math.dist(q, k) ** 2) / (2 * width**2)
        )
    weights = scores(query, key, lambda q, k: KERNELS[kernel](math.dist(q, k), width))
    for row in np.ndindex(weights.shape[:-1]):
        total = math.fsum(weights[row])
        if total > 0:
            weights[row] = weights[row] / total
    return weighted_sum(weights, value), weights


def trigram_similarity(first, second, vocabulary_texts):
    """Return the cosine of two texts' counts of the letter 3-grams that the vocabulary has."""

    def grams(text):
        padded = " " + text.lower() + " "
        return [a + b + c for a, b, c in zip(padded, padded[1:], padded[2:], strict=False)]

    vocabulary = sorted({gram for text in vocabulary_texts for gram in grams(text)})
    counts = [[float(grams(text).count(gram)) for gram in vocabulary] for text in (first, second)]
    return cosine(*counts) if vocabulary else 0.0


# Positions


def sinusoidal_positions(n, dim, base):
    """Return the table of waves as lists."""
    wave = (math.sin, math.cos)
    return [[wave[j % 2](t / base ** (2 * (j // 2) / dim)) for j in range(dim)] for t in range(n)]


def rotary(rows, start, base):
    """Turn each pair of each row, as a multiplication of complex numbers."""
    turned = []
    for t, row in enumerate(rows, start):
        pairs = [
            complex(row[j], row[j + 1]) * cmath.exp(1j * t / base ** (j / len(row)))
            for j in range(0, len(row), 2)
        ]
        turned.append([part for pair in pairs for part in (pair.real, pair.imag)])
    return turned
