"""Arguments and expressions in which names stand for other arguments: what inlining is made of (DESIGN §5).

A reference stays a reference where it can. What only an expression can say becomes one; what not even the
core's expressions can say is refused, never guessed.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pml.processors.workflow import conditions
from pml.processors.workflow.references import Path, Step
from pml.processors.workflow.references import parse as parse_reference
from pml.schemas.workflow import (
    Argument,
    Expression,
    ListOf,
    LiteralValue,
    ObjectOf,
    Parameter,
    Reference,
)


class Inexpressible(ValueError):
    """A value that has no place where its name stands; the message says why."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean: nodes under other ids, nodes that are values, parameters that are arguments."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Argument] = field(default_factory=dict)
    bound: Mapping[str, Argument] = field(default_factory=dict)


def substituted(argument: Argument, scope: Scope) -> Argument:
    """The same argument with what its names mean.

    Raises:
        Inexpressible: a value cannot stand where its name does.
    """
    match argument:
        case Parameter(parameter_name=name):
            return scope.bound.get(name, argument)
        case Reference(expression=expression):
            return _referred(parse_reference(expression), scope)
        case ObjectOf(fields=fields):
            return ObjectOf(fields={name: substituted(item, scope) for name, item in fields.items()})
        case ListOf(items=items):
            return ListOf(items=tuple(substituted(item, scope) for item in items))
        case Expression():
            return Expression(code=rewritten(argument.text, scope))
    return argument


def rewritten(expression: str, scope: Scope) -> str:
    """The same expression with what its names mean.

    Raises:
        Inexpressible: a value cannot stand in an expression.
    """
    return ast.unparse(_Rewriter(scope).visit(_tree(expression)))


def _referred(paths: Sequence[Path], scope: Scope) -> Argument:
    found = [_alternative(path, scope) for path in paths]
    if len(found) == 1:
        return found[0]
    texts = [item.expression for item in found if isinstance(item, Reference)]
    if len(texts) < len(found):
        raise Inexpressible("one of several alternatives is no value of a task")
    return Reference(expression="|".join(texts))


def _alternative(path: Path, scope: Scope) -> Argument:
    if path.node in scope.values:
        return selected(scope.values[path.node], path.steps)
    return Reference(expression=_written(Path(scope.renamed.get(path.node, path.node), path.steps)))


def selected(argument: Argument, steps: tuple[Step, ...]) -> Argument:
    """A part of what an argument will be.

    Raises:
        Inexpressible: it has no such part.
    """
    if not steps:
        return argument
    match argument:
        case Reference(expression=expression):
            paths = (Path(path.node, (*path.steps, *steps)) for path in parse_reference(expression))
            return Reference(expression="|".join(_written(path) for path in paths))
        case ObjectOf(fields=fields) if steps[0] in fields:
            return selected(fields[str(steps[0])], steps[1:])
        case ListOf(items=items) if isinstance(steps[0], int) and steps[0] < len(items):
            return selected(items[steps[0]], steps[1:])
        case LiteralValue(value=value):
            return selected(LiteralValue(value=_part(value, steps[0])), steps[1:])
        case Parameter() | Expression():
            return Expression(code=ast.unparse(_chained(_expressed(argument), steps)))
    raise Inexpressible(f"there is no {steps[0]!r} in it")


def _part(value: Any, step: Step) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        raise Inexpressible(f"there is no {step!r} in it") from None


def _tree(expression: str) -> ast.expr:
    """A tree of its own: those of `parse` are kept and shared."""
    return copy.deepcopy(conditions.parse(expression))


class _Rewriter(ast.NodeTransformer):
    """Replaces names, and fields of names, by what they mean."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def visit(self, node: ast.AST) -> Any:
        """The node, or what stands in its place."""
        root, steps = _chain(node)
        if root is None:
            return self.generic_visit(node)
        if root in self._scope.values:
            return _expressed(selected(self._scope.values[root], steps))
        if root == conditions.CONTEXT and steps and steps[0] in self._scope.bound:
            return _expressed(selected(self._scope.bound[str(steps[0])], steps[1:]))
        return _chained(ast.Name(self._scope.renamed.get(root, root), ast.Load()), steps)


def _chain(node: ast.AST) -> tuple[str | None, tuple[Step, ...]]:
    """The name at the bottom of `a.b[0]` and the steps from it; no name where it is something else."""
    steps: list[Step] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            steps.append(node.attr)
        elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, (str, int)):
            steps.append(node.slice.value)
        else:
            return None, ()
        node = node.value
    return (node.id, tuple(reversed(steps))) if isinstance(node, ast.Name) else (None, ())


def _expressed(argument: Argument) -> ast.expr:
    """An argument as a part of an expression."""
    match argument:
        case LiteralValue(value=value):
            return _constant(value)
        case Reference(expression=expression):
            paths = parse_reference(expression)
            if len(paths) > 1:
                raise Inexpressible("an expression has no alternatives")
            return _chained(ast.Name(paths[0].node, ast.Load()), paths[0].steps)
        case Parameter(parameter_name=name):
            return _chained(ast.Name(conditions.CONTEXT, ast.Load()), (name,))
        case ListOf(items=items):
            return ast.List([_expressed(item) for item in items], ast.Load())
        case Expression():
            return _tree(argument.text)
    raise Inexpressible("an expression has no objects")


def _constant(value: Any) -> ast.expr:
    if isinstance(value, list):
        return ast.List([_constant(item) for item in value], ast.Load())
    if isinstance(value, dict):
        raise Inexpressible("an expression has no objects")
    return ast.Constant(value)


def _chained(inner: ast.expr, steps: Sequence[Step]) -> ast.expr:
    for step in steps:
        if isinstance(step, str) and step.isidentifier():
            inner = ast.Attribute(inner, step, ast.Load())
        else:
            inner = ast.Subscript(inner, ast.Constant(step), ast.Load())
    return inner


def _written(path: Path) -> str:
    return path.node + "".join(map(_step, path.steps))


def _step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step.isascii() and step.isidentifier():
        return f".{step}"
    escaped = step.replace("\\", "\\\\").replace('"', '\\"')
    return f'["{escaped}"]'
