"""Wrong answers: one small change at a time to the syntax tree of a solution, and its words."""

import ast
import copy
from collections.abc import Iterator
from typing import Any

__all__ = ["changed", "mutants"]

# What stands in place of a node, with the kind of the slip and words that end "It is as if …".
Change = tuple[str, str, ast.AST]
Place = tuple[ast.AST, str, int | None]  # a node's parent, the field, and the index in it

COMPARED: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.GtE], ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq],
}  # fmt: skip
# In place of each operation: another one, or one side alone (a missing scale, a missing root).
OPERATIONS: dict[type, list[type]] = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult],
    ast.FloorDiv: [], ast.Mod: [], ast.Pow: [], ast.MatMult: [], ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
}  # fmt: skip
MORE_OPERATIONS: dict[type, list[type]] = {
    ast.Add: [ast.Mult],
    ast.Mult: [ast.Add],
}  # to explain with
ORDERED = ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow | ast.MatMult
SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "−", ast.Mult: "×", ast.Div: "÷", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
CALLED = {
    "sqrt": "the root", "exp": "the exponential", "log": "the logarithm", "sum": "the sum",
    "mean": "the mean", "median": "the median", "max": "the largest", "min": "the smallest",
    "norm": "the length", "abs": "the absolute value", "swapaxes": "the exchange of axes",
    "transpose": "the exchange of axes", "eye": "the diagonal", "len": "a size",
    "relu": "max(…, 0)", "reversed": "the reverse order", "astype": "the change of kind",
    "maximum": "the larger", "minimum": "the smaller", "logaddexp": "the new logarithm",
    "zeros_like": "the zeros", "where": "the choice", "delete": "the removal",
    "concatenate": "the joining", "reshape": "the new shape", "repeat": "the repetition",
}  # fmt: skip
DROPPED = {"abs", "array", "where", "full", "arange", "zeros", "empty", "len", "range", "list",
           "print", "tuple", "Linear", "enumerate", "zip"}  # fmt: skip
OTHERS = [
    ("max", "min"), ("argmax", "argmin"), ("maximum", "minimum"), ("sum", "mean"),
    ("mean", "median"), ("median", "mean"), ("sin", "cos"), ("cos", "sin"), ("tril", "triu"),
    ("all", "any"), ("any", "all"),
]  # fmt: skip
MORE_OTHERS = [  # only to explain with
    ("max", "mean"), ("max", "sum"), ("min", "max"), ("mean", "sum"), ("mean", "max"),
    ("mean", "min"), ("median", "max"), ("median", "min"), ("sum", "max"),
    ("argmin", "argmax"), ("tanh", "sin"), ("exp", "exp2"), ("log", "log2"), ("repeat", "tile"),
]  # fmt: skip
FUNCTIONS = [
    ("tanh", "np.maximum({}, 0)", "max(…, 0)"), ("tanh", "1 / (1 + np.exp(-({})))", "the sigmoid"),
    ("relu", "{}.sigmoid()", "the sigmoid"), ("relu", "{}.tanh()", "tanh"),
    ("relu", "nn.functional.gelu({})", "GELU"), ("softmax", "{}.sigmoid()", "the sigmoid"),
    ("softmax", "{0} / {0}.sum(-1)[..., None]", "the share"), ("exp", "({}) ** 2", "the square"),
]  # fmt: skip
LENGTHS = [
    ("np.abs({}).sum({})", "sizes were added up, not their squares"),
    ("np.abs({}).max({})", "the largest component were taken, not the length"),
    ("np.abs({}).mean({})", "the mean of all components were taken, not the length"),
    ("np.linalg.norm({}, {}) ** 2", "the length were squared"),
]
ATTENTIONS = [  # see `variations`
    ("_over_queries", "the softmax ran over the queries, not over the keys"),
    ("_overflows", "exp overflowed: the largest score of a row is subtracted first"),
]
LEFT_OUT = {
    "[1:]": "left out its first step", "[:-1]": "left out its last step",
    "[:1]": "ended after its first step", "[-1:]": "took its last step alone",
    "[::-1]": "ran backwards",
}  # fmt: skip
EPS = 1e-3


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _with(node: ast.AST, **changes: object) -> Any:
    changed = copy.deepcopy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _words(node: ast.AST) -> str:
    """Say what a part of an answer is: the names that a reader has, and the field's words."""
    if isinstance(node, ast.Name):
        return node.id if len(node.id) > 1 or node.id in "xy" else "a factor"
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.Call):
        name = _name(node)
        return CALLED.get(name, name)
    if isinstance(node, ast.Attribute | ast.Subscript):
        return "a size" if "shape" in ast.unparse(node) else _words(node.value)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow):
            return "the root" if ast.unparse(node.right) == "0.5" else "the power"
        return {ast.Add: "the sum", ast.Sub: "the difference"}.get(type(node.op), "the product")
    return _words(node.operand) if isinstance(node, ast.UnaryOp) else "a part"


