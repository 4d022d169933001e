"""The static structure of a program: what it may do, before it runs (DESIGN §6; spec stories 10.1, 10.2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pml.schemas.base import Json, Model
from pml.schemas.workflow import Argument, Condition, NodeId

Language = Literal["python", "typescript"]
EdgeType = Literal["sequence", "conditional", "provides", "contains"]
Coverage = Literal["strict", "partial", "optional", "unknown"]


class _Node(Model):
    """What every node has: the branches that it lies in, and the loop that repeats it."""

    id: NodeId
    conditions: tuple[Condition, ...] = ()
    loop: NodeId | None = None
    line: int = 0


class TaskNode(_Node):
    """A call of a tool."""

    type: Literal["task"] = "task"
    tool: str
    arguments: dict[str, Argument] = {}
    safe_to_fail: bool = False


class CapabilityNode(_Node):
    """A call of a capability by its name."""

    type: Literal["capability"] = "capability"
    capability: str
    arguments: dict[str, Argument] = {}
    safe_to_fail: bool = False


class DecisionNode(_Node):
    """A condition; its outcomes are on the edges that leave it.

    Attributes:
        condition: as it was written.
        expression: over node ids and `args`, where its operators mean the same in every language; else None.
        code: in the program's language, over `names`.
        names: what the variables of `code` stand for.
    """

    type: Literal["decision"] = "decision"
    condition: str
    expression: str | None = None
    code: str = ""
    names: dict[str, Argument] = {}


class ForkNode(_Node):
    """Here begins what runs at the same time."""

    type: Literal["fork"] = "fork"


class JoinNode(_Node):
    """Here all of it has ended; where `settled`, also by failing."""

    type: Literal["join"] = "join"
    settled: bool = False


class LoopNode(_Node):
    """The nodes that name it run once for each item of a result; `id.item` and `id.index` are of one of them.

    A reference to the loop itself is the list of what `each` was, in the order of the items.
    """

    type: Literal["loop"] = "loop"
    items: Argument
    parallel: bool = False
    each: Argument | None = None


StructureNode = Annotated[
    TaskNode | CapabilityNode | DecisionNode | ForkNode | JoinNode | LoopNode, Field(discriminator="type")
]


class StructureEdge(Model):
    """From node to node: order, branch, flow of data, or what a loop repeats."""

    source: NodeId = Field(alias="from", serialization_alias="from")
    target: NodeId = Field(alias="to", serialization_alias="to")
    type: EdgeType
    outcome: str | None = None
    coverage: Coverage | None = None


class StructureParameter(Model):
    """What a program takes from outside."""

    name: str
    required: bool = True
    default: Json = None


class Unsupported(Model):
    """What no DAG expresses; a program that has any runs in the sandbox."""

    line: int
    reason: str


class Structure(Model):
    """All that a program may do, whatever its branches, loops and arguments will be."""

    version: Literal[1] = 1
    language: Language
    nodes: tuple[StructureNode, ...] = ()
    edges: tuple[StructureEdge, ...] = ()
    parameters: tuple[StructureParameter, ...] = ()
    result: Argument | None = None
    unsupported: tuple[Unsupported, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that it may call, in the order of their first call."""
        return tuple(dict.fromkeys(node.tool for node in self.nodes if isinstance(node, TaskNode)))

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities that it may call, in the order of their first call."""
        named = (node.capability for node in self.nodes if isinstance(node, CapabilityNode))
        return tuple(dict.fromkeys(named))
