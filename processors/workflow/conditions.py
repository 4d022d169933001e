"""Conditions: a small, total evaluator over results.

Comparison of like types, boolean logic, membership, fields, indexes and numbers. No calls, no
attributes of Python objects, no truthiness of anything but booleans: what it cannot evaluate with
certainty is an error, never a guess. The grammar is a subset of Python's expressions.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

NODES_MAX = 200
CONTEXT = "args"
"""The name of the run's initial context, where no task has it."""
_CONSTANTS = {"true": True, "false": False, "null": None}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class ConditionError(ValueError):
    """A condition that is badly written or has no certain value."""


@lru_cache(maxsize=4_096)
def parse(expression: str) -> ast.expr:
    """The checked syntax tree of a condition.

    Raises:
        ConditionError: with the part that is not allowed.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConditionError(f"{expression!r} is not an expression: {error}") from None
    parts = list(ast.walk(tree))
    if len(parts) > NODES_MAX:
        raise ConditionError(f"the expression has {len(parts)} parts; at most {NODES_MAX} are allowed")
    for part in parts:
        _check(part)
    return tree


def nodes_of(expression: str) -> frozenset[str]:
    """The node ids that a condition reads."""
    return frozenset(name for name in _names(parse(expression)) if name not in _CONSTANTS)


def is_path(expression: str) -> bool:
    """Whether nothing is computed: a value is taken as it is from where it lies."""
    places = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load)
    return all(isinstance(part, places) for part in ast.walk(parse(expression)))


def divides(expression: str) -> bool:
    """Whether a value may come out of a division: a whole one is another number in some languages."""
    return any(isinstance(part, (ast.Div, ast.Mod)) for part in ast.walk(parse(expression)))


def without_texts(expression: str, mark: str) -> str:
    """The same expression with `mark` in the place of every text, to be read and not to be evaluated."""
    tree = ast.parse(expression.strip(), mode="eval")
    for part in ast.walk(tree):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            part.value = mark
    return ast.unparse(tree)


def outcome(expression: str, results: Mapping[str, Any]) -> str:
    """`true`, `false`, or `case:<value>` for an expression that is no boolean (DESIGN §6).

    Raises:
        ConditionError: a field is missing, types do not fit, a number is divided by zero.
    """
    value = evaluate(expression, results)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return f"case:{value}"
    raise ConditionError(
        f"{expression!r} gives {_kind(value)}; a decision needs a boolean, a text or a number"
    )


def evaluate(expression: str, results: Mapping[str, Any]) -> Any:
    """The value of an expression over results.

    Raises:
        ConditionError: as `outcome`.
    """
    try:
        return _value(parse(expression), results)
    except (ZeroDivisionError, OverflowError) as error:
        raise ConditionError(f"{expression!r}: {error}") from None


_ALLOWED = (
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.BinOp,
    *_ARITHMETIC,
    ast.Compare,
    ast.Eq,
    ast.NotEq,
    *_ORDER,
    ast.In,
    ast.NotIn,
    ast.Name,
    ast.Load,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.List,
    ast.Tuple,
)


def _check(part: ast.AST) -> None:
    if not isinstance(part, _ALLOWED):
        raise ConditionError(f"{type(part).__name__} is not allowed in a condition")
    if isinstance(part, ast.Constant) and not isinstance(part.value, (str, int, float, bool, type(None))):
        raise ConditionError(f"{part.value!r} is not allowed in a condition")


def _names(tree: ast.expr) -> Iterator[str]:
    return (part.id for part in ast.walk(tree) if isinstance(part, ast.Name))


def _value(part: ast.expr, results: Mapping[str, Any]) -> Any:
    match part:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _named(name, results)
        case ast.Attribute(value=inner, attr=name):
            return _item(_value(inner, results), name)
        case ast.Subscript(value=inner, slice=index):
            return _item(_value(inner, results), _value(index, results))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, results) for item in items]
        case ast.BoolOp(op=kind, values=items):
            return _logic(isinstance(kind, ast.And), items, results)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _boolean(_value(inner, results))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(_value(inner, results))
        case ast.BinOp(left=left, op=kind, right=right):
            return _arithmetic(kind, _value(left, results), _value(right, results))
        case ast.Compare(left=left, ops=kinds, comparators=others):
            return _comparison(_value(left, results), kinds, others, results)
    raise ConditionError(f"{type(part).__name__} is not allowed in a condition")


def _named(name: str, results: Mapping[str, Any]) -> Any:
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    if name not in results:
        raise ConditionError(f"{name} gave no result")
    return results[name]


def _item(value: Any, key: Any) -> Any:
    if isinstance(value, dict) and isinstance(key, str) and key in value:
        return value[key]
    if (
        isinstance(value, list)
        and isinstance(key, int)
        and not isinstance(key, bool)
        and 0 <= key < len(value)
    ):
        return value[key]
    raise ConditionError(f"there is no {key!r} in {_kind(value)}")


def _logic(every: bool, items: list[ast.expr], results: Mapping[str, Any]) -> bool:
    for item in items:
        if _boolean(_value(item, results)) is not every:
            return not every
    return every


def _arithmetic(kind: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str) and isinstance(kind, ast.Add):
        return left + right
    return _ARITHMETIC[type(kind)](_number(left), _number(right))


def _comparison(
    left: Any, kinds: list[ast.cmpop], others: list[ast.expr], results: Mapping[str, Any]
) -> bool:
    for kind, other in zip(kinds, others, strict=True):
        right = _value(other, results)
        if not _compare(kind, left, right):
            return False
        left = right
    return True


def _compare(kind: ast.cmpop, left: Any, right: Any) -> bool:
    if isinstance(kind, (ast.In, ast.NotIn)):
        return _contains(left, right) is isinstance(kind, ast.In)
    if isinstance(kind, (ast.Eq, ast.NotEq)):
        return _equal(left, right) is isinstance(kind, ast.Eq)
    if _kind(left) != _kind(right) or _kind(left) not in {"a number", "a text"}:
        raise ConditionError(f"{_kind(left)} and {_kind(right)} have no order")
    return _ORDER[type(kind)](left, right)


def _equal(left: Any, right: Any) -> bool:
    """Equal and of like types, all the way down."""
    if _kind(left) != _kind(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    return bool(left == right)


def _contains(item: Any, container: Any) -> bool:
    if isinstance(container, str) and isinstance(item, str):
        return item in container
    if isinstance(container, dict) and isinstance(item, str):
        return item in container
    if isinstance(container, list):
        return any(_equal(item, other) for other in container)
    raise ConditionError(f"{_kind(item)} cannot be in {_kind(container)}")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConditionError(f"a boolean is needed, not {_kind(value)}")
    return value


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConditionError(f"a number is needed, not {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    names: dict[type, str] = {str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "a value")
