"""Chapter 4: projections and one head of self-attention."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.model import Case, Exercise, Mistake, register
from d2lmini.exercises.modules import call_with_the_weights_of
from d2lmini.exercises.slips import naive_softmax, slip, tables

# Count the parameters

register(
    Exercise(
        name="count_parameters",
        chapter=4,
        difficulty="warm-up",
        minutes=5,
        task="How many numbers does one head of self-attention learn? It has the matrices W_Q, W_K "
        "(d_model, d_k) and W_V (d_model, d_v), and no biases.",
        returns={"parameters": "()"},
        reference=lambda d_model, d_k, d_v: 2 * d_model * d_k + d_model * d_v,
        cases=lambda: [(2, 1, 3), (4, 3, 2), (512, 64, 32)],
        mistakes=(
            Mistake(
                "values-like-keys",
                "You counted W_V like W_K. The values may have another length than the keys: d_v.",
                lambda d_model, d_k, d_v: 3 * d_model * d_k,
            ),
            Mistake(
                "biases",
                "You counted biases too. There are none.",
                lambda d_model, d_k, d_v: (d_model + 1) * (2 * d_k + d_v),
            ),
            Mistake(
                "output-projection",
                "You counted an output projection. One head alone has none; a layer of several "
                "heads does.",
                lambda d_model, d_k, d_v: 2 * d_model * d_k + 2 * d_model * d_v,
            ),
            Mistake(
                "two-matrices",
                "You counted two matrices. Queries and keys each have their own.",
                lambda d_model, d_k, d_v: d_model * d_k + d_model * d_v,
            ),
            Mistake(
                "square",
                "You took the matrices to be square. They lead from d_model to d_k or d_v.",
                lambda d_model, d_k, d_v: 3 * d_model**2,
            ),
        ),
        hints=(
            "Nothing else is learned: scores, softmax and the weighted sum have no parameters.",
            "A matrix (a, b) has a · b numbers. Add up the three.",
            "Two of the matrices have d_k columns, one has d_v. The number of tokens does not "
            "occur.",
        ),
        solution="""\
def count_parameters(d_model, d_k, d_v):
    return d_model * (2 * d_k + d_v)""",
    )
)


# Project


def _project(x: Array, w_q: Array, w_k: Array, w_v: Array) -> tuple[Array, Array, Array]:
    return x @ w_q, x @ w_k, x @ w_v


def _weights(d_model: int, d_k: int, d_v: int, seed: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    sizes = (d_model, d_k), (d_model, d_k), (d_model, d_v)
    return tuple(rng.integers(-2, 3, size).astype(float) for size in sizes)


def _project_cases() -> list[Case]:
    return [
        tables([[1, 2]], [[1], [0]], [[0], [3]], [[1, 0, 1], [0, 1, 1]]),
        tables([[1, 0], [2, 1], [0, 3]], [[1, 2], [0, 1]], [[0, 1], [2, 1]], [[3, 0], [1, 1]]),
        (*tables([[1, 0, 2], [0, 1, 1]]), *_weights(3, 4, 2, seed=1)),
    ]


register(
    Exercise(
        name="project",
        chapter=4,
        difficulty="easy",
        minutes=5,
        task="Make queries (n, d_k), keys (n, d_k) and values (n, d_v) from the tokens x "
        "(n, d_model) with w_q, w_k (d_model, d_k) and w_v (d_model, d_v). Return all three.",
        returns={"query": "(tokens, d_k)", "key": "(tokens, d_k)", "value": "(tokens, d_v)"},
        reference=_project,
        cases=_project_cases,
        mistakes=(
            Mistake(
                "one-matrix",
                "All three were made with w_q. Each has a matrix of its own: that is what lets a "
                "token ask for something else than it offers.",
                lambda x, w_q, w_k, w_v: (x @ w_q, x @ w_q, x @ w_q),
            ),
            Mistake(
                "swapped",
                "Keys and values are swapped.",
                lambda x, w_q, w_k, w_v: (x @ w_q, x @ w_v, x @ w_k),
            ),
            Mistake(
                "transposed",
                "The matrices were transposed. A token is a row, so it stands on the left: x @ w. "
                "(PyTorch stores the transpose inside nn.Linear.)",
                lambda x, w_q, w_k, w_v: (x @ w_q.T, x @ w_k.T, x @ w_v.T),
            ),
            Mistake(
                "chained",
                "The keys were made from the queries, and the values from the keys. All three are "
                "made from x.",
                lambda x, w_q, w_k, w_v: (x @ w_q, x @ w_q @ w_k, x @ w_q @ w_k @ w_v),
            ),
            Mistake(
                "not-projected",
                "You returned the tokens themselves. Each view of them is a matrix product.",
                lambda x, w_q, w_k, w_v: (x, x, x),
            ),
        ),
        hints=(
            "Three views of the same tokens: what each asks for, what it offers to be found by, "
            "and what it passes on.",
            "Q = X W_Q, K = X W_K, V = X W_V.",
            "With tokens as rows, (n, d_model) times (d_model, d_k) is the @ of two arrays.",
        ),
        solution="""\
