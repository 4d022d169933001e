"""What may be wrong in a program: for one node of its syntax tree, each node that could stand there instead.

Beside the usual operators (Offutt's sufficient set, as mutmut and cosmic-ray have it) there is one for code
that never assigns: `replace(value, field=…)` loses one field.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "startswith": "endswith",
    "endswith": "startswith",
}
_JUMPS = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """Each node that a mutant has in place of this one."""
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.BoolOp():
            yield from _joined(node)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.BinOp() | ast.AugAssign():
            yield from _calculated(node)
        case ast.Constant():
            yield from _constants(node)
        case ast.JoinedStr():
            yield from _texts(node)
        case ast.Call():
            yield from _called(node)
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.expr():
            return
        case _:
            yield from _statements(node)


def conditions(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The field of a condition, and what may stand there: it always holds, or never."""
    if isinstance(node, ast.If):
        yield "test", ast.Constant(True)
        if node.orelse or not isinstance(node.body[-1], _JUMPS):
            yield "test", ast.Constant(False)
    elif isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
        yield "test", ast.UnaryOp(ast.Not(), node.test)


def _compared(node: ast.Compare) -> Iterator[ast.AST]:
    for index, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)


def _joined(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for index in range(len(node.values)):
        left = [*node.values[:index], *node.values[index + 1 :]]
        yield left[0] if len(left) == 1 else ast.BoolOp(node.op, left)


def _calculated(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    other = _ARITHMETIC.get(type(node.op))
    if other is not None:
        changed = copy.copy(node)
        changed.op = other()
        yield changed
    if isinstance(node, ast.AugAssign):
        yield ast.Pass()


def _constants(node: ast.Constant) -> Iterator[ast.AST]:
    """Numbers grow by one, flags turn, words get another letter. What has a space in it is for people."""
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, str) and not _for_people(node.value):
        yield ast.Constant(node.value + "~")


def _for_people(text: str) -> bool:
    return any(letter.isspace() for letter in text)


def _texts(node: ast.JoinedStr) -> Iterator[ast.AST]:
    parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
    if not any(_for_people(str(part)) for part in parts):
        yield ast.JoinedStr([*node.values, ast.Constant("~")])


def _called(node: ast.Call) -> Iterator[ast.AST]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _CALLS:
        function = copy.copy(node.func)
        setattr(function, "attr" if isinstance(function, ast.Attribute) else "id", _CALLS[name])
        kept = [] if name == "sorted" else node.keywords
        yield ast.Call(function, node.args, kept)
    if name == "replace":
        for index in range(len(node.keywords)):
            yield ast.Call(node.func, node.args, [*node.keywords[:index], *node.keywords[index + 1 :]])


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Return(value=ast.expr()) if not _is_none(node.value):
            yield ast.Return(ast.Constant(None))
        case ast.Expr() | ast.Raise() | ast.Delete():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.If(orelse=[]) if isinstance(node.body[-1], _JUMPS):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.comprehension() if node.ifs:
            for index in range(len(node.ifs)):
                ifs = [*node.ifs[:index], *node.ifs[index + 1 :]]
                yield ast.comprehension(node.target, node.iter, ifs, node.is_async)


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
