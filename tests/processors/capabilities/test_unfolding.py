"""Programs with loops over results make the calls that Python makes, and come to the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pml.processors.capabilities import unfolding
from pml.processors.capabilities.analysing import analysed, structure_of
from pml.processors.capabilities.conversion import obstacles, repeats
from pml.processors.capabilities.unfolding import Done, next_part
from pml.processors.workflow import conditions
from pml.processors.workflow.arguments import Resolved, Values, resolve_strictly
from pml.schemas.analysis import AnalyseRequest
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.stepping import StepAnswer
from pml.schemas.structure import Structure
from pml.schemas.workflow import Task
from tests.capabilities.programs import Written, programs
from tests.capabilities.running import World, plain, run_program

PAGES = """
found = await mcp.s.list(folder="a")
pages = await asyncio.gather(*[mcp.s.read(id=item.id, n=limit) for item in found.items])
last = await mcp.s.sum(all=pages, n=found.n + 1)
return {"pages": pages, "last": last.n}
"""
CHAIN = """
for item in (await mcp.s.list()).items:
    page = await mcp.s.read(id=item.id)
    if page.ok:
        await mcp.s.write(id=page.id)
await mcp.s.done()
"""


def played(structure: Structure, context: dict[str, Any], world: World) -> tuple[StepAnswer, list[list[str]]]:
    """The end of a program, and the tasks of each of its parts, which are called in their order."""
    ended: dict[str, None] = {}
    results: dict[str, Any] = {}
    parts: list[list[str]] = []
    outcomes: dict[str, str] = {}
    while True:
        answer = next_part(structure, context, Done(frozenset(ended), results))
        assert answer == next_part(structure, context, Done(frozenset(ended), results))
        if answer.workflow is None:
            return answer, parts
        decisions = {item.id: item.expression for item in answer.workflow.decisions}
        for task in answer.workflow.tasks:
            assert set(task.depends_on) <= ended.keys()
            for item in task.condition:
                given = {**results, conditions.CONTEXT: context}
                if item.node in decisions and item.node not in outcomes:
                    outcomes[item.node] = decided(decisions[item.node], given)
            if all(outcomes[item.node] == item.outcome for item in task.condition):
                results[task.id] = plain(called(task, Values(context, results), world))
            ended[task.id] = None
        parts.append([task.id for task in answer.workflow.tasks])


def decided(expression: str, given: dict[str, Any]) -> str:
    """As in a run: what reads a call that did not happen has no outcome that anybody waits for."""
    try:
        return conditions.outcome(expression, given)
    except conditions.ConditionError:
        return "error"


def called(task: Task, values: Values, world: World) -> Any:
    found = resolve_strictly(task.arguments, values)
    assert isinstance(found, Resolved), found
    return world.ask(task.tool or "", found.arguments)


def compare(code: str, context: dict[str, Any], seed: int = 1) -> list[list[str]]:
    structure = structure_of(code, "python")
    assert obstacles(structure) == ()
    real, drawn = World(seed), World(seed)
    result = plain(run_program(code, context, real))
    end, parts = played(structure, context, drawn)
    assert sorted(drawn.calls) == sorted(real.calls)
    assert end.error is None
    assert (end.value, end.value_error) == (result, None)
    return parts


@pytest.mark.parametrize("seed", range(6))
def test_a_fan_out_makes_the_calls_of_its_program(seed: int) -> None:
    parts = compare(PAGES, {"limit": 3}, seed)
    assert parts[0] == ["n1"]
    count = len(parts[1]) - 1
    assert parts[1] == [*(f"n2__{index}" for index in range(count)), "n3"]


@pytest.mark.parametrize("seed", range(6))
def test_a_loop_one_after_the_other_keeps_its_order(seed: int) -> None:
    compare(CHAIN, {}, seed)
    structure = structure_of(CHAIN, "python")
    items = {"items": [{"id": "x"}, {"id": "y"}]}
    answer = next_part(structure, {}, Done(frozenset({"n1"}), {"n1": items}))
    assert answer.workflow is not None
    waits = {task.id: set(task.depends_on) for task in answer.workflow.tasks}
    assert waits["n2__0"] == {"n1"}
    assert waits["n2__1"] == {"n2__0", "n3__0"}
    assert waits["n4"] == {"n2__1", "n3__1"}
    assert [item.id for item in answer.workflow.decisions] == ["d1__0", "d1__1"]


def test_items_are_read_where_they_rest() -> None:
    answer = next_part(
        structure_of(PAGES, "python"), {}, Done(frozenset({"n1"}), {"n1": {"items": [{}, {}]}})
    )
    assert answer.workflow is not None
    told = [task.arguments["id"].model_dump() for task in answer.workflow.tasks[:2]]
    assert [item["expression"] for item in told] == ["n1.items[0].id", "n1.items[1].id"]


def test_a_loop_over_nothing_is_passed_over() -> None:
    structure = structure_of(PAGES, "python")
    answer = next_part(structure, {"limit": 1}, Done(frozenset({"n1"}), {"n1": {"items": []}}))
    assert answer.workflow is not None
    assert [(task.id, task.depends_on) for task in answer.workflow.tasks] == [("n3", ("n1",))]
    assert answer.workflow.tasks[0].arguments["all"].model_dump()["items"] == ()
    done = Done(frozenset({"n1", "n3"}), {"n1": {"items": []}, "n3": {"n": 7}})
    assert next_part(structure, {"limit": 1}, done).value == {"pages": [], "last": 7}


def test_a_loop_over_what_the_caller_gives_begins_at_once() -> None:
    code = "for path in paths:\n    await mcp.s.read(id=path)"
    assert compare(code, {"paths": ["a", "b"]}) == [["n1__0", "n1__1"]]
    assert compare(code, {"paths": []}) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_loop_in_a_branch_repeats_nothing_where_that_is_not_taken(seed: int) -> None:
    compare(
        "a = await mcp.s.list()\nif a.ok:\n    for item in a.items:\n        await mcp.s.read(id=item.id)\n"
        "await mcp.s.done()",
        {},
        seed,
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_loop_goes_over_what_another_came_to(seed: int) -> None:
    parts = compare(
        "a = await mcp.s.list()\n"
        "b = await asyncio.gather(*[mcp.s.read(id=item.id) for item in a.items])\n"
        "c = await asyncio.gather(*[mcp.s.more(id=page.inner.id) for page in b])\nreturn c",
        {},
        seed,
    )
    assert len(parts) == 3


def test_what_is_no_list_ends_the_program_with_its_line() -> None:
    structure = structure_of(PAGES, "python")
    for value in ({"items": "abc"}, {"items": {"a": 1}}, {"items": None}, {}):
        answer = next_part(structure, {}, Done(frozenset({"n1"}), {"n1": value}))
        assert answer.error is not None
        assert answer.error.code == "PROGRAM_ERROR"
        assert answer.error.message.startswith("line 3: ")


def test_more_items_than_a_run_may_have_calls_are_refused() -> None:
    many = {"items": [{"id": "x"}] * 501}
    with pytest.raises(WorkflowInvalid) as found:
        next_part(structure_of(PAGES, "python"), {}, Done(frozenset({"n1"}), {"n1": many}))
    assert found.value.code == "TOO_MANY_TASKS"


def test_a_part_is_no_larger_than_a_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfolding, "DEPTH_MAX", 2)
    monkeypatch.setattr(unfolding, "WIDTH_MAX", 3)
    paths = [str(number) for number in range(8)]
    chain = compare("for path in paths:\n    await mcp.s.read(id=path)", {"paths": paths})
    assert [len(part) for part in chain] == [2, 2, 2, 2]
    wide = compare("await asyncio.gather(*[mcp.s.read(id=path) for path in paths])", {"paths": paths})
    assert [len(part) for part in wide] == [3, 3, 2]


def test_a_parameter_that_is_not_given_has_its_default() -> None:
    code = (
        "async def main(paths, limit=5):\n    for path in paths:\n        await mcp.s.read(id=path, n=limit)"
    )
    structure = structure_of(code, "python")
    for context, wanted in (({"paths": ["a"]}, 5), ({"paths": ["a"], "limit": 2}, 2)):
        world = World(1)
        played(structure, context, world)
        assert json.loads(world.calls[0][1]) == {"id": "a", "n": wanted}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("for x in xs:\n    await capabilities.peek(x=x)", "line 2: it calls a capability beside a loop"),
        (
            "match (await mcp.s.a()).id:\n    case 'x':\n        await mcp.s.b()\n    case _:\n"
            "        await mcp.s.c()\nfor x in xs:\n    await mcp.s.d(x=x)",
            "line 3: it chooses between more than two ways beside a loop",
        ),
        ("for x in xs:\n    await mcp.s.a(x=f'{x}')", "has to be computed in the program's language"),
        (
            "a = [await mcp.s.a(x=x) for x in xs]\nawait mcp.s.b(x=a[0].n)",
            "`l1[0].n` is a part of what a loop",
        ),
        ("a = [await mcp.s.a(x=x) for x in xs]\nif a == xs:\n    await mcp.s.b()", "what a loop came to"),
        ("a = [await mcp.s.a(x=x) for x in xs]\nreturn a[0]", "its result: `l1[0]` is a part"),
    ],
)
def test_what_a_loop_cannot_have_beside_it_is_an_obstacle(code: str, reason: str) -> None:
    assert any(reason in each for each in obstacles(structure_of(code, "python")))


def test_an_answer_has_the_structure_and_no_workflow() -> None:
    answer = analysed(AnalyseRequest(source=PAGES, language="python"))
    assert (answer.mode, answer.reasons, answer.workflow) == ("dag", (), None)
    assert answer.program is not None
    assert answer.program.structure == answer.structure


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs(), number=st.integers(0, 9), seed=st.integers(0, 10_000))
def test_generated_programs_make_the_calls_that_python_makes(
    program: Written, number: int, seed: int
) -> None:
    structure = structure_of(program.python, "python")
    if not obstacles(structure) and repeats(structure):
        compare(program.python, {"given": number}, seed)


def test_what_the_caller_gives_is_taken_as_it_is() -> None:
    code = "for item in items:\n    if item.ok:\n        await mcp.s.read(id=item.id)"
    items = [{"ok": True, "id": 2**60}, {"ok": False}, {"ok": True, "id": {"a": [1]}}]
    world = World(1)
    played(structure_of(code, "python"), {"items": items}, world)
    assert [json.loads(given) for _, given in world.calls] == [{"id": 2**60}, {"id": {"a": [1]}}]
