"""Chapter 6: positions, a Transformer block, cross-attention, induction."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import tables
from d2lmini.exercises.torch_modules import call_with_the_weights_of
from d2lmini.masks import padding_mask
from d2lmini.positions import rotary, sinusoidal_positions
from d2lmini.scores import scaled_dot_product_score
from d2lmini.weights import softmax

# Waves that move on


def _later(
    waves: Array,
    steps: int,
    sign: int = 1,
    exponent: Callable[[Array, int], Array] = lambda i, d: 2 * i / d,
    added: bool = False,
    halves: bool = False,
) -> Array:
    d = waves.shape[1]
    angle = sign * steps / 10_000.0 ** exponent(np.arange(d // 2), d)
    sine, cosine = np.split(waves, 2, axis=1) if halves else (waves[:, 0::2], waves[:, 1::2])
    if added:
        pair = sine + np.sin(angle), cosine + np.cos(angle)
    else:
        pair = (
            sine * np.cos(angle) + cosine * np.sin(angle),
            cosine * np.cos(angle) - sine * np.sin(angle),
        )
    return np.stack(pair, axis=2).reshape(waves.shape)


def _later_cases() -> list[Case]:
    def some(*positions: int, d: int) -> Array:
        return np.array(sinusoidal_positions(max(positions) + 1, d))[list(positions)]

    return [
        (some(1, d=2), 1),
        (some(0, 3, d=4), 2),
        (some(4, 1, 7, d=6), 5),
        (some(20, 3, d=4), 40),
        (some(2, 9, 5, 1, d=2), 3),
        (some(6, 0, d=4), 3000),
        (some(1, d=260), 7),
    ]


register(
    Exercise(
        name="later_positions",
        chapter=6,
        difficulty="easy",
        minutes=20,
        task="Move waves on by some steps without knowing where they are. Each row of waves (n, d) "
        "belongs to a position by formula (6.1), with base 10,000 and d even; which one, you are "
        "not told. Return (n, d), the rows of the positions that are `steps` further on.",
        returns={"waves": "(n, d)"},
        reference=_later,
        cases=_later_cases,
        mistakes=(
            Mistake(
                "backwards",
                "You moved back instead of on. Going on by s turns sin(t) into "
                "sin(t) cos(s) + cos(t) sin(s).",
                lambda waves, steps: _later(waves, steps, sign=-1),
            ),
            Mistake(
                "one-speed",
                "You moved all pairs by the same angle. Pair i moves by steps / 10,000**(2i/d).",
                lambda waves, steps: _later(waves, steps, exponent=lambda i, d: 0 * i),
            ),
            Mistake(
                "exponent-halved",
                "You let the angles shrink too slowly: the exponent is 2i/d for pair i.",
                lambda waves, steps: _later(waves, steps, exponent=lambda i, d: i / d),
            ),
            Mistake(
                "added",
                "You added the waves of `steps` to those you have. The sine of a sum is not the "
                "sum of the sines.",
                lambda waves, steps: _later(waves, steps, added=True),
            ),
            Mistake(
                "halves",
                "You took the first half of a row for the sines. They alternate: a sine, its "
                "cosine, the next sine.",
                lambda waves, steps: _later(waves, steps, halves=True),
                also=(
                    lambda waves, steps: np.concatenate(
                        [_later(waves, steps, halves=True)[:, i::2] for i in (0, 1)], axis=1
                    ),
                ),
            ),
            Mistake(
                "as-they-are",
                "You returned the waves as they are. They should move on.",
                lambda waves, steps: waves.copy(),
            ),
        ),
        hints=(
            "A pair is the hand of a clock. What do you do to a hand to move it on?",
            "sin(t + s) = sin t cos s + cos t sin s, and cos(t + s) = cos t cos s − sin t sin s.",
            "waves[:, 0::2] holds the sines and waves[:, 1::2] the cosines; the angles have shape "
            "(d/2,).",
        ),
        solution="""\
