"""The budget: how many speculative calls at once, in a session, and how much waste in an hour."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.speculation.budget import BUDGETS
from pml.schemas.events import SpeculationStarted
from tests.processors.session_world import SessionWorld, catalog

HOUR_MS = 3_600_000


def workflow(width: int) -> dict[str, Any]:
    """One short call, one that holds its layer open, and reads that could all run early."""
    reads = [
        {"id": f"r{i}", "tool": "files:read_file", "arguments": {"path": f"{i}.md"}, "depends_on": ["a", "b"]}
        for i in range(width)
    ]
    first = [{"id": name, "tool": "files:parse", "arguments": {"text": name}} for name in "ab"]
    return {"tasks": [*first, *reads], "options": {"timeout_s": 86_400}}


def started(world: SessionWorld) -> int:
    return sum(isinstance(event.data, SpeculationStarted) for event in world.events)


@pytest.mark.parametrize(("name", "concurrent"), [("off", 0), ("low", 1), ("normal", 3), ("high", 8)])
def test_so_many_calls_run_early_at_once(name: Any, concurrent: int) -> None:
    world = SessionWorld(catalog=catalog(budget_name=name))
    world.start(workflow(12))
    world.answer(world.call_of("a"))
    assert started(world) == concurrent
    told: list[Any] = [event.data for event in world.of_type("speculation.held")]
    held = [data.task_ids for data in told]
    assert held == ([tuple(f"r{i}" for i in range(concurrent, 12))] if concurrent else [])


def test_each_answer_makes_room_for_the_next() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low"))
    world.start(workflow(3))
    world.answer(world.call_of("a"))
    world.answer(world.call_of("r0"))
    assert started(world) == 2
    world.answer(world.call_of("r1"))
    assert started(world) == 3
    assert len(world.of_type("speculation.held")) == 1


def test_a_session_has_so_many_calls_in_all() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low"))
    world.start(workflow(30))
    world.answer(world.call_of("a"))
    while early := [call for call in world.open_calls.values() if call.speculative]:
        world.answer(early[0].call_id)
    assert started(world) == BUDGETS["low"].calls == 20


def test_waste_stops_it_until_the_next_hour() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low"))
    world.time_ms = 500_000 * HOUR_MS
    world.start(workflow(5))
    world.answer(world.call_of("a"))
    world.answer(world.call_of("r0"), duration_ms=30_000, code="NETWORK")
    assert started(world) == 1
    world.time_ms += HOUR_MS - 1
    world.start(workflow(0), run_id="run_2")
    world.answer(world.call_of("a", "run_2"))
    assert started(world) == 1
    world.time_ms += 1
    world.answer(world.call_of("b", "run_2"))
    assert started(world) == 2
    world.answer(world.call_of("r1"), duration_ms=1_000, code="NETWORK")
    assert started(world) == 3, "what an hour wasted is not held against the next"


def test_a_call_that_a_task_joined_takes_no_room() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low"))
    world.start(workflow(1))
    world.answer(world.call_of("a"))
    world.start(workflow(2), run_id="run_2")
    world.answer(world.call_of("b", "run_1"))
    world.answer(world.call_of("a", "run_2"))
    assert started(world) == 2


def planned(world: SessionWorld) -> int:
    return len(world.of_type("speculation.planned"))


@pytest.mark.parametrize(("name", "concurrent"), [("low", 1), ("normal", 3), ("high", 8)])
def test_shadow_mode_plans_so_many_calls_at_once_and_names_each_other_one_once(
    name: Any, concurrent: int
) -> None:
    world = SessionWorld(catalog=catalog(budget_name=name, speculation_mode="shadow"))
    world.start(workflow(12))
    world.answer(world.call_of("a"))
    world.start(workflow(0), "run_2")
    world.answer(world.call_of("a", "run_2"))
    assert planned(world) == concurrent
    told: list[Any] = [event.data for event in world.of_type("speculation.held")]
    assert [data.task_ids for data in told] == [(f"r{i}",) for i in range(concurrent, 12)]
    assert all(data.shadow for data in told)
    assert not any(call.speculative for call in world.open_calls.values())


def test_shadow_mode_has_so_many_calls_in_all() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low", speculation_mode="shadow"))
    for number in range(25):
        world.start(workflow(1), f"run_{number}")
        for name in ("a", "b", "r0"):
            world.answer(world.call_of(name, f"run_{number}"))
    assert planned(world) == BUDGETS["low"].calls == 20
    assert started(world) == 0


def test_shadow_mode_wastes_so_much_in_an_hour() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low", speculation_mode="shadow"))
    wasted = 0
    for number in range(4):
        world.start(workflow(1), f"run_{number}")
        world.answer(world.call_of("a", f"run_{number}"))
        world.time_ms += 12_000
        world.send("run.abort", f"run_{number}")
        wasted += 12_000 if planned(world) > number else 0
    assert (planned(world), wasted) == (3, 36_000), "30 s an hour, as far as the last one was not begun"
    world.time_ms += HOUR_MS
    for number in (9, 10):
        world.start(workflow(1), f"run_{number}")
        world.answer(world.call_of("a", f"run_{number}"))
        world.time_ms += 12_000
        world.send("run.abort", f"run_{number}")
    assert planned(world) == 5, "what an hour wasted is not held against the next"


def test_shadow_mode_has_what_real_calls_left_of_the_hours_waste() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low"))
    world.time_ms = 500_000 * HOUR_MS
    world.start(workflow(1))
    world.answer(world.call_of("a"))
    world.answer(world.call_of("r0"), duration_ms=10_000, code="NETWORK")
    world.catalog = catalog(budget_name="low", speculation_mode="shadow")
    for number, wasted_ms in ((2, 19_999), (3, 1), (4, 1)):
        world.start(workflow(1), f"run_{number}")
        world.answer(world.call_of("a", f"run_{number}"))
        world.time_ms += wasted_ms
        world.send("run.abort", f"run_{number}")
    assert planned(world) == 2, "30 s are wasted"


def test_what_real_calls_wasted_stops_shadow_mode_until_the_next_hour() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low"))
    world.time_ms = 500_000 * HOUR_MS
    world.start(workflow(1))
    world.answer(world.call_of("a"))
    world.answer(world.call_of("r0"), duration_ms=30_000, code="NETWORK")
    world.catalog = catalog(budget_name="low", speculation_mode="shadow")
    for number, expected in ((2, 0), (3, 1)):
        world.start(workflow(1), f"run_{number}")
        world.answer(world.call_of("a", f"run_{number}"))
        assert planned(world) == expected
        world.time_ms += HOUR_MS


def test_plans_of_shadow_mode_leave_the_budget_of_real_calls_alone() -> None:
    world = SessionWorld(catalog=catalog(budget_name="low", speculation_mode="shadow"))
    world.start(workflow(2))
    world.answer(world.call_of("a"))
    assert planned(world) == 1
    world.catalog = catalog(budget_name="low")
    world.start(workflow(2), "run_2")
    world.answer(world.call_of("a", "run_2"))
    assert started(world) == 1
    world.answer(world.call_of("r1", "run_1"))
    assert started(world) == 2, "though it was held back before"


def test_budgets_are_what_the_documentation_says() -> None:
    """Calls at a time, calls of a session, milliseconds wasted in an hour."""
    assert {name: (one.concurrent, one.calls, one.wasted_ms_per_hour) for name, one in BUDGETS.items()} == {
        "off": (0, 0, 0),
        "low": (1, 20, 30_000),
        "normal": (3, 100, 300_000),
        "high": (8, 500, 3_000_000),
    }
