"""Chapter 6: positions, a Transformer block, cross-attention, induction."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.torch_modules import call_with_the_weights_of
from d2lmini.masks import padding_mask
from d2lmini.positions import rotary, sinusoidal_positions

# Waves


def _waves(num_positions: int, dim: int) -> Array:
    return sinusoidal_positions(num_positions, dim, like=np.zeros(0))


def _waves_slip(
    exponent: Callable[[Array, int], Array] = lambda j, dim: 2 * (j // 2) / dim,
    is_sine: Callable[[Array, int], Array] = lambda j, dim: j % 2 == 0,
    first: int = 0,
) -> Callable[[int, int], Array]:
    def table(num_positions: int, dim: int) -> Array:
        j = np.arange(dim)
        t = first + np.arange(num_positions)[:, None]
        angle = t / 10_000.0 ** exponent(j, dim)
        return np.where(is_sine(j, dim), np.sin(angle), np.cos(angle))

    return table


register(
    Exercise(
        name="sinusoidal_positions",
        chapter=6,
        difficulty="easy",
        minutes=15,
        task="A vector for each position from 0 on, by formula (6.1) with base 10,000. Component j "
        "is the sine (j even) or the cosine (j odd) of t / base**(2·(j // 2) / dim). dim may be "
        "odd. Return (num_positions, dim).",
        returns={"positions": "(positions, dim)"},
        reference=_waves,
        cases=lambda: [(2, 2), (1, 4), (3, 4), (4, 5), (3, 1), (60, 6)],
        mistakes=(
            Mistake(
                "swapped",
                "Sine and cosine have changed places: component 0 is a sine.",
                _waves_slip(is_sine=lambda j, dim: j % 2 == 1),
            ),
            Mistake(
                "own-speeds",
                "Each component has a speed of its own. The two of a pair share one: j // 2 counts "
                "the pairs.",
                _waves_slip(lambda j, dim: j / dim),
            ),
            Mistake(
                "twice-as-fast",
                "The waves slow down by twice too much: the exponent is 2i/d for pair i = j // 2, "
                "not 2j/d.",
                _waves_slip(lambda j, dim: 2 * j / dim),
            ),
            Mistake(
                "too-slowly",
                "The waves slow down by half too little: the exponent is 2i/d for pair i.",
                _waves_slip(lambda j, dim: (j // 2) / dim),
            ),
            Mistake(
                "from-one",
                "Positions are counted from 0, and yours from 1.",
                _waves_slip(first=1),
            ),
            Mistake(
                "in-halves",
                "All sines come first and all cosines after them. Here they take turns.",
                _waves_slip(
                    lambda j, dim: 2 * (j % ((dim + 1) // 2)) / dim,
                    lambda j, dim: j < (dim + 1) // 2,
                ),
            ),
        ),
        hints=(
            "Write the table for two positions and four components on paper first.",
            "The angle is one number for each position and component: a column of t divided by a "
            "row of base**(2·(j // 2) / dim).",
            "np.where chooses between two tables, here by whether j is even.",
        ),
        solution="""\