def project(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_k, x @ w_v""",
    )
)


# One token, in four steps


def _self_attention(x: Array, w_q: Array, w_k: Array, w_v: Array) -> Array:
    return attention(x @ w_q, x @ w_k, x @ w_v).output


def _self_attention_cases() -> list[Case]:
    return [
        tables([[1], [2]], [[1, 0]], [[1, 1]], [[3]]),
        (*tables([[1, 0, 2], [0, 1, 1]]), *_weights(3, 2, 4, seed=2)),
        tables([[1, 0], [1, 1], [0, 2]], [[1, 0], [1, 1]], [[0, 1], [1, 1]], [[2, 1], [0, 1]]),
        (*tables([[20, 0], [30, 10], [0, 40]]), *_weights(2, 4, 3, seed=3)),
    ]


def _token_output(i: int, x: Array, w_q: Array, w_k: Array, w_v: Array) -> Array:
    return _self_attention(x, w_q, w_k, w_v)[i]


register(
    Exercise(
        name="token_output",
        chapter=4,
        difficulty="easy",
        minutes=10,
        task="Self-attention as one token sees it. Compare the query of token i with the keys of "
        "all tokens x (n, d_model), scale, softmax, add up the weighted values. Return (d_v,).",
        returns={"output": "(d_v,)"},
        reference=_token_output,
        cases=lambda: [
            (index, *case)
            for index, case in zip((1, 0, 1, 2), _self_attention_cases(), strict=True)
        ],
        mistakes=(
            slip(
                "no-scale",
                "The scores are not divided by √d_k.",
                lambda softmax: (
                    lambda i, x, w_q, w_k, w_v: softmax(x @ w_k @ (x[i] @ w_q)) @ (x @ w_v)
                ),
            ),
            slip(
                "scale-model",
                "You divided by √d_model. The vectors that are compared have length d_k.",
                lambda softmax: (
                    lambda i, x, w_q, w_k, w_v: (
                        softmax(x @ w_k @ (x[i] @ w_q) / np.sqrt(x.shape[-1])) @ (x @ w_v)
                    )
                ),
            ),
            slip(
                "values-not-projected",
                "You mixed the tokens themselves. The values are x @ w_v.",
                lambda softmax: (
                    lambda i, x, w_q, w_k, w_v: (
                        softmax(x @ w_k @ (x[i] @ w_q) / np.sqrt(w_k.shape[-1])) @ x
                    )
                ),
            ),
            slip(
                "roles-swapped",
                "You compared the key of token i with all queries. Token i asks, so its query "
                "meets all keys.",
                lambda softmax: (
                    lambda i, x, w_q, w_k, w_v: (
                        softmax(x @ w_q @ (x[i] @ w_k) / np.sqrt(w_k.shape[-1])) @ (x @ w_v)
                    )
                ),
            ),
            slip(
                "first-token",
                "You computed the output of the first token, whatever i is.",
                lambda softmax: (
                    lambda i, x, w_q, w_k, w_v: (
                        softmax(x @ w_k @ (x[0] @ w_q) / np.sqrt(w_k.shape[-1])) @ (x @ w_v)
                    )
                ),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest first.",
                lambda i, x, w_q, w_k, w_v: (
                    naive_softmax(x @ w_k @ (x[i] @ w_q) / np.sqrt(w_k.shape[-1])) @ (x @ w_v)
                ),
            ),
        ),
        hints=(
            "One query, (d_k,), and n keys: n scores, n weights, one output.",
            "The weights are the softmax over j of qᵢ · kⱼ / √d_k, and the output is Σⱼ αⱼ vⱼ.",
            "x[i] is token i. A matrix (n, d_k) times a vector (d_k,) gives all dot products.",
        ),
        solution="""\
def token_output(i, x, w_q, w_k, w_v):
    query = x[i] @ w_q  # (d_k,)
    key, value = x @ w_k, x @ w_v  # (n, d_k), (n, d_v)
    scores = key @ query / np.sqrt(len(query))  # (n,)
    e = np.exp(scores - scores.max())
    return e / e.sum() @ value""",
    )
)


# All tokens at once

register(
    Exercise(
        name="self_attention",
        chapter=4,
        difficulty="medium",
        minutes=15,
        task="Self-attention of all tokens x (n, d_model) in matrix products, without a loop over "
        "tokens. Return (n, d_v): row i is the output of token i.",
        returns={"output": "(tokens, d_v)"},
        reference=_self_attention,
        cases=_self_attention_cases,
        mistakes=(
            slip(
                "not-projected",
                "The tokens are compared and mixed as they are. First make queries, keys and "
                "values of them.",
                lambda softmax: (
                    lambda x, w_q, w_k, w_v: softmax(x @ x.T / np.sqrt(x.shape[-1])) @ x
                ),
            ),
            slip(
                "values-not-projected",
                "You mixed the tokens themselves. The values are x @ w_v.",
                lambda softmax: (
                    lambda x, w_q, w_k, w_v: (
                        softmax(x @ w_q @ (x @ w_k).T / np.sqrt(w_k.shape[-1])) @ x
                    )
                ),
            ),
            slip(
                "no-scale",
                "The scores are not divided by √d_k.",
                lambda softmax: lambda x, w_q, w_k, w_v: softmax(x @ w_q @ (x @ w_k).T) @ (x @ w_v),
            ),
            slip(
                "scale-model",
                "You divided by √d_model. The vectors that are compared have length d_k.",
                lambda softmax: (
                    lambda x, w_q, w_k, w_v: (
                        softmax(x @ w_q @ (x @ w_k).T / np.sqrt(x.shape[-1])) @ (x @ w_v)
                    )
                ),
            ),
            slip(
                "axis",
                "The softmax runs over the queries. Row i of the scores belongs to token i, and "
                "its weights must sum to 1.",
                lambda softmax: (
                    lambda x, w_q, w_k, w_v: (
                        softmax(x @ w_q @ (x @ w_k).T / np.sqrt(w_k.shape[-1]), axis=0) @ (x @ w_v)
                    )
                ),
            ),
            slip(
                "roles-swapped",
                "Keys ask and queries answer: row i of the scores must hold the query of token i.",
                lambda softmax: (
                    lambda x, w_q, w_k, w_v: (
                        softmax(x @ w_k @ (x @ w_q).T / np.sqrt(w_k.shape[-1])) @ (x @ w_v)
                    )
                ),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest of "
                "each row first.",
                lambda x, w_q, w_k, w_v: (
                    naive_softmax(x @ w_q @ (x @ w_k).T / np.sqrt(w_k.shape[-1])) @ (x @ w_v)
                ),
            ),
        ),
        hints=(
            "Do for all tokens what token_output does for one: n queries instead of one, so the "
            "scores are a table (n, n).",
            "The output is softmax(X W_Q (X W_K)ᵀ / √d_k) X W_V, with the softmax over each row.",
            "Project first. Then it is the attention of chapter 3, and d_k is w_k.shape[-1].",
        ),
        solution="""\
def self_attention(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.T / np.sqrt(key.shape[-1])  # (n, n)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value""",
    )
)


