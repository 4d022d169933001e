"""Which node gives another what it needs: by a reference, or by what their schemas say (spec story 10.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pml.processors.capabilities.coverage import Coverage, compute_coverage
from pml.processors.workflow.references import nodes_of
from pml.schemas.structure import (
    CapabilityNode,
    LoopNode,
    Structure,
    StructureEdge,
    TaskNode,
)
from pml.schemas.workflow import Argument, Reference, leaves


@dataclass(frozen=True, slots=True)
class ToolSchemas:
    """What a tool takes and gives, as JSON Schemas; None where it does not say."""

    input: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None


def with_provides(structure: Structure, schemas: Mapping[str, ToolSchemas]) -> Structure:
    """The same structure with an edge from each node to every later one that it gives something to.

    Args:
        schemas: by tool, `server:name`.
    """
    return structure.model_copy(update={"edges": (*structure.edges, *_provides_edges(structure, schemas))})


def coverage_of(provider: ToolSchemas, consumer: ToolSchemas) -> Coverage | None:
    """How far one tool's outputs fill another's inputs; None where a schema is missing or nothing fits."""
    if provider.output is None or consumer.input is None:
        return None
    outputs = _names(provider.output, "properties")
    inputs = _names(consumer.input, "properties")
    required = _names(consumer.input, "required")
    return compute_coverage(outputs, required, inputs - required)


def _names(schema: Mapping[str, Any], part: str) -> set[str]:
    """The fields that a part of a schema names: servers write what they like."""
    found = schema.get(part)
    named = found if isinstance(found, (Mapping, list, tuple)) else ()
    return {name for name in named if isinstance(name, str)}


def _provides_edges(structure: Structure, schemas: Mapping[str, ToolSchemas]) -> Iterator[StructureEdge]:
    calls = [node for node in structure.nodes if isinstance(node, (TaskNode, CapabilityNode))]
    later, loops = _later(structure), _loops(structure)
    for consumer in calls:
        read = _read_by(consumer, loops)
        for provider in calls:
            if provider.id not in read and consumer.id not in later[provider.id]:
                continue
            covered = coverage_of(_schemas(provider, schemas), _schemas(consumer, schemas))
            if covered is not None or provider.id in read:
                yield StructureEdge(
                    source=provider.id, target=consumer.id, type="provides", coverage=covered or "unknown"
                )


def _read_by(consumer: TaskNode | CapabilityNode, loops: Mapping[str, LoopNode]) -> frozenset[str]:
    """The calls whose results a call is given."""
    names = {name for value in consumer.arguments.values() for name in references_in(value)}
    return frozenset().union(*(_calls_behind(name, consumer.loop, loops) for name in names))


def _calls_behind(name: str, inside: str | None, loops: Mapping[str, LoopNode]) -> frozenset[str]:
    """A loop's name is one of its items inside of it, and what all times gave after it."""
    loop = loops.get(name)
    if loop is None:
        return frozenset({name})
    value = loop.items if inside == name else loop.each
    names = () if value is None else references_in(value)
    within = loop.loop if inside == name else name
    return frozenset().union(*(_calls_behind(each, within, loops) for each in names))


def references_in(value: Argument) -> Iterator[str]:
    """The nodes that an argument reads."""
    for leaf in leaves(value):
        if isinstance(leaf, Reference):
            yield from nodes_of(leaf.expression)


def _schemas(node: TaskNode | CapabilityNode, schemas: Mapping[str, ToolSchemas]) -> ToolSchemas:
    return schemas.get(node.tool if isinstance(node, TaskNode) else node.capability, ToolSchemas())


def _loops(structure: Structure) -> dict[str, LoopNode]:
    return {node.id: node for node in structure.nodes if isinstance(node, LoopNode)}


def _later(structure: Structure) -> dict[str, set[str]]:
    """Every node that comes after a node on some way; the inside of a loop is before what follows it."""
    following: dict[str, set[str]] = {node.id: set() for node in structure.nodes}
    for edge in structure.edges:
        following[edge.source].add(edge.target)
    outside: dict[str, set[str]] = {node.id: set() for node in structure.nodes}
    for edge in structure.edges:
        if edge.type != "contains":
            outside[edge.source].add(edge.target)
    for node in structure.nodes:
        if node.loop is not None:
            following[node.id] |= outside[node.loop]
    found: dict[str, set[str]] = {}
    for node in reversed(structure.nodes):
        found[node.id] = set(following[node.id]).union(
            *(found.get(name, set()) for name in following[node.id])
        )
    return found
