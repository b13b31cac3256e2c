"""Chapter 4: projections and one head of self-attention."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import naive_softmax, rough, slip
from d2lmini.exercises.torch_modules import call_with_the_weights_of
from d2lmini.weights import softmax

# Count the parameters that count

register(
    Exercise(
        name="count_parameters",
        chapter=4,
        difficulty="easy",
        minutes=10,
        task="How many of the numbers of a head make a difference? W_Q and W_K (d_model, d_k) "
        "matter only through their product: W_Q B and W_K (B⁻¹)ᵀ do the same, for every matrix B "
        "(d_k, d_k) that can be inverted. So as many numbers as B has can be chosen freely, and do "
        "not count. W_V (d_model, d_v) counts as it is. Return the number; d_k ≤ d_model.",
        returns={"parameters": "()"},
        reference=lambda d_model, d_k, d_v: 2 * d_model * d_k - d_k**2 + d_model * d_v,
        cases=lambda: [(2, 1, 3), (4, 3, 2), (5, 2, 2), (512, 64, 32)],
        mistakes=(
            Mistake(
                "all",
                "You counted all numbers that the head holds. Those that B can change without "
                "changing a score do not count.",
                lambda d_model, d_k, d_v: d_model * (2 * d_k + d_v),
            ),
            Mistake(
                "product",
                "You counted the numbers of the product, a matrix (d_model, d_model). Its rank is "
                "at most d_k, so they cannot all be chosen.",
                lambda d_model, d_k, d_v: d_model**2 + d_model * d_v,
            ),
            Mistake(
                "values-like-keys",
                "You counted W_V like W_K. The values may have another length than the keys: d_v.",
                lambda d_model, d_k, d_v: 3 * d_model * d_k - d_k**2,
            ),
            Mistake(
                "one-for-each",
                "You took away one number for each component of a key. B has d_k rows, and each "
                "has d_k numbers.",
                lambda d_model, d_k, d_v: d_model * (2 * d_k + d_v) - d_k,
            ),
            Mistake(
                "twice",
                "You took away the numbers of B twice, for W_Q and for W_K. Once B is chosen, its "
                "inverse is too.",
                lambda d_model, d_k, d_v: d_model * (2 * d_k + d_v) - 2 * d_k**2,
            ),
        ),
        hints=(
            "With d_k = 1 the product stays the same if you multiply W_Q by a number and divide "
            "W_K by it. How many numbers are then left to choose?",
            "How many numbers does the head hold, and how many does B?",
            "A check: with d_k = d_model any product can be made, so W_Q and W_K count d_model² "
            "numbers together.",
        ),
        solution="""\
