"""The right answer with one thing changed: what explains an answer that no known mistake explains.

Each is made from the solution, and comes with a sentence. What has a name, an argument or a value
on the way, is changed as a whole; the rest is what `mutants` does to the syntax tree.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import CodeType
from typing import Any

import numpy as np

from d2lmini._arrays import is_torch
from d2lmini.attention import Attention
from d2lmini.exercises.cards import LARGEST
from d2lmini.exercises.definition import Exercise
from d2lmini.exercises.mutants import changed
from d2lmini.exercises.slips import naive_softmax
from d2lmini.scores import scaled_dot_product_score
from d2lmini.weights import softmax

__all__ = ["related", "variations"]

# What may be done to a thing that has a name: an argument, a value on the way, or the result. The
# words follow "is" or "were".

TURNED = {"sin(": "cos(", "cos(": "sin("}
Array = np.ndarray[Any, np.dtype[Any]]


def _seen(x: Array, k: int) -> Array:
    n, m = x.shape[-2:]
    return np.tri(n, m, m - n + k, dtype=bool)


def _hidden(x: Array, seen: Array) -> Array:
    return x & seen if x.dtype.kind == "b" else np.where(seen, x, -np.inf)


def _kept(x: Array, y: Array) -> Array:
    """Return y as an array of the shape of x."""
    return np.broadcast_to(y, x.shape).copy()


CHANGES: list[tuple[str, Callable[[Array], Array]]] = [
    ("upside down: True for False", lambda x: ~x),
    ("0 everywhere", np.zeros_like),
    ("1 everywhere", np.ones_like),
    ("of the opposite sign", lambda x: -x),
    ("transposed: its last two axes are exchanged", lambda x: x.swapaxes(-1, -2)),
    ("transposed: its first two axes are exchanged", lambda x: x.swapaxes(0, 1)),
    ("in reverse order", lambda x: x[::-1]),
    ("reversed within each row", lambda x: x[..., ::-1]),
    ("squared", lambda x: x.astype(float) ** 2),
    ("the root of what it should be", np.sqrt),
    ("without its signs", np.abs),
    ("1 minus what it should be", lambda x: 1.0 - x),
    ("1 divided by what it should be", lambda x: 1.0 / x),
    ("the logarithm of what it should be", np.log),
    ("the exponential of what it should be", np.exp),
    ("given an axis of length 1 that should not be there", lambda x: x[None]),
    ("given an axis of length 1 that should not be there", lambda x: x[..., None]),
    ("its first row alone", lambda x: x[0]),
    ("its last row alone", lambda x: x[-1]),
    ("reversed along its second axis", lambda x: x[:, ::-1] if x.ndim > 2 else x[:, :0]),
    ("the first along its second axis everywhere", lambda x: _kept(x, x[:, :1, :])),
    ("the last along its second axis everywhere", lambda x: _kept(x, x[:, -1:, :])),
    ("without its first row", lambda x: x[1:]),
    ("without its last row", lambda x: x[:-1]),
    ("its first row in every place", lambda x: _kept(x, x[:1])),
    ("its last row in every place", lambda x: _kept(x, x[-1:])),
    ("its first column in every place", lambda x: _kept(x, x[..., :1])),
    ("its last column in every place", lambda x: _kept(x, x[..., -1:])),
    ("its largest number in every place", lambda x: _kept(x, x.max())),
    ("its smallest number in every place", lambda x: _kept(x, x.min())),
    ("the mean of its rows in every place", lambda x: _kept(x, x.mean(0, keepdims=True))),
    ("moved on by one place", lambda x: np.roll(x, 1, 0)),
    ("moved back by one place", lambda x: np.roll(x, -1, 0)),
    ("moved one column to the right", lambda x: np.roll(x, 1, -1)),
    ("moved one column to the left", lambda x: np.roll(x, -1, -1)),
    ("exchanged with its other half", lambda x: np.roll(x, x.shape[-1] // 2, -1)),
    ("1 at the largest of each row and 0 elsewhere", lambda x: 1.0 * (x == x.max(-1)[..., None])),
    ("sorted", lambda x: np.sort(x, axis=0)),
    ("sorted within each row", lambda x: np.sort(x, axis=-1)),
    ("one larger than it should be", lambda x: x + 1),
    ("one smaller than it should be", lambda x: x - 1),
    ("twice what it should be", lambda x: 2 * x),
    ("half of what it should be", lambda x: x / 2),
    ("multiplied by the root of its columns", lambda x: x * x.shape[-1] ** 0.5),
    ("divided by the root of its columns", lambda x: x / x.shape[-1] ** 0.5),
    ("multiplied by the root of its rows", lambda x: x * x.shape[-2] ** 0.5),
    ("divided by the root of its rows", lambda x: x / x.shape[-2] ** 0.5),
    ("divided by its columns", lambda x: x / x.shape[-1]),
    ("divided by its rows", lambda x: x / x.shape[-2]),
    ("divided by the sum of each row", lambda x: x / x.sum(-1, keepdims=True)),
    ("divided by the sum of each column", lambda x: x / x.sum(0, keepdims=True)),
    ("brought to length 1 in each row", lambda x: x / np.sqrt((x**2).sum(-1, keepdims=True))),
    ("without its mean", lambda x: x - x.mean(-1, keepdims=True)),
    ("without what is negative", lambda x: np.maximum(x, 0)),
    ("rounded", np.round),
    ("cut to whole numbers", lambda x: x.astype(int)),
    ("hidden from earlier tokens, as causal attention does", lambda x: _hidden(x, _seen(x, 0))),
    ("hidden from earlier tokens and from itself", lambda x: _hidden(x, _seen(x, -1))),
    ("hidden from itself", lambda x: _hidden(x, _seen(x, 0) == _seen(x, -1))),
]  # fmt: skip


def related(pairs: Sequence[tuple[Array, Array]], close: Callable[[Array, Array], bool]) -> str:
    """Say how all results are related to the right ones; empty if no way is plain."""
    if any(x.size > LARGEST for pair in pairs for x in pair) or all(close(*pair) for pair in pairs):
        return ""
    few = len(np.unique(np.concatenate([got.ravel() for got, _ in pairs]))) < 6
    for words, change in CHANGES:
        if few and words in ("rounded", "cut to whole numbers"):
            continue  # a count of a few things is often what would come of rounding
        with suppress(TypeError, ValueError, IndexError):  # such as of a number, without axes
            if all(close(a, change(b)) for a, b in pairs):
                return f"Your result is {words}."
    if any(a.shape != b.shape or b.dtype.kind == "b" for a, b in pairs):
        return ""
    a, b = (np.concatenate([pair[i].ravel().astype(float) for pair in pairs]) for i in (0, 1))
    if not np.isfinite(a).all():
        return ""
    largest = np.abs(b).argmax()
    factor = a[largest] / b[largest] if b[largest] else 1.0
    if factor not in (0.0, 1.0) and close(a, factor * b):
        return f"Each number is {factor:.4g} times the right one, whatever the input."
    if close(a - a[0] + b[0], b):
        more = a[0] - b[0]
        return f"Each number is too {'large' if more > 0 else 'small'} by {abs(more):.4g}."
    return ""


class _SenselessError(Exception):
    """A change that cannot be made to this value."""


def _on_any(change: Callable[[Array], Array]) -> Callable[[Any], Any]:
    """Let a change of arrays do the same to a tensor, a list or a number."""

    def changed(x: Any) -> Any:
        try:
            if is_torch(x):
                moved = x.new_tensor(change(x.detach().numpy()))
                # Where it can, it learns as before: what has no slope is another slip.
                learns = moved.shape == x.shape and (moved - x).isfinite().all()
                return x + (moved - x).detach() if learns else moved
            old = np.asarray(x)
            new = change(old)
            if old.dtype.kind == "i" and not np.array_equal(new, new.astype(int)):
                raise _SenselessError  # a count that is no whole number
            if isinstance(x, np.ndarray):
                return new
            return type(x)(new) if isinstance(x, int | float) else new.tolist()
        except Exception as error:
            raise _SenselessError from error

    return changed


def variations(exercise: Exercise) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return answers that differ from the solution in one thing, each with a sentence on it."""
    tree = ast.parse(exercise.solution)
    places = list(_named(tree, exercise))
    names = tuple(dict.fromkeys(name for _, _, name in places))
    for kind, words, _, _ in changed(tree, names):
        if kind != "int8":
            yield f"It is as if {words}.", _function(_compiled(tree), exercise.function)
    if "sin(" in exercise.solution:
        turned = re.sub(r"sin\(|cos\(", lambda one: TURNED[one[0]], exercise.solution)
        yield (
            "It is as if sin and cos were exchanged.",
            _function(_compiled(ast.parse(turned)), exercise.function),
        )
    for body, i, name in places:
        for other in names if name in exercise.arguments and i == 0 else ():
            if other in exercise.arguments and other != name:
                for text, words in (
                    (f"{name}, {other} = {other}, {name}", f"{name} and {other} were exchanged"),
                    (f"{name} = {other}", f"{other} were used in place of {name}"),
                ):
                    code = _compiled(tree, body, i, text)
                    yield f"It is as if {words}.", _function(code, exercise.function)
        code = _compiled(tree, body, i, f"{name} = _changed({name})")
        for words, change in CHANGES:
            yield (
                f"It is as if {'the exponentials' if name == 'e' else name} were {words}.",
                _function(code, exercise.function, _changed=_on_any(change)),
            )


