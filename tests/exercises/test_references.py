"""What the exercises call right is right: every reference, against plain loops."""

import cmath
import math
import statistics

import numpy as np
import oracles
import pytest
from answers import EXERCISES, on

from d2lmini import TrigramEncoder
from d2lmini.exercises import find
from d2lmini.exercises.grading import outcomes_of


def attend(query, key, value, **options):
    return oracles.attention(query, key, value, **options)[0]


dot = oracles.dot_product


def matmul(x, w):
    rows = np.empty((*x.shape[:-1], w.shape[1]))
    for at in np.ndindex(rows.shape):
        rows[at] = dot(x[at[:-1]], w[:, at[-1]])
    return rows


def self_attention(x, w_q, w_k, w_v, **options):
    return attend(matmul(x, w_q), matmul(x, w_k), matmul(x, w_v), **options)


def one_hot(scores):
    result = np.zeros(scores.shape)
    for i, row in enumerate(scores.tolist()):
        result[i, row.index(max(row))] = 1
    return result


def trigram_vectors(texts, vocabulary):
    rows = []
    for text in texts:
        padded = f" {text.lower()} "
        counts = [sum(padded[i : i + 3] == gram for i in range(len(padded))) for gram in vocabulary]
        length = math.hypot(*counts) or 1
        rows.append([count / length for count in counts])
    return rows


def with_nobody(scores, values, nobody, temperature):
    rows = []
    for row in scores.tolist():
        weights = oracles.softmax([a / temperature for a in [*row, nobody]])
        rows.append([dot(weights, [*column, 0.0]) for column in values.T])
    return rows


def ask_or_nobody(query, key, value, least):
    rows = []
    for one in query.tolist():
        scores = []
        for other in key.tolist():
            lengths = math.hypot(*one) * math.hypot(*other)
            scores.append(dot(one, other) / lengths)
        e = [math.exp(score / 0.1) for score in scores]
        mixed = [dot(e, column) / math.fsum(e) for column in value.T.tolist()]
        rows.append(mixed if max(scores) >= least - 1e-12 else [0.0] * len(mixed))
    return rows


def change_without(query, key, value):
    def output(kept):
        rows = attend(query[None] * key.shape[1] ** 0.5, key[kept], value[kept])
        return rows[0]

    everyone = list(range(len(key)))
    whole = output(everyone)
    return [math.dist(whole, output([j for j in everyone if j != i])) for i in everyone]


def values_used(weights):
    return [math.exp(-sum(w * math.log(w) for w in row if w > 0)) for row in weights.tolist()]


def click_gradient(scores, clicked, temperature):
    """Measure the slopes with small steps."""

    def loss(scores):
        z = (scores / temperature).tolist()
        return max(z) + math.log(sum(math.exp(x - max(z)) for x in z)) - z[clicked]

    return slopes(loss, scores, 1e-6)


def slopes(f, x, step):
    result = []
    for i in range(len(x)):
        moved = np.zeros(len(x))
        moved[i] = step
        result.append((f(x + moved) - f(x - moved)) / (2 * step))
    return np.array(result)


def weighted_average(weights, values):
    return oracles.weighted_sum(
        np.array([[w / math.fsum(row) for w in row] for row in weights.tolist()]), values
    )


def kernel_regression(query, key, value, width):
    return attend(query, key, value, score=lambda q, k: oracles.gaussian(q, k, width))


def output_gradient(query, key, value):
    def output(query):
        return attend(query[None], key, value, score=oracles.dot_product)[0]

    return slopes(output, query, 1e-6).T


def leave_one_out_error(x, y, width):
    errors = []
    for i in range(len(x)):
        others = [j for j in range(len(x)) if j != i]
        scores = [oracles.gaussian([x[i]], [x[j]], width) for j in others]
        weights = oracles.softmax(scores)
        errors.append(sum(w * y[j] for w, j in zip(weights, others, strict=True)) - y[i])
    return math.sqrt(math.fsum(e**2 for e in errors) / len(errors))


def additive_score(query, key, w_q, w_k, w_v):
    return oracles.scores(query, key, lambda q, k: oracles.additive(q, k, w_q, w_k, w_v))


def attend_to_others(x):
    rows = []
    for i, row in enumerate(x):
        others = [j for j in range(len(x)) if j != i]
        rows.append(attend(row[None], x[others], x[others])[0] if others else 0 * row)
    return rows