# Many sequences at once


def _batched_cases() -> list[Case]:
    rng = np.random.default_rng(4)
    x = [rng.integers(-2, 3, size).astype(float) for size in ((1, 2, 3), (2, 3, 2), (3, 2, 2))]
    return [
        (x[0], *_weights(3, 1, 2, seed=5)),
        (x[1], *_weights(2, 3, 4, seed=6)),
        (40 * x[2], *_weights(2, 2, 1, seed=7)),
    ]


def _flattened(x: Array, w_q: Array, w_k: Array, w_v: Array) -> Array:
    rows = _self_attention(x.reshape(-1, x.shape[-1]), w_q, w_k, w_v)
    return rows.reshape(*x.shape[:-1], -1)


def _batched(
    axis: int = -1, scale: Callable[[Array, Array], float] = lambda x, key: key.shape[-1]
) -> Callable[[Any], Callable[..., Array]]:
    """Return what `slip` wants, with this axis of the softmax and this length under the root."""

    def make(softmax: Any) -> Callable[..., Array]:
        def attend(x: Array, w_q: Array, w_k: Array, w_v: Array) -> Array:
            query, key, value = _project(x, w_q, w_k, w_v)
            scores = query @ key.swapaxes(-1, -2) / np.sqrt(scale(x, key))
            return softmax(scores, axis=axis) @ value

        return attend

    return make


