"""The tool graph as the projection would have learned it from past workflows, one run each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pml.processors.capabilities.edge_weights import EDGES_MAX, KnownEdge, after_run, new_edge
from pml.processors.capabilities.edges import EdgeKey, edges_of_run
from pml.processors.discovery.tool_graph import Link
from pml.schemas.catalog import Capability
from pml.schemas.workflow import Task

# Not every set names servers; a task does.
SERVER = "set:"


def learned_links(runs: Iterable[Sequence[str]]) -> list[Link]:
    """Edges after runs of programs that called these tools one after another and went well.

    The sets say no flow of data, so none provides. Of too many edges the last used ones are known.
    """
    known: dict[EdgeKey, KnownEdge] = {}
    for tools in runs:
        for key, fields in edges_of_run(_program(tools), _path(tools), lambda name: None).items():
            before = known.pop(key) if key in known else new_edge(key)
            known[key] = after_run(before, True, fields)
    kept = list(known.values())[-EDGES_MAX:]
    return [
        Link(edge.key.type, _own(edge.key.source), _own(edge.key.target), edge.weight, edge.runs)
        for edge in kept
    ]


def _program(tools: Sequence[str]) -> Capability:
    """The same tools in the same order are the same capability."""
    called = "cap_" + " ".join(tools)
    tasks = tuple(
        Task(id=f"n{place}", tool=SERVER + tool, depends_on=(f"n{place - 1}",) if place else ())
        for place, tool in enumerate(tools)
    )
    return Capability(tenant="local", name=called, capability_id=called, source="code", tasks=tasks)


def _own(name: str) -> str:
    return name.removeprefix(SERVER)


def _path(tools: Sequence[str]) -> list[str]:
    return [f"n{place}" for place in range(len(tools))]