def later_positions(waves, steps):
    d = waves.shape[1]
    angle = steps / 10_000.0 ** (np.arange(0, d, 2) / d)  # (d/2,)
    sine, cosine = waves[:, 0::2], waves[:, 1::2]  # (n, d/2)
    result = np.empty(waves.shape)
    result[:, 0::2] = sine * np.cos(angle) + cosine * np.sin(angle)
    result[:, 1::2] = cosine * np.cos(angle) - sine * np.sin(angle)
    return result""",
    )
)


# Rotary positions in the other layout


def _rotated(
    x: Array,
    start: int,
    base: float,
    exponent: Callable[[Array, int], Array] = lambda i, d: 2 * i / d,
    sign: int = 1,
    first: int = 0,
) -> Array:
    n, d = x.shape
    t = np.arange(n)[:, None] + start + first
    angle = sign * t / base ** exponent(np.arange(d // 2), d)
    a, b = x[:, : d // 2], x[:, d // 2 :]
    pair = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
    return np.concatenate(pair, axis=1)


def _one_after_the_other(x: Array, start: int, base: float) -> Array:
    half = x.shape[1] // 2
    angle = (np.arange(len(x))[:, None] + start) / base ** (2 * np.arange(half) / x.shape[1])
    a = x[:, :half] * np.cos(angle) - x[:, half:] * np.sin(angle)
    return np.concatenate([a, a * np.sin(angle) + x[:, half:] * np.cos(angle)], axis=1)


def _interleaved(x: Array, start: int, base: float) -> Array:
    return np.array(rotary(x, start=start, base=base))


def _rotary_cases() -> list[Case]:
    draw = np.random.default_rng(3)
    bases = 10_000.0, 100.0, 100_000.0, 10_000.0, 500_000.0, 10_000.0, 10_000.0
    sizes = [(1, 2, 1), (2, 2, 0), (3, 4, 2), (2, 6, 5), (1, 8, 900), (2, 4, 3000), (1, 260, 3)]
    return [
        (draw.integers(-9, 10, (n, d)) / 4, start, base)
        for (n, d, start), base in zip(sizes, bases, strict=True)
    ]


register(
    Exercise(
        name="rotary",
        chapter=6,
        difficulty="medium",
        minutes=20,
        task="Rotate queries or keys in the layout that pairs component i with component i + d/2. "
        "The rows of x (n, d) are at positions start, start + 1, …. At position t pair i, counted "
        "from 0, is rotated by the angle t / base**(2i/d): (a, b) becomes (a cos − b sin, "
        "a sin + b cos). Return (n, d).",
        returns={"rotated": "(n, d)"},
        reference=_rotated,
        cases=_rotary_cases,
        mistakes=(
            Mistake(
                "neighbours",
                "You paired neighbours, as the chapter does. Here the first half of the components "
                "is paired with the second half.",
                _interleaved,
                also=(
                    lambda *case: np.concatenate(
                        [_interleaved(*case)[:, i::2] for i in (0, 1)], axis=1
                    ),
                ),
            ),
            Mistake(
                "neighbours-out",
                "You took the pairs from the two halves and returned them side by side. Put the "
                "results back where their inputs came from.",
                lambda x, start, base: np.stack(
                    np.split(_rotated(x, start, base), 2, axis=1), axis=2
                ).reshape(x.shape),
            ),
            Mistake(
                "backwards",
                "You rotated the other way: the minus belongs to a cos − b sin.",
                lambda x, start, base: _rotated(x, start, base, sign=-1),
            ),
            Mistake(
                "start-ignored",
                "You rotated the first row as if it were at position 0. It is at start.",
                lambda x, start, base: _rotated(x, 0, base),
            ),
            Mistake(
                "from-one",
                "You put every row one position too far on: the first is at start itself.",
                lambda x, start, base: _rotated(x, start, base, first=1),
            ),
            Mistake(
                "one-position",
                "You put all rows at position start. Each row is one further than the row before.",
                lambda x, start, base: np.concatenate(
                    [_rotated(row[None], start, base) for row in x]
                ),
            ),
            Mistake(
                "turned-a",
                "You computed the second of a pair from the first that was already rotated. Keep "
                "the old one until both are done.",
                _one_after_the_other,
            ),
            Mistake(
                "exponent-halved",
                "You let the angles shrink too slowly: the exponent is 2i/d.",
                lambda x, start, base: _rotated(x, start, base, exponent=lambda i, d: i / d),
            ),
            Mistake(
                "fixed-base",
                "You used 10,000 as the base. Models differ in it, so it is an argument.",
                lambda x, start, base: _rotated(x, start, 10_000.0),
            ),
            Mistake(
                "one-speed",
                "You rotated all pairs by the same angle. That of pair i is divided by "
                "base**(2i/d).",
                lambda x, start, base: _rotated(x, start, base, exponent=lambda i, d: 0 * i),
            ),
        ),
        hints=(
            "With d = 2 the two layouts are the same. What changes with d = 4?",
            "The pairs are (x₀, x₂) and (x₁, x₃) for d = 4; the angles have shape (n, d/2).",
            "np.split cuts x into two halves along an axis, and np.concatenate joins the results.",
        ),
        solution="""\