register(
    Exercise(
        name="batched_self_attention",
        chapter=4,
        difficulty="medium",
        minutes=20,
        task="Self-attention within each of several sequences x (batch, n, d_model), without a "
        "loop. No sequence sees another. Return (batch, n, d_v).",
        returns={"output": "(batch, tokens, d_v)"},
        reference=_self_attention,
        cases=_batched_cases,
        mistakes=(
            Mistake(
                "across-sequences",
                "The sequences see each other: all tokens were thrown into one. Keep the batch "
                "axis in front.",
                _flattened,
            ),
            Mistake(
                "axes-swapped",
                "You attended along the batch axis: token 0 of each sequence sees token 0 of the "
                "others.",
                lambda x, w_q, w_k, w_v: _self_attention(x.swapaxes(0, 1), w_q, w_k, w_v).swapaxes(
                    0, 1
                ),
            ),
            slip(
                "softmax-over-queries",
                "The softmax runs over the queries, axis 1 of the scores (batch, n, n). It must "
                "run over the keys, the last axis.",
                _batched(axis=-2),
            ),
            slip(
                "softmax-over-batch",
                "The softmax runs over the batch. It must run over the keys, the last axis.",
                _batched(axis=0),
            ),
            slip(
                "no-scale",
                "The scores are not divided by √d_k.",
                _batched(scale=lambda x, key: 1),
            ),
            slip(
                "scale-tokens",
                "You divided by the root of the number of tokens. With a batch axis in front, the "
                "length of a key is the last axis, not axis 1.",
                _batched(scale=lambda x, key: key.shape[1]),
            ),
            Mistake(
                "all-axes-transposed",
                ".T reverses all axes, the batch too. Swap the last two only.",
                lambda x, w_q, w_k, w_v: x @ w_q @ (x @ w_k).T,
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest of "
                "each row first.",
                _batched()(naive_softmax),
            ),
        ),
        hints=(
            "Start from self_attention, and look at each step: does it count axes from the front "
            "or from the back?",
            "@ multiplies the last two axes and carries all axes in front along. So x @ w_q works "
            "as it stands; the transpose of the keys does not.",
            "swapaxes(-1, -2) transposes each key matrix of the batch. Use axis=-1 in the softmax.",
        ),
        solution="""\
def batched_self_attention(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(key.shape[-1])  # (batch, n, n)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value""",
    )
)


