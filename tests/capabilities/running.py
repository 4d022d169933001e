"""Two ways to run a Python program: as Python, and as what its structure says. They have to be the same."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import json
import math
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pml.processors.workflow import conditions, references
from pml.schemas.structure import (
    CapabilityNode,
    DecisionNode,
    LoopNode,
    Structure,
    StructureNode,
    TaskNode,
)
from pml.schemas.workflow import Argument, Expression, ListOf, LiteralValue, ObjectOf, Parameter, Reference

Call = tuple[str, str]
"""A tool and its arguments as JSON."""
KINDS = ("x", "y", "z")


class Json(dict[str, Any]):
    """An object whose fields are read like attributes, also where a dictionary has a method of that name."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("__") and name in self:
            return self[name]
        return super().__getattribute__(name)


def read_like_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return Json({name: read_like_fields(item) for name, item in dict.items(value)})
    return [read_like_fields(item) for item in value] if isinstance(value, (list, tuple)) else value


def plain(value: Any) -> Any:
    """The same as plain dictionaries and lists."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in dict.items(value)}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def answer(tool: str, arguments: str, seed: int) -> Any:
    """What a tool gives: always the same for the same arguments, and always of the same shape."""
    digest = hashlib.sha256(f"{seed} {tool} {arguments}".encode()).digest()
    chosen = random.Random(digest)
    return read_like_fields(_fields(chosen) | {"items": [_item(chosen) for _ in range(chosen.randint(1, 3))]})


def _fields(chosen: random.Random) -> dict[str, Any]:
    flat = {"n": chosen.randint(0, 9), "id": chosen.choice(KINDS), "ok": chosen.random() < 0.5}
    return flat | {"inner": {**flat, "items": [1]}}


def _item(chosen: random.Random) -> dict[str, Any]:
    inner = {"n": chosen.randint(0, 9), "id": chosen.choice(KINDS), "ok": chosen.random() < 0.5, "items": []}
    return {**inner, "inner": inner, "items": [{**inner, "items": []}]}


@dataclass
class World:
    """Tools that answer, and the calls that were made of them."""

    seed: int
    calls: list[Call] = field(default_factory=list)

    def ask(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        call = (tool, json.dumps(plain(arguments), sort_keys=True))
        self.calls.append(call)
        return answer(*call, self.seed)


@dataclass
class _Names:
    """`mcp.server.tool(…)` and `capabilities.name(…)`."""

    world: World
    names: tuple[str, ...]

    def __getattr__(self, name: str) -> _Names:
        return _Names(self.world, (*self.names, name))

    __getitem__ = __getattr__

    async def __call__(self, *positional: Mapping[str, Any], **named: Any) -> Any:
        given = {**(positional[0] if positional else {}), **named}
        found = self.world.ask(":".join(self.names), given)
        for _ in range(len(self.world.calls) % 3):
            await asyncio.sleep(0)
        return found


def run_program(code: str, given: Mapping[str, Any], world: World) -> Any:
    """Run a program as Python; it awaits and returns outside of functions."""
    tree = compile(code, "<program>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    whole = ast.parse("async def program(): pass")
    assert isinstance(whole.body[0], ast.AsyncFunctionDef)
    whole.body[0].body = tree.body or [ast.Pass()]
    scope: dict[str, Any] = {
        "asyncio": asyncio,
        "json": json,
        "math": math,
        "re": re,
        "mcp": _Names(world, ()),
        "capabilities": _Names(world, ("capability",)),
        "args": Json(given),
        **read_like_fields(given),
    }
    exec(compile(ast.fix_missing_locations(whole), "<program>", "exec"), scope)
    return asyncio.run(scope["program"]())


class Unresolved(Exception):
    """A structure asks for what nothing gave."""


@dataclass
class Run:
    """Runs a structure, one node after the other.

    Attributes:
        executed: the calls with their nodes, in the order of `world.calls`.
    """

    structure: Structure
    given: dict[str, Any]
    world: World
    results: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    executed: list[str] = field(default_factory=list)

    def result(self) -> Any:
        for parameter in self.structure.parameters:
            self.given.setdefault(parameter.name, parameter.default)
        self.nodes([node for node in self.structure.nodes if node.loop is None])
        return None if self.structure.result is None else self.value(self.structure.result)

    def nodes(self, nodes: Iterable[StructureNode]) -> None:
        for node in nodes:
            if all(self.outcomes.get(each.node) == each.outcome for each in node.conditions):
                self.node(node)

    def node(self, node: StructureNode) -> None:
        match node:
            case TaskNode(tool=called) | CapabilityNode(capability=called):
                name = called if isinstance(node, TaskNode) else f"capability:{called}"
                given = {key: self.value(value) for key, value in node.arguments.items()}
                self.executed.append(node.id)
                self.results[node.id] = self.world.ask(name, given)
            case DecisionNode():
                self.outcomes[node.id] = self.outcome(node)
            case LoopNode():
                self.results[node.id] = self.loop(node)

    def loop(self, loop: LoopNode) -> list[Any]:
        inside = [node for node in self.structure.nodes if node.loop == loop.id]
        found = []
        for index, item in enumerate(self.value(loop.items)):
            for node in inside:
                self.results.pop(node.id, None)
                self.outcomes.pop(node.id, None)
            self.results[loop.id] = Json(item=item, index=index)
            self.nodes(inside)
            found.append(None if loop.each is None else self.value(loop.each))
        for node in inside:
            self.results.pop(node.id, None)
        return found

    def outcome(self, node: DecisionNode) -> str:
        value = self.code(node.code, node.expression, node.names)
        named = {edge.outcome for edge in self.structure.edges if edge.source == node.id and edge.outcome}
        asked = {
            each.outcome
            for other in self.structure.nodes
            for each in other.conditions
            if each.node == node.id
        }
        if not any(outcome.startswith("case:") for outcome in named | asked):
            return "true" if value else "false"
        return f"case:{value}" if f"case:{value}" in named | asked else "case:default"

    def value(self, value: Argument) -> Any:
        match value:
            case LiteralValue(value=literal):
                return read_like_fields(literal)
            case Parameter(parameter_name=name):
                return self.given[name]
            case Reference(expression=expression):
                return self.reference(expression)
            case ObjectOf(fields=fields):
                return Json({name: self.value(item) for name, item in fields.items()})
            case ListOf(items=items):
                return [self.value(item) for item in items]
            case Expression(expression=expression, code=code, names=names):
                return self.code(code, expression, names)

    def reference(self, expression: str) -> Any:
        path = references.alternative(expression, self.results)
        found = (
            path if isinstance(path, references.Missing) else references.walk(self.results[path.node], path)
        )
        if isinstance(found, references.Missing):
            raise Unresolved(found.reason)
        return found

    def code(self, code: str, expression: str | None, names: Mapping[str, Argument]) -> Any:
        """What code gives; where it is also written over node ids, both have to give the same."""
        scope: dict[str, Any] = {"args": Json(self.given), "json": json, "math": math, "re": re}
        for name, value in names.items():
            try:
                scope[name] = self.value(value)
            except Unresolved:
                continue  # code that asks for it fails
        try:
            found = eval(code, scope)
        except NameError as error:
            raise Unresolved(str(error)) from None
        if expression is not None:
            self._check_common(expression, found)
        return found

    def _check_common(self, expression: str, found: Any) -> None:
        try:
            common = conditions.evaluate(expression, {**self.results, "args": self.given})
        except conditions.ConditionError:
            return  # the core is not certain: the sandbox computes it
        assert common == found, (expression, common, found)


def follows(structure: Structure) -> dict[str, set[str]]:
    """The nodes that come after each node; what follows a loop comes after all that is in it."""
    inside = {node.id: node.loop for node in structure.nodes if node.loop is not None}
    after: dict[str, set[str]] = {node.id: set() for node in structure.nodes}
    for edge in structure.edges:
        if edge.type == "provides":
            continue
        leaves = edge.source in inside.values() and inside.get(edge.target) != edge.source
        sources = [name for name, loop in inside.items() if loop == edge.source] if leaves else []
        for source in (edge.source, *sources):
            after[source].add(edge.target)
    for _ in after:  # at most as many steps as nodes
        grown = {name: found.union(*(after[each] for each in found)) for name, found in after.items()}
        if grown == after:
            break
        after = grown
    return after
