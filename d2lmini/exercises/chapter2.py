"""Chapter 2: weights, and what can be read with them."""

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import naive_softmax, rough, slip, tables
from d2lmini.kernels import nadaraya_watson
from d2lmini.scores import dot_product_score
from d2lmini.weights import softmax

# Weighted average


def _weighted_average(weights: Array, values: Array) -> Array:
    return weights / weights.sum(axis=-1, keepdims=True) @ values


def _weighted_average_cases() -> list[Case]:
    return [
        tables([[3, 1]], [[10], [20]]),
        tables([[1, 3], [2, 2], [4, 1]], [[10, 0], [20, 5]]),
        tables([[1, 0, 3], [5, 2, 3]], [[1, 2, 0, 1], [3, 0, 5, 1], [4, 4, 1, 0]]),
        tables([[0.1, 0.25], [1.5, 0.5], [0.3, 0.3]], [[0.5, -1.25, 2], [-0.75, 3.1, 0]]),
        (*rough(1, (3, 4), low=1), *rough(2, (4, 1))),
    ]


register(
    Exercise(
        name="weighted_average",
        chapter=2,
        difficulty="warm-up",
        minutes=5,
        task="Average the values (m, d_v) with weights (n, m) that need not sum to 1 yet. "
        "Return (n, d_v), one average for each row of weights.",
        returns={"average": "(queries, d_v)"},
        reference=_weighted_average,
        cases=_weighted_average_cases,
        mistakes=(
            Mistake(
                "not-normalised",
                "The weights are used as they came. Their row sums are not 1, so this is a "
                "weighted sum, and it can lie outside of all values.",
                lambda weights, values: weights @ values,
            ),
            Mistake(
                "by-count",
                "You divided by the number of values. Divide by the sum of the weights: a value "
                "with weight 3 counts three times.",
                lambda weights, values: weights @ values / len(values),
            ),
            Mistake(
                "axis",
                "The weights were made to sum to 1 down the columns. Each row belongs to one "
                "query, and each row must sum to 1.",
                lambda weights, values: weights / weights.sum(axis=0) @ values,
            ),
            Mistake(
                "whole-matrix",
                "You divided all rows by the sum of the whole matrix. Each row has its own sum.",
                lambda weights, values: weights / weights.sum() @ values,
            ),
            Mistake(
                "ignored",
                "The weights are not used: every query gets the plain mean of the values.",
                lambda weights, values: values.mean(axis=0) + 0 * weights[:, :1],
            ),
            Mistake(
                "no-keepdims",
                "The sums of the rows came out as (n,), which lies along the columns of a matrix. "
                "They must stay a column, (n, 1), to divide row by row.",
                lambda weights, values: weights / weights.sum(axis=-1) @ values,
            ),
        ),
        hints=(
            "Weights 3 and 1 for the values 10 and 20: the first counts three times out of four. "
            "What is the average?",
            "Each output is (Σⱼ wⱼ vⱼ) / (Σⱼ wⱼ), with the sums over one row of weights.",
            "The weighted sum of all rows at once is a matrix product. The row sums need "
            "keepdims=True, so that they divide row by row.",
        ),
        solution="""\
def weighted_average(weights, values):
    return (weights @ values) / weights.sum(axis=-1, keepdims=True)""",
    )
)


# A softmax with powers of 2

DOUBLES = np.log(2)  # 2**x is exp(x ln 2)


def _softmax_cases() -> list[Case]:
    return [
        tables([[0, 1]]),
        tables([[0, 1, 3], [1, 1, 0]]),
        tables([[2000, 2001, 1999]]),
        tables([[-2000, -2001], [3, 1], [0, 0]]),
        tables([[-0.5, 0.3, -2.25], [1900.5, 1899.75, 1900]]),
        tables([[0.2, -1800, -2000.5]]),
        tables([[-1074, -1072.5, -1073, -1076], [0.1, 0.7, -0.4, 0]]),
        rough(3, (3, 4)),
    ]


def _hardmax(scores: Array) -> Array:
    return np.eye(scores.shape[-1])[scores.argmax(axis=-1)]


