"""What shadow mode says of the calls that it would have begun early."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pml.processors.speculation.thresholds import context_keys
from pml.processors.workflow import Catalog
from pml.schemas.base import ThresholdContext
from pml.schemas.catalog import BranchStats, CatalogRecord
from pml.schemas.events import SpeculationScored
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, reference, task
from tests.processors.workflow.test_evolve import early_with_another_path


def mostly_true(known: Catalog, times: int = 27) -> Catalog:
    data = BranchStats(tenant="local", workflow_type="default", decision_id="d", counts={"true": times})
    return known.with_record(CatalogRecord(kind="branch_stats", id="local/default/d", data=data))


def planned_behind_a_branch() -> SessionWorld:
    """`late` is planned: 27 of 27 times its branch was taken."""
    read = {"scope": "readonly", "approval": "auto", "ttl_s": 1}
    world = SessionWorld(catalog=mostly_true(catalog({READ: read}, speculation_mode="shadow")))
    branch = [{"node": "d", "outcome": "true"}]
    late = task("late", reference("list.first"), "other", condition=branch)
    tasks = [task("list", "docs", tool="files:list_dir"), task("slow", "x"), task("other", "y"), late]
    world.start({"tasks": tasks, "decisions": [{"id": "d", "expression": "slow.count > 0"}]})
    world.answer(world.call_of("list"), {"first": "a.md"})
    assert world.types()[-1] == "speculation.planned"
    return world


@pytest.mark.parametrize(
    ("count", "wait_ms", "fails", "reason"),
    [
        (1, 1_000, "", "expired"),
        (1, 0, "other", "unused"),
        (1, 0, "late", "failed"),
        (0, 0, "", "branch_not_taken"),
    ],
)
def test_a_plan_that_would_have_been_waste_teaches_its_threshold(
    count: int, wait_ms: int, fails: str, reason: str
) -> None:
    world = planned_behind_a_branch()
    world.time_ms += wait_ms
    world.answer(world.call_of("slow"), {"count": count})
    for call in ("other", "late"):
        if world.open_calls:
            world.answer(world.call_of(call), **({"code": "NOT_FOUND"} if call == fails else {}))
    (scored,) = (event.data for event in world.events if isinstance(event.data, SpeculationScored))
    assert (scored.reason, scored.success, scored.context is not None) == (reason, False, True)


def test_a_plan_with_other_arguments_than_its_task_had_would_have_been_waste() -> None:
    world = early_with_another_path(catalog(speculation_mode="shadow"))
    world.answer(world.call_of("slow"))
    step = world.answer(world.call_of("late"), {"text": "b"}, duration_ms=75.0)
    scored = data_of(step, "speculation.scored")
    assert (scored.reason, scored.success, scored.wasted_ms) == ("superseded", False, 75.0)


def test_a_task_that_is_tried_again_keeps_its_plan_until_it_has_failed_for_good() -> None:
    again = {"scope": "readonly", "approval": "auto", "retryable": {"attempts": 2, "backoff_ms": 0}}
    world = SessionWorld(catalog=catalog({READ: again}, speculation_mode="shadow"))
    world.start({"tasks": [task("a", "1"), task("b", "2"), task("c", "3", "a", "b")]})
    world.answer(world.call_of("a"))
    world.answer(world.call_of("b"))
    first = world.answer(world.call_of("c"), code="NETWORK", retryable=True)
    assert "speculation.scored" not in [event.type for event in first.events]
    world.due()
    last = world.answer(world.call_of("c"), code="NETWORK", retryable=True)
    assert data_of(last, "speculation.scored").reason == "failed"


def paced(tool_ms: float = 75.0, **policy: Any) -> SessionWorld:
    """A read was planned, was called 75 ms later, and took so long: what it takes is known."""
    world = SessionWorld(catalog=mostly_true(catalog(speculation_mode="shadow", **policy)))
    world.start({"tasks": [task("quick", "1"), task("slow", "2"), task("c", "3", "quick", "slow")]}, "paced")
    world.answer(world.call_of("quick"))
    world.time_ms += 75
    world.answer(world.call_of("slow"))
    world.answer(world.call_of("c"), duration_ms=tool_ms)
    return world


def last_scored(world: SessionWorld) -> SpeculationScored:
    return [event.data for event in world.events if isinstance(event.data, SpeculationScored)][-1]


@pytest.mark.parametrize(("tool_ms", "reason", "saved_ms"), [(75.0, "hit", 75.0), (76.0, "joined", 75.0)])
def test_a_plan_is_a_hit_where_its_call_would_have_ended_in_time(
    tool_ms: float, reason: str, saved_ms: float
) -> None:
    scored = last_scored(paced(tool_ms))
    assert (scored.reason, scored.saved_ms, scored.tool_ms) == (reason, saved_ms, tool_ms)


def test_a_plan_keeps_its_place_in_the_budget_for_as_long_as_its_tool_takes() -> None:
    world = paced(budget_name="low")
    late = [task(name, name, "quick", "slow") for name in ("c", "d")]
    world.start({"tasks": [task("quick", "1"), task("slow", "2"), *late]})
    step = world.answer(world.call_of("quick"))
    assert [data_of(step, f"speculation.{what}").layer for what in ("planned", "held")] == [1, 1]
    world.time_ms += 75
    world.start({"tasks": [task("other", "9")]}, "run_2")
    step = world.answer(world.call_of("other"))
    assert data_of(step, "speculation.planned").task_id == "d"


def test_a_plan_that_lacks_confidence_takes_no_place_in_the_budget() -> None:
    known = mostly_true(catalog(speculation_mode="shadow", budget_name="low"), times=10)
    world = SessionWorld(catalog=known)
    unsure = task("unsure", "3", "quick", condition=[{"node": "d", "outcome": "true"}])
    tasks = [task("quick", "1"), task("slow", "2"), unsure, task("sure", "4", "quick", "slow")]
    world.start({"tasks": tasks, "decisions": [{"id": "d", "expression": "slow.count > 0"}]})
    world.answer(world.call_of("quick"))
    planned = [event.data.shadow for event in world.of_type("speculation.planned")]  # type: ignore[attr-defined]
    assert planned == [False, True]
    assert "speculation.held" not in world.types()


@pytest.mark.parametrize(("waited_ms", "wasted_ms"), [(50, 50.0), (500, 75.0)])
def test_a_plan_in_vain_would_have_wasted_what_its_tool_takes_at_most(
    waited_ms: int, wasted_ms: float
) -> None:
    world = paced()
    late = task("late", "3", condition=[{"node": "d", "outcome": "true"}])
    tasks = [task("quick", "1"), task("slow", "2"), late]
    world.start({"tasks": tasks, "decisions": [{"id": "d", "expression": "slow.count > 0"}]})
    world.answer(world.call_of("quick", "run_1"))
    world.time_ms += waited_ms
    world.answer(world.call_of("slow", "run_1"), {"count": 0})
    scored = last_scored(world)
    assert (scored.reason, scored.wasted_ms) == ("branch_not_taken", wasted_ms)


@pytest.mark.parametrize(("count", "reason"), [(1, "branch_taken"), (0, "branch_not_taken")])
def test_a_plan_that_reads_what_runs_early_is_scored_when_the_branch_of_that_is_decided(
    count: int, reason: str
) -> None:
    """`deep` has no condition of its own: it is as sure as `early`, whose result it reads."""
    world = SessionWorld(catalog=mostly_true(catalog(speculation_depth=2)))
    early = task("early", reference("quick.next"), condition=[{"node": "d", "outcome": "true"}])
    side = task("side", "7", condition=[{"node": "e", "outcome": "true"}])
    tasks = [task("quick", "1"), task("slow", "2"), task("other", "5"), early, side]
    deep = task("deep", reference("early.next"), "early")
    decisions = [{"id": "d", "expression": "slow.count > 0"}, {"id": "e", "expression": "other.count > 0"}]
    world.start({"tasks": [*tasks, deep], "decisions": decisions})
    world.answer(world.call_of("quick"), {"next": "3"})
    higher = {context_keys("local", ThresholdContext())[-1]: 0.98}
    world.catalog = replace(world.catalog, overrides=higher)
    planned = data_of(world.answer(world.call_of("early"), {"next": "4"}), "speculation.planned")
    assert (planned.task_id, planned.shadow) == ("deep", False)
    world.answer(world.call_of("other"), {"count": 1})
    assert "speculation.scored" not in world.types(), "another decision says nothing of it"
    world.answer(world.call_of("slow"), {"count": count})
    scored = [event.data for event in world.events if isinstance(event.data, SpeculationScored)]
    assert [(item.task_id, item.reason) for item in scored] == [("deep", reason)]


def test_what_reads_one_of_two_branches_stays_where_the_other_was_not_taken() -> None:
    world = SessionWorld(catalog=mostly_true(catalog(speculation_depth=2)))
    skipped = task("skipped", "1", condition=[{"node": "e", "outcome": "true"}])
    early = task("early", "3", "mid", condition=[{"node": "d", "outcome": "true"}])
    deep = task("deep", reference("skipped.next|early.next"), "early")
    tasks = [task("other", "5"), skipped, task("mid", "2", "other"), early, deep]
    decisions = [{"id": "e", "expression": "other.count > 0"}, {"id": "d", "expression": "mid.count > 0"}]
    world.start({"tasks": tasks, "decisions": decisions})
    world.answer(world.call_of("other"), {"count": 0})
    world.answer(world.call_of("early"), {"next": "4"})
    call_id = world.call_of("deep")
    world.answer(world.call_of("mid"), {"count": 1})
    served = data_of(world.answer(call_id, {"text": "four"}), "task.completed")
    assert (served.task_id, served.served_by) == ("deep", "joined")
