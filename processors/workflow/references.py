"""References into results: `n1.items[0].id`, quoted keys `n1["a-b"]`, alternatives `n2.x|n3.x`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_HEAD = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_/#]*)")
_STEP = re.compile(r"""\.([A-Za-z_$][\w$-]*)|\[(\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]|\['((?:[^'\\]|\\.)*)'\]""")
_ESCAPE = re.compile(r"\\(.)")

Step = str | int


class InvalidReference(ValueError):
    """An expression that is no reference; the message says where."""


@dataclass(frozen=True, slots=True)
class Path:
    """One alternative: a node id and the steps into its result."""

    node: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """A reference that leads nowhere, and why."""

    reason: str


@lru_cache(maxsize=4_096)
def parse(expression: str) -> tuple[Path, ...]:
    """The alternatives of a reference, in order.

    Raises:
        InvalidReference: it is not written as a reference.
    """
    paths: list[Path] = []
    position = 0
    while True:
        path, position = _path(expression, position)
        paths.append(path)
        position = _skip_space(expression, position)
        if position == len(expression):
            return tuple(paths)
        if expression[position] != "|":
            raise InvalidReference(f"{expression!r}: unexpected {expression[position]!r} at {position}")
        position += 1


def nodes_of(expression: str) -> frozenset[str]:
    """The node ids that a reference names."""
    return frozenset(path.node for path in parse(expression))


def alternative(expression: str, results: Mapping[str, Any]) -> Path | Missing:
    """The first alternative of a reference whose node has a result.

    Args:
        results: values of the nodes that completed.
    """
    paths = parse(expression)
    for path in paths:
        if path.node in results:
            return path
    return Missing(f"{' and '.join(path.node for path in paths)} gave no result")


def _path(expression: str, position: int) -> tuple[Path, int]:
    head = _HEAD.match(expression, position)
    if head is None:
        raise InvalidReference(f"{expression!r}: a node id is expected at {position}")
    position = head.end()
    steps: list[Step] = []
    while (match := _STEP.match(expression, position)) is not None:
        steps.append(_step(match))
        position = match.end()
    return Path(head.group(1), tuple(steps)), position


def _step(match: re.Match[str]) -> Step:
    name, index, double, single = match.groups()
    if index is not None:
        return int(index)
    if name is not None:
        return name
    return _ESCAPE.sub(r"\1", double if double is not None else single)


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def walk(value: Any, path: Path) -> Any | Missing:
    """The value at the end of a path into a result."""
    for step in path.steps:
        named = isinstance(step, str) and isinstance(value, dict) and step in value
        if not named and not (isinstance(step, int) and isinstance(value, list) and step < len(value)):
            return Missing(f"{path.node} has no {_written(path)}: {step!r} leads nowhere")
        value = value[step]
    return value


def _written(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path.steps)