def count_parameters(d_model, d_k, d_v):
    held = d_model * (2 * d_k + d_v)
    return held - d_k**2""",
    )
)


# Project


def _project(x: Array, w_q: Array, w_k: Array, w_v: Array) -> tuple[Array, Array, Array]:
    return x @ w_q, x @ w_k, x @ w_v


def _project_stored(x: Array, *stored: Array) -> tuple[Array, ...]:
    return tuple(x @ w.T for w in stored)


def _weights(d_model: int, d_k: int, d_v: int, seed: int) -> tuple[Array, ...]:
    """Draw three matrices of halves, of which hardly any is a whole number throughout."""
    rng = np.random.default_rng(seed)
    sizes = (d_model, d_k), (d_model, d_k), (d_model, d_v)
    return tuple(rng.integers(-4, 5, size) / 2.0 for size in sizes)


def _tokens(*size: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, size) / 2.0


def _stored_cases() -> list[Case]:
    sizes = [(1, 2, 1, 3), (2, 3, 2, 4), (3, 2, 2, 2), (4, 3, 3, 1)]
    cases = []
    for seed, (n, d_model, d_k, d_v) in enumerate(sizes, start=3):
        stored = [w.T.copy() for w in _weights(d_model, d_k, d_v, seed)]
        cases.append((_tokens(n, d_model, seed=seed), *stored))
    return [*cases, rough(7, (2, 3), (2, 3), (2, 3), (3, 3))]


register(
    Exercise(
        name="project",
        chapter=4,
        difficulty="easy",
        minutes=10,
        task="Make queries (n, d_k), keys (n, d_k) and values (n, d_v) from the tokens x "
        "(n, d_model). The matrices come as nn.Linear stores them: w_q and w_k (d_k, d_model), "
        "w_v (d_v, d_model). Return all three.",
        returns={"query": "(tokens, d_k)", "key": "(tokens, d_k)", "value": "(tokens, d_v)"},
        reference=_project_stored,
        cases=_stored_cases,
        mistakes=(
            Mistake(
                "one-matrix",
                "All three were made with w_q. Each has a matrix of its own: that is what lets a "
                "token ask for something else than it offers.",
                lambda x, w_q, w_k, w_v: (x @ w_q.T, x @ w_q.T, x @ w_q.T),
            ),
            Mistake(
                "swapped",
                "Keys and values are swapped.",
                lambda x, w_q, w_k, w_v: (x @ w_q.T, x @ w_v.T, x @ w_k.T),
            ),
            Mistake(
                "roles-swapped",
                "Queries and keys are swapped.",
                lambda x, w_q, w_k, w_v: (x @ w_k.T, x @ w_q.T, x @ w_v.T),
            ),
            Mistake(
                "not-transposed",
                "You used the matrices as they come. Here each row of w_q belongs to one "
                "component of the query, but x @ w wants it as a column.",
                lambda x, w_q, w_k, w_v: (x @ w_q, x @ w_k, x @ w_v),
            ),
            Mistake(
                "reshaped",
                "You brought the matrices into shape by a reshape. It keeps the order of the "
                "numbers, so rows do not become columns: that is the transpose.",
                lambda x, *stored: tuple(x @ w.reshape(w.shape[::-1]) for w in stored),
            ),
            Mistake(
                "columns",
                "The tokens came out as columns. A token is a row here, before and after.",
                lambda x, *stored: tuple(w @ x.T for w in stored),
            ),
            Mistake(
                "chained",
                "The keys were made from the queries, and the values from the keys. All three are "
                "made from x.",
                lambda x, w_q, w_k, w_v: (x @ w_q.T, x @ w_q.T @ w_k.T, x @ w_q.T @ w_k.T @ w_v.T),
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
            "Compare the shape that nn.Linear stores with that of the matrix in Q = X W_Q. What "
            "turns one into the other?",
            "Write the shapes side by side: (n, d_model) needs a matrix that starts with d_model.",
        ),
        solution="""\
def project(x, w_q, w_k, w_v):
    return x @ w_q.T, x @ w_k.T, x @ w_v.T""",
    )
)


# Two matrices in one


def _score_matrix(w_q: Array, w_k: Array) -> Array:
    return w_q @ w_k.T / np.sqrt(w_q.shape[-1])


register(
    Exercise(
        name="score_matrix",
        chapter=4,
        difficulty="easy",
        minutes=10,
        task="Return the one matrix M (d_model, d_model) that does the work of w_q and w_k "
        "(d_model, d_k): d2lmini.bilinear_score(x, x, M) must give the same scores, divided by "
        "the root of d_k, as the head with these two.",
        returns={"M": "(d_model, d_model)"},
        reference=_score_matrix,
        cases=lambda: [
            _weights(2, 1, 1, seed=11)[:2],
            _weights(2, 3, 1, seed=12)[:2],
            _weights(4, 2, 1, seed=13)[:2],
            _weights(3, 3, 1, seed=14)[:2],
            rough(15, (1, 2), (1, 2)),
            rough(16, (4, 3), (4, 3)),
        ],
        mistakes=(
            Mistake(
                "no-scale",
                "The scores of the head are divided by √d_k, and nothing divides those of M later.",
                lambda w_q, w_k: w_q @ w_k.T,
            ),
            Mistake(
                "scale-d",
                "You divided by d_k. A head divides by its square root.",
                lambda w_q, w_k: w_q @ w_k.T / w_q.shape[-1],
            ),
            Mistake(
                "scale-model",
                "You divided by √d_model. The vectors that are compared have d_k components.",
                lambda w_q, w_k: w_q @ w_k.T / np.sqrt(w_q.shape[0]),
            ),
            Mistake(
                "transposed",
                "This M compares the key of token i with the query of token j. The asking token "
                "stands on the left, so W_Q does too.",
                lambda w_q, w_k: w_k @ w_q.T / np.sqrt(w_q.shape[-1]),
                also=(lambda w_q, w_k: w_k @ w_q.T,),
            ),
            Mistake(
                "inner",
                "You multiplied along d_model. M must take two embeddings, so d_k is the axis that "
                "is summed.",
                lambda w_q, w_k: w_q.T @ w_k / np.sqrt(w_q.shape[-1]),
                also=(lambda w_q, w_k: w_q.T @ w_k,),
            ),
            Mistake(
                "only-queries",
                "w_q stands on both sides, so w_k has no say.",
                lambda w_q, w_k: w_q @ w_q.T / np.sqrt(w_q.shape[-1]),
            ),
        ),
        hints=(
            "Write the scores of the head with X put in for the queries and the keys. What is the "
            "same for every X?",
            "bilinear_score(x, x, M) is X M Xᵀ. Which factors of the head's scores have to go "
            "into M?",
            "Draw random x, w_q and w_k, and let np.testing.assert_allclose compare "
            "bilinear_score with dot_product_score.",
        ),
        solution="""\
