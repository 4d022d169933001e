"""A structure as a workflow: the same calls, in the same order, under the same conditions."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.capabilities.analysing import structure_of
from pml.processors.capabilities.conversion import obstacles, repeats, workflow_of
from pml.processors.workflow.check import checked_graph
from pml.schemas.catalog import ServerTools, Tool
from pml.schemas.structure import Structure
from pml.schemas.workflow import ListOf, LiteralValue, ObjectOf, Reference, Workflow
from tests.capabilities.case_table import read_cases


def converted(code: str) -> Workflow:
    return workflow_of(structure_of(code, "python"))


def waits(workflow: Workflow) -> dict[str, set[str]]:
    return {task.id: set(task.depends_on) for task in workflow.tasks}


def test_calls_in_a_row_wait_for_each_other() -> None:
    workflow = converted("a = await mcp.s.one()\nb = await mcp.s.two(x=a.id)\nawait mcp.s.three()")

    assert waits(workflow) == {"n1": set(), "n2": {"n1"}, "n3": {"n2"}}
    assert workflow.tasks[1].arguments == {"x": Reference(expression="n1.id")}


def test_calls_at_the_same_time_wait_for_the_same_and_what_follows_for_all_of_them() -> None:
    workflow = converted(
        "await mcp.s.one()\nawait asyncio.gather(mcp.s.two(), mcp.s.three())\nawait mcp.s.four()"
    )

    assert waits(workflow) == {"n1": set(), "n2": {"n1"}, "n3": {"n1"}, "n4": {"n2", "n3"}}


def test_a_branch_carries_its_condition_and_what_follows_waits_for_both_ways() -> None:
    workflow = converted(
        "a = await mcp.s.one()\n"
        "if a.ok:\n    await mcp.s.two()\nelse:\n    await mcp.s.three()\n"
        "await mcp.s.four()"
    )

    assert waits(workflow) == {"n1": set(), "n2": {"n1"}, "n3": {"n1"}, "n4": {"n1", "n2", "n3"}}
    outcomes = [[item.outcome for item in task.condition] for task in workflow.tasks]
    assert outcomes == [[], ["true"], ["false"], []]
    assert [(item.id, item.expression) for item in workflow.decisions] == [("d1", "n1.ok")]


def test_objects_and_lists_keep_their_parts() -> None:
    workflow = converted("a = await mcp.s.one()\nawait mcp.s.two(x={'k': [a.id, 1]})")

    parts = ListOf(items=(Reference(expression="n1.id"), LiteralValue(value=1)))
    assert workflow.tasks[1].arguments == {"x": ObjectOf(fields={"k": parts})}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("return 1", "it calls no tool"),
        ("while x:\n    await mcp.s.one()", "line 1: `while`"),
        ("a = await mcp.s.one()\nawait mcp.s.two(x=a.n / 2)", "line 2: `n1.n / 2` has to be computed"),
        ("a = await mcp.s.one()\nawait mcp.s.two(x=f'#{a.n}')", "line 2: `f'#{n1.n}'` has to be computed"),
        ("a = await mcp.s.one()\nawait mcp.s.two(x=[len(a)])", "line 2: `len(n1)` has to be computed"),
        ("if len(x) > 1:\n    await mcp.s.one()", "line 1: `len(x) > 1` has to be decided"),
        (
            "await asyncio.gather(mcp.s.one(), mcp.s.two(), return_exceptions=True)",
            "line 1: it goes on whether or not a call failed",
        ),
    ],
)
def test_what_a_workflow_cannot_do_is_said(code: str, reason: str) -> None:
    structure = structure_of(code, "python")

    assert any(each.startswith(reason) for each in obstacles(structure))
    with pytest.raises(ValueError, match=r"has to be|it |while"):
        workflow_of(structure)


def structures() -> list[Any]:
    return [
        pytest.param(structure_of(case["python"], "python"), id=case["name"])
        for _, case in read_cases()
        if "python" in case
    ]


@pytest.mark.parametrize("structure", structures())
def test_every_case_of_the_table_without_obstacles_passes_the_check_of_a_workflow(
    structure: Structure,
) -> None:
    if obstacles(structure) or structure.capabilities or repeats(structure):
        return
    tools: dict[str, list[Tool]] = {}
    for server, _, name in (tool.partition(":") for tool in structure.tools):
        tools.setdefault(server, []).append(Tool(name=name))
    servers = {
        name: ServerTools(server=name, status="listed", tools=tuple(found)) for name, found in tools.items()
    }

    graph = checked_graph(workflow_of(structure), servers)

    order = [name for layer in graph.layers for name in layer]
    assert sorted(order) == sorted(node.id for node in structure.nodes if node.type == "task")
    for edge in structure.edges:
        if edge.source in order and edge.target in order:
            assert graph.nodes[edge.source].layer < graph.nodes[edge.target].layer


def test_what_repeats_is_no_workflow_before_it_is_known_how_often() -> None:
    structure = structure_of("for x in args.xs:\n    await mcp.s.one()", "python")
    assert (obstacles(structure), repeats(structure)) == ((), True)
    with pytest.raises(ValueError, match="how often it repeats"):
        workflow_of(structure)
