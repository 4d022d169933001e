"""A run of a program in the sandbox: what it asks for becomes layers, what they come to goes back to it."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow import calls
from pml.processors.workflow.evolve import CAUGHT_MAX
from pml.schemas.commands import RunStart
from pml.schemas.stepping import STEP_TOOL, StepRequest
from tests.processors.session_world import KEY, SessionWorld, data_of

LOOP = "while await mcp.files.list_dir(path='.'):\n    pass"
READ = ("files:read_file", {"path": "a"})


@pytest.fixture
def world() -> SessionWorld:
    world = SessionWorld()
    world.program(LOOP, "python")
    world.analyse()
    return world


def asked(world: SessionWorld) -> StepRequest:
    """What the program is asked now."""
    return StepRequest.model_validate(world.open_calls[world.call_of(STEP_TOOL)].arguments)


def ended(world: SessionWorld) -> Any:
    return world.events[-1].data


def test_every_step_is_told_of_all_steps_before_it(world: SessionWorld) -> None:
    assert asked(world).taken == ()
    for number in (1, 2, 3):
        world.step(calls=[READ, READ])
        for task in (f"n{2 * number - 1}", f"n{2 * number}"):
            world.answer(world.call_of(task), {"n": number})
    taken = asked(world).taken
    assert [len(step.results) for step in taken] == [2, 2, 2]
    places = {item.result.offset for step in taken for item in step.results if item.result}
    assert len(places) == 6
    assert isinstance(world.payloads[("pml.commands", 3, asked(world).start.offset)], RunStart)
    assert world.session_run().graph.layers == (("n1", "n2"), ("n3", "n4"), ("n5", "n6"))  # type: ignore[union-attr]


def test_a_step_is_asked_again_from_the_state_alone(world: SessionWorld) -> None:
    world.step(calls=[READ])
    world.answer(world.call_of("n1"), {})
    assert world.session is not None
    (again,) = calls(world.session, {}, KEY)
    assert again == world.open_calls[world.call_of(STEP_TOOL)]


def test_the_error_of_a_call_is_told_without_secrets_and_cut(world: SessionWorld) -> None:
    world.step(calls=[READ])
    world.answer(
        world.call_of("n1"), code="TOOL_ERROR", message="password=hunter2-correct-horse " + "x" * 900
    )
    ((given,),) = (step.results for step in asked(world).taken)
    assert given.error is not None
    assert (given.error.code, given.error.type) == ("TOOL_ERROR", "UNKNOWN")
    assert "hunter2" not in given.error.message
    assert len(given.error.message) <= CAUGHT_MAX


def test_a_call_whose_arguments_are_gone_is_an_error_of_the_program(world: SessionWorld) -> None:
    step = world.step(calls=[("files:delete_file", {"path": "a"})])
    requested = data_of(step, "approval.requested")
    world.lose(world.session_run().replans[-1])
    world.send("approval.decide", data={"approval_id": requested.approval_id, "decision": "approve"})
    ((given,),) = (step.results for step in asked(world).taken)
    assert given.error is not None
    assert given.error.code == "PAYLOAD_GONE"


def test_more_calls_than_a_run_may_have_fail_it(world: SessionWorld) -> None:
    for layer in range(2):
        world.checked_every = 1
        world.step(calls=[READ] * 200)
        # A check passes over all calls: of two hundred answers that are alike it looks at some.
        world.checked_every = 20
        for number in range(200):
            world.answer(world.call_of(f"n{200 * layer + number + 1}"), {})
    world.checked_every = 1
    world.step(calls=[READ] * 101)
    assert ended(world).error["code"] == "TOO_MANY_TASKS"


def test_a_long_loop_has_more_layers_than_a_workflow_may(world: SessionWorld) -> None:
    # Steps and answers take turns: both kinds are looked at.
    world.checked_every = 5
    for number in range(1, 121):
        world.step(calls=[READ])
        world.answer(world.call_of(f"n{number}"), {})
    world.step(value=120)
    assert (ended(world).result, ended(world).counts.tasks) == (120, 120)


def test_a_secret_is_called_with_and_not_kept(world: SessionWorld) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    world.step(calls=[("files:search", {"query": secret})])
    assert world.open_calls[world.call_of("n1")].arguments == {"query": secret}
    world.answer(world.call_of("n1"), {})
    world.step(value={"found": secret})
    assert all(secret not in event.model_dump_json() for event in world.events)


def test_an_answer_after_the_run_was_stopped_changes_nothing(world: SessionWorld) -> None:
    call = world.call_of(STEP_TOOL)
    world.send("run.abort")
    assert not world.answer(call, {"value": 1}).events


def test_a_run_without_time_left_does_not_ask(world: SessionWorld) -> None:
    world.step(calls=[("files:write_file", {"path": "a"})])
    world.time_ms = world.session_run().deadline_ms
    world.answer(world.call_of("n1"), {})
    assert ended(world).error["code"] == "RUN_TIMEOUT"
    assert not world.open_calls


def test_a_call_that_a_retry_repeats_is_told_anew(world: SessionWorld) -> None:
    world.step(calls=[READ])
    world.answer(world.call_of("n1"), code="TOOL_ERROR")
    world.step(error={"code": "PROGRAM_ERROR", "message": "TOOL_ERROR: it failed", "line": 1})
    assert ended(world).error["details"] == {"line": 1}
    world.send("run.retry")
    world.answer(world.call_of("n1"), {"n": 1})
    ((given,),) = (step.results for step in asked(world).taken)
    assert given.result is not None
    world.step(value=1)
    assert ended(world).result == 1


def test_two_programs_of_a_session_do_not_mix(world: SessionWorld) -> None:
    world.program(LOOP, "python", run_id="run_2")
    world.analyse()
    world.step(calls=[READ])
    world.step(run_id="run_2", calls=[READ, READ])
    world.answer(world.call_of("n1", "run_2"), {})
    world.answer(world.call_of("n2", "run_2"), {})
    assert asked(world).taken[0].results[0].result is not None
    assert len(asked(world).taken[0].results) == 2
