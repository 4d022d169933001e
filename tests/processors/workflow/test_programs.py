"""A run that begins with a program: analysed first, then it has its tasks and runs as any other."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.capabilities.analysing import structure_of
from pml.processors.workflow.programs import ANALYSE_TIMEOUT_MS, _safe_structure
from pml.schemas.analysis import ANALYSE_TOOL
from pml.schemas.commands import Code, RunStart
from tests.processors.session_world import SessionWorld, data_of

CHAIN = """
page = await mcp.files.read_file(path=args.path)
found = await mcp.files.search(query=page.title + "!", limit=page.count + 1)
return found
"""
BRANCH = """
const page = await mcp.files.read_file({ path: "a.txt" });
if (page.count > 2) {
    await mcp.files.write_file({ path: page.path, text: "many" });
} else {
    await mcp.files.list_dir({ path: "." });
}
"""


@pytest.fixture
def world() -> SessionWorld:
    return SessionWorld()


def ended(world: SessionWorld) -> Any:
    return world.events[-1].data


def test_a_program_runs_as_the_workflow_that_it_is(world: SessionWorld) -> None:
    began = world.program(CHAIN, context={"path": "a.txt"})
    assert [event.type for event in began.events] == ["run.started", "internal.started"]
    started = began.events[0].data
    assert (started.tasks, started.layers, started.code.source) == (0, 0, CHAIN)  # type: ignore[attr-defined]
    assert began.calls[0].arguments == {"source": CHAIN}

    expanded = data_of(world.analyse(), "run.expanded")
    assert (expanded.tasks, expanded.layers) == (2, 2)
    assert expanded.workflow_type == expanded.capability_id == world.session_run().workflow_type

    first = world.open_calls[world.call_of("n1")]
    assert first.arguments == {"path": "a.txt"}
    world.answer(first.call_id, {"title": "T", "count": 2})
    second = world.open_calls[world.call_of("n2")]
    assert second.arguments == {"query": "T!", "limit": 3}
    world.answer(second.call_id, {"hits": []})
    assert world.types()[-1] == "run.completed"
    assert ended(world).executed_path == ("n1", "n2")
    assert ended(world).result == {"hits": [], "content": []}


@pytest.mark.parametrize(("count", "tool"), [(3, "files:write_file"), (1, "files:list_dir")])
def test_a_branch_of_a_program_is_taken_by_its_condition(world: SessionWorld, count: int, tool: str) -> None:
    world.program(BRANCH)
    world.analyse()
    world.answer(world.call_of("n1"), {"count": count, "path": "b.txt"})
    assert [call.tool for call in world.open_calls.values()] == [tool]


@pytest.mark.parametrize(
    ("source", "code", "told"),
    [
        ("await mcp.files.read_file(path=", "CODE_SYNTAX", "line 1"),
        ("await mcp.files.read_file(path=args.path)", "MISSING_PARAMETER", "path"),
        ("await mcp.files.nothing()", "UNKNOWN_TOOL", "no tool 'nothing'"),
    ],
)
def test_a_program_that_cannot_run_fails_its_run_and_says_why(
    world: SessionWorld, source: str, code: str, told: str
) -> None:
    world.program(source, "python")
    step = world.analyse()
    assert [event.type for event in step.events] == ["internal.ended", "run.failed"]
    error = ended(world).error
    assert error["code"] == code
    assert told in error["message"]
    assert not world.open_calls


def test_a_parameter_that_is_not_given_has_the_programs_default(world: SessionWorld) -> None:
    world.program(
        "async def main(path, limit=5):\n    await mcp.files.search(query=path, limit=limit)",
        context={"path": "a"},
    )
    world.analyse()
    assert world.open_calls[world.call_of("n1")].arguments == {"query": "a", "limit": 5}


def test_a_context_overrides_the_programs_default(world: SessionWorld) -> None:
    world.program("async def main(limit=5):\n    await mcp.files.search(limit=limit)", context={"limit": 1})
    world.analyse()
    assert world.open_calls[world.call_of("n1")].arguments == {"limit": 1}


def test_a_literal_that_looks_like_a_secret_is_called_with_and_not_kept(world: SessionWorld) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    world.program(f"await mcp.files.search(query='{secret}')", "python")
    world.analyse()
    assert world.open_calls[world.call_of("n1")].arguments == {"query": secret}
    assert world.events[0].data.code.redacted  # type: ignore[attr-defined]
    assert all(secret not in event.model_dump_json() for event in world.events)


def test_no_node_of_a_structure_keeps_a_secret() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    lines = (
        f"for x in ['{secret}', args.more]:",
        f"    await mcp.s.one(x=x, y='{secret}')",
        f"if len(args.more) > 1 and args.more != '{secret}':",
        f"    await mcp.s.two(z=['{secret}', args.more])",
        "for each in (await mcp.s.list()).items:",
        f"    await mcp.s.three(k=['{secret}', each])",
    )
    structure = structure_of("\n".join(lines), "python")
    assert {node.type for node in structure.nodes} >= {"task", "decision", "loop"}
    assert secret in structure.model_dump_json()
    assert secret not in _safe_structure(structure).model_dump_json()


def test_nobody_who_analyses_in_time_fails_the_run(world: SessionWorld) -> None:
    world.program(CHAIN, context={"path": "a.txt"})
    world.due()
    assert ended(world).error["code"] == "ANALYSIS_TIMEOUT"
    assert world.session is not None
    assert not world.session.live


def test_an_answer_that_is_none_fails_the_run(world: SessionWorld) -> None:
    world.program(CHAIN, context={"path": "a.txt"})
    world.answer(world.call_of(ANALYSE_TOOL), {"language": "cobol"})
    assert ended(world).error["code"] == "BAD_ANSWER"


def test_a_command_that_is_gone_when_the_answer_comes_fails_the_run(world: SessionWorld) -> None:
    world.program(CHAIN, context={"path": "a.txt"})
    world.lose(world.session_run().payload)
    world.analyse()
    assert ended(world).error["code"] == "PAYLOAD_GONE"


def test_defaults_that_are_gone_are_missed_and_not_left_out(world: SessionWorld) -> None:
    calls = "a = await mcp.files.read_file(path='a')\n    await mcp.files.search(query=a.t)"
    world.program(f"async def main(limit=7):\n    {calls}", options={"per_layer_validation": True})
    world.analyse()
    world.answer(world.call_of("n1"), {"t": "T"})
    plan = {
        "id": "m1",
        "tool": "files:search",
        "arguments": {"limit": {"type": "parameter", "parameter_name": "limit"}},
    }
    world.lose(world.session_run().replans[0])
    world.send("run.replan", data={"tasks": [plan]})
    assert data_of_last(world, "task.failed").error.code == "PAYLOAD_GONE"


def test_a_run_is_aborted_before_it_has_tasks(world: SessionWorld) -> None:
    world.program(CHAIN, context={"path": "a.txt"})
    call = world.call_of(ANALYSE_TOOL)
    step = world.send("run.abort")
    assert world.types()[-1] == "run.aborted"
    assert [cancel.call_id for cancel in step.cancels] == [call]
    assert not world.answer(call, {}).events


def test_a_run_whose_time_is_over_before_it_has_tasks_fails(world: SessionWorld) -> None:
    world.program(CHAIN, context={"path": "a.txt"}, options={"timeout_s": 5})
    assert ANALYSE_TIMEOUT_MS > 5_000
    world.due()
    assert ended(world).error["code"] == "RUN_TIMEOUT"


def test_the_same_program_again_attaches_and_another_one_is_refused(world: SessionWorld) -> None:
    world.program(CHAIN, context={"path": "a.txt"})
    assert [event.type for event in world.program(CHAIN, context={"path": "a.txt"}).events] == [
        "command.attached"
    ]
    assert [event.type for event in world.program(BRANCH).events] == ["command.rejected"]


def test_what_an_expression_cannot_compute_fails_its_task(world: SessionWorld) -> None:
    world.program(CHAIN, context={"path": "a.txt"})
    world.analyse()
    world.answer(world.call_of("n1"), {"title": "T", "count": "two"})
    failed = data_of_last(world, "task.failed")
    assert failed.error.code == "UNRESOLVED_ARGUMENT"
    assert "a number is needed, not a text" in failed.error.message


def data_of_last(world: SessionWorld, kind: str) -> Any:
    return world.of_type(kind)[-1].data


READ = {"id": "n1", "tool": "files:read_file", "arguments": {"path": "a"}}


def result(expression: str) -> dict[str, Any]:
    shown = {"seen": {"type": "reference", "expression": expression}, "password": "hunter2-correct-horse"}
    return {"type": "object_of", "fields": shown}


def test_a_workflow_comes_to_its_result_without_secrets(world: SessionWorld) -> None:
    world.start({"tasks": [READ], "result": result("n1.title")})
    world.answer(world.call_of("n1"), {"title": "T"})
    assert ended(world).result == {"seen": "T", "password": "[REDACTED]"}
    assert ended(world).result_error is None


def test_a_result_that_is_not_there_is_told_and_the_run_completes(world: SessionWorld) -> None:
    world.start({"tasks": [READ], "result": result("n1.nothing")})
    world.answer(world.call_of("n1"), {"title": "T"})
    assert world.types()[-1] == "run.completed"
    assert (ended(world).result, ended(world).result_error) == (
        None,
        "result: n1 has no .nothing: 'nothing' leads nowhere",
    )


def test_a_result_out_of_the_branch_that_was_taken(world: SessionWorld) -> None:
    world.program(
        "a = await mcp.files.read_file(path='a')\n"
        "if a.n > 1:\n    b = await mcp.files.search(query='x')\n"
        "else:\n    b = await mcp.files.list_dir(path='.')\n"
        "return b.found",
        "python",
    )
    world.analyse()
    world.answer(world.call_of("n1"), {"n": 0})
    world.answer(world.call_of("files:list_dir"), {"found": 7})
    assert ended(world).result == 7


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("while x:\n    await mcp.files.read_file(path=x)", "line 1: `while`"),
        ("return 1", "it calls no tool"),
        (
            "a = await mcp.files.read_file(path='a')\nreturn len(a)",
            "its result: `len(n1)` has to be computed",
        ),
    ],
)
def test_what_no_dag_expresses_runs_in_the_sandbox_and_says_why(
    world: SessionWorld, source: str, reason: str
) -> None:
    world.program(source, "python")
    expanded = data_of(world.analyse(), "run.expanded")
    assert (expanded.mode, expanded.language, expanded.tasks) == ("sandbox", "python", 0)
    assert reason in expanded.reasons[0]
    assert world.session_run().sandbox == "python"
    assert [call.tool for call in world.open_calls.values()] == ["pml:step"]


def test_a_program_waits_at_its_decision_points(world: SessionWorld) -> None:
    world.program(CHAIN, context={"path": "a.txt"}, options={"per_layer_validation": True})
    world.analyse()
    world.answer(world.call_of("n1"), {"title": "T", "count": 2})
    assert "decision.required" in world.types()
    world.send("run.replan", data={"tasks": [{"id": "m1", "tool": "files:parse", "arguments": {}}]})
    assert world.open_calls[world.call_of("m1")].tool == "files:parse"


def test_a_program_and_a_workflow_together_are_refused() -> None:
    code = Code(source="return 1")
    with pytest.raises(ValueError, match="either a workflow or code"):
        RunStart.model_validate({"workflow": {"tasks": []}, "code": code})
    with pytest.raises(ValueError, match="options go with code"):
        RunStart.model_validate({"workflow": {"tasks": []}, "options": {}})
