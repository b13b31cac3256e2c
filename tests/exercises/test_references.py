"""What the exercises call right is right: every reference, against plain loops."""

import cmath
import math
import statistics

import numpy as np
import oracles
import pytest
from answers import EXERCISES, on

from d2lmini.exercises.grading import outcomes_of


def attend(query, key, value, **options):
    return oracles.attention(query, key, value, **options)[0]


def mask(rule, n, m, *options):
    return oracles.mask_of(lambda i, j: rule(i, j, n, m, *options), n, m)


dot = oracles.dot_product


def matmul(x, w):
    rows = [[dot(row, column) for column in w.T] for row in np.reshape(x, (-1, len(w)))]
    return np.reshape(rows, (*np.shape(x)[:-1], w.shape[1]))


def self_attention(x, w_q, w_k, w_v, **options):
    return attend(matmul(x, w_q), matmul(x, w_k), matmul(x, w_v), **options)


def trigram_vectors(texts, vocabulary):
    rows = []
    for text in texts:
        padded = f" {text.lower()} "
        counts = [sum(padded[i : i + 3] == gram for i in range(len(padded))) for gram in vocabulary]
        length = math.hypot(*counts) or 1
        rows.append([count / length for count in counts])
    return rows


def ask_or_nobody(query, key, value, least):
    rows = []
    for q in query.tolist():
        scores = [oracles.cosine(q, k) for k in key.tolist()]
        weights = oracles.softmax([score / 0.1 for score in scores])
        asked = max(scores) >= least - 1e-12
        rows.append([dot(weights, column) if asked else 0.0 for column in value.T])
    return rows


def slopes(f, x, step=1e-6):
    """Measure the slopes of f with small steps."""
    moves = step * np.eye(len(x))
    return np.array([(f(x + move) - f(x - move)) / (2 * step) for move in moves])


def leave_one_out_error(x, y, width):
    errors = []
    for i, at in enumerate(x):
        scores = [oracles.gaussian([at], [other], width) for other in x]
        weights = oracles.softmax(scores, [j != i for j in range(len(x))])
        errors.append(dot(weights, y) - y[i])
    return math.sqrt(math.fsum(e**2 for e in errors) / len(errors))


def moved_tokens(x, w_q, w_k, w_v, steps):
    for _ in range(steps):
        x = np.array(x) + np.array(self_attention(np.array(x), w_q, w_k, w_v))
    return x


def attention(query, key, value, bias):
    table = [
        [a + b for a, b in zip(*rows, strict=True)]
        for rows in zip(oracles.scores(query, key), bias, strict=True)
    ]
    return oracles.weighted_sum(oracles.masked_softmax(table), value)


def split_heads(x, num_heads):
    d = x.shape[1] // (3 * num_heads)
    parts = [[(part * num_heads + i) * d for i in range(num_heads)] for part in range(3)]
    return [[[row[at : at + d] for row in x.tolist()] for at in starts] for starts in parts]


def keep_heads(w_q, w_o, num_heads, kept):
    d_k, d_v = w_q.shape[1] // num_heads, len(w_o) // num_heads
    columns = [[row[i * d_k + c] for i in kept for c in range(d_k)] for row in w_q.tolist()]
    return columns, [w_o[i * d_v + c].tolist() for i in kept for c in range(d_v)]


def decode_step(query, key, value, cached_key, cached_value):
    keys, values = [*cached_key, *key], [*cached_value, *value]
    return attend(query, np.array(keys), np.array(values)), keys, values


def multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, **options):
    parts = zip(*(np.split(w, num_heads, axis=1) for w in (w_q, w_k, w_v)), strict=True)
    return matmul(np.hstack([self_attention(x, *part, **options) for part in parts]), w_o)


