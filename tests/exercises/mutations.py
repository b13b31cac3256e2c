"""Wrong answers to any exercise: one small change at a time to the syntax tree of its solution."""

import ast
import copy
from collections.abc import Callable, Iterator

COMPARED = {ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.GtE], ast.Gt: [ast.GtE, ast.Lt],
            ast.GtE: [ast.Gt, ast.LtE], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq]}  # fmt: skip
# In place of each operation: another one, or one side alone (a missing scale, a missing root).
OPERATIONS: dict[type, list[type]] = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult],
    ast.FloorDiv: [], ast.Mod: [], ast.Pow: [], ast.MatMult: [], ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
}  # fmt: skip
ORDERED = ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow | ast.MatMult
DROPPED = {"abs", "array", "where", "full", "arange", "zeros", "empty", "len", "range", "list",
           "print", "tuple", "Linear", "enumerate", "zip"}  # fmt: skip
EPS = 1e-3


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _call(name: str, node: ast.expr) -> ast.expr:
    """Return ``name(node)``."""
    call = _parse(f"{name}()")
    assert isinstance(call, ast.Call)
    call.args = [node]
    return call


def _with(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.deepcopy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _without(items: list, i: int) -> list:
    return [*items[:i], *items[i + 1 :]]


def _binary(node: ast.BinOp) -> Iterator[tuple[str, ast.AST]]:
    for other in OPERATIONS[type(node.op)]:
        yield "sign", _with(node, op=other())
    yield "missing", node.left
    if not isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
        yield "missing", node.right
    if isinstance(node.op, ORDERED):
        yield "order", _with(node, left=node.right, right=node.left)
    if isinstance(node.op, ast.Div):
        yield "eps", _with(node, right=ast.BinOp(node.right, ast.Add(), ast.Constant(EPS)))


def _called(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    for i, keyword in enumerate(node.keywords):
        yield "missing", _with(node, keywords=_without(node.keywords, i))
        if keyword.arg in ("axis", "dim"):
            for axis in "0", "1", "-2", "None":
                if ast.unparse(keyword.value) != axis:
                    other = _with(keyword, value=_parse(axis))
                    keywords = [*node.keywords[:i], other, *node.keywords[i + 1 :]]
                    yield "axis", _with(node, keywords=keywords)
    plain = not any(isinstance(x, ast.Starred) for x in node.args)
    if plain and len(node.args) > 1:
        for i in range(len(node.args) - 1):
            args = [*node.args]
            args[i], args[i + 1] = args[i + 1], args[i]
            yield "order", _with(node, args=args)
    if plain and name not in DROPPED:
        if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
            yield "missing", node.func.value  # x.swapaxes(-1, -2) -> x
        elif node.args:
            yield "missing", node.args[0]  # np.exp(x) -> x
    if name in ("arange", "array", "tril", "ones"):
        yield "int8", _parse(f"np.asarray({ast.unparse(node)}).astype(np.int8)")
    for old, new in (("max", "min"), ("argmax", "argmin"), ("maximum", "minimum"),
                     ("sum", "mean"), ("mean", "median"), ("median", "mean"), ("sin", "cos"),
                     ("cos", "sin"), ("tril", "triu"),
                     ("all", "any"), ("any", "all")):  # fmt: skip
        if name == old and isinstance(node.func, ast.Attribute):
            if new == "median" and not _is_module(node.func.value):
                continue
            yield "other", _with(node, func=_with(node.func, attr=new))
        elif name == old and new in ("min", "any", "all"):
            yield "other", _with(node, func=ast.Name(new, ast.Load()))


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "torch", "nn")


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Return what may stand in place of a node, each with the kind of the slip."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        for step in 1, -1:
            yield "off by one", _with(node, value=node.value + step)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "other", _with(node, value=not node.value)
    elif isinstance(node, ast.UnaryOp):
        if ast.unparse(node) == "-np.inf":
            for fill in -30.0, -1e4:
                yield "fill", ast.Constant(fill)
        else:
            yield "sign", node.operand
    elif isinstance(node, ast.Call) and ast.unparse(node).replace('"', "'") == "float('-inf')":
        for fill in -30.0, -1e4:
            yield "fill", ast.Constant(fill)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        yield from _binary(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARED.get(type(node.ops[0]), []):
            yield "comparison", _with(node, ops=[other()])
    elif isinstance(node, ast.Call):
        yield from _called(node)
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "output"):
        yield "missing", node.value
    elif isinstance(node, ast.Slice):
        for part in ("lower", "upper", "step"):
            if getattr(node, part) is not None:
                yield "missing", _with(node, **{part: None})
                if part != "step":
                    for op in ast.Add(), ast.Sub():
                        at = ast.BinOp(getattr(node, part), op, ast.Constant(1))
                        yield "off by one", _with(node, **{part: at})
    elif isinstance(node, ast.Dict | ast.List | ast.Tuple) and isinstance(
        getattr(node, "ctx", ast.Load()), ast.Load
    ):
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 1:
            yield "order", _with(node, elts=node.elts[::-1])
    elif isinstance(node, ast.For | ast.comprehension):
        if "forward" not in ast.unparse(node.iter):
            for part in "[1:]", "[:-1]", "[:1]", "[-1:]", "[::-1]":
                yield (
                    "first or last",
                    _with(node, iter=_parse(f"[*{ast.unparse(node.iter)}]{part}")),
                )
    elif isinstance(node, ast.AugAssign):
        yield "missing", ast.Assign([node.target], node.value, lineno=node.lineno)
    elif isinstance(node, ast.IfExp):
        yield "missing", node.body
        yield "missing", node.orelse


def _nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Return each node with its parent and its place in it; nothing of imports and signatures."""
    for name, value in ast.iter_fields(tree):
        if name in ("args", "decorator_list") and isinstance(tree, ast.FunctionDef | ast.Lambda):
            continue
        for i, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST):
                yield tree, name, i if isinstance(value, list) else None, child
                yield from _nodes(child)


def mutants(solution: str) -> Iterator[tuple[str, str, str]]:
    """Return answers with one slip each: its kind, what was changed, and the text."""
    tree = ast.parse(solution)
    seen = {ast.unparse(tree)}
    for parent, name, i, node in list(_nodes(tree)):
        for kind, new in _changes(node):
            if i is None:
                setattr(parent, name, new)
            else:
                getattr(parent, name)[i] = new
            try:
                text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree)))
            finally:
                if i is None:
                    setattr(parent, name, node)
                else:
                    getattr(parent, name)[i] = node
            if text not in seen:
                seen.add(text)
                yield kind, f"{_short(node)} -> {_short(new)}", text


def _short(node: ast.AST) -> str:
    if isinstance(node, ast.For | ast.comprehension):
        return f"in {ast.unparse(node.iter)}"
    return " ".join(ast.unparse(node).split())


def narrow(answer: Callable, dtype: str) -> Callable:
    """Return the answer as it is in narrow numbers: what goes in and out of its kind is cast."""
    import numpy as np

    kind = "f" if dtype.startswith("f") else "i"

    def cast(thing: object) -> object:
        if isinstance(thing, tuple):
            return tuple(map(cast, thing))
        if type(thing) is int and kind == "i":
            thing = np.array(thing)
        if isinstance(thing, np.ndarray | np.generic) and thing.dtype.kind == kind:
            return thing.astype(dtype)
        return thing

    return lambda *arguments: cast(answer(*map(cast, arguments)))