def moved_tokens(x, w_q, w_k, w_v, steps):
    for _ in range(steps):
        x = np.array(x) + np.array(self_attention(np.array(x), w_q, w_k, w_v))
    return x


def softmax(scores):
    rows = []
    for row in scores.tolist():
        powers = [2.0 ** (a - max(row)) for a in row]
        rows.append([power / math.fsum(powers) for power in powers])
    return rows


def attention(query, key, value, bias):
    rows = []
    for q, own in zip(query.tolist(), bias.tolist(), strict=True):
        scores = [dot(q, k) / math.sqrt(len(q)) for k in key.tolist()]
        weights = oracles.softmax([a + b for a, b in zip(scores, own, strict=True)])
        rows.append([dot(weights, c) for c in value.T])
    return rows


def count_parameters(d_model, d_k, d_v):
    """Count the entries of a matrix of rank d_k that the others follow from, and those of W_V."""
    free = sum(min(i, j) < d_k for i in range(d_model) for j in range(d_model))
    if d_model < 9:  # as many as there are directions in which both products can move
        draw = np.random.default_rng(0)
        w_q, w_k = draw.normal(size=(2, d_model, d_k))
        steps = np.eye(w_q.size).reshape(-1, d_model, d_k)
        moves = [*(step @ w_k.T for step in steps), *(w_q @ step.T for step in steps)]
        assert np.linalg.matrix_rank(np.reshape(moves, (len(moves), -1))) == free
    return free + d_model * d_v


def packed_self_attention(x, text, w_q, w_k, w_v):
    mask = [[a == b for b in text.tolist()] for a in text.tolist()]
    return self_attention(x, w_q, w_k, w_v, mask=np.array(mask))


def split_heads(x, num_heads):
    d = x.shape[1] // (3 * num_heads)
    return [
        [
            [[row[(part * num_heads + i) * d + c] for c in range(d)] for row in x.tolist()]
            for i in range(num_heads)
        ]
        for part in range(3)
    ]


def keep_heads(w_q, w_o, num_heads, kept):
    d_k, d_v = w_q.shape[1] // num_heads, len(w_o) // num_heads
    columns = [[row[i * d_k + c] for i in kept for c in range(d_k)] for row in w_q.tolist()]
    return columns, [w_o[i * d_v + c].tolist() for i in kept for c in range(d_v)]


