"""How calls end that nobody, or somebody else, waits for."""

from __future__ import annotations

import pytest

from pml.schemas.events import SpeculationEnded, TaskFailed
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import FORK, reference, speculating, task


def test_a_joined_call_outlives_the_plan_that_it_was_begun_for() -> None:
    """Its own run has no such task any more, so nobody can tell its arguments."""
    world = SessionWorld()
    tasks = [task("a", "1"), task("c", reference("a.next"), "a")]
    world.start({"tasks": tasks, "options": {"per_layer_validation": True}})
    world.answer(world.call_of("a"), {"next": "3"})
    world.start({"tasks": [task("x", "3")]}, "run_2")
    world.send("run.replan", data={"tasks": [task("n", "5", tool="files:parse")]})
    ended = data_of(world.answer(world.call_of("x"), {"text": "three"}), "speculation.ended")
    assert (ended.task_id, ended.fate, ended.arguments) == ("c", "served", None)


def test_a_run_that_is_stopped_gives_up_what_it_verifies() -> None:
    world = SessionWorld(catalog=catalog(verified_share=1.0))
    world.start({"tasks": [*FORK["tasks"], task("d", "4", "c", tool="files:write_file")]})
    world.answer(world.call_of("a"), {"next": "3"})
    world.answer(world.call_of("c"), {"text": "three"})
    verifying = data_of(world.answer(world.call_of("b")), "speculation.verifying")
    step = world.send("run.abort")
    assert data_of(step, "speculation.verified").outcome == "unanswered"
    assert [(item.call_id, item.reason) for item in step.cancels] == [(verifying.call_id, "aborted")]


def taken_from_waiting_results() -> SessionWorld:
    """`d` began early with the texts that `c1` and `c2` gave early; their turn has not come."""
    world = SessionWorld(catalog=catalog(speculation_depth=2))
    deeper = {"text": reference("c1.text"), "other": reference("c2.text")}
    tasks = [
        task("a", "1", tool="files:list_dir"),
        task("b", "2"),
        task("c1", reference("a.one"), "b"),
        task("c2", reference("a.two"), "b"),
        {"id": "d", "tool": "files:parse", "arguments": deeper},
    ]
    world.start({"tasks": tasks})
    world.answer(world.call_of("a"), {"one": "3", "two": "4"})
    for name in ("c1", "c2"):
        world.answer(world.call_of(name), {"text": name})
    assert world.call_of("d")
    return world


def test_what_was_taken_from_several_results_ends_with_each_of_them() -> None:
    world = taken_from_waiting_results()
    step = world.start({"tasks": [task("w", "4", tool="files:write_file")]}, "run_2")
    ended = [event.data for event in step.events if isinstance(event.data, SpeculationEnded)]
    assert [(item.task_id, item.reason) for item in ended] == [("c2", "invalidated"), ("d", "invalidated")]


@pytest.mark.parametrize("answered", [True, False])
def test_what_another_run_uses_outlives_the_results_that_it_was_taken_from(answered: bool) -> None:
    world = taken_from_waiting_results()
    call_id = world.call_of("d")
    if answered:
        world.answer(call_id, {"parsed": "both"})
    same = {"id": "y", "tool": "files:parse", "arguments": {"text": "c1", "other": "c2"}}
    world.start({"tasks": [same, task("z", "9")]}, "run_2")
    step = world.send("run.abort")
    ended = [event.data.task_id for event in step.events if isinstance(event.data, SpeculationEnded)]
    assert ended == ["c1", "c2"]
    assert call_id not in [cancel.call_id for cancel in step.cancels]
    if not answered:
        assert data_of(world.answer(call_id, {"parsed": "both"}), "task.completed").served_by == "joined"


def test_what_was_taken_from_results_that_end_together_ends_once() -> None:
    world = taken_from_waiting_results()
    step = world.send("run.abort")
    ended = [event.data.task_id for event in step.events if isinstance(event.data, SpeculationEnded)]
    assert ended == ["c1", "d", "c2"]
    assert world.session is not None
    assert not world.session.speculations


