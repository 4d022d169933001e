"""What a session keeps of runs that may be taken up again, and what a retry opens."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow import MissingDefinition, decode_session, encode_session
from pml.processors.workflow.evolve_decisions import KEPT_RUNS_MAX
from tests.processors.session_world import SessionWorld, catalog, data_of


def failing(tool: str = "files:parse") -> dict[str, Any]:
    return {"tasks": [{"id": "a", "tool": tool, "arguments": {"path": "a.md"}}]}


def failed_runs(count: int, code: str = "NOT_FOUND", tool: str = "files:parse") -> SessionWorld:
    world = SessionWorld(catalog=catalog(runs_live_max=100), checked_every=50)
    for number in range(count):
        world.start(failing(tool), f"run_{number}")
        world.answer(world.call_of("a", f"run_{number}"), code=code)
    return world


def kept(world: SessionWorld) -> list[str]:
    assert world.session is not None
    return [name for name, run in world.session.runs.items() if run.graph is not None]


def test_the_newest_failed_runs_keep_what_a_retry_needs() -> None:
    assert KEPT_RUNS_MAX == 16
    world = failed_runs(KEPT_RUNS_MAX + 2)
    assert kept(world) == [f"run_{number}" for number in range(2, KEPT_RUNS_MAX + 2)]
    refused = data_of(world.send("run.retry", "run_0"), "command.rejected")
    assert refused.error["code"] == "RUN_GIVEN_UP"
    assert "run.retried" in [event.type for event in world.send("run.retry", "run_2").events]


def test_runs_with_a_task_of_unknown_outcome_are_given_up_last() -> None:
    world = failed_runs(2, "TIMEOUT", "files:write_file")
    for number in range(2, KEPT_RUNS_MAX + 4):
        world.start(failing(), f"run_{number}")
        world.answer(world.call_of("a", f"run_{number}"), code="NOT_FOUND")
    assert kept(world)[:3] == ["run_0", "run_1", "run_6"]
    assert len(kept(world)) == KEPT_RUNS_MAX


def test_runs_that_go_on_or_went_well_take_no_failed_runs_place() -> None:
    world = failed_runs(KEPT_RUNS_MAX - 1)
    for number in range(3):
        world.start(failing(), f"well_{number}")
        world.answer(world.call_of("a", f"well_{number}"))
        world.start(failing(), f"live_{number}")
    world.start(failing(), "run_last")
    world.answer(world.call_of("a", "run_last"), code="NOT_FOUND")
    assert {"run_0", "live_0", "run_last"} <= set(kept(world))


def test_the_run_that_failed_just_now_is_kept_however_early_it_began() -> None:
    world = SessionWorld(catalog=catalog(runs_live_max=100), checked_every=50)
    world.start(failing(), "first")
    for number in range(KEPT_RUNS_MAX):
        world.start(failing(), f"run_{number}")
        world.answer(world.call_of("a", f"run_{number}"), code="NOT_FOUND")
    world.answer(world.call_of("a", "first"), code="NOT_FOUND")
    assert kept(world) == ["first", *(f"run_{number}" for number in range(1, KEPT_RUNS_MAX))]


def test_a_failed_run_needs_its_definition_to_be_read_back() -> None:
    world = failed_runs(1)
    assert world.session is not None
    record = encode_session(world.session)
    assert decode_session(record, {}.get) == MissingDefinition("run_0")
    assert decode_session(record, world.definitions.get) == world.session


def test_each_plan_of_a_run_has_a_definition_of_its_own() -> None:
    world = SessionWorld()
    tasks = [{"id": name, "tool": "files:parse"} for name in ("a", "b")]
    tasks[1]["depends_on"] = ["a"]  # type: ignore[assignment]
    world.start({"tasks": tasks, "options": {"per_layer_validation": True}})
    world.answer(world.call_of("a"))
    before = encode_session(world.session) if world.session else b""
    world.send("run.replan", data={"tasks": [{"id": "c", "tool": "files:parse"}]})
    assert list(world.definitions) == ["run_1", "run_1/1"]
    assert world.session is not None
    earlier = decode_session(before, world.definitions.get)
    assert not isinstance(earlier, MissingDefinition)
    assert sorted(earlier.runs["run_1"].graph.nodes if earlier.runs["run_1"].graph else ()) == ["a", "b"]
    assert decode_session(encode_session(world.session), {"run_1": b""}.get) == MissingDefinition("run_1/1")


def test_attempts_are_counted_on_and_the_rule_of_retries_begins_anew() -> None:
    rule = {"scope": "minimal", "approval": "auto", "retryable": {"attempts": 2, "backoff_ms": 100}}
    world = SessionWorld(catalog=catalog({"files:parse": rule}))
    world.start(failing())
    for _ in range(2):
        world.answer(world.call_of("a"), code="NETWORK", retryable=True)
        if world.session and world.session.live:
            world.due()
    world.send("run.retry")
    world.answer(world.call_of("a"), code="NETWORK", retryable=True)
    world.due()
    world.answer(world.call_of("a"))
    attempts = [event.data.attempt for event in world.of_type("task.started")]  # type: ignore[attr-defined]
    assert attempts == [1, 2, 3, 4]
    assert world.types()[-1] == "run.completed"


def test_a_retry_leaves_what_was_safe_to_fail_and_what_a_replan_went_round() -> None:
    world = SessionWorld()
    tasks: list[dict[str, Any]] = [
        {"id": "a", "tool": "files:parse", "safe_to_fail": True},
        {"id": "b", "tool": "files:parse"},
    ]
    world.start({"tasks": tasks, "options": {"decision_points": "on_error"}})
    world.answer(world.call_of("a"), code="NOT_FOUND")
    world.answer(world.call_of("b"), code="NOT_FOUND")
    world.send("run.replan", data={"tasks": [{"id": "c", "tool": "files:parse"}]})
    world.answer(world.call_of("c"), code="NOT_FOUND")
    world.send("run.continue")
    retried = data_of(world.send("run.retry"), "run.retried")
    assert retried.task_ids == ("c",)
    world.answer(world.call_of("c"))
    assert world.types()[-1] == "run.completed"


def test_a_retry_asks_again_only_what_could_not_be_decided() -> None:
    world = SessionWorld()
    branch = [{"node": "certain", "outcome": "true"}]
    tasks: list[dict[str, Any]] = [
        {"id": "a", "tool": "files:parse"},
        {"id": "b", "tool": "files:parse", "condition": branch},
        {"id": "c", "tool": "files:parse", "condition": [{"node": "uncertain", "outcome": "true"}]},
    ]
    decisions = [
        {"id": "certain", "expression": "a.count > 0"},
        {"id": "uncertain", "expression": "a.nothing > 0"},
    ]
    world.start({"tasks": tasks, "decisions": decisions})
    world.answer(world.call_of("a"), {"count": 1})
    world.answer(world.call_of("b"))
    retried = data_of(world.send("run.retry"), "run.retried")
    assert (retried.task_ids, retried.decision_ids) == (("c",), ("uncertain",))


def test_a_retry_leaves_what_was_skipped_behind_a_failure_that_was_safe() -> None:
    world = SessionWorld()
    tasks: list[dict[str, Any]] = [
        {"id": "a", "tool": "files:parse", "safe_to_fail": True},
        {"id": "b", "tool": "files:parse"},
        {"id": "c", "tool": "files:parse", "depends_on": ["a"]},
        {"id": "d", "tool": "files:parse", "depends_on": ["b"]},
    ]
    world.start({"tasks": tasks})
    for name in ("a", "b"):
        world.answer(world.call_of(name), code="NOT_FOUND")
    step = world.send("run.retry")
    assert data_of(step, "run.retried").task_ids == ("b", "d")
    assert data_of(step, "layer.released").task_ids == ("b",)


def test_a_full_session_takes_no_failed_run_up_again() -> None:
    world = SessionWorld(catalog=catalog(runs_live_max=1))
    world.start(failing())
    world.answer(world.call_of("a"), code="NOT_FOUND")
    world.start(failing(), "run_2")
    refused = data_of(world.send("run.retry"), "command.rejected")
    assert (refused.error["code"], refused.error["retryable"]) == ("SESSION_FULL", True)
    world.answer(world.call_of("a", "run_2"))
    assert data_of(world.send("run.retry"), "run.retried").task_ids == ("a",)
