"""Structures as the cases write them down: short, and without what differs between languages."""

from __future__ import annotations

from typing import Any

from pml.schemas.structure import (
    CapabilityNode,
    DecisionNode,
    JoinNode,
    LoopNode,
    Structure,
    StructureEdge,
    StructureNode,
    StructureParameter,
    TaskNode,
)
from pml.schemas.workflow import Argument, Expression, ListOf, LiteralValue, ObjectOf, Reference

ARROWS = {"sequence": "->", "contains": "=>"}


def short(structure: Structure) -> dict[str, Any]:
    """What two languages have to agree on."""
    found = {
        "nodes": {node.id: short_node(node) for node in structure.nodes},
        "edges": sorted(short_edge(edge) for edge in structure.edges if edge.type != "provides"),
        "provides": sorted(
            f"{edge.source} -> {edge.target}" for edge in structure.edges if edge.type == "provides"
        ),
        "parameters": [short_parameter(item) for item in structure.parameters],
        "result": None if structure.result is None else short_argument(structure.result),
        "unsupported": sorted({item.reason for item in structure.unsupported}),
    }
    return {name: value for name, value in found.items() if value not in ([], {}, None)}


def short_node(node: StructureNode) -> dict[str, Any]:
    """A node: what it is, and where it lies."""
    found: dict[str, Any] = {}
    match node:
        case TaskNode() | CapabilityNode():
            called = {"tool": node.tool} if isinstance(node, TaskNode) else {"capability": node.capability}
            found = called | _given(
                "with", {key: short_argument(value) for key, value in node.arguments.items()}
            )
            found |= _given("safe_to_fail", node.safe_to_fail)
        case DecisionNode():
            found = {"if": node.expression or "?"}
        case JoinNode():
            found = _given("settled", node.settled)
        case LoopNode():
            found = {"over": short_argument(node.items)} | _given("parallel", node.parallel)
            found |= {} if node.each is None else {"each": short_argument(node.each)}
    found |= _given("when", {item.node: item.outcome for item in node.conditions})
    return found | _given("in", node.loop)


def short_argument(value: Argument) -> Any:
    """An argument; what only one language can compute is a question mark."""
    match value:
        case LiteralValue(value=literal):
            return {"literal": literal}
        case Reference(expression=expression):
            return {"ref": expression}
        case Expression(expression=expression):
            return {"expr": expression or "?"}
        case ObjectOf(fields=fields):
            return {"object": {key: short_argument(item) for key, item in fields.items()}}
        case ListOf(items=items):
            return {"array": [short_argument(item) for item in items]}
    return {"param": value.parameter_name}


def short_edge(edge: StructureEdge) -> str:
    """`n1 -> n2`, `d1 -true-> n2`, `l1 => n2`."""
    arrow = f"-{edge.outcome}->" if edge.type == "conditional" else ARROWS[edge.type]
    return f"{edge.source} {arrow} {edge.target}"


def short_parameter(parameter: StructureParameter) -> str | dict[str, Any]:
    """Its name; one with a default as `{name: default}`."""
    return parameter.name if parameter.required else {parameter.name: parameter.default}


def _given(name: str, value: Any) -> dict[str, Any]:
    return {name: value} if value else {}