register(
    Exercise(
        name="softmax",
        chapter=2,
        difficulty="easy",
        minutes=10,
        task="Turn scores (n, m) into weights (n, m): at least 0, each row summing to 1, and one "
        "point more of score doubles a weight. Scores of 2000 must not overflow.",
        returns={"weights": "(queries, keys)"},
        reference=lambda scores: softmax(scores * DOUBLES),
        cases=_softmax_cases,
        mistakes=(
            slip(
                "axis",
                "You normalised over the queries, down the columns. The weights of each query, a "
                "row, must sum to 1 over its keys.",
                lambda softmax: lambda scores: softmax(scores * DOUBLES, axis=0),
            ),
            slip(
                "whole-matrix",
                "You normalised over the whole matrix at once. Each row needs its own sum.",
                lambda softmax: (
                    lambda scores: softmax((scores * DOUBLES).reshape(-1)).reshape(scores.shape)
                ),
            ),
            slip(
                "base",
                "You used powers of e, so one point more multiplies a weight by 2.718. It should "
                "double the weight.",
                lambda softmax: lambda scores: softmax(scores),
            ),
            slip(
                "doubled-scores",
                "You doubled the scores, so one point more multiplies a weight by e², about 7.4. "
                "It is the weight that should double.",
                lambda softmax: lambda scores: softmax(2 * scores),
            ),
            slip(
                "divided",
                "You divided the scores by ln 2. Powers of 2 rise more slowly than those of e, so "
                "the temperature is above 1: it is 1 / ln 2.",
                lambda softmax: lambda scores: softmax(scores / DOUBLES),
            ),
            Mistake(
                "no-max",
                "The powers overflow for scores around 2000. Shift each row first: the weights do "
                "not change when the same number is subtracted from all scores of a row.",
                lambda scores: naive_softmax(scores * DOUBLES),
            ),
            Mistake(
                "no-exp",
                "You divided the scores by their sum, without taking powers first. That gives "
                "negative weights for negative scores, and fails where the sum is 0.",
                lambda scores: scores / scores.sum(axis=-1, keepdims=True),
            ),
            Mistake(
                "not-normalised",
                "The powers are there, but the rows do not sum to 1: the division by the row's sum "
                "is missing.",
                lambda scores: np.exp2(scores - scores.max(axis=-1, keepdims=True)),
                also=(np.exp2,),
            ),
            Mistake(
                "one-max",
                "You subtracted the largest score of the whole matrix. A row far below it "
                "underflows to 0 / 0. Each row needs a maximum of its own.",
                lambda scores: naive_softmax((scores - scores.max()) * DOUBLES),
            ),
            Mistake(
                "minimum",
                "You subtracted less than the largest score of each row, so the largest is still "
                "above 0, and its power can overflow.",
                lambda scores: naive_softmax(
                    (scores - scores.min(axis=-1, keepdims=True)) * DOUBLES
                ),
                also=(
                    lambda scores: naive_softmax(
                        (scores - scores.mean(axis=-1, keepdims=True)) * DOUBLES
                    ),
                ),
            ),
            Mistake(
                "absolute",
                "The sign of the scores is lost: a score of −2000 is the worst, not the best.",
                lambda scores: softmax(np.abs(scores) * DOUBLES),
                also=(lambda scores: naive_softmax(np.abs(scores) * DOUBLES),),
            ),
            Mistake(
                "hardmax",
                "All weight goes to the largest score. The softmax gives every key its share.",
                _hardmax,
            ),
            Mistake(
                "no-keepdims",
                "The maxima or sums of the rows came out as (n,), which lies along the columns of "
                "a matrix. They must stay a column, (n, 1).",
                lambda scores: (
                    (e := np.exp2(scores - scores.max(axis=-1, keepdims=True))) / e.sum(axis=-1)
                ),
                also=(lambda scores: np.exp2(scores) / np.exp2(scores).sum(axis=-1),),
            ),
        ),
        hints=(
            "With the scores 0, 1 and 3, the second key gets twice the weight of the first. How "
            "many times does the third get it?",
            "Which rule has the property that adding 1 to a score doubles what it gives? Or keep e "
            "and choose the temperature.",
            "A power of 2 overflows too, above 1024. What may be subtracted from all scores of a "
            "row without changing a weight? Keep that number of each row as a column.",
        ),
        solution="""\
def my_softmax(scores):
    powers = 2.0 ** (scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)""",
    )
)


