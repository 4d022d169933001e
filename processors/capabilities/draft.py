"""A structure while it is drawn: nodes in the order of the program, and what the next one follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pml.schemas.structure import (
    CapabilityNode,
    DecisionNode,
    EdgeType,
    ForkNode,
    JoinNode,
    LoopNode,
    StructureEdge,
    StructureNode,
    TaskNode,
)
from pml.schemas.workflow import TASKS_MAX, Condition

NODES_MAX = 2 * TASKS_MAX
_LETTERS: dict[type[Any], str] = {
    TaskNode: "n",
    CapabilityNode: "c",
    DecisionNode: "d",
    ForkNode: "f",
    JoinNode: "j",
    LoopNode: "l",
}


class TooManyNodes(Exception):
    """More than a workflow may have."""


@dataclass(frozen=True, slots=True)
class End:
    """What a next node follows: a node, a branch of a decision, or the inside of a loop."""

    node: str
    outcome: str | None = None
    inside: bool = False


@dataclass(slots=True)
class Draft:
    """What is drawn so far, and where the pen is.

    Attributes:
        ends: what the next node follows.
        conditions: the branches that it lies in.
        loop: the loop that repeats it.
        safe_to_fail: whether a failure of it is a value, and not the end.
    """

    nodes: dict[str, StructureNode] = field(default_factory=dict)
    edges: list[StructureEdge] = field(default_factory=list)
    ends: tuple[End, ...] = ()
    conditions: tuple[Condition, ...] = ()
    loop: str | None = None
    safe_to_fail: bool = False
    _counts: dict[str, int] = field(default_factory=dict)

    def add(self, kind: type[Any], **fields: Any) -> str:
        """Draw a node behind all ends; it is the only end then.

        Raises:
            TooManyNodes: there is no more room.
        """
        if len(self.nodes) >= NODES_MAX:
            raise TooManyNodes
        letter = _LETTERS[kind]
        self._counts[letter] = self._counts.get(letter, 0) + 1
        name = f"{letter}{self._counts[letter]}"
        self.nodes[name] = kind(id=name, conditions=self.conditions, loop=self.loop, **fields)
        self.edges += dict.fromkeys(self._edge(end, name) for end in self.ends)
        self.ends = (End(name),)
        return name

    def replace(self, name: str, **fields: Any) -> None:
        """Say more of a node that is drawn already."""
        self.nodes[name] = self.nodes[name].model_copy(update=fields)

    def lies_in(self, name: str, conditions: Iterable[Condition]) -> bool:
        """Whether a node is in all of these branches; what a loop is called inside of it is no node."""
        node = self.nodes.get(name)
        return node is not None and set(conditions) <= set(node.conditions)

    @property
    def calls(self) -> int:
        """How many tools and capabilities are called so far."""
        return self._counts.get("n", 0) + self._counts.get("c", 0)

    def mark(self) -> Draft:
        """A copy to come back to."""
        return Draft(
            dict(self.nodes),
            list(self.edges),
            self.ends,
            self.conditions,
            self.loop,
            self.safe_to_fail,
            dict(self._counts),
        )

    def _edge(self, end: End, name: str) -> StructureEdge:
        kind: EdgeType = "contains" if end.inside else "sequence"
        taken = end.outcome is not None and self._within(end)
        if taken:
            kind = "conditional"
        return StructureEdge(source=end.node, target=name, type=kind, outcome=end.outcome if taken else None)

    def _within(self, end: End) -> bool:
        return any(item.node == end.node and item.outcome == end.outcome for item in self.conditions)


def joined(*groups: Iterable[End]) -> tuple[End, ...]:
    """Several ways that meet: each end once."""
    return tuple(dict.fromkeys(end for group in groups for end in group))