def my_rotary(x, start, base):
    n, d = x.shape
    t = start + np.arange(n)[:, None]  # (n, 1)
    angle = t / base ** (np.arange(0, d, 2) / d)  # (n, d/2)
    a, b = np.split(x, 2, axis=1)  # the two halves
    first = a * np.cos(angle) - b * np.sin(angle)
    second = a * np.sin(angle) + b * np.cos(angle)
    return np.concatenate([first, second], axis=1)""",
    )
)


# Cross-attention


def _cross(
    x: Array, y: Array, w_q: Array, w_k: Array, w_v: Array, lengths: Array, **options: Any
) -> Array:
    mask = padding_mask(lengths, y.shape[1])
    return attention(x @ w_q, y @ w_k, y @ w_v, **{"mask": mask, **options}).output


def _cross_weighed(weigh: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """Return cross-attention whose weights are made of scores and of what may be seen."""

    def answer(x: Array, y: Array, w_q: Array, w_k: Array, w_v: Array, lengths: Array) -> Array:
        scores = scaled_dot_product_score(x @ w_q, y @ w_k)
        return weigh(scores, np.arange(y.shape[1]) < lengths[:, None, None]) @ (y @ w_v)

    return answer


def _shares(e: Array) -> Array:
    return e / e.sum(axis=-1, keepdims=True)


def _cross_filled(low: float) -> Callable[..., Array]:
    return _cross_weighed(lambda scores, sees: softmax(np.where(sees, scores, low)))


def _cross_lengths(change: Callable[[Array, int], Array]) -> Callable[..., Array]:
    """Return cross-attention that sees other numbers of tokens."""

    def answer(x: Array, y: Array, w_q: Array, w_k: Array, w_v: Array, lengths: Array) -> Array:
        return _cross(x, y, w_q, w_k, w_v, change(lengths, y.shape[1]))

    return answer


def _cross_cases() -> list[Case]:
    draw = np.random.default_rng(5)

    def numbers(*size: int) -> Array:
        return draw.integers(-997, 998, size) / 661

    cases: list[Case] = [
        (
            numbers(len(lengths), n, d_x),
            numbers(len(lengths), m, d_y),
            numbers(d_x, d_k),
            numbers(d_y, d_k),
            numbers(d_y, d_v),
            np.array(lengths),
        )
        for n, m, d_x, d_y, d_k, d_v, lengths in [
            (1, 2, 3, 1, 2, 4, [1]),
            (2, 3, 2, 4, 2, 1, [3, 1]),
            (4, 5, 1, 3, 5, 2, [2, 5, 1]),
            (1, 300, 1, 2, 2, 1, [290]),
        ]
    ]
    x = [[[100], [-100], [50]], [[0.5], [-80], [70]]]
    y = [[[-31], [-33], [5]], [[-40], [12], [-3]]]
    low = tables(x, y, [[10]], [[2]], [[1, 0.5]])  # scores far below 0, which count
    return [*cases, (*low, np.array([2, 1]))]


register(
    Exercise(
        name="cross_attention",
        chapter=6,
        difficulty="medium",
        minutes=15,
        task="Let the tokens of x (batch, n, d_x) attend to those of y (batch, m, d_y). w_q is "
        "(d_x, d_k), w_k (d_y, d_k), w_v (d_y, d_v). lengths (batch,) says how many tokens of "
        "each y are real, at least one; the rest is padding. Use attention and padding_mask of "
        "d2lmini. Return (batch, n, d_v).",
        returns={"output": "(batch, n, d_v)"},
        reference=_cross,
        cases=_cross_cases,
        mistakes=(
            Mistake(
                "no-mask",
                "You let the padding of y answer too. Hide it with padding_mask(lengths, m).",
                lambda *case: _cross(*case, mask=None),
            ),
            Mistake(
                "upside-down",
                "You hid the real tokens, so the mask is upside down. True means: may attend.",
                lambda *case: _cross(*case, mask=~padding_mask(case[-1], case[1].shape[1])),
            ),
            Mistake(
                "queries-masked",
                "You hid tokens of x. The lengths are those of y, whose tokens answer.",
                lambda *case: (
                    _cross(*case, mask=None)
                    * (np.arange(case[0].shape[1]) < case[-1][:, None])[..., None]
                ),
            ),
            Mistake(
                "values-not-projected",
                "You took y itself for the values. Multiply it by w_v.",
                lambda x, y, w_q, w_k, w_v, lengths: _cross(
                    x, y, w_q, w_k, np.eye(y.shape[-1]), lengths
                ),
            ),
            Mistake(
                "scaled-twice",
                "You divided by √d_k, and attention did so once more.",
                lambda x, y, w_q, w_k, w_v, lengths: _cross(
                    x, y, w_q / np.sqrt(w_q.shape[-1]), w_k, w_v, lengths
                ),
            ),
            Mistake(
                "one-too-many",
                "You let the first padded token answer too: the real ones are 0 to lengths[b] − 1.",
                _cross_lengths(lambda lengths, m: np.minimum(lengths + 1, m)),
            ),
            Mistake(
                "one-too-few",
                "You hid the last real token: the real ones are 0 to lengths[b] − 1.",
                _cross_lengths(lambda lengths, m: lengths - 1),
            ),
            Mistake(
                "one-length",
                "You used one length for all items. Each has its own.",
                _cross_lengths(lambda lengths, m: np.full_like(lengths, lengths[0])),
                also=(_cross_lengths(lambda lengths, m: np.full_like(lengths, lengths.max())),),
            ),
            Mistake(
                "padding-first",
                "You hid the beginning of y. The padding is at its end.",
                lambda *case: _cross(
                    *case, mask=padding_mask(case[-1], case[1].shape[1])[..., ::-1]
                ),
            ),
            Mistake(
                "after-softmax",
                "You took the weights of the padding away after the softmax, so the rows no longer "
                "sum to 1. Hide the scores before it.",
                _cross_weighed(lambda scores, sees: softmax(scores) * sees),
            ),
            Mistake(
                "what-is-left",
                "You let the padding into the softmax and divided what is left by its sum. Where "
                "the padding takes nearly all, 0 is divided by 0. Hide the scores before it.",
                _cross_weighed(lambda scores, sees: _shares(softmax(scores) * sees)),
            ),
            Mistake(
                "overflow",
                "Right for small scores. exp overflows for large ones: subtract the largest first.",
                _cross_weighed(lambda scores, sees: _shares(np.exp(scores) * sees)),
            ),
            Mistake(
                "score-zero",
                "You set the scores of the padding to 0, but exp(0) is 1. Hide them with −∞.",
                _cross_weighed(lambda scores, sees: softmax(scores * sees)),
            ),
            Mistake(
                "fill",
                "You put a large negative number in place of −∞. A score that is lower still loses "
                "against the padding.",
                _cross_filled(-1e4),
                also=(_cross_filled(-30.0), _cross_filled(-100.0), _cross_filled(-1e3)),
            ),
            Mistake(
                "no-scale",
                "You did not divide the scores by the root of d_k.",
                lambda x, y, w_q, w_k, w_v, lengths: _cross(
                    x, y, w_q * np.sqrt(w_q.shape[-1]), w_k, w_v, lengths
                ),
            ),
            Mistake(
                "sides-exchanged",
                "You let the tokens of y be the queries. Those of x are; y answers.",
                lambda x, y, w_q, w_k, w_v, lengths: _cross(y, x, w_q, w_k, w_v, lengths),
                also=(lambda x, y, *rest: _cross(y, x, *rest, mask=None),),
            ),
            Mistake(
                "keys-returned",
                "You mixed the keys. What is handed over are the values, y times w_v.",
                lambda x, y, w_q, w_k, w_v, lengths: _cross(x, y, w_q, w_k, w_k, lengths),
            ),
        ),
        hints=(
            "Who asks is multiplied by w_q; who answers by w_k and w_v.",
            "The mask has shape (batch, 1, m), where m is the number of tokens of y.",
            "attention(query, key, value, mask=…) returns output and weights.",
        ),
        solution="""\
