"""What a command that begins a run may be, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow.definitions import DEFINITION_BYTES_MAX, safe_definition
from pml.schemas.canonical import canonical_json
from pml.schemas.commands import Command, RunStart
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.workflow import Workflow
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import task


def definition(text_bytes: int) -> dict[str, Any]:
    """What is kept of a workflow with so many bytes of text, in pieces that are not cut."""
    pieces = [min(10_000, text_bytes - begin) for begin in range(0, text_bytes, 10_000)]
    tasks = [
        {"id": f"n{number:02}", "tool": "files:parse", "arguments": {"text": "x" * size}}
        for number, size in enumerate(pieces)
    ]
    return safe_definition(Workflow.model_validate({"tasks": tasks}))


def test_a_definition_is_kept_whole_up_to_256_kib() -> None:
    around = len(canonical_json(definition(250_001))) - 250_001
    whole = 256 * 1_024 - around
    assert len(canonical_json(definition(whole))) == DEFINITION_BYTES_MAX == 256 * 1_024
    with pytest.raises(WorkflowInvalid, match="at most 262144"):
        definition(whole + 1)


WORKFLOW = {"tasks": [task("a", "1", tool="files:write_file")]}


def test_a_command_id_that_a_run_was_stopped_with_begins_none() -> None:
    world = SessionWorld()
    world.start(WORKFLOW)
    world.send("run.abort", command_id="cmd_1")
    (answer,) = world.start(WORKFLOW, "run_2", command_id="cmd_1").events
    assert (answer.type, answer.run_id, answer.data.error["code"]) == (
        "command.rejected",
        "run_2",
        "CONFLICT",
    )  # type: ignore[attr-defined]


def test_a_default_that_is_written_out_makes_no_other_content() -> None:
    world = SessionWorld()
    world.start(WORKFLOW)
    written = {"version": 1, "options": {"speculation": "on", "per_layer_validation": False}}
    assert data_of(world.start(WORKFLOW | written), "command.attached").status == "running"
    other = world.start(WORKFLOW | {"options": {"speculation": "off"}})
    assert data_of(other, "command.rejected").error["code"] == "CONFLICT"


@pytest.mark.parametrize(
    ("said", "written", "kept"),
    [("now", "always", "now"), (None, "always", "always"), ("now", None, "now"), (None, None, None)],
)
def test_the_intent_of_a_command_goes_before_that_of_its_workflow(
    said: str | None, written: str | None, kept: str | None
) -> None:
    data = RunStart(workflow=Workflow.model_validate(WORKFLOW | {"intent": written}), intent=said)
    command = Command(type="run.start", command_id="c1", session_id="s1", run_id="run_1", data=data)
    assert data_of(SessionWorld().command(command), "run.started").intent == kept


def test_a_session_that_remembers_no_more_runs_may_still_take_one_up_again() -> None:
    world = SessionWorld(catalog=catalog(runs_remembered_max=1))
    world.start(WORKFLOW)
    world.answer(world.call_of("a"), code="NOT_FOUND")
    assert data_of(world.start(WORKFLOW, "run_2"), "command.rejected").error["code"] == "SESSION_FULL"
    assert data_of(world.send("run.retry"), "run.retried").task_ids == ("a",)


@pytest.mark.parametrize(
    ("expression", "rejected"), [("'c1.count' == 'x'", True), ("c1.count == 'x'", False)]
)
def test_a_decision_that_reads_nothing_is_refused_beside_a_capability_too(
    expression: str, rejected: bool
) -> None:
    """What a capability decides about its parameters is checked when it has become tasks, and may."""
    tasks = [
        {"id": "c1", "capability": "peek"},
        task("n2", "1", condition={"node": "d1", "outcome": "true"}),
    ]
    step = SessionWorld().start({"tasks": tasks, "decisions": [{"id": "d1", "expression": expression}]})
    assert (step.events[0].type == "command.rejected") == rejected
    if rejected:
        assert data_of(step, "command.rejected").error["code"] == "BAD_EXPRESSION"