# How many values are used


def _entropy(weights: Array) -> Array:
    logarithms = np.log(np.where(weights > 0, weights, 1.0))
    return -(weights * logarithms).sum(axis=-1)


register(
    Exercise(
        name="values_used",
        chapter=2,
        difficulty="medium",
        minutes=15,
        task="How many values does each query really use? From weights (n, m), compute exp(H) with "
        "the entropy H of each row: 1 for one-hot weights, m for equal ones. Return (n,).",
        returns={"values used": "(queries,)"},
        reference=lambda weights: np.exp(_entropy(weights)),
        cases=lambda: [
            tables([[0.5, 0.5]]),
            tables([[0.25, 0.25, 0.5], [0.1, 0.6, 0.3]]),
            tables([[1, 0, 0], [0.5, 0, 0.5]]),
            tables([[0.05, 0.15, 0.35, 0.45], [0.97, 0.01, 0.01, 0.01], [0, 0.3, 0, 0.7]]),
        ],
        mistakes=(
            Mistake(
                "entropy",
                "This is the entropy itself. Its exponential counts values.",
                _entropy,
                also=(lambda weights: -(weights * np.log(weights)).sum(axis=-1),),
            ),
            Mistake(
                "sign",
                "The sign of the entropy is missing: logarithms of weights are negative.",
                lambda weights: np.exp(-_entropy(weights)),
                also=(lambda weights: np.exp((weights * np.log(weights)).sum(axis=-1)),),
            ),
            Mistake(
                "base",
                "The logarithm has base 2 and the exponential base e. Use the same base in both.",
                lambda weights: np.exp(_entropy(weights) / np.log(2)),
                also=(lambda weights: np.exp(-(weights * np.log2(weights)).sum(axis=-1)),),
            ),
            Mistake(
                "zero-weight",
                "Right as long as all weights are positive. For a weight of 0, log gives −inf and "
                "0 · (−inf) is nan; its share of the entropy is 0.",
                lambda weights: np.exp(-(weights * np.log(weights)).sum(axis=-1)),
            ),
            Mistake(
                "whole-matrix",
                "You summed over all rows. Each query has an entropy of its own.",
                lambda weights: np.exp(_entropy(weights).sum()),
                also=(lambda weights: np.exp(-(weights * np.log(weights)).sum()),),
            ),
            Mistake(
                "inverse-squares",
                "This is one divided by the sum of the squared weights. It counts values too, but "
                "in another way; take the exponential of the entropy.",
                lambda weights: 1 / (weights**2).sum(axis=-1),
            ),
            Mistake(
                "axis",
                "You summed down the columns. Each query is a row, and has an entropy of its own.",
                lambda weights: np.exp(_entropy(weights.T)),
            ),
            Mistake(
                "mean",
                "You averaged the numbers −ln α as if all counted the same. Each must count with "
                "its own weight, and their sum is not divided by m.",
                lambda weights: np.exp(_entropy(weights) / weights.shape[-1]),
                also=(
                    lambda weights: np.exp(
                        -np.log(np.where(weights > 0, weights, 1)).mean(axis=-1)
                    ),
                    lambda weights: np.exp(-np.log(weights).mean(axis=-1)),
                ),
            ),
            Mistake(
                "counted",
                "You counted the weights that are not 0. A weight of 0.01 should hardly count.",
                lambda weights: (weights > 0).sum(axis=-1),
            ),
        ),
        hints=(
            "Two equal weights use 2 values, three equal weights 3. The entropy of m equal weights "
            "is the logarithm of m.",
            "H = −Σᵢ αᵢ ln αᵢ, where a weight of 0 contributes 0. The answer is exp(H).",
            "Keep log away from 0: np.where(weights > 0, weights, 1) has logarithm 0 there. Sum "
            "over axis=-1.",
        ),
        solution="""\
def values_used(weights):
    logarithms = np.log(np.where(weights > 0, weights, 1.0))
    return np.exp(-(weights * logarithms).sum(axis=-1))""",
    )
)


# Kernel regression


def _differences(query: Array, key: Array) -> Array:
    return query[:, None, :] - key[None, :, :]