def share_heads(x, num_heads):
    group = num_heads // x.shape[1]
    return np.stack([x[:, i // group] for i in range(num_heads)], axis=1)


def decode_step(query, key, value, cached_key, cached_value):
    keys = [*cached_key.tolist(), *key.tolist()]
    values = [*cached_value.tolist(), *value.tolist()]
    return attend(query, np.array(keys), np.array(values)), keys, values


def multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, **options):
    d_k, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    heads = [
        self_attention(
            x,
            w_q[:, i * d_k : (i + 1) * d_k],
            w_k[:, i * d_k : (i + 1) * d_k],
            w_v[:, i * d_v : (i + 1) * d_v],
            **options,
        )
        for i in range(num_heads)
    ]
    return matmul(np.concatenate(heads, axis=1), w_o)


def grouped_attention(x, w_q, w_k, w_v, w_o, num_heads, num_kv_heads):
    def columns(d):  # of the key-value head that each query head uses
        group = num_heads // num_kv_heads
        return [i // group * d + c for i in range(num_heads) for c in range(d)]

    of_k, of_v = columns(w_q.shape[1] // num_heads), columns(len(w_o) // num_heads)
    return multi_head_attention(x, w_q, w_k[:, of_k], w_v[:, of_v], w_o, num_heads)


def padded_attention(query, key, value, lengths):
    return [
        attend(query[b], key[b, :length], value[b, :length])
        for b, length in enumerate(lengths.tolist())
    ]


def window_mask(num_queries, num_keys, window):
    rows = []
    for i in range(num_queries):
        here = i + num_keys - num_queries
        rows.append([here - window < j <= here for j in range(num_keys)])
    return rows


def dropped_attention(query, key, value, kept, training):
    weights = oracles.attention(query, key, value)[1]
    used = weights.copy()
    if training:
        for at in np.ndindex(weights.shape):
            used[at] = 2 * weights[at] if kept[at] else 0
    return matmul(used, value), weights


def module_weights(*shapes):
    """Draw the weights as the checker does, in the order of the parameters; as x @ w wants them."""
    rng = np.random.default_rng(0)
    return [(rng.integers(-2, 3, (d_out, d_in)) / 2).T for d_in, d_out in shapes]


def OneHead(d_model, d_k, d_v, x):
    sizes = (d_model, d_k), (d_model, d_k), (d_model, d_v)
    return self_attention(x.astype(float), *module_weights(*sizes))


def head_importance(x, w_q, w_k, w_v, w_o, num_heads):
    d_v = len(w_o) // num_heads
    lengths = []
    for i in range(num_heads):
        of_head = np.array(w_o, dtype=float)
        of_head[: i * d_v] = of_head[(i + 1) * d_v :] = 0  # the output is a sum over heads
        rows = np.array(multi_head_attention(x, w_q, w_k, w_v, of_head, num_heads)).tolist()
        lengths.append(math.fsum(math.hypot(*row) for row in rows) / len(rows))
    return lengths


def CausalHeads(embed_dim, num_heads, x):
    weights = module_weights(*[(embed_dim, embed_dim)] * 4)
    n = x.shape[1]
    mask = oracles.mask_of(lambda i, j: oracles.causal(i, j, n, n), n, n)
    return [multi_head_attention(item, *weights, num_heads, mask=mask) for item in x.astype(float)]


def who_told(parts, query, place):
    leads = []
    for part in parts.tolist():
        scores = [dot(key, query.tolist()) / len(query) ** 0.5 for key in part]
        own = scores.pop(place)
        leads.append(own - math.fsum(scores) / len(scores))
    return leads


def logit_lens(states, gain, embedding):
    rows = []
    for state in states.tolist():
        size = math.sqrt(math.fsum(x * x for x in state) / len(state))
        read = [x / size * g for x, g in zip(state, gain.tolist(), strict=True)]
        scores = [dot(read, word) for word in embedding.tolist()]
        rows.append(oracles.softmax(scores))
    return rows


def share_of_first(weights, value):
    shares = []
    for head, vectors in zip(weights.tolist(), value.tolist(), strict=True):
        handed = [w * math.hypot(*v) for w, v in zip(head[-1], vectors, strict=True)]
        shares.append(handed[0] / math.fsum(handed))
    return shares


def fair_control(loudness, taken):
    used, chosen = [tuple(head) for head in taken.tolist()], []
    for layer, head in taken.tolist():
        nearest = None
        for at in np.ndindex(loudness.shape):
            gap = abs(loudness[at] - loudness[layer, head])
            if at not in used and (nearest is None or gap < nearest[0]):
                nearest = gap, at
        used.append(nearest[1])
        chosen.append(nearest[1])
    return chosen


def cache_bytes(tokens, layers, kv_heads, head_width, bytes_per_number):
    return sum(
        kv_heads * head_width * bytes_per_number
        for _ in range(tokens)
        for _ in range(layers)
        for _ in ("key", "value")
    )


def merge_outputs(output, log_total, other, other_log_total):
    merged, logs = [], []
    for o1, (l1,), o2, (l2,) in zip(
        *(x.tolist() for x in (output, log_total, other, other_log_total)), strict=True
    ):
        largest = max(l1, l2)
        logs.append([largest + math.log(math.exp(l1 - largest) + math.exp(l2 - largest))])
        shares = math.exp(l1 - logs[-1][0]), math.exp(l2 - logs[-1][0])
        merged.append([shares[0] * a + shares[1] * b for a, b in zip(o1, o2, strict=True)])
    return merged, logs


def keep_window(cached_key, cached_value, key, value, window, sinks):
    width = key.shape[1], value.shape[1]
    both = [*cached_key.tolist(), *key.tolist()], [*cached_value.tolist(), *value.tolist()]
    while len(both[0]) > window + sinks:
        for kept in both:
            del kept[sinks]
    return [np.array(kept).reshape(-1, w) for kept, w in zip(both, width, strict=True)]


def tiled_attention(query, key, value, block_size):
    n = len(query)
    tiles = {(i // block_size, j // block_size) for i in range(n) for j in range(i + 1)}
    return attend(query, key, value, is_causal=True), len(tiles)


def linear_attention(query, key, value):
    def features(x):
        return [a + 1 if a > 0 else math.exp(a) for a in x.tolist()]

    output = []
    for t in range(len(query)):
        weights = [dot(features(query[t]), features(k)) for k in key[: t + 1]]
        output.append(
            [dot(weights, column) / math.fsum(weights) for column in value[: t + 1].T.tolist()]
        )
    return output


def later_positions(waves, steps):
    rows = []
    for row in waves.tolist():
        moved = []
        for i in range(len(row) // 2):
            z = complex(row[2 * i + 1], row[2 * i])  # cosine and sine: a point on a circle
            z *= cmath.exp(1j * steps / 10_000 ** (2 * i / len(row)))
            moved += [z.imag, z.real]
        rows.append(moved)
    return rows


def rotary(x, start, base):
    """Put pairs side by side, rotate them there, and put them back."""
    d = x.shape[1]
    order = [i // 2 + (i % 2) * (d // 2) for i in range(d)]
    side_by_side = [[row[at] for at in order] for row in x.tolist()]
    rotated = np.array(oracles.rotary(side_by_side, start, base))
    found = np.empty(x.shape)
    for i, at in enumerate(order):
        found[:, at] = rotated[:, i]
    return found


def normalised(rows, weight, bias):
    """Bring each row to mean 0 and variance 1, then stretch and shift it."""
    found = []
    for row in np.array(rows).tolist():
        mean = math.fsum(row) / len(row)
        variance = math.fsum((v - mean) ** 2 for v in row) / len(row)
        scaled = [(v - mean) / math.sqrt(variance + 1e-5) for v in row]
        found.append([v * w + b for v, w, b in zip(scaled, weight, bias, strict=True)])
    return np.array(found)


def ParallelBlock(d_model, num_heads, d_hidden, x):
    """Follow one token after the other, with the weights that the checker draws in this order."""
    draw = np.random.default_rng(0)
    square, (wide, narrow) = (d_model, d_model), ((d_hidden, d_model), (d_model, d_hidden))
    shapes = [*[(d_model,)] * 2, *[square] * 4, wide, (d_hidden,), narrow, (d_model,)]
    drawn = [draw.integers(-2, 3, shape) / 2 for shape in shapes]
    (gain, bias), heads, (widen, b_w, narrow, b_n) = drawn[:2], drawn[2:6], drawn[6:]
    found = []
    for item in x.astype(float):
        h = normalised(item, gain, bias)
        collected = [  # the last row of what is seen so far: causal
            np.array(multi_head_attention(h[: t + 1], *[w.T for w in heads], num_heads))[-1]
            for t in range(len(item))
        ]
        hidden = np.maximum(h @ widen.T + b_w, 0)
        found.append(item + np.array(collected) + hidden @ narrow.T + b_n)
    return found


def cross_attention(x, y, w_q, w_k, w_v, lengths):
    return [
        oracles.attention(a @ w_q, b[:length] @ w_k, b[:length] @ w_v)[0]
        for a, b, length in zip(x, y, lengths, strict=True)
    ]


def lookup_score(weights, tokens):
    last, found = {}, []
    for i, token in enumerate(tokens.tolist()):
        if token in last:
            found.append(weights[i, last[token] + 1])
        last[token] = i
    return math.fsum(found) / len(found)


def without_vowels(letters, lengths):
    rows = []
    for row, length in zip(letters.tolist(), lengths.tolist(), strict=True):
        name = "".join(chr(number + 97) for number in row[:length])
        left = name[:1] + "".join(c for c in name[1:] if c not in "aeiou")
        rows.append([ord(c) - 97 for c in left] + [-1] * (len(row) - len(left)))
    return rows


def mean_pool(states, lengths):
    rows = []
    for state, length in zip(states.tolist(), lengths.tolist(), strict=True):
        mean = [math.fsum(column) / length for column in zip(*state[:length], strict=True)]
        size = math.hypot(*mean)
        rows.append([x / size for x in mean] if length else [0.0] * len(state[0]))
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
    together = encode(names).tolist()
    reverse = encode(["".join(reversed(name)) for name in names]).tolist()
    for i, name in enumerate(names):
        (alone,) = encode([name]).tolist()
        length = abs(math.hypot(*together[i]) - 1)
        rows.append([math.dist(together[i], alone), math.dist(together[i], reverse[i]), length])
    return rows


def cosine_scores(query, key):
    return oracles.scores(query, key, oracles.cosine)


def causal_mask(n, m):
    return oracles.mask_of(lambda i, j: oracles.causal(i, j, n, m), n, m)


LOOPS = globals() | {
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


def test_the_vectors_are_those_of_the_encoder():
    texts = ["Alice Marlow", "anana", "Mimi"]
    encode = TrigramEncoder(texts)
    found = find("trigram_vectors").reference(["alise marlo", "Banana"], list(encode.vocabulary))
    np.testing.assert_allclose(found, encode(["alise marlo", "Banana"]))