def cross_attention(x, y, w_q, w_k, w_v, lengths):
    from d2lmini import attention, padding_mask

    mask = padding_mask(lengths, y.shape[1])  # (batch, 1, m)
    return attention(x @ w_q, y @ w_k, y @ w_v, mask=mask).output""",
    )
)


# A block with its two steps side by side


def _block(
    causal: bool = True,
    bends: bool = True,
    norms: tuple[bool, bool] = (True, True),
    in_turn: bool = False,
    times: int = 1,
    residual_normed: bool = False,
    bends_late: bool = False,
    itself: bool = True,
) -> Callable[[int, int, int], Any]:
    """Return what builds a block, right or with one slip."""

    def build(d_model: int, num_heads: int, d_hidden: int) -> Any:
        from d2lmini._torch import Tensor, nn, torch
        from d2lmini.multihead import MultiHeadAttention

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm = nn.LayerNorm(d_model)
                self.attend = MultiHeadAttention(d_model, num_heads)
                self.widen = nn.Linear(d_model, d_hidden)
                self.narrow = nn.Linear(d_hidden, d_model)

            def work(self, x: Tensor) -> Tensor:
                hidden = self.widen(x)
                narrow = self.narrow(hidden.relu() if bends else hidden)
                return narrow.relu() if bends_late else narrow

            def forward(self, x: Tensor) -> Tensor:
                one, other = (self.norm(x) if norm else x for norm in norms)
                mask = None if itself else torch.ones(x.shape[1], x.shape[1]).tril(-1) > 0
                collected = self.attend(one, causal=causal, mask=mask).output
                if in_turn:
                    middle = x + collected
                    return middle + self.work(self.norm(middle))
                kept = self.norm(x) if residual_normed else x
                return times * kept + collected + self.work(other)

        return Block()

    return build


def _block_cases() -> list[Case]:
    def x(*size: int) -> Array:
        return np.random.default_rng(6).normal(size=size).astype(np.float32)

    return [
        (2, 1, 3, x(1, 2, 2)),
        (4, 2, 5, x(2, 3, 4)),
        (6, 3, 1, 3 * x(1, 4, 6)),
        (32, 4, 3, x(1, 3, 32)),
    ]


_reference_block = _block()

register(
    Exercise(
        name="ParallelBlock",
        chapter=6,
        difficulty="hard",
        minutes=30,
        task="A causal Transformer block whose two steps read the same vectors. Its parts are norm "
        "(nn.LayerNorm), attend (MultiHeadAttention of d2lmini, without bias), widen and narrow "
        "(nn.Linear, d_model to d_hidden and back). forward(x) normalises once. Attention reads "
        "the result, and so does the feed-forward layer (widen, set negative numbers to 0, "
        "narrow). Both are added to what went in. x and the result have shape (batch, n, d_model).",
        returns={"output": "(batch, tokens, d_model)"},
        reference=_reference_block,
        cases=_block_cases,
        call=call_with_the_weights_of(_reference_block),
        needs_torch=True,
        mistakes=(
            Mistake("not-causal", "You let tokens see later ones.", _block(causal=False)),
            Mistake(
                "not-itself",
                "You hid each token from itself. It sees itself and those before it.",
                _block(itself=False),
            ),
            Mistake(
                "in-turn",
                "You let the feed-forward layer read what attention has added, as the chapter's "
                "block does. Here both steps read the same vectors.",
                _block(in_turn=True),
            ),
            Mistake(
                "added-twice",
                "You added the input twice, once for each step. It is there once.",
                _block(times=2),
            ),
            Mistake(
                "not-added",
                "You left the residual connection out, so a token loses what it was.",
                _block(times=0),
            ),
            Mistake(
                "work-not-normed",
                "You gave the feed-forward layer the vectors as they came. It reads the normalised "
                "ones.",
                _block(norms=(True, False)),
            ),
            Mistake(
                "attention-not-normed",
                "You gave attention the vectors as they came. It reads the normalised ones.",
                _block(norms=(False, True)),
            ),
            Mistake(
                "added-normed",
                "You added the steps to the normalised vectors. They are added to what went in.",
                _block(residual_normed=True),
            ),
            Mistake(
                "bent-late",
                "You set negative numbers to 0 after narrow. It comes between widen and narrow.",
                _block(bends=False, bends_late=True),
            ),
            Mistake(
                "not-bent",
                "You kept the negative numbers between widen and narrow, so the two matrices are "
                "one.",
                _block(bends=False),
            ),
        ),
        hints=(
            "The result is a sum. How many terms does it have?",
            "With h = norm(x), the result is x + attend(h) + narrow(relu(widen(h))).",
            "MultiHeadAttention returns output and weights, and takes causal=True.",
        ),
        solution="""\