def my_sinusoidal_positions(num_positions, dim):
    t = np.arange(num_positions)[:, None]  # (num_positions, 1)
    j = np.arange(dim)  # (dim,)
    angle = t / 10_000.0 ** (2 * (j // 2) / dim)
    return np.where(j % 2 == 0, np.sin(angle), np.cos(angle))""",
    )
)


# Turns


def _turn_slip(
    exponent: Callable[[Array, int], Array] = lambda i, d: 2 * i / d,
    sign: int = 1,
    counts_start: bool = True,
    halves: bool = False,
    also_start: int = 0,
) -> Callable[[Array, int], Array]:
    def turned(x: Array, start: int) -> Array:
        n, d = x.shape
        t = np.arange(n)[:, None] + (start + also_start if counts_start else 0)
        angle = sign * t / 10_000.0 ** exponent(np.arange(d // 2), d)
        a, b = (x[:, : d // 2], x[:, d // 2 :]) if halves else (x[:, 0::2], x[:, 1::2])
        pair = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
        return np.concatenate(pair, axis=1) if halves else np.stack(pair, axis=2).reshape(n, d)

    return turned


def _turn_cases() -> list[Case]:
    draw = np.random.default_rng(3)
    sizes = [(1, 2, 1), (2, 2, 0), (3, 4, 2), (2, 6, 5), (1, 8, 900)]
    return [(draw.integers(-9, 10, (n, d)) / 4, start) for n, d, start in sizes]


register(
    Exercise(
        name="rotary",
        chapter=6,
        difficulty="medium",
        minutes=20,
        task="Turn each pair of neighbouring components of x (n, d). The rows stand at positions "
        "start, start + 1, …; pair i, counted from 0, at position t is turned by the angle "
        "t / 10,000**(2i/d): (a, b) becomes (a cos − b sin, a sin + b cos). Return (n, d).",
        returns={"turned": "(n, d)"},
        reference=lambda x, start: rotary(x, start=start),
        cases=_turn_cases,
        mistakes=(
            Mistake(
                "in-halves",
                "You paired component i with i + d/2, as some models do. Here neighbours are a "
                "pair: components 0 and 1, then 2 and 3.",
                _turn_slip(halves=True),
            ),
            Mistake(
                "backwards",
                "You turned the other way: the minus belongs to a cos − b sin.",
                _turn_slip(sign=-1),
            ),
            Mistake(
                "start-ignored",
                "The first row is turned as if it stood at position 0. It stands at start.",
                _turn_slip(counts_start=False),
            ),
            Mistake(
                "from-one",
                "Every row stands one place too far: the first is at start itself.",
                _turn_slip(also_start=1),
            ),
            Mistake(
                "exponent-halved",
                "The angles shrink too slowly: the exponent is 2i/d.",
                _turn_slip(lambda i, d: i / d),
            ),
            Mistake(
                "one-speed",
                "All pairs are turned by the same angle. Pair i is divided by 10,000**(2i/d).",
                _turn_slip(lambda i, d: 0 * i),
            ),
        ),
        hints=(
            "Begin with d = 2, where one pair is turned by t radians.",
            "x[:, 0::2] holds the first of each pair and x[:, 1::2] the second; the angles have "
            "shape (n, d/2).",
            "Make an array like x, of floats, and write what you get into its [:, 0::2] and "
            "[:, 1::2].",
        ),
        solution="""\
def my_rotary(x, start):
    n, d = x.shape
    t = start + np.arange(n)[:, None]  # (n, 1)
    angle = t / 10_000.0 ** (np.arange(0, d, 2) / d)  # (n, d/2)
    a, b = x[:, 0::2], x[:, 1::2]
    result = np.empty((n, d))
    result[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    result[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return result""",
    )
)


# Cross-attention


def _cross(
    x: Array, y: Array, w_q: Array, w_k: Array, w_v: Array, lengths: Array, **options: Any
) -> Array:
    mask = padding_mask(lengths, y.shape[1])
    return attention(x @ w_q, y @ w_k, y @ w_v, **{"mask": mask, **options}).output


def _cross_cases() -> list[Case]:
    draw = np.random.default_rng(5)

    def numbers(*size: int) -> Array:
        return draw.integers(-997, 998, size) / 661

    return [
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
        ]
    ]


register(
    Exercise(
        name="cross_attention",
        chapter=6,
        difficulty="medium",
        minutes=15,
        task="Let the tokens of x (batch, n, d_x) ask those of y (batch, m, d_y). w_q is (d_x, "
        "d_k), w_k (d_y, d_k), w_v (d_y, d_v). lengths (batch,) says how many tokens of each y "
        "are real; the rest is padding. Use attention and padding_mask of d2lmini. Return "
        "(batch, n, d_v).",
        returns={"output": "(batch, n, d_v)"},
        reference=_cross,
        cases=_cross_cases,
        mistakes=(
            Mistake(
                "no-mask",
                "The padding of y answers too. Hide it with padding_mask(lengths, m).",
                lambda *case: _cross(*case, mask=None),
            ),
            Mistake(
                "upside-down",
                "The mask is upside down: you hid the real tokens. True means: may attend.",
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
                "The values are y itself: multiply it by w_v.",
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


# A block


def _block(
    causal: bool = True,
    keeps: tuple[bool, bool] = (True, True),
    norms: tuple[bool, bool] = (True, True),
    after: bool = False,
    bends: bool = True,
    from_the_start: bool = False,
) -> Callable[[int, int, int], Any]:
    """Return what builds a block, right or with one slip."""

    def build(d_model: int, num_heads: int, d_hidden: int) -> Any:
        from d2lmini._torch import Tensor, nn
        from d2lmini.multihead import MultiHeadAttention

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
                self.attend = MultiHeadAttention(d_model, num_heads)
                self.widen = nn.Linear(d_model, d_hidden)
                self.narrow = nn.Linear(d_hidden, d_model)

            def work(self, x: Tensor) -> Tensor:
                hidden = self.widen(x)
                return self.narrow(hidden.relu() if bends else hidden)

            def forward(self, x: Tensor) -> Tensor:
                if after:
                    x = self.norm_1(x + self.attend(x, causal=causal).output)
                    return self.norm_2(x + self.work(x))
                normed = self.norm_1(x) if norms[0] else x
                collected = self.attend(normed, causal=causal).output
                middle = x + collected if keeps[0] else collected
                worked = self.work(self.norm_2(middle) if norms[1] else middle)
                return (x if from_the_start else middle) + worked if keeps[1] else worked

        return Block()

    return build


def _block_cases() -> list[Case]:
    def x(*size: int) -> Array:
        return np.random.default_rng(6).normal(size=size).astype(np.float32)

    return [(2, 1, 3, x(1, 2, 2)), (4, 2, 5, x(2, 3, 4)), (6, 3, 1, 3 * x(1, 4, 6))]


_reference_block = _block()

register(
    Exercise(
        name="OneBlock",
        chapter=6,
        difficulty="hard",
        minutes=30,
        task="A causal Transformer block. Its parts are norm_1 and norm_2 (nn.LayerNorm), attend "
        "(MultiHeadAttention of d2lmini, without bias), widen and narrow (nn.Linear, d_model to "
        "d_hidden and back). forward(x) normalises, attends causally and adds the result to what "
        "went in; then it normalises, widens, sets negative numbers to 0, narrows and adds "
        "again. x and the result have shape (batch, n, d_model).",
        returns={"output": "(batch, tokens, d_model)"},
        reference=_reference_block,
        cases=_block_cases,
        call=call_with_the_weights_of(_reference_block),
        needs_torch=True,
        mistakes=(
            Mistake("not-causal", "Tokens see later ones: attend causally.", _block(causal=False)),
            Mistake(
                "first-not-added",
                "What attention collects replaces the token. Add it to what went in.",
                _block(keeps=(False, True)),
            ),
            Mistake(
                "second-not-added",
                "The result of the feed-forward layer replaces the token. Add it.",
                _block(keeps=(True, False)),
            ),
            Mistake(
                "nothing-added",
                "There is no residual connection: each of the two results is added to what went "
                "into its step.",
                _block(keeps=(False, False)),
            ),
            Mistake(
                "from-the-start",
                "The second sum begins from the block's input and loses what attention collected.",
                _block(from_the_start=True),
            ),
            Mistake(
                "norm-after",
                "You normalised after each addition, as the first Transformer did. Here the norm "
                "stands before attention and before the feed-forward layer.",
                _block(after=True),
            ),
            Mistake(
                "second-norm",
                "norm_2 is not used: normalise before the feed-forward layer, too.",
                _block(norms=(True, False)),
            ),
            Mistake(
                "first-norm",
                "norm_1 is not used: normalise before attention.",
                _block(norms=(False, True)),
            ),
            Mistake(
                "not-bent",
                "Negative numbers stay between widen and narrow, so that the two matrices are one.",
                _block(bends=False),
            ),
        ),
        hints=(
            "Two lines in forward, and each has the form x = x + step(norm(x)).",
            "MultiHeadAttention returns output and weights, and takes causal=True.",
            "torch.relu, or the method relu of a tensor, sets negative numbers to 0.",
        ),
        solution="""\
from torch import nn

from d2lmini import MultiHeadAttention


class OneBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)
        self.attend = MultiHeadAttention(d_model, num_heads)
        self.widen = nn.Linear(d_model, d_hidden)
        self.narrow = nn.Linear(d_hidden, d_model)

    def forward(self, x):
        x = x + self.attend(self.norm_1(x), causal=True).output
        return x + self.narrow(self.widen(self.norm_2(x)).relu())""",
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


def _induction_cases() -> list[Case]:
    draw = np.random.default_rng(2)
    texts = [[4, 4], [1, 2, 1], [3, 1, 3, 2, 3], [2, 5, 7, 2, 5, 5, 9], [6, 1, 2, 3, 4, 5, 8, 6, 0]]
    return [(np.tril(draw.dirichlet(np.ones(len(t)), len(t))), np.array(t)) for t in texts]


register(
    Exercise(
        name="lookup_score",
        chapter=6,
        difficulty="medium",
        minutes=20,
        task="How much is a head an induction head? weights (n, n) are those of one causal head "
        "on tokens (n,), whole numbers of which at least one is repeated. For each token that "
        "has stood before, take the weight that it gives to the token right after the LAST time "
        "before. Return the mean of these weights, one number.",
        returns={"score": "()"},
        reference=_induction,
        cases=_induction_cases,
        mistakes=(
            Mistake(
                "same-token",
                "You looked at the earlier same token. An induction head looks at the one after "
                "it.",
                lambda weights, tokens: _induction(weights, tokens, step=0),
            ),
            Mistake(
                "first-time",
                "You took the first time that the token stood before. Take the last.",
                lambda weights, tokens: _induction(weights, tokens, which=min),
            ),
            Mistake(
                "transposed",
                "weights[i, j] is what token i gives to token j; you read it the other way round.",
                lambda weights, tokens: _induction(weights, tokens, turned=True),
            ),
            Mistake(
                "over-all",
                "You divided by the number of all tokens. The mean is over those that have stood "
                "before.",
                lambda weights, tokens: _induction(weights, tokens, over_all=True),
            ),
        ),
        hints=(
            "For tokens 3 1 3 2 3, the last 3 looks for what followed the 3 in the middle.",
            "For each i, find the largest j < i with tokens[j] == tokens[i], and read "
            "weights[i, j + 1].",
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
