"""What shadow mode says of the calls that it would have begun early."""

from __future__ import annotations

import pytest

from pml.processors.workflow import Catalog
from pml.schemas.catalog import BranchStats, CatalogRecord
from pml.schemas.events import SpeculationScored
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import READ, reference, task
from tests.processors.workflow.test_evolve import early_with_another_path


def mostly_true(known: Catalog) -> Catalog:
    data = BranchStats(tenant="local", workflow_type="default", decision_id="d", counts={"true": 27})
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
    scored = data_of(world.answer(world.call_of("late"), {"text": "b"}), "speculation.scored")
    assert (scored.reason, scored.success) == ("superseded", False)


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