from torch import nn

from d2lmini import MultiHeadAttention


class ParallelBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.attend = MultiHeadAttention(d_model, num_heads)
        self.widen = nn.Linear(d_model, d_hidden)
        self.narrow = nn.Linear(d_hidden, d_model)

    def forward(self, x):
        h = self.norm(x)
        collected = self.attend(h, causal=True).output
        return x + collected + self.narrow(self.widen(h).relu())""",
    )
)


# Induction


def _induction(
    weights: Array,
    tokens: Array,
    which: Callable[[list[int]], int] = max,
    step: int = 1,
    turned: bool = False,
    over_all: bool = False,
) -> Array:
    found = []
    for i, token in enumerate(tokens):
        before = [j for j in range(i) if tokens[j] == token]
        if before:
            at = which(before) + step
            found.append(weights[at, i] if turned else weights[i, at])
    return np.sum(found) / (len(tokens) if over_all else len(found))


def _every_time(weights: Array, tokens: Array, apart: bool = False) -> list[Any]:
    """Return the weight on what followed each earlier occurrence, of each token apart if asked."""
    found = [
        [weights[i, j + 1] for j in range(i) if tokens[j] == tokens[i]] for i in range(len(tokens))
    ]
    return [w for w in found if w] if apart else [w for one in found for w in one]


def _apart(weights: Array, tokens: Array, mean: Callable[[list[float]], float]) -> float:
    """Leave out what stands right behind its earlier occurrence."""
    found = []
    for i, token in enumerate(tokens):
        before = [j for j in range(i) if tokens[j] == token]
        if before and before[-1] + 1 < i:
            found.append(float(weights[i, before[-1] + 1]))
    return mean(found)


def _induction_cases() -> list[Case]:
    draw = np.random.default_rng(2)
    texts = [[4, 4], [1, 2, 1], [3, 1, 3, 2, 3], [2, 5, 7, 2, 5, 5, 9], [6, 1, 2, 3, 4, 5, 8, 6, 0]]
    texts.append([2048, 2049, 0, 2048, 50256, 256, 0, 65792, 256, 2049])  # as in a large vocabulary
    return [(np.tril(draw.dirichlet(np.ones(len(t)), len(t))), np.array(t)) for t in texts]


register(
    Exercise(
        name="lookup_score",
        chapter=6,
        difficulty="medium",
        minutes=20,
        task="Measure whether a head is an induction head. weights (n, n) are those of one causal "
        "head on tokens (n,), whole numbers of which at least one is repeated. For each token that "
        "has occurred before, take the weight that it gives to the token right after its most "
        "recent earlier occurrence; of two equal neighbours that is the second itself. Return the "
        "mean of these weights, one number.",
        returns={"score": "()"},
        reference=_induction,
        cases=_induction_cases,
        mistakes=(
            Mistake(
                "same-token",
                "You looked at the earlier occurrence itself. An induction head looks at the token "
                "after it.",
                lambda weights, tokens: _induction(weights, tokens, step=0),
            ),
            Mistake(
                "neighbours-skipped",
                "You left out tokens that stand right behind their earlier occurrence. What comes "
                "after that is the token itself, and its weight counts.",
                lambda weights, tokens: _apart(weights, tokens, lambda x: float(np.mean(x))),
                also=(lambda weights, tokens: _apart(weights, tokens, lambda x: sum(x) / len(x)),),
            ),
            Mistake(
                "first-time",
                "You used the first earlier occurrence of the token. Use the most recent one.",
                lambda weights, tokens: _induction(weights, tokens, which=min),
            ),
            Mistake(
                "transposed",
                "You read weights[j, i]. What token i gives to token j is weights[i, j].",
                lambda weights, tokens: _induction(weights, tokens, turned=True),
            ),
            Mistake(
                "token-before",
                "You looked at the token before the earlier occurrence. An induction head looks "
                "at the one after it.",
                lambda weights, tokens: _induction(weights, tokens, step=-1),
            ),
            Mistake(
                "every-time",
                "You used every earlier occurrence of the token. Use the most recent one alone.",
                lambda weights, tokens: np.mean(_every_time(weights, tokens)),
                also=(
                    lambda weights, tokens: np.mean(
                        [sum(w) for w in _every_time(weights, tokens, apart=True)]
                    ),
                    lambda weights, tokens: np.mean(
                        [np.mean(w) for w in _every_time(weights, tokens, apart=True)]
                    ),
                ),
            ),
            Mistake(
                "summed",
                "You added the weights. Return their mean.",
                lambda weights, tokens: (
                    _induction(weights, tokens) * len(_every_time(weights, tokens, apart=True))
                ),
            ),
            Mistake(
                "over-all",
                "You divided by the number of all tokens. The mean is over those that have "
                "occurred before.",
                lambda weights, tokens: _induction(weights, tokens, over_all=True),
            ),
        ),
        hints=(
            "For tokens 3 1 3 2 3, the last 3 looks for what followed the 3 in the middle.",
            "For each i, find the largest j < i with tokens[j] == tokens[i]. Which column of row i "
            "belongs to the token after that one? If i follows at once, it is i itself.",
            "Two plain loops will do. If no j is found, token i does not count.",
        ),
        solution="""\
def lookup_score(weights, tokens):
    found = []
    for i in range(len(tokens)):
        for j in reversed(range(i)):
            if tokens[j] == tokens[i]:
                found.append(weights[i, j + 1])
                break
    return np.mean(found)""",
    )
)