def score_matrix(w_q, w_k):
    return w_q @ w_k.T / np.sqrt(w_q.shape[-1])""",
    )
)


# A head by hand


def _who_is_read(build: Callable[[int], Any], n: int) -> Array:
    """Return which weights are above 0.9 if the tokens 1 to n are one-hot vectors."""
    built = build(n)
    if not isinstance(built, tuple | list) or len(built) != 2:
        raise TypeError(f"expected the two matrices w_q and w_k, got {type(built).__name__}")
    matrices = [matrix.detach() if hasattr(matrix, "detach") else matrix for matrix in built]
    w_q, w_k = (np.asarray(matrix, dtype=float) for matrix in matrices)
    x = np.eye(n)
    return np.asarray(attention(x @ w_q, x @ w_k, x).weights > 0.9, dtype=float)


def _before(n: int, length: float = 20.0) -> tuple[Array, Array]:
    w_q = length * np.eye(n, k=-1)
    w_q[0, 0] = length
    return w_q, np.eye(n)


def _first_alone(n: int) -> tuple[Array, Array]:
    return 20 * np.eye(n, k=-1), np.eye(n)


register(
    Exercise(
        name="previous_token",
        chapter=4,
        difficulty="medium",
        minutes=15,
        task="Build w_q and w_k, n rows each, for n tokens whose embeddings are np.eye(n). "
        "d2lmini.attention(x @ w_q, x @ w_k, x) must give each token more than 0.9 of weight on "
        "the token before it, and the first token on itself. Return both matrices.",
        returns={"weights above 0.9": "(tokens, tokens)"},
        reference=_before,
        cases=lambda: [(2,), (3,), (5,), (8,)],
        call=_who_is_read,
        mistakes=(
            Mistake(
                "next",
                "Every token reads the one after it. Row i of w_q is what token i looks for, and "
                "it must find the token before it.",
                lambda n: (20 * np.eye(n, k=1) + 20 * np.diag(np.arange(n) == n - 1), np.eye(n)),
                also=(lambda n: (20 * np.eye(n, k=1), np.eye(n)),),
            ),
            Mistake(
                "swapped",
                "w_q and w_k are swapped, so each token is found by what it should look for.",
                lambda n: _before(n)[::-1],
            ),
            Mistake(
                "wraps-around",
                "The first token reads the last one. np.roll turns around; here the first token "
                "has to read itself.",
                lambda n: (20 * np.roll(np.eye(n), 1, axis=0), np.eye(n)),
            ),
            Mistake(
                "first-undecided",
                "All are right but the first. Its query is zero, so all its scores are equal and "
                "its weights too.",
                _first_alone,
            ),
            Mistake(
                "itself",
                "Every token reads itself.",
                lambda n: (20 * np.eye(n), np.eye(n)),
            ),
            Mistake(
                "not-sharp",
                "No weight reaches 0.9. The scores differ by too little: make queries or keys "
                "longer.",
                lambda n: _before(n, length=1.0),
                also=(lambda n: (np.zeros((n, n)), np.zeros((n, n))),),
            ),
        ),
        hints=(
            "Let the keys be the embeddings themselves, so that each token is found by its own "
            "place.",
            "With one-hot embeddings, x @ w_q is w_q: its row i is the query of token i. It should "
            "point to the place before.",
            "np.eye has an argument k that moves its ones off the diagonal. Think of the first "
            "row too, and make the scores large enough for a weight of 0.9.",
        ),
        solution="""\
