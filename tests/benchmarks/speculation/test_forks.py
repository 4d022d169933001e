"""The adversary errs in PML's own core, and is never believed twice for the same type."""

from __future__ import annotations

import pytest

from benchmarks.speculation import forks
from benchmarks.speculation.sample import draw
from pml.processors.speculation.branches import branch_key
from pml.schemas.catalog import BranchStats, CatalogRecord
from tests.benchmarks.speculation.test_core_agrees import catalog
from tests.processors.session_world import SessionWorld


def play(world: SessionWorld, speculation: str) -> None:
    """A run whose calls are answered when their time has come."""
    drawn = draw(forks.fork(1), 0.2, 7)
    began_ms = world.time_ms
    length = dict(zip((t.id for t in drawn.source.tasks), forks.times_s(drawn), strict=True))
    world.start(forks.fork_workflow(drawn, "known", speculation))
    ends: dict[str, float] = {}
    while world.open_calls:
        for call_id, call in world.open_calls.items():
            ends.setdefault(call_id, world.time_ms + length[call.task_id] * 1_000)
        call_id = min(world.open_calls, key=ends.__getitem__)
        world.time_ms = max(world.time_ms, round(ends[call_id]))
        world.answer(call_id, {"value": "what it gave"}, duration_ms=1.0)
    assert world.types()[-1] == "run.completed"
    assert (world.time_ms - began_ms) / 1_000 == pytest.approx(forks.ideal_s(drawn), abs=0.005)


def taught() -> SessionWorld:
    """A session in which the wrong branch is well known."""
    data = BranchStats(tenant="local", workflow_type="known", decision_id="d1", counts={"true": 1_000})
    record = CatalogRecord(kind=data.KIND, id=branch_key("local", "known", "d1"), data=data)
    return SessionWorld(catalog(speculation_depth=3).with_record(record), checked_every=100)


def test_every_call_behind_the_known_branch_is_made_in_vain() -> None:
    world = taught()
    play(world, "on")
    started = [event.data.task_id for event in world.of_type("speculation.started")]
    assert started == list(forks.WRONG)
    assert {event.data.fate for event in world.of_type("speculation.ended")} == {"discarded"}


def test_nothing_is_risked_for_a_branch_that_nobody_knows_or_without_speculation() -> None:
    unknown, off = SessionWorld(catalog(speculation_depth=3), checked_every=100), taught()
    play(unknown, "on")
    play(off, "off")
    assert not unknown.of_type("speculation.started")
    assert not off.of_type("speculation.started")