def _squared_distances(query: Array, key: Array) -> Array:
    return (_differences(query, key) ** 2).sum(axis=-1)


def _kernel_regression(query: Array, key: Array, value: Array, width: float) -> Array:
    return nadaraya_watson(query, key, value, width=width).output


def _kernel_regression_cases() -> list[Case]:
    return [
        (*tables([[1]], [[0], [3]], [[10], [20]]), 2.0),
        (*tables([[0.25]], [[0], [90], [-200]], [[4], [-1.5], [2]]), 1.5),
        (*tables([[0, 1], [2, 2]], [[0, 0], [1, 2], [3, 1]], [[1], [5], [3]]), 3.0),
        (*tables([[0], [1], [2]], [[0], [2]], [[1, 7], [5, 0]]), 0.5),
        (*tables([[100], [1]], [[0], [1], [3]], [[1, 2], [5, 0], [3, 3]]), 0.5),
        (*tables([[0.25, -1.5]], [[0.5, 0], [-2.5, 1.75], [0.5, 0]], [[0.1], [-0.7], [2.3]]), 1.5),
        (*rough(4, (3, 2), (5, 2), (5, 2)), 0.9),
        (*tables([[0.1, 0.2]], [[0.15, 0.2], [0.1, 0.4], [0.3, 0.1]], [[-2], [1.5], [0.7]]), 0.1),
    ]


register(
    Exercise(
        name="kernel_regression",
        chapter=2,
        difficulty="medium",
        minutes=20,
        task="Estimate a value at each query (n, d) from the keys (m, d) and values (m, d_v) "
        "with a Gaussian kernel of this width. Return (n, d_v). A query far from all keys must "
        "not give nan.",
        returns={"estimate": "(queries, d_v)"},
        reference=_kernel_regression,
        cases=_kernel_regression_cases,
        mistakes=(
            slip(
                "width-not-squared",
                "The width is not squared. It has the unit of a distance, and must cancel that of "
                "the squared distance.",
                lambda softmax: (
                    lambda query, key, value, width: (
                        softmax(-_squared_distances(query, key) / (2 * width)) @ value
                    )
                ),
            ),
            Mistake(
                "not-normalised",
                "The kernel's values are used as weights as they are. Divide them by their sum "
                "over the keys.",
                lambda query, key, value, width: (
                    np.exp(-_squared_distances(query, key) / (2 * width**2)) @ value
                ),
            ),
            slip(
                "no-half",
                "A factor of 2 is missing: the exponent of the Gaussian is −u² / (2 w²).",
                lambda softmax: (
                    lambda query, key, value, width: (
                        softmax(-_squared_distances(query, key) / width**2) @ value
                    )
                ),
            ),
            slip(
                "distance-not-squared",
                "The distance is not squared. exp(−u) is another kernel, with a corner at 0.",
                lambda softmax: (
                    lambda query, key, value, width: (
                        softmax(-np.sqrt(_squared_distances(query, key)) / (2 * width**2)) @ value
                    )
                ),
            ),
            slip(
                "one-component",
                "The differences are summed before they are squared, so that those of two "
                "components can cancel. Square first, then sum over the components.",
                lambda softmax: (
                    lambda query, key, value, width: (
                        softmax(-((_differences(query, key).sum(axis=-1)) ** 2) / (2 * width**2))
                        @ value
                    )
                ),
            ),
            slip(
                "mean-distance",
                "The squared differences are averaged over the components. Their sum is the "
                "squared distance.",
                lambda softmax: (
                    lambda query, key, value, width: (
                        softmax(-(_differences(query, key) ** 2).mean(axis=-1) / (2 * width**2))
                        @ value
                    )
                ),
            ),
            Mistake(
                "nearest",
                "Only the nearest key is read. The kernel gives every key a share.",
                lambda query, key, value, width: value[
                    _squared_distances(query, key).argmin(axis=-1)
                ],
            ),
            slip(
                "sign",
                "The sign of the exponent is missing: far keys get the largest weights.",
                lambda softmax: (
                    lambda query, key, value, width: (
                        softmax(_squared_distances(query, key) / (2 * width**2)) @ value
                    )
                ),
            ),
            slip(
                "axis",
                "The weights sum to 1 over the queries. Each query's weights must sum to 1 over "
                "the keys.",
                lambda softmax: (
                    lambda query, key, value, width: (
                        softmax(-_squared_distances(query, key) / (2 * width**2), axis=0) @ value
                    )
                ),
            ),
            Mistake(
                "underflow",
                "Right where keys are near. Far from all keys every kernel value underflows to 0, "
                "and 0 / 0 is nan. Treat the exponents as scores, and use a softmax that subtracts "
                "the largest.",
                lambda query, key, value, width: (
                    naive_softmax(-_squared_distances(query, key) / (2 * width**2)) @ value
                ),
            ),
        ),
        hints=(
            "A key counts the more, the nearer it is. Measure the distance of every query from "
            "every key first: a table (n, m).",
            "The weight of key i is proportional to exp(−|q − kᵢ|² / (2 w²)). That is a softmax of "
            "scores: which?",
            "A new axis in both makes all pairs of differences, of shape (n, m, d). Far from all "
            "keys every exponential is rounded to 0, unless something is subtracted from each row "
            "first.",
        ),
        solution="""\
def kernel_regression(query, key, value, width):
    squared = ((query[:, None, :] - key[None, :, :]) ** 2).sum(axis=-1)  # (n, m)
    scores = -squared / (2 * width**2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ value""",
    )
)