def previous_token(n):
    w_q = np.eye(n, k=-1)  # row i points to the token before
    w_q[0, 0] = 1
    return 20 * w_q, np.eye(n)""",
    )
)


# Tokens that move


def _moved(x: Array, w_q: Array, w_k: Array, w_v: Array, steps: int) -> Array:
    for _ in range(steps):
        x = x + attention(x @ w_q, x @ w_k, x @ w_v).output
    return x


def _one_by_one(x: Array, w_q: Array, w_k: Array, w_v: Array, steps: int) -> Array:
    x = x.copy()
    for _ in range(steps):
        for i in range(len(x)):
            x[i] += attention(x[i : i + 1] @ w_q, x @ w_k, x @ w_v).output[0]
    return x


def _with_old_keys(x: Array, w_q: Array, w_k: Array, w_v: Array, steps: int) -> Array:
    start = x
    for _ in range(steps):
        x = x + attention(x @ w_q, start @ w_k, start @ w_v).output
    return x


def _replaced(x: Array, w_q: Array, w_k: Array, w_v: Array, steps: int) -> Array:
    for _ in range(steps):
        x = attention(x @ w_q, x @ w_k, x @ w_v).output
    return x


def _scaled_by(root: float, x: Array, w_q: Array, w_k: Array, w_v: Array, steps: int) -> Array:
    for _ in range(steps):
        x = x + attention(x @ w_q * np.sqrt(w_q.shape[1]) / root, x @ w_k, x @ w_v).output
    return x


def _moved_cases() -> list[Case]:
    return [
        (*rough(35, (2, 1), (1, 2), (1, 2), (1, 1)), 2),
        (*rough(31, (2, 2), (2, 1), (2, 1), (2, 2)), 1),
        (*rough(32, (3, 2), (2, 3), (2, 3), (2, 2)), 2),
        (*rough(33, (1, 3), (3, 2), (3, 2), (3, 3)), 2),
        (*rough(34, (4, 3), (3, 2), (3, 2), (3, 3)), 3),
    ]


register(
    Exercise(
        name="moved_tokens",
        chapter=4,
        difficulty="medium",
        minutes=15,
        task="The tokens x (n, d_model) attend to one another, and each output is added to the "
        "token that asked; all tokens move at the same time. Do this steps times, always with the "
        "same matrices w_q, w_k (d_model, d_k) and w_v (d_model, d_model). Use attention of "
        "d2lmini. Return the moved tokens (n, d_model), and leave x as it was.",
        returns={"tokens": "(tokens, d_model)"},
        reference=_moved,
        cases=_moved_cases,
        mistakes=(
            Mistake(
                "replaced",
                "The output took the place of the token. It should be added to the token.",
                _replaced,
            ),
            Mistake(
                "one-step",
                "You took one step, whatever steps says.",
                lambda x, w_q, w_k, w_v, steps: _moved(x, w_q, w_k, w_v, 1),
            ),
            Mistake(
                "old-keys",
                "Only the queries move. After a step the keys and values must be made from the "
                "moved tokens as well.",
                _with_old_keys,
            ),
            Mistake(
                "one-by-one",
                "The tokens move one after the other, so a later token already meets moved ones. "
                "All of them move at the same time.",
                _one_by_one,
            ),
            Mistake(
                "times-steps",
                "You added the first answer several times. After a step the tokens have moved, so "
                "the next answer is another one.",
                lambda x, w_q, w_k, w_v, steps: x + steps * (_moved(x, w_q, w_k, w_v, 1) - x),
            ),
            Mistake(
                "not-projected",
                "The values are not projected: the tokens themselves were mixed.",
                lambda x, w_q, w_k, w_v, steps: _moved(x, w_q, w_k, np.eye(x.shape[1]), steps),
            ),
            Mistake(
                "scale-model",
                "You divided by √d_model. What is compared has d_k components.",
                lambda x, w_q, w_k, w_v, steps: _scaled_by(
                    float(np.sqrt(x.shape[1])), x, w_q, w_k, w_v, steps
                ),
            ),
            Mistake(
                "roles-swapped",
                "You swapped the roles of queries and keys. The output of a token belongs to its "
                "query.",
                lambda x, w_q, w_k, w_v, steps: _moved(x, w_k, w_q, w_v, steps),
            ),
        ),
        hints=(
            "What is the input of the second step?",
            "In each step one matrix X asks, is asked and is mixed. What is then added to what, so "
            "that a token stays what it was and gains something?",
            "Write x = x + …, not x += …: the first makes a new array, the second changes the one "
            "that the caller still has.",
        ),
        solution="""\
