"""The structure without what nothing hangs on: decisions that no node asks, forks without a call."""

from __future__ import annotations

from pml.processors.capabilities.draft import Draft
from pml.schemas.structure import (
    DecisionNode,
    ForkNode,
    JoinNode,
    LoopNode,
    StructureEdge,
    StructureNode,
)

Drawn = tuple[tuple[StructureNode, ...], tuple[StructureEdge, ...]]


def pruned(draft: Draft) -> Drawn:
    """Nodes and edges, without what is idle; what is left is counted anew.

    Where an idle node was, those before it are followed by those after it.
    """
    nodes, edges = dict(draft.nodes), list(draft.edges)
    while idle := _idle(nodes, edges):
        for name in idle:
            edges = _spliced(edges, name)
            del nodes[name]
    return _renumbered(nodes, edges)


def _idle(nodes: dict[str, StructureNode], edges: list[StructureEdge]) -> list[str]:
    asked = {condition.node for node in nodes.values() for condition in node.conditions}
    repeated = {node.loop for node in nodes.values()}
    following: dict[str, list[str]] = {}
    for edge in edges:
        following.setdefault(edge.source, []).append(edge.target)
    found: list[str] = []
    for name, node in nodes.items():
        match node:
            case DecisionNode():
                idle = name not in asked
            case LoopNode():
                idle = name not in repeated and node.each is None
            case ForkNode():
                idle = all(isinstance(nodes[each], JoinNode) for each in following.get(name, ()))
            case JoinNode():
                idle = not any(edge.target == name for edge in edges)
            case _:
                idle = False
        if idle:
            found.append(name)
            if isinstance(node, ForkNode):
                found += [each for each in following.get(name, ()) if each in nodes]
            return found
    return found


def _spliced(edges: list[StructureEdge], name: str) -> list[StructureEdge]:
    before = [edge for edge in edges if edge.target == name]
    after = [edge for edge in edges if edge.source == name]
    kept = [edge for edge in edges if name not in {edge.source, edge.target}]
    for one in before:
        for other in after:
            edge = one.model_copy(update={"target": other.target})
            if edge not in kept:
                kept.append(edge)
    return kept


def _renumbered(nodes: dict[str, StructureNode], edges: list[StructureEdge]) -> Drawn:
    """Decisions, forks and joins are counted without the idle ones; no expression names them."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for name in nodes:
        letter = name[0]
        counts[letter] = counts.get(letter, 0) + 1
        names[name] = f"{letter}{counts[letter]}" if letter in "dfj" else name
    found = tuple(
        node.model_copy(
            update={
                "id": names[name],
                "conditions": tuple(
                    item.model_copy(update={"node": names[item.node]}) for item in node.conditions
                ),
            }
        )
        for name, node in nodes.items()
    )
    renamed = tuple(
        edge.model_copy(update={"source": names[edge.source], "target": names[edge.target]}) for edge in edges
    )
    return found, renamed