def test_an_attempt_that_could_not_begin_after_a_joined_call_failed_was_no_early_one() -> None:
    world = speculating()
    world.answer(world.call_of("b"))
    assert world.session is not None
    world.lose(world.session.runs["run_1"].payload)
    step = world.answer(world.call_of("c"), code="NOT_FOUND")
    failed = [event.data for event in step.events if isinstance(event.data, TaskFailed)]
    assert [(item.attempt, item.served_by, item.early) for item in failed] == [
        (1, "joined", "speculated"),
        (2, "call", None),
    ]


def early_results(cache_bytes: int) -> SessionWorld:
    """`c1` and then `c2` were answered early, and each gave the same number of bytes."""
    world = SessionWorld(catalog=catalog(cache_bytes=cache_bytes))
    tasks = [task("a", "1"), task("b", "2"), task("c1", "3", "a", "b"), task("c2", "4", "a", "b")]
    world.start({"tasks": tasks})
    world.answer(world.call_of("a"))
    for name in ("c1", "c2"):
        world.answer(world.call_of(name), {"text": name})
    return world


BYTES = 26
"""Of each of these results, as canonical JSON."""


@pytest.mark.parametrize(
    ("cache_bytes", "ready", "ended"),
    [
        (2 * BYTES, ["c1", "c2"], []),
        (2 * BYTES - 1, ["c1", "c2"], ["c1"]),
        (BYTES, ["c1", "c2"], ["c1"]),
        (BYTES - 1, [], ["c1", "c2"]),
    ],
)
def test_the_cache_is_filled_to_its_last_byte(cache_bytes: int, ready: list[str], ended: list[str]) -> None:
    world = early_results(cache_bytes)
    began = {event.data.call_id: event.data.task_id for event in world.of_type("speculation.started")}
    kept = [event.data for event in world.of_type("speculation.ready")]
    assert {item.result_bytes for item in kept} <= {BYTES}
    assert [began[item.call_id] for item in kept] == ready
    gone = [event.data for event in world.of_type("speculation.ended")]
    assert [(item.task_id, item.reason, item.cancelled) for item in gone] == [
        (name, "evicted", False) for name in ended
    ]


def test_used_results_make_room_first_however_new_they_are() -> None:
    """And no more of them than it takes: the older ones that nobody used yet stay."""
    world = early_results(3 * BYTES)
    world.start({"tasks": [task("y", "4")]}, "run_2")
    other = [
        task("a", "1"),
        task("b", "8"),
        *(task(f"e{number}", f"{number}", "a", "b") for number in (5, 6)),
    ]
    world.start({"tasks": other}, "run_3")
    world.answer(world.call_of("a", "run_3"))
    assert world.answer(world.call_of("e5"), {"text": "e5"}).events[0].type == "speculation.ready"
    used = data_of(world.answer(world.call_of("e6"), {"text": "e6"}), "speculation.forgotten")
    assert len(used.call_ids) == 1
    assert [event.data.task_id for event in world.of_type("speculation.ended")] == ["c2"]


def test_a_call_that_still_runs_early_makes_no_room() -> None:
    world = SessionWorld(catalog=catalog(cache_bytes=BYTES))
    early = [task(f"c{number}", f"{number}", "a", "b") for number in (1, 2, 3)]
    world.start({"tasks": [task("a", "a"), task("b", "b"), *early]})
    world.answer(world.call_of("a"))
    for name in ("c2", "c3"):
        world.answer(world.call_of(name), {"text": name})
    assert [event.data.task_id for event in world.of_type("speculation.ended")] == ["c2"]
    assert world.call_of("c1")


def test_two_writes_of_the_same_thing_that_nobody_can_ask_about_are_only_unknown() -> None:
    world = SessionWorld()
    tasks = [task("v", "1", tool="files:write_file"), task("w", "1", tool="files:write_file")]
    world.start({"tasks": tasks})
    for name in ("v", "w"):
        world.answer(world.call_of(name), code="TIMEOUT")
    assert world.types().count("task.unknown") == 2
    assert "task.unverified" not in world.types()


def test_a_call_that_only_a_persons_word_allowed_may_be_unknown_too() -> None:
    world = SessionWorld()
    asked = data_of(world.start({"tasks": [task("s", "1", tool="web:secret")]}), "approval.requested")
    world.send("approval.decide", data={"approval_id": asked.approval_id, "decision": "approve"})
    unknown = data_of(world.answer(world.call_of("s"), code="TIMEOUT"), "task.unknown")
    assert (unknown.task_id, unknown.verify_at) == ("s", None)