def moved_tokens(x, w_q, w_k, w_v, steps):
    from d2lmini import attention

    for _ in range(steps):
        answers = attention(x @ w_q, x @ w_k, x @ w_v).output  # (n, d_model)
        x = x + answers
    return x""",
    )
)


# Several texts in one array


def _packed_cases() -> list[Case]:
    def case(texts: list[int], d_model: int, d_k: int, d_v: int, seed: int, size: float) -> Case:
        x = size * _tokens(len(texts), d_model, seed=seed)
        return x, np.array(texts), *_weights(d_model, d_k, d_v, seed=seed + 1)

    small = case([1, 1, 2, 2], 3, 2, 3, 3, 80)
    small[0][:2] /= 100  # two texts whose scores are of unlike size
    return [
        case([0, 1], 3, 1, 2, 4, 1),
        case([0, 0, 1], 2, 4, 4, 5, 1),
        case([3, 3, 259, 259, 259], 2, 2, 1, 6, 40),
        small,
        (*rough(9, (5, 4)), np.array([0, 0, 0, 1, 1]), *rough(8, (4, 3), (4, 3), (4, 2))),
        (*rough(10, (3, 3)), np.array([2, 2, 2]), *rough(12, (3, 2), (3, 2), (3, 4))),
        (*rough(11, (7, 1)), np.array([0, 4, 4, 4, 1, 1, 1]), *rough(13, (1, 1), (1, 1), (1, 4))),
    ]


def _same(text: Array) -> Array:
    return np.asarray(text[:, None] == text)


def _packed_reference(x: Array, text: Array, w_q: Array, w_k: Array, w_v: Array) -> Array:
    return attention(x @ w_q, x @ w_k, x @ w_v, mask=_same(text)).output


def _one_max_softmax(scores: Array, axis: int = -1) -> Array:
    return naive_softmax(scores - scores.max(), axis=axis)


def _packed(
    *,
    axis: int = -1,
    scale: Callable[[Array, Array], float] = lambda x, key: key.shape[-1],
    hide: Callable[[Array, Array], Array] = lambda scores, same: np.where(same, scores, -np.inf),
    late: Callable[[Array, Array], Array] = lambda weights, same: weights,
) -> Callable[[Any], Callable[..., Array]]:
    """Return what `slip` wants: packed attention of which one step is another."""

    def make(softmax: Any) -> Callable[..., Array]:
        def attend(x: Array, text: Array, w_q: Array, w_k: Array, w_v: Array) -> Array:
            query, key, value = _project(x, w_q, w_k, w_v)
            scores = query @ key.T / np.sqrt(scale(x, key))
            weights = softmax(hide(scores, _same(text)), axis=axis)
            return np.asarray(late(weights, _same(text)) @ value)

        return attend

    return make


register(
    Exercise(
        name="packed_self_attention",
        chapter=4,
        difficulty="medium",
        minutes=20,
        task="Self-attention of several texts that come one after the other in one array x (n, "
        "d_model). text (n,) holds whole numbers that say to which text each token belongs, and no "
        "token may see another text. The matrices are w_q, w_k (d_model, d_k) and w_v (d_model, "
        "d_v). Return (n, d_v).",
        returns={"output": "(tokens, d_v)"},
        reference=_packed_reference,
        cases=_packed_cases,
        mistakes=(
            slip(
                "across-texts",
                "The texts see each other: every token attends to all others.",
                _packed(hide=lambda scores, same: scores),
            ),
            slip(
                "upside-down",
                "Each token sees only the other texts. It should see only its own.",
                _packed(hide=lambda scores, same: np.where(same, -np.inf, scores)),
            ),
            slip(
                "zeroed-scores",
                "You set the scores of other texts to 0, but exp(0) is 1: their tokens still get "
                "weight.",
                _packed(hide=lambda scores, same: scores * same),
            ),
            slip(
                "after-softmax",
                "You set weights to 0 after the softmax, so the rows no longer sum to 1.",
                _packed(
                    hide=lambda scores, same: scores, late=lambda weights, same: weights * same
                ),
            ),
            Mistake(
                "repaired-late",
                "You hid the other texts after the softmax and divided again. On paper that is "
                "right. But if another text has by far the largest score, the weights of the own "
                "text are 0 already, and 0 / 0 is nan.",
                _packed(
                    hide=lambda scores, same: scores,
                    late=lambda weights, same: (
                        weights * same / (weights * same).sum(axis=-1, keepdims=True)
                    ),
                )(softmax),
            ),
            slip(
                "softmax-over-queries",
                "The softmax runs over the queries. It must run over the keys, the last axis.",
                _packed(axis=0),
            ),
            slip(
                "no-scale",
                "The scores are not divided by √d_k.",
                _packed(scale=lambda x, key: 1),
            ),
            slip(
                "scale-d",
                "You divided by d_k. It is its square root that keeps the scores in size.",
                _packed(scale=lambda x, key: key.shape[-1] ** 2),
            ),
            slip(
                "scale-model",
                "You divided by √d_model. The vectors that are compared have d_k components.",
                _packed(scale=lambda x, key: x.shape[-1]),
            ),
            slip(
                "scale-tokens",
                "You divided by the root of the number of tokens. The d in √d is the length of a "
                "key.",
                _packed(scale=lambda x, key: len(key)),
            ),
            Mistake(
                "roles-swapped",
                "You swapped the roles of queries and keys: row i of the scores must hold the "
                "query of token i.",
                lambda x, text, w_q, w_k, w_v: _packed_reference(x, text, w_k, w_q, w_v),
            ),
            Mistake(
                "values-not-projected",
                "You mixed the tokens themselves. The values are x @ w_v.",
                lambda x, text, w_q, w_k, w_v: (
                    attention(x @ w_q, x @ w_k, x, mask=_same(text)).output
                ),
            ),
            Mistake(
                "not-projected",
                "The tokens are compared and mixed as they are. First make queries, keys and "
                "values of them.",
                lambda x, text, w_q, w_k, w_v: attention(x, x, x, mask=_same(text)).output,
            ),
            Mistake(
                "one-max",
                "One maximum was subtracted from all scores. Each row needs its own: a row far "
                "below it becomes 0 throughout.",
                _packed()(_one_max_softmax),
            ),
            Mistake(
                "not-transposed",
                "The keys are not transposed. Each score is the dot product of a query with a row "
                "of the keys.",
                lambda x, text, w_q, w_k, w_v: (x @ w_q) @ (x @ w_k),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest of "
                "each row first.",
                _packed()(naive_softmax),
            ),
        ),
        hints=(
            "Draw the table of who may see whom for two texts, of two tokens and of three. Where "
            "is it True?",
            "It has a row and a column for each token, and is True where the two tokens belong to "
            "the same text. What happens to the scores in the other places, and when?",
            "Comparing a column with a row makes a table. The library's attention takes such a "
            "table; without it, hide before you look for the largest score of each row.",
        ),
        solution="""\
