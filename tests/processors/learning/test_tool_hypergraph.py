"""Who needs what, and who gives it: by schemas, by earlier sessions, and by what runs taught."""

from __future__ import annotations

from collections.abc import Sequence

from pml.processors.capabilities.provides import ToolSchemas
from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.feasibility import feasibility
from pml.processors.learning.holdings import Holdings
from pml.processors.learning.scene import Past
from pml.processors.learning.tool_hypergraph import (
    GIVERS_MOST,
    UNTAUGHT,
    DeclaredTools,
    Giver,
    Record,
    ToolHypergraph,
)
from pml.schemas.catalog import Capability, Edge, EdgeField, EdgeType
from pml.schemas.structure import StructureParameter


def schema(required: Sequence[str] = (), **types: str) -> dict[str, object]:
    """A JSON Schema of an object with these fields."""
    return {"properties": {name: {"type": kind} for name, kind in types.items()}, "required": list(required)}


def edge(
    kind: EdgeType, source: str, target: str, weight: float, counts: tuple[int, int], *inputs: str
) -> Edge:
    """What runs taught: how many there were, how many of them went well, and what of target was given."""
    return Edge(
        tenant="local",
        type=kind,
        source=source,
        target=target,
        weight=weight,
        runs=counts[0],
        successes=counts[1],
        fields=tuple(EdgeField(to_field=name) for name in inputs),
    )


SCHEMAS = {
    "fs:list": ToolSchemas(schema(), schema(first="string", count="integer")),
    "fs:find": ToolSchemas(schema(["pattern"], pattern="string"), schema(file_path="string")),
    "fs:size": ToolSchemas(schema(), schema(path="integer")),
    "fs:read": ToolSchemas(schema(["path"], path="string", lines="integer"), None),
}


def hypergraph(
    edges: Sequence[Edge] = (), capability: Capability | None = None, tools: DeclaredTools | None = None
) -> ToolHypergraph:
    """These tools, what runs taught, and perhaps one capability."""
    known = {} if capability is None else {"cap_1": capability}
    return ToolHypergraph(tools or DeclaredTools(SCHEMAS, {}), known.get, lambda: edges)


def test_a_tool_needs_what_its_schema_requires() -> None:
    assert [(each.name, each.type) for each in hypergraph().needs("fs:read")] == [("path", "string")]
    assert hypergraph().needs("fs:list") == ()
    assert hypergraph().needs("fs:gone") == ()


def test_a_capability_needs_the_parameters_that_have_no_default() -> None:
    parameters = (StructureParameter(name="path"), StructureParameter(name="mode", required=False))
    known = Capability(tenant="local", name="look", capability_id="cap_1", parameters=parameters)
    assert [each.name for each in hypergraph(capability=known).needs("cap_1")] == ["path"]


def test_a_field_that_is_called_alike_gives_an_input_if_its_type_fits() -> None:
    found = hypergraph()
    assert found.givers(found.needs("fs:read")[0]) == [Giver("fs:find", UNTAUGHT)]


def test_an_edge_that_runs_taught_gives_what_it_was_seen_to_give() -> None:
    edges = [
        edge("provides", "fs:list", "fs:read", 0.9, (5, 5), "path"),
        edge("provides", "fs:find", "fs:read", 0.2, (9, 1), "path"),
        edge("provides", "fs:gone", "fs:read", 1.0, (5, 5), "path"),
        edge("provides", "fs:size", "fs:read", 1.0, (5, 5), "lines"),
        edge("sequence", "fs:size", "fs:read", 1.0, (5, 5)),
    ]
    found = hypergraph(edges)
    assert found.givers(found.needs("fs:read")[0]) == [Giver("fs:list", 0.9), Giver("fs:find", 0.2)]


def test_whose_result_had_the_value_in_past_sessions_gives_it() -> None:
    sessions = [
        [Past("fs:list", {}, {"first": f"{number}.md"}), Past("fs:read", {"path": f"{number}.md"}, None)]
        for number in range(9)
    ]
    learned = ArgumentSources.fit(sessions, [["", ""]] * 9, {})
    found = hypergraph(tools=DeclaredTools(SCHEMAS, learned.known.seen))
    assert [each.name for each in found.givers(found.needs("fs:read")[0])] == ["fs:list", "fs:find"]


def test_so_many_give_an_input_at_most_and_a_tool_not_its_own() -> None:
    more = {f"a:t{number}": ToolSchemas(schema(), schema(path="string")) for number in range(30)}
    itself = {"fs:read": ToolSchemas(SCHEMAS["fs:read"].input, schema(path="string"))}
    found = hypergraph(tools=DeclaredTools(more | itself, {}))
    givers = found.givers(found.needs("fs:read")[0])
    assert len(givers) == GIVERS_MOST
    assert "fs:read" not in {each.name for each in givers}


def test_how_often_a_tool_went_well_is_that_of_the_runs_that_called_it() -> None:
    edges = [
        edge("contains", "cap_1", "fs:read", 0.9, (5, 4)),
        edge("contains", "cap_2", "fs:read", 0.9, (2, 2)),
        edge("dependency", "fs:list", "fs:read", 0.9, (9, 1)),
    ]
    known = Capability(tenant="local", name="look", capability_id="cap_1", runs=7, successes=3)
    found = hypergraph(edges, known)
    assert [found.record(name) for name in ("fs:read", "fs:list", "cap_1")] == [
        Record(6, 7),
        Record(),
        Record(3, 7),
    ]


def test_what_is_missing_is_given_by_the_call_that_can_be_made() -> None:
    nothing, listed = Holdings([], ""), Holdings([], "find '*.md'")
    found = hypergraph([edge("provides", "fs:list", "fs:read", 0.9, (5, 5), "path")])
    names = ["fs:read", "fs:find", "fs:list"]
    without = feasibility(names, found, nothing.has)
    assert (without["fs:read"].missing, without["fs:read"].through) == (("path",), ("fs:list",))
    assert (without["fs:find"].missing, without["fs:find"].through) == (("pattern",), None)
    assert not without["fs:list"].missing
    assert not any(each.missing for each in feasibility(names, found, listed.has).values())