def _name(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _binary(node: ast.BinOp) -> Iterator[Change]:
    sign, left, right = SIGNS[type(node.op)], _words(node.left), _words(node.right)
    for other in [*OPERATIONS[type(node.op)], *MORE_OPERATIONS.get(type(node.op), [])]:
        words = f"“{SIGNS[other]} {right}” stood in place of “{sign} {right}”"
        yield (
            ("sign" if other in OPERATIONS[type(node.op)] else "more"),
            words,
            _with(node, op=other()),
        )
    yield "missing", f"“{sign} {right}” were left out", node.left
    if not isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
        yield "missing", f"{left} were left out before “{sign} {right}”", node.right
    if isinstance(node.op, ORDERED):
        words = f"the two sides of “{left} {sign} {right}” were exchanged"
        yield "order", words, _with(node, left=node.right, right=node.left)
    if isinstance(node.op, ast.Div):
        words = f"a small number were added to {right} before dividing"
        yield "eps", words, _with(node, right=ast.BinOp(node.right, ast.Add(), ast.Constant(EPS)))


def _called(node: ast.Call) -> Iterator[Change]:
    name, words = _name(node), CALLED.get(_name(node), _name(node))
    for i, keyword in enumerate(node.keywords):
        rest = [*node.keywords[:i], *node.keywords[i + 1 :]]
        missing = f"{words} were taken without {keyword.arg}="
        yield "missing", missing, _with(node, keywords=rest)
        if keyword.arg in ("axis", "dim"):
            for axis in "0", "1", "-2", "None":
                if ast.unparse(keyword.value) != axis:
                    along = "over all numbers" if axis == "None" else "along another axis"
                    other = _with(keyword, value=_parse(axis))
                    keywords = [*node.keywords[:i], other, *node.keywords[i + 1 :]]
                    yield "axis", f"{words} were taken {along}", _with(node, keywords=keywords)
    plain = not any(isinstance(x, ast.Starred) for x in node.args)
    if plain and len(node.args) > 1:
        for i in range(len(node.args) - 1):
            args = [*node.args]
            args[i], args[i + 1] = args[i + 1], args[i]
            exchanged = f"{_words(args[i + 1])} and {_words(args[i])} were exchanged in {name}"
            yield "order", exchanged, _with(node, args=args)
    if plain and name not in DROPPED:
        if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
            yield "missing", f"{words} were left out", node.func.value  # x.swapaxes(…) -> x
        elif node.args:
            yield "missing", f"{words} were left out", node.args[0]  # np.exp(x) -> x
    for old, new, says in FUNCTIONS:
        if name == old:
            of = node.func.value if not node.args else node.args[0]  # type: ignore[attr-defined]
            yield "more", f"{says} were taken, not {words}", _parse(new.format(ast.unparse(of)))
    if name in ("arange", "array", "tril", "ones"):
        yield "int8", "", _parse(f"np.asarray({ast.unparse(node)}).astype(np.int8)")
    for pairs, kind in (OTHERS, "other"), (MORE_OTHERS, "more"):
        for old, new in pairs:
            says = f"{CALLED.get(new, new)} were taken, not {words}"
            if name == old and isinstance(node.func, ast.Attribute):
                func, given = _with(node.func, attr=new), node.args
                if new == "median" and not _is_module(node.func.value):
                    kind, func, given = "more", _parse("np.median"), [node.func.value, *given]
                yield kind, says, _with(node, func=func, args=given)
            elif name == old and new in ("min", "max", "any", "all"):
                yield kind, says, _with(node, func=ast.Name(new, ast.Load()))
    if name == "attention":
        for other, says in ATTENTIONS:
            yield "more", says, _with(node, func=_parse(other))
    if name in ("attention", "multi_head_attention"):
        known = {k.arg for k in node.keywords}
        for key, value, says in (
            ("causal", True, "no token saw a later one"),
            ("scale", 1.0, "the scores were not divided by √d"),
        ):
            if key not in known and not (key == "scale" and "score" in known):
                keyword = ast.keyword(key, ast.Constant(value))
                yield "more", says, _with(node, keywords=[*node.keywords, keyword])
    if name == "norm":
        of = ast.unparse(node.args[0])
        along = ", ".join(ast.unparse(k) for k in node.keywords)
        for text, says in LENGTHS:
            yield "more", says, _parse(text.format(of, along))


def _is_module(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id in ("np", "torch", "nn")) or (
        isinstance(node, ast.Attribute) and _is_module(node.value)
    )


def _changes(node: ast.AST, names: tuple[str, ...]) -> Iterator[Change]:
    """Return what may stand in place of a node, each with the kind of the slip."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        old: Any = node.value
        new: Any
        for new in (old + 1, old - 1, *((0.5 * old, 10.0) if type(old) is float else ())):
            kind = "off by one" if abs(new - old) == 1 else "more"
            yield kind, f"{new} stood where {old} belongs", _with(node, value=new)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        words = f"{not node.value} stood where {node.value} belongs"
        yield "other", words, _with(node, value=not node.value)
    elif isinstance(node, ast.UnaryOp):
        if ast.unparse(node) == "-np.inf":
            yield from _fills()
        elif isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
            for new in 0, -node.operand.value - 1:
                yield "more", f"{new} stood where {-node.operand.value} belongs", ast.Constant(new)
            yield "sign", f"the minus of {-node.operand.value} were left out", node.operand
        elif isinstance(node.op, ast.Invert):
            yield "sign", f"{_words(node.operand)} were upside down", node.operand
        else:
            yield "sign", f"the minus before {_words(node.operand)} were left out", node.operand
    elif isinstance(node, ast.Call) and ast.unparse(node).replace('"', "'") == "float('-inf')":
        yield from _fills()
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        yield from _binary(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARED.get(type(node.ops[0]), []):
            words = f"a comparison were {SIGNS[other]} and not {SIGNS[type(node.ops[0])]}"
            yield "comparison", words, _with(node, ops=[other()])
        for other in [ast.GtE, ast.LtE] if isinstance(node.ops[0], ast.Eq | ast.NotEq) else []:
            words = f"a comparison were {SIGNS[other]} and not {SIGNS[type(node.ops[0])]}"
            yield "more", words, _with(node, ops=[other()])
    elif isinstance(node, ast.Call):
        yield from _called(node)
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "output"):
        words = ".output were forgotten" if node.attr == "output" else "nothing were transposed"
        yield "missing", words, node.value
    elif isinstance(node, ast.Slice):
        yield from _slices(node)
    elif isinstance(node, ast.Dict | ast.List | ast.Tuple) and isinstance(
        getattr(node, "ctx", ast.Load()), ast.Load
    ):
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 1:
            parts = [_words(part) for part in node.elts[::-1]]
            words = f"{' and '.join(parts)} came in this order"
            if len({*parts}) < len(parts):
                words = "a pair came in the reverse order"
            yield "order", words, _with(node, elts=node.elts[::-1])
    elif isinstance(node, ast.For | ast.comprehension):
        if "forward" not in ast.unparse(node.iter):
            for part, words in LEFT_OUT.items():
                some = _parse(f"[*{ast.unparse(node.iter)}]{part}")
                yield "first or last", f"a loop {words}", _with(node, iter=some)
    elif isinstance(node, ast.AugAssign):
        alone = ast.Assign([node.target], node.value, lineno=node.lineno)
        yield "missing", f"{_words(node.target)} were replaced, not changed", alone
        for other in OPERATIONS.get(type(node.op), []):
            words = f"{SIGNS[other]}= stood in place of {SIGNS[type(node.op)]}="
            yield "more", words, _with(node, op=other())
    elif isinstance(node, ast.IfExp):
        yield "missing", "“if” made no difference", node.body
        yield "missing", "“if” made no difference", node.orelse
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        for name in names:  # the wrong one, in one place
            if name != node.id:
                words = f"{name} stood in a place where {node.id} belongs"
                yield "more", words, _with(node, id=name)
        for number in 0, 1:
            words = f"{number} stood in a place where {node.id} belongs"
            yield "more", words, ast.Constant(number)


def _fills() -> Iterator[Change]:
    for fill in -30.0, -1e4, -10.0, -100.0:
        words = "a negative number stood where −∞ belongs, too large for some of the inputs"
        yield "fill" if fill in (-30.0, -1e4) else "more", words, ast.Constant(fill)


def _slices(node: ast.Slice) -> Iterator[Change]:
    for part, does in ("lower", "began"), ("upper", "ended"), ("step", "went"):
        if getattr(node, part) is not None:
            yield "missing", f"{part} bound of a slice were left out", _with(node, **{part: None})
            for op, where in (ast.Add(), "later"), (ast.Sub(), "earlier"):
                if part != "step":
                    at = ast.BinOp(getattr(node, part), op, ast.Constant(1))
                    words = f"a slice {does} one place {where}"
                    yield "off by one", words, _with(node, **{part: at})


def _nodes(tree: ast.AST) -> Iterator[tuple[Place, ast.AST]]:
    """Return each node with its parent and its place in it; nothing of imports and signatures."""
    for name, value in ast.iter_fields(tree):
        if name in ("args", "decorator_list") and isinstance(tree, ast.FunctionDef | ast.Lambda):
            continue
        for i, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST):
                yield (tree, name, i if isinstance(value, list) else None), child
                yield from _nodes(child)


def changed(
    tree: ast.AST, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, str, ast.AST, ast.AST]]:
    """Make each change to the tree in its turn, say what it is, and take it back."""
    alike: dict[tuple[str, str], list[tuple[Place, ast.AST, ast.AST]]] = {}
    for place, node in list(_nodes(tree)):
        for kind, words, new in _changes(node, names):
            _put(place, new)
            yield kind, words, node, new
            _put(place, node)
            given = new.keywords if kind == "axis" else []  # type: ignore[attr-defined]
            axis = "".join(ast.unparse(k.value) for k in given if k.arg in ("axis", "dim"))
            alike.setdefault((axis, "" if axis else words), []).append((place, node, new))
    for (_, words), changes in alike.items():
        for place, _, new in changes:
            _put(place, new)
        if len(changes) > 1:
            yield "more", words or "another axis were meant throughout", node, new
        for place, node, _ in reversed(changes):
            _put(place, node)


def _put(place: Place, node: ast.AST) -> None:
    parent, name, i = place
    if i is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[i] = node


def mutants(solution: str) -> Iterator[tuple[str, str, str]]:
    """Return answers with one slip each: its kind, what was changed, and the text."""
    tree = ast.parse(solution)
    seen = {ast.unparse(tree)}
    for kind, _, node, new in changed(tree):
        text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree)))
        if kind != "more" and text not in seen:
            seen.add(text)
            yield kind, f"{_short(node)} -> {_short(new)}", text


def _short(node: ast.AST) -> str:
    if isinstance(node, ast.For | ast.comprehension):
        return f"in {ast.unparse(node.iter)}"
    return " ".join(ast.unparse(node).split())