# The covariance identity


def _output_gradient(query: Array, key: Array, value: Array) -> Array:
    output, weights = attention(query[None], key, value, score=dot_product_score)
    mean_key = weights @ key
    return (weights.T * (value - output)).T @ (key - mean_key)


def _centred(weights: Array, key: Array, value: Array) -> Array:
    return (weights[:, None] * (value - weights @ value)).T @ (key - weights @ key)


def _own_scores(weights: Array, key: Array, value: Array) -> Array:
    return ((weights * (1 - weights))[:, None] * value).T @ key


def _output_gradient_cases() -> list[Case]:
    return [
        tables([1, 0], [[0, 1], [1, 0]], [[0], [4]]),
        tables([0, 1, 1], [[1, 0, 0], [0, 1, -1], [1, 1, 0], [0, 0, 1]], np.eye(4, 2) * 3),
        tables([1, -1], [[1, 0], [0, 1], [1, 1]], [[1, 2, 0], [0, 1, 5], [3, 0, 1]]),
        tables([0.5, -0.25], [[-0.5, 1.5], [0.75, -1], [2, 0.1]], [[-1.5], [0.25], [0.6]]),
        tables([300, 100], [[3, 0], [2, 2.5], [3, -0.01]], [[1, 0.5], [0, 2], [-4, 1]]),
        tables([30, -20], [[30, 0], [29.9375, 0], [0, 30]], [[1.5], [-0.25], [4]]),
        rough(5, (1,), (3, 1), (3, 2)),
        rough(12, (3,), (4, 3), (4, 2)),
    ]