def packed_self_attention(x, text, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.T / np.sqrt(key.shape[-1])  # (n, n)
    scores = np.where(text[:, None] == text, scores, -np.inf)
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


def _exp_without_max(query: Any, key: Any) -> Any:
    e = (query @ key.mT / key.shape[-1] ** 0.5).exp()
    return e / e.sum(-1, keepdim=True)


def _of_parameters(*, transposed: bool) -> Callable[[int, int, int], Any]:
    """Return what builds a head of bare matrices, as they stand in the formula or as stored."""

    def build(d_model: int, d_k: int, d_v: int) -> Any:
        from d2lmini._torch import nn, torch

        head: Any = nn.Module()
        for name, d in zip(("w_q", "w_k", "w_v"), (d_k, d_k, d_v), strict=True):
            size = (d, d_model) if transposed else (d_model, d)
            setattr(head, name, nn.Parameter(torch.zeros(size)))
        return head

    return build


def _without_super(d_model: int, d_k: int, d_v: int) -> Any:
    from d2lmini._torch import nn

    class Head(nn.Module):
        def __init__(self) -> None:
            self.w_q = nn.Linear(d_model, d_k, bias=False)

    return Head()


def _shared(d_model: int, d_k: int, d_v: int) -> Any:
    head = _reference_head(d_model, d_k, d_v)
    head.w_k = head.w_q
    return head


def _one_head_cases() -> list[Case]:
    def x(*size: int) -> Array:
        return _tokens(*size, seed=8).astype(np.float32)

    return [
        (2, 1, 3, x(1, 2, 2)),
        (3, 2, 4, x(2, 3, 3)),
        (2, 4, 2, x(3, 4, 2)),
        (4, 3, 1, 40 * x(1, 5, 4)),
        (3, 2, 2, rough(9, (2, 2, 3))[0].astype(np.float32)),
        (2, 3, 4, rough(10, (2, 1, 2))[0].astype(np.float32)),
    ]


_reference_head = _one_head(lambda x, query, key, value: attention(query, key, value).output)

register(
    Exercise(
        name="OneHead",
        chapter=4,
        difficulty="hard",
        minutes=30,
        task="One head of self-attention as a module. Its parameters are three nn.Linear without "
        "bias, called w_q, w_k and w_v, with d_k, d_k and d_v outputs. forward(x) takes "
        "(batch, n, d_model) and returns the outputs alone, (batch, n, d_v).",
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
                "scale-d",
                "You divided by d_k. It is its square root that keeps the scores in size.",
                _one_head(
                    lambda x, query, key, value: (
                        (query @ key.mT / key.shape[-1]).softmax(-1) @ value
                    )
                ),
            ),
            Mistake(
                "all-axes-transposed",
                ".T reverses all axes, the batch too. Swap the last two only.",
                _one_head(lambda x, query, key, value: query @ key.permute(2, 1, 0)),
            ),
            Mistake(
                "bare-parameters",
                "The matrices are bare parameters. Make each a layer, nn.Linear, which holds its "
                "matrix under the name weight.",
                _of_parameters(transposed=False),
                also=(_of_parameters(transposed=True),),
            ),
            Mistake(
                "no-super",
                "nn.Module was not set up: its own __init__ has to run before a layer is stored.",
                _without_super,
            ),
            Mistake(
                "shared",
                "Queries and keys share one layer. Each needs its own.",
                _shared,
            ),
            Mistake(
                "roles-swapped",
                "You swapped the roles of queries and keys: row i of the scores must hold the "
                "query of token i.",
                _one_head(lambda x, query, key, value: attention(key, query, value).output),
            ),
            Mistake(
                "softmax-over-batch",
                "The softmax runs over the batch, dim 0. It must run over the keys, the last one.",
                _one_head(
                    lambda x, query, key, value: (
                        (query @ key.mT / key.shape[-1] ** 0.5).softmax(0) @ value
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
                "scale-axis",
                "You divided by the root of another axis. With a batch in front, the number of "
                "components of a key is the last axis of its shape.",
                _one_head(
                    lambda x, query, key, value: (
                        (query @ key.mT / key.shape[0] ** 0.5).softmax(-1) @ value
                    )
                ),
                also=(
                    _one_head(
                        lambda x, query, key, value: (
                            (query @ key.mT / key.shape[1] ** 0.5).softmax(-1) @ value
                        )
                    ),
                ),
            ),
            Mistake(
                "no-softmax",
                "The scores were used as weights. A softmax turns them into shares first.",
                _one_head(
                    lambda x, query, key, value: query @ key.mT / key.shape[-1] ** 0.5 @ value
                ),
            ),
            Mistake(
                "keys-mixed",
                "You mixed the keys. What is added up are the values, w_v(x).",
                _one_head(lambda x, query, key, value: attention(query, key, key).output),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest of "
                "each row first, or use PyTorch's own softmax.",
                _one_head(lambda x, query, key, value: _exp_without_max(query, key) @ value),
            ),
            Mistake(
                "causal",
                "You hid the later tokens. The exercise asks for no mask: every token may see all"
                " of them.",
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
