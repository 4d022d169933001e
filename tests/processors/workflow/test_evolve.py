"""`evolve` folds counted events in order, and nothing else."""

from __future__ import annotations

import pytest

from pml.processors.workflow import evolve
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import Event
from tests.processors.session_world import SessionWorld


def log() -> list[Event]:
    world = SessionWorld()
    world.start({"tasks": [{"id": "a", "tool": "files:search"}]})
    world.answer(world.call_of("a"))
    return world.events


def test_a_log_that_begins_in_the_middle_has_a_gap() -> None:
    with pytest.raises(LogCorrupted, match="does not begin a session"):
        evolve(None, log()[1])


def test_a_missing_event_is_a_gap() -> None:
    events = log()
    with pytest.raises(LogCorrupted, match="follows seq 0"):
        evolve(evolve(None, events[0]), events[2])


def test_an_event_twice_is_no_way_on() -> None:
    first = log()[0]
    with pytest.raises(LogCorrupted):
        evolve(evolve(None, first), first)


def test_another_life_begins_at_its_own_offset() -> None:
    first = log()[0]
    session = evolve(None, first)
    again = first.model_copy(update={"epoch": 500, "offset": 500})
    assert evolve(session, again).epoch == 500
    with pytest.raises(LogCorrupted):
        evolve(session, first.model_copy(update={"epoch": 500, "offset": 501}))


def test_an_event_of_a_run_nobody_started_is_an_error() -> None:
    events = log()
    session = evolve(None, events[0])
    with pytest.raises(LogCorrupted, match="names run run_9"):
        evolve(session, events[1].model_copy(update={"run_id": "run_9"}))