def grouped_attention(x, w_q, w_k, w_v, w_o, num_heads, num_kv_heads):
    def columns(d):  # of the key-value head that each query head uses
        group = num_heads // num_kv_heads
        return [i // group * d + c for i in range(num_heads) for c in range(d)]

    of_k, of_v = columns(w_q.shape[1] // num_heads), columns(len(w_o) // num_heads)
    return multi_head_attention(x, w_q, w_k[:, of_k], w_v[:, of_v], w_o, num_heads)


def dropped_attention(query, key, value, kept, training):
    weights = oracles.attention(query, key, value)[1]
    used = [
        [2 * w * k for w, k in zip(*rows, strict=True)] for rows in zip(weights, kept, strict=True)
    ]
    return matmul(np.array(used) if training else weights, value), weights


def module_weights(*shapes):
    """Draw the weights as the checker does, in the order of the parameters; as x @ w wants them."""
    rng = np.random.default_rng(0)
    return [(rng.integers(-2, 3, shape) / 2).T for shape in shapes]


def head_importance(x, w_q, w_k, w_v, w_o, num_heads):
    moves = []
    for i in range(num_heads):  # the output is a sum over heads
        of_head = np.repeat([[j == i] for j in range(num_heads)], len(w_o) // num_heads, axis=0)
        rows = multi_head_attention(x, w_q, w_k, w_v, w_o * of_head, num_heads)
        moves.append(math.fsum(math.hypot(*row) for row in rows) / len(rows))
    return moves


def who_told(parts, query, place):
    leads = []
    for part in parts:
        scores = [dot(key, query) / len(query) ** 0.5 for key in part]
        leads.append(scores.pop(place) - statistics.fmean(scores))
    return leads


def share_of_first(weights, value):
    handed = [
        [w * math.hypot(*v) for w, v in zip(head[-1], vectors, strict=True)]
        for head, vectors in zip(weights, value, strict=True)
    ]
    return [head[0] / math.fsum(head) for head in handed]


def fair_control(loudness, taken):
    chosen = []
    for head in map(tuple, taken.tolist()):
        left = {*np.ndindex(loudness.shape)} - {*map(tuple, taken.tolist()), *chosen}
        chosen.append(min(sorted(left), key=lambda at: abs(loudness[at] - loudness[head])))
    return chosen


def merge_outputs(output, log_total, other, other_log_total):
    rows = zip(output, log_total[:, 0], other, other_log_total[:, 0], strict=True)
    merged, logs = [], []
    for one, log_one, two, log_two in rows:
        logs.append([max(log_one, log_two) + math.log1p(math.exp(-abs(log_one - log_two)))])
        shares = [math.exp(log - logs[-1][0]) for log in (log_one, log_two)]
        merged.append([dot(shares, pair) for pair in zip(one, two, strict=True)])
    return merged, logs


def keep_window(cached_key, cached_value, key, value, window, sinks):
    found = []
    for cached, new in (cached_key, key), (cached_value, value):
        kept = [*cached, *new]
        while len(kept) > window + sinks:
            del kept[sinks]
        found.append(np.reshape(kept, (-1, new.shape[1])))
    return found


def linear_attention(query, key, value):
    def features(x):
        return [a + 1 if a > 0 else math.exp(a) for a in x]

    output = []
    for t, q in enumerate(query):
        weights = [dot(features(q), features(k)) for k in key[: t + 1]]
        output.append([dot(weights, column) / math.fsum(weights) for column in value[: t + 1].T])
    return output


def later_positions(waves, steps):
    rows = []
    for row in waves.tolist():
        rows.append([])
        for i in range(0, len(row), 2):
            z = complex(row[i + 1], row[i])  # cosine and sine: a point on a circle
            z *= cmath.exp(1j * steps / 10_000 ** (i / len(row)))
            rows[-1] += [z.imag, z.real]
    return rows


def rotary(x, start, base):
    """Put pairs side by side, rotate them there, and put them back."""
    d = x.shape[1]
    order = [i // 2 + (i % 2) * (d // 2) for i in range(d)]
    rotated = oracles.rotary(x[:, order].tolist(), start, base)
    return [[row[order.index(i)] for i in range(d)] for row in rotated]


def normalised(rows, weight, bias):
    """Bring each row to mean 0 and variance 1, then stretch and shift it."""
    found = []
    for row in rows.tolist():
        size = math.sqrt(statistics.pvariance(row) + 1e-5)
        scaled = [(v - statistics.fmean(row)) / size for v in row]
        found.append([v * w + b for v, w, b in zip(scaled, weight, bias, strict=True)])
    return np.array(found)


def ParallelBlock(d_model, num_heads, d_hidden, x):
    square, hidden = (d_model, d_model), [(d_hidden, d_model), (d_hidden,), (d_model, d_hidden)]
    shapes = [(d_model,)] * 2 + [square] * 4 + hidden + [(d_model,)]
    gain, bias, *heads, widen, b_w, narrow, b_n = module_weights(*shapes)
    found = []
    for item in x.astype(float):
        h = normalised(item, gain, bias)
        hidden = np.maximum(matmul(h, widen) + b_w, 0)
        heard = multi_head_attention(h, *heads, num_heads, is_causal=True)
        found.append(item + heard + matmul(hidden, narrow) + b_n)
    return found


def lookup_score(weights, tokens):
    last, found = {}, []
    for i, token in enumerate(tokens.tolist()):
        if token in last:
            found.append(weights[i, last[token] + 1])
        last[token] = i
    return statistics.fmean(found)


def without_vowels(letters, lengths):
    rows = []
    for row, length in zip(letters.tolist(), lengths.tolist(), strict=True):
        name = "".join(chr(number + 97) for number in row[:length])
        left = name[:1] + "".join(c for c in name[1:] if c not in "aeiou")
        rows.append([ord(c) - 97 for c in left] + [-1] * (len(row) - len(left)))
    return rows


def mean_pool(states, lengths):
    rows = []
    for state, length in zip(states, lengths, strict=True):
        mean = [math.fsum(column[:length]) for column in state.T]  # its length is made 1
        rows.append([x / math.hypot(*mean) if length else 0.0 for x in mean])
    return rows


def nobody_threshold(scores, inside, other_scores, other_inside):
    def wrong(t, scores, inside):
        return sum((x >= t) != bool(there) for x, there in zip(scores, inside, strict=True))

    best = min(scores.tolist(), key=lambda t: (wrong(t, scores, inside), t))
    return best, wrong(best, other_scores, other_inside) / len(other_scores)


def beyond_control(whole, without):
    rows = []
    for row in without.tolist():
        lost = [whole - found for found in row]
        rows.append([x - statistics.median(lost[:i] + lost[i + 1 :]) for i, x in enumerate(lost)])
    return rows


def invariants_measured(encode, names):
    rows = []
    together, reverse = encode(names), encode([name[::-1] for name in names])
    for name, own, backwards in zip(names, together, reverse, strict=True):
        length = abs(math.hypot(*own) - 1)
        rows.append([math.dist(own, encode([name])[0]), math.dist(own, backwards), length])
    return rows


LOOPS = globals() | {
    "one_hot": lambda a: [
        [j == row.index(max(row)) for j in range(len(row))] for row in a.tolist()
    ],
    "cosine_scores": lambda query, key: oracles.scores(query, key, oracles.cosine),
    "with_nobody": lambda scores, values, nobody, temperature: [
        [dot(w, [*column, 0.0]) for column in values.T]
        for w in (oracles.softmax([a / temperature for a in [*row, nobody]]) for row in scores)
    ],
    "weighted_average": lambda a, v: [[dot(w, c) / math.fsum(w) for c in v.T] for w in a],
    "softmax": lambda a: [oracles.softmax([math.log(2) * x for x in row]) for row in a],
    "values_used": lambda a: [math.exp(-sum(w * math.log(w) for w in row if w > 0)) for row in a],
    "kernel_regression": lambda query, key, value, width: attend(
        query, key, value, score=lambda q, k: oracles.gaussian(q, k, width)
    ),
    "additive_score": lambda query, key, *w: oracles.scores(
        query, key, lambda q, k: oracles.additive(q, k, *w)
    ),
    "attend_to_others": lambda x: attend(x, x, x, mask=~np.eye(len(x), dtype=bool)),
    "causal_mask": lambda n, m: mask(oracles.causal, n, m),
    "window_mask": lambda n, m, window: mask(oracles.sliding_window, n, m, window),
    "cache_bytes": lambda tokens, layers, *sizes: sum(
        math.prod(sizes) for _ in range(2 * tokens * layers)
    ),
    "change_without": lambda query, key, value: [
        math.dist(*attend([query] * 2, key, value, mask=[[True] * len(key), seen], score=dot))
        for seen in ~np.eye(len(key), dtype=bool)
    ],
    "click_gradient": lambda scores, clicked, temperature: slopes(
        lambda x: -math.log(oracles.softmax(list(x / temperature))[clicked]), scores
    ),
    "output_gradient": lambda query, key, value: (
        slopes(lambda query: attend(query[None], key, value, score=dot)[0], query).T
    ),
    # A matrix of rank d_k has this many entries that the others follow from.
    "count_parameters": lambda d_model, d_k, d_v: (
        d_model * d_v + sum(min(i, j) < d_k for i in range(d_model) for j in range(d_model))
    ),
    "packed_self_attention": lambda x, text, *w: self_attention(
        x, *w, mask=np.array([[a == b for b in text] for a in text])
    ),
    "share_heads": lambda x, heads: np.stack(
        [x[:, i // (heads // x.shape[1])] for i in range(heads)], axis=1
    ),
    "logit_lens": lambda states, gain, embedding: [
        oracles.softmax([dot(x * gain, w) / math.sqrt(dot(x, x) / len(x)) for w in embedding])
        for x in states
    ],
    "tiled_attention": lambda query, key, value, size: (
        attend(query, key, value, is_causal=True),
        len({(i // size, j // size) for i in range(len(query)) for j in range(i + 1)}),
    ),
    "padded_attention": lambda query, key, value, lengths: [
        attend(q, k[:n], v[:n]) for q, k, v, n in zip(query, key, value, lengths, strict=True)
    ],
    "cross_attention": lambda x, y, w_q, w_k, w_v, lengths: [
        attend(a @ w_q, b[:n] @ w_k, b[:n] @ w_v) for a, b, n in zip(x, y, lengths, strict=True)
    ],
    "OneHead": lambda d_model, d_k, d_v, x: self_attention(
        x, *module_weights((d_k, d_model), (d_k, d_model), (d_v, d_model))
    ),
    "CausalHeads": lambda d, heads, x: [
        multi_head_attention(item, *module_weights(*[(d, d)] * 4), heads, is_causal=True)
        for item in x
    ],
    "masked_softmax": oracles.masked_softmax,
    "project": lambda x, *stored: tuple(matmul(x, w.T) for w in stored),
    "previous_token": lambda n: [[j == max(i - 1, 0) for j in range(n)] for i in range(n)],
    "score_matrix": lambda w_q, w_k: matmul(w_q, w_k.T) / math.sqrt(w_q.shape[1]),
    "finds_no_fault": lambda name: name.startswith("a right one"),
}


@pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])
def test_a_reference_is_what_the_loops_give(exercise):
    assert exercise.name in LOOPS, "write its definition as loops, under its name"
    outcomes = outcomes_of(exercise, exercise.reference)
    for case, outcome in zip(exercise.cases(), outcomes, strict=True):
        expected = LOOPS[exercise.name](*case)
        parts = expected if len(exercise.returns) > 1 else (expected,)
        for found, right in zip(outcome.arrays, parts, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
