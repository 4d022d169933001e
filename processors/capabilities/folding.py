"""Operators over what is written down, where they mean the same in every language."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pml.processors.capabilities.merging import FALSE, TRUE
from pml.processors.capabilities.values import Items, Known, Operated, Record, Value

SIZE_MAX = 10_000
"""Texts and lists longer than this are not computed here."""

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def operated(symbol: str, operands: tuple[Value, ...]) -> Value:
    """An operator's value, computed where that needs no run."""
    match symbol, operands:
        case "+", (Items(items=one), Items(items=other)):
            return Items(one + other)
        case "not", (Known(value=bool() as value),):
            return Known(not value)
        case "-", (Known(value=int() | float() as value),) if not isinstance(value, bool):
            return Known(-value)
        case (("and" | "or"), _):
            return _logic(symbol, operands)
        case _, (Known(value=left), Known(value=right)):
            found = _computed(symbol, left, right)
            return Operated(symbol, operands) if found is None else found
    return Operated(symbol, operands)


def template(parts: tuple[Value, ...]) -> Value:
    """A text with values in it; neighbours that are known are one text."""
    folded: list[Value] = []
    for part in parts:
        text = _written(part)
        before = folded[-1] if folded else None
        if text is not None and isinstance(before, Known) and isinstance(before.value, str):
            folded[-1] = Known(before.value + text)
        else:
            folded.append(part if text is None else Known(text))
    if not folded:
        return Known("")
    single = folded[0]
    if len(folded) == 1 and isinstance(single, Known) and isinstance(single.value, str):
        return single
    return Operated("template", tuple(folded))


def listed(value: Value) -> tuple[Value, ...] | None:
    """What a loop over a value goes through, where that is known before a run."""
    match value:
        case Items(items=items):
            return items
        case Known(value=str() as text) if len(text) <= SIZE_MAX:
            return tuple(map(Known, text))
    return None


def _written(part: Value) -> str | None:
    """How a constant stands in a text, where all languages agree."""
    if not isinstance(part, Known) or isinstance(part.value, (bool, float)) or part.value is None:
        return None
    return str(part.value)


def _logic(symbol: str, operands: tuple[Value, ...]) -> Value:
    """Operands that are known booleans decide, or drop out."""
    left: list[Value] = []
    stops = symbol == "or"
    for position, operand in enumerate(operands):
        if not (isinstance(operand, Known) and isinstance(operand.value, bool)):
            left.append(operand)
        elif operand.value is stops:
            left.append(operand)
            break
        elif position == len(operands) - 1 and left:
            left.append(operand)  # a last one may be what the whole is
    if not left:
        return FALSE if stops else TRUE
    return left[0] if len(left) == 1 else Operated(symbol, tuple(left))


def _computed(symbol: str, left: Any, right: Any) -> Value | None:
    if symbol in {"==", "!="}:
        alike = _kind(left) == _kind(right)
        return Known((alike and left == right) is (symbol == "=="))
    numbers = _is_number(left) and _is_number(right)
    texts = isinstance(left, str) and isinstance(right, str)
    if symbol in _ORDER and (numbers or texts):
        return Known(_ORDER[symbol](left, right))
    if numbers and symbol in _ARITHMETIC and max(abs(left), abs(right)) < 2**26:
        found = _ARITHMETIC[symbol](left, right)
        # Two and a half less a half is 2.0 in one language and 2 in the other.
        return None if isinstance(found, float) and found.is_integer() else Known(found)
    if texts and symbol == "+" and len(left) + len(right) <= SIZE_MAX:
        return Known(left + right)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    return "number" if _is_number(value) else type(value).__name__


def known_truth(value: Value) -> bool | None:
    """Whether a test holds, where every language says so before a run."""
    if isinstance(value, Known):
        return bool(value.value)
    if isinstance(value, (Items, Record)) and (value.items if isinstance(value, Items) else value.entries):
        return True
    return None