def _compiled(
    tree: ast.Module, body: list[ast.stmt] | None = None, i: int = 0, text: str = ""
) -> CodeType:
    """Compile the tree, with one statement more where it is given."""
    if body is None:
        return compile(ast.fix_missing_locations(tree), "<variation>", "exec")
    body[i:i] = ast.parse(text).body
    try:
        return _compiled(tree)
    finally:
        del body[i]


def _function(code: CodeType, name: str, **names: Any) -> Callable[..., Any]:
    namespace = {"np": np, "_over_queries": _over_queries, "_overflows": _overflows, **names}
    try:
        exec(code, namespace)
    except Exception:  # what a class does when it is made
        return lambda: None
    function: Callable[..., Any] = namespace[name]
    return function


def _over_queries(*arguments: Any, **options: Any) -> Attention[Array]:
    """Do what `attention` does, with a softmax along the wrong axis."""
    return _attention(lambda scores: softmax(scores, axis=-2), *arguments, **options)


def _overflows(*arguments: Any, **options: Any) -> Attention[Array]:
    """Do what `attention` does, without the subtraction of the largest score."""
    return _attention(naive_softmax, *arguments, **options)


def _attention(
    softmax: Callable[[Array], Array],
    query: Array,
    key: Array,
    value: Array,
    *,
    mask: Array | None = None,
    score: Callable[[Array, Array], Array] = scaled_dot_product_score,
) -> Attention[Array]:
    scores = score(query, key)
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return Attention(weights @ value, weights)


def _named(tree: ast.Module, exercise: Exercise) -> Iterator[tuple[list[ast.stmt], int, str]]:
    """Return where something has a name: the statements, the place after it, and the name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in ("forward", exercise.function):
            for argument in node.args.args:
                if argument.arg != "self":
                    yield node.body, 0, argument.arg
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.For) and getattr(node, "name", "") != "__init__":
            for i, statement in enumerate(node.body):
                if isinstance(statement, ast.Assign):
                    (target,) = statement.targets
                    for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                        if isinstance(name, ast.Name) and (len(name.id) > 1 or name.id == "e"):
                            yield node.body, i + 1, name.id