# One head, as a module


def _one_head(attend: Callable[..., Any], *, bias: bool = False) -> Callable[[int, int, int], Any]:
    """Return what builds a module that projects, and then does `attend(x, query, key, value)`."""

    def build(d_model: int, d_k: int, d_v: int) -> Any:
        from d2lmini._torch import Tensor, nn

        class Head(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.w_q = nn.Linear(d_model, d_k, bias=bias)
                self.w_k = nn.Linear(d_model, d_k, bias=bias)
                self.w_v = nn.Linear(d_model, d_v, bias=bias)

            def forward(self, x: Tensor) -> Tensor:
                result: Tensor = attend(x, self.w_q(x), self.w_k(x), self.w_v(x))
                return result

        return Head()

    return build


def _one_head_cases() -> list[Case]:
    def x(*size: int) -> Array:
        return np.random.default_rng(8).integers(-2, 3, size).astype(np.float32)

    return [(2, 1, 3, x(1, 2, 2)), (3, 2, 4, x(2, 3, 3)), (4, 3, 1, 40 * x(1, 5, 4))]


_reference_head = _one_head(lambda x, query, key, value: attention(query, key, value).output)

register(
    Exercise(
        name="OneHead",
        chapter=4,
        difficulty="hard",
        minutes=30,
        task="One head of self-attention as a module. Its parameters are three nn.Linear without "
        "bias, called w_q, w_k and w_v, with d_k, d_k and d_v outputs. forward(x) takes "
        "(batch, n, d_model) and returns (batch, n, d_v).",
        returns={"output": "(batch, tokens, d_v)"},
        reference=_reference_head,
        cases=_one_head_cases,
        call=call_with_the_weights_of(_reference_head),
        needs_torch=True,
        mistakes=(
            Mistake(
                "bias",
                "The layers have biases. nn.Linear adds one unless it is told not to.",
                _one_head(
                    lambda x, query, key, value: attention(query, key, value).output, bias=True
                ),
            ),
            Mistake(
                "no-scale",
                "The scores are not divided by √d_k.",
                _one_head(lambda x, query, key, value: (query @ key.mT).softmax(-1) @ value),
            ),
            Mistake(
                "scale-model",
                "You divided by √d_model. The vectors that are compared have length d_k.",
                _one_head(
                    lambda x, query, key, value: (
                        (query @ key.mT / x.shape[-1] ** 0.5).softmax(-1) @ value
                    )
                ),
            ),
            Mistake(
                "softmax-over-queries",
                "The softmax runs over the queries: dim 1 of scores (batch, n, n). It must run "
                "over the keys, the last one.",
                _one_head(
                    lambda x, query, key, value: (
                        (query @ key.mT / key.shape[-1] ** 0.5).softmax(1) @ value
                    )
                ),
            ),
            Mistake(
                "values-not-projected",
                "You mixed the tokens themselves. The values are w_v(x).",
                _one_head(
                    lambda x, query, key, value: (
                        (query @ key.mT / key.shape[-1] ** 0.5).softmax(-1) @ x
                    )
                ),
            ),
            Mistake(
                "causal",
                "No token sees a later one here. That was not asked for: all see all.",
                _one_head(
                    lambda x, query, key, value: attention(query, key, value, causal=True).output
                ),
            ),
        ),
        hints=(
            "Make the three layers in __init__, so that PyTorch knows their parameters; use them "
            "in forward.",
            "forward computes softmax(Q Kᵀ / √d_k) V with Q = w_q(x), K = w_k(x), V = w_v(x).",
            "key.mT transposes the last two axes. softmax(dim=-1) is PyTorch's own; it needs no "
            "subtraction of the maximum.",
        ),
        solution="""\
from torch import nn


class OneHead(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        query, key, value = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = query @ key.mT / key.shape[-1] ** 0.5  # (batch, n, n)
        return scores.softmax(dim=-1) @ value""",
    )
)