register(
    Exercise(
        name="output_gradient",
        chapter=2,
        difficulty="medium",
        minutes=25,
        task="How does the output move with the query? The score is the dot product, for one query "
        "(d,), keys (m, d) and values (m, d_v). Return the table (d_v, d) of slopes of each "
        "component of the output along each component of the query.",
        returns={"slopes": "(d_v, d)"},
        reference=_output_gradient,
        cases=_output_gradient_cases,
        mistakes=(
            Mistake(
                "not-centred",
                "The means are missing. When one weight grows the others shrink, so only "
                "deviations from the mean count: a covariance.",
                lambda query, key, value: (softmax(key @ query)[:, None] * value).T @ key,
            ),
            Mistake(
                "transposed",
                "Your matrix is transposed: rows are components of the output, columns are "
                "components of the query.",
                lambda query, key, value: _centred(softmax(key @ query), key, value).T,
            ),
            Mistake(
                "plain-mean",
                "You counted every key equally. The means, and the sum, must be taken with the "
                "softmax weights.",
                lambda query, key, value: _centred(np.full(len(key), 1 / len(key)), key, value),
            ),
            Mistake(
                "keys-only",
                "This is the covariance of the keys with themselves. The output is made of values: "
                "one of the two factors must come from them.",
                lambda query, key, value: _centred(softmax(key @ query), key, key),
            ),
            Mistake(
                "values-only",
                "This is the covariance of the values with themselves. The weights move with the "
                "keys: one of the two factors must come from them.",
                lambda query, key, value: _centred(softmax(key @ query), value, value),
            ),
            Mistake(
                "diagonal",
                "The slope of each weight along its own score only. When one score rises, the "
                "weights of the other keys change too.",
                lambda query, key, value: _own_scores(softmax(key @ query), key, value),
            ),
            Mistake(
                "scaled",
                "The scores are divided by √d. Here the score is the plain dot product.",
                lambda query, key, value: _centred(
                    softmax(key @ query / np.sqrt(len(query))), key, value
                ),
            ),
            Mistake(
                "no-max",
                "Right at moderate scores. With large ones exp overflows: subtract the largest "
                "score first.",
                lambda query, key, value: _centred(naive_softmax(key @ query), key, value),
            ),
            Mistake(
                "divided-by-m",
                "You averaged over the keys and weighted as well. The weights sum to 1 already, so "
                "add up without dividing by m.",
                lambda query, key, value: _centred(softmax(key @ query), key, value) / len(key),
            ),
        ),
        hints=(
            "Try it with two keys first. If the query moves towards one key, that key's weight "
            "grows and the other's shrinks by as much.",
            "The slope of αᵢ along q is αᵢ (kᵢ − k̄), where k̄ is the weighted mean of the keys. "
            "Put that into o = Σᵢ αᵢ vᵢ.",
            "A sum over i of a column times a row is one product of matrices, (d_v, m) and (m, d). "
            "A test: if all values are equal, no query can move the output.",
        ),
        solution="""\
def output_gradient(query, key, value):
    weights = np.exp(key @ query - np.max(key @ query))
    weights = weights / weights.sum()  # (m,)
    output, mean_key = weights @ value, weights @ key  # (d_v,), (d,)
    return (weights[:, None] * (value - output)).T @ (key - mean_key)""",
    )
)


# Leave-one-out error


def _leave_one_out_error(x: Array, y: Array, width: float) -> float:
    errors = []
    for i in range(len(x)):
        others = np.arange(len(x)) != i
        key, value = x[others, None], y[others, None]
        estimate = nadaraya_watson(x[i : i + 1, None], key, value, width=width).output
        errors.append(estimate[0, 0] - y[i])
    return float(np.sqrt(np.mean(np.square(errors))))


def _residuals(x: Array, y: Array, width: float) -> Array:
    """Estimates less observations, each point left out of its own estimate."""
    return _left_out_weights(x, width) @ y - y


def _left_out_weights(x: Array, width: float) -> Array:
    scores = -((x[:, None] - x) ** 2) / (2 * width**2)
    return softmax(np.where(np.eye(len(x)) > 0, -np.inf, scores))


def _all_weights(x: Array, width: float) -> Array:
    return softmax(-((x[:, None] - x) ** 2) / (2 * width**2))


def _naive_left_out(x: Array, width: float) -> Array:
    closeness = np.exp(-((x[:, None] - x) ** 2) / (2 * width**2)) * (1 - np.eye(len(x)))
    return closeness / closeness.sum(axis=-1, keepdims=True)


def _elsewhere(x: Array, width: float) -> Array:
    gaps = x[:, None] - x
    return softmax(np.where(gaps == 0, -np.inf, -(gaps**2) / (2 * width**2)))


def _by_distance(x: Array, width: float) -> Array:
    scores = -np.abs(x[:, None] - x) / (2 * width**2)
    return softmax(np.where(np.eye(len(x)) > 0, -np.inf, scores))


def _root_mean_square(errors: Array) -> Array:
    return np.sqrt(np.mean(errors**2))


def _leave_one_out_cases() -> list[Case]:
    return [
        (*tables([0, 1, 3], [1, 2, 9]), 1.0),
        (*tables([0, 1, 2, 5], [1, 0, 4, 2]), 2.0),
        (*tables([0, 0.5, 1, 2, 2.5], [3, 1, 4, 1, 5]), 0.5),
        (*tables([0, 1, 100], [1, 2, 5]), 0.5),
        (*tables([0, 0, 1.5, 4], [1.25, 3, -2, 0.5]), 1.5),
        (*tables([-2.5, 3, -0.5], [0.5, -1.75, 2]), 0.75),
        (*rough(7, (6,), (6,)), 0.2),
        (*rough(8, (5,), (5,)), 1.1),
    ]


register(
    Exercise(
        name="leave_one_out_error",
        chapter=2,
        difficulty="hard",
        minutes=30,
        task="How well does kernel regression with a Gaussian of this width predict each y (m,) at "
        "x (m,) from all the other points? Return one number, the root of the mean squared error. "
        "Points far from all others must not give nan.",
        returns={"error": "()"},
        reference=_leave_one_out_error,
        cases=_leave_one_out_cases,
        mistakes=(
            Mistake(
                "own-point",
                "Each point helps to predict itself. Then the narrowest kernel always wins, as it "
                "only repeats what it has seen.",
                lambda x, y, width: _root_mean_square(_all_weights(x, width) @ y - y),
            ),
            Mistake(
                "late",
                "The point's own weight was set to 0 after the division. The other weights no "
                "longer sum to 1. Leave it out before.",
                lambda x, y, width: _root_mean_square(
                    _all_weights(x, width) * (1 - np.eye(len(x))) @ y - y
                ),
            ),
            Mistake(
                "underflow",
                "Right where points are near one another. For a point far from all others every "
                "kernel value underflows to 0, and 0 / 0 is nan. Subtract the largest score of "
                "each row before exp.",
                lambda x, y, width: _root_mean_square(_naive_left_out(x, width) @ y - y),
                also=(
                    lambda x, y, width: _root_mean_square(
                        np.nan_to_num(_naive_left_out(x, width)) @ y - y
                    ),
                ),
            ),
            Mistake(
                "by-place",
                "Every point at the same place is left out, not only the point itself. Another "
                "point there is evidence like any other.",
                lambda x, y, width: _root_mean_square(_elsewhere(x, width) @ y - y),
            ),
            Mistake(
                "width-not-squared",
                "The width is not squared: the exponent is −u² / (2 w²).",
                lambda x, y, width: _root_mean_square(_residuals(x, y, np.sqrt(width))),
            ),
            Mistake(
                "no-half",
                "A factor of 2 is missing: the exponent of the Gaussian is −u² / (2 w²).",
                lambda x, y, width: _root_mean_square(_residuals(x, y, width / np.sqrt(2))),
            ),
            Mistake(
                "distance-not-squared",
                "The distance is not squared: the exponent is −u² / (2 w²).",
                lambda x, y, width: _root_mean_square(_by_distance(x, width) @ y - y),
                also=(
                    lambda x, y, width: _root_mean_square(
                        _by_distance(x, np.sqrt(width)) @ y - y  # neither of the two is
                    ),
                ),
            ),
            Mistake(
                "no-root",
                "This is the mean squared error. Its root, in the units of y, was asked for.",
                lambda x, y, width: np.mean(_residuals(x, y, width) ** 2),
            ),
            Mistake(
                "absolute",
                "This is the mean absolute error. Square the errors, average, then take the root.",
                lambda x, y, width: np.mean(np.abs(_residuals(x, y, width))),
            ),
            Mistake(
                "sum",
                "The squared errors were added up. Take their mean, so that more points do not "
                "make the error larger.",
                lambda x, y, width: np.sqrt(np.sum(_residuals(x, y, width) ** 2)),
            ),
            Mistake(
                "signed",
                "The errors were averaged before they were squared, so that those above and below "
                "cancel.",
                lambda x, y, width: np.abs(np.mean(_residuals(x, y, width))),
            ),
        ),
        hints=(
            "A point may not vote on itself. Which entries of the table of weights (m, m) are "
            "those?",
            "The other weights of a row must still sum to 1. So should you remove the point's own "
            "part before the softmax, or after it?",
            "np.fill_diagonal writes into a table. If a point is far from all others, each of its "
            "exponentials is rounded to 0: what may be subtracted from a row of scores first?",
        ),
        solution="""\
def leave_one_out_error(x, y, width):
    scores = -((x[:, None] - x[None, :]) ** 2) / (2 * width**2)  # (m, m)
    np.fill_diagonal(scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return np.sqrt(np.mean((weights @ y - y) ** 2))""",
    )
)
