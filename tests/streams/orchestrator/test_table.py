"""Keys and records of the orchestrator's table, and what is kept in memory of it."""

from __future__ import annotations

import pytest

from pml.processors.workflow import Input, Session, decide
from pml.schemas.calls import CallEnded
from pml.schemas.commands import Command, RunStart
from pml.schemas.errors import LogCorrupted
from pml.schemas.workflow import Workflow
from pml.streams.log.recovery import Marker
from pml.streams.orchestrator import states as states_module
from pml.streams.orchestrator.states import States
from pml.streams.orchestrator.table import (
    Life,
    PartitionTable,
    definition_key,
    life_key,
    marker_key,
    read_marker,
    read_stored,
    stored_among,
    under_term,
    write_marker,
    write_session,
)
from tests.processors.session_world import catalog
from tests.streams.orchestrator.world import workflow

KEY = b"local/s"


def started(session_id: str = "s", epoch: int = 4) -> tuple[Session, States]:
    """A live session, as the first slice of a partition leaves it, and the states that hold it."""
    data = RunStart(workflow=Workflow.model_validate(workflow()))
    command = Command(type="run.start", command_id="c", session_id=session_id, run_id="r", data=data)
    source = Input("pml.commands", 3, 7, 1_700_000_000_000, "local", session_id, command)
    step = decide(None, source, {}, catalog(), epoch)
    assert step.session is not None
    assert step.session.live
    states = States(3, PartitionTable({}, 3), {})
    for event in step.events:
        states.begin(event)
    states.put(f"local/{session_id}".encode(), step.session)
    return step.session, states


def ended(session: Session) -> Session:
    """The same session after its call failed."""
    call_id = next(task.call.call_id for task in session.runs["r"].tasks.values() if task.call)
    failure = CallEnded(call_id=call_id, tenant="local", session_id=session.session_id, status="refused")
    source = Input("pml.tool-outcomes", 3, 1, 1_700_000_001_000, "local", session.session_id, failure)
    step = decide(session, source, {}, catalog(), session.last_offset + 1)
    assert step.session is not None
    assert not step.session.live
    return step.session


def written(session: Session, states: States, term: int = 9) -> dict[bytes, bytes]:
    key = f"local/{session.session_id}".encode()
    return {life_key(3, Life(key, session.epoch)): write_session(session, term), **states.definitions}


def test_a_live_session_comes_back_from_its_records() -> None:
    session, states = started()
    store = written(session, states) | {marker_key(3): write_marker(Marker(8, 9, {"pml.commands": 7}))}
    table = PartitionTable(dict(store), 3)
    marker, stored = table.load()
    assert marker == Marker(8, 9, {"pml.commands": 7})
    assert (stored[KEY].term, stored[KEY].epoch, stored[KEY].live) == (9, 4, True)
    assert stored[KEY].last_offset == session.last_offset
    assert table.session(KEY, stored[KEY]) == session


def test_a_session_without_its_definition_is_to_be_read_from_the_log() -> None:
    session, states = started()
    states.definitions.clear()
    table = PartitionTable(written(session, states), 3)
    _, stored = table.load()
    assert table.session(KEY, stored[KEY]) is None


def test_partitions_and_names_that_begin_alike_are_kept_apart() -> None:
    session, states = started("s")
    longer, more = started("s1")
    store = written(session, states) | written(longer, more)
    store |= {key.replace(b"00003/", b"00030/", 1): value for key, value in store.items()}
    _, stored = PartitionTable(store, 3).load()
    assert stored.keys() == {b"local/s", b"local/s1"}
    table = PartitionTable(store, 3)
    assert table.definitions({Life(b"local/s", 4)}) == [definition_key(3, Life(b"local/s", 4), "r")]


def test_the_latest_life_counts_and_a_late_tombstone_of_an_earlier_one_does_not_touch_it() -> None:
    first, states = started(epoch=4)
    second, later = started(epoch=20)
    table = PartitionTable(written(first, states) | written(second, later, term=2), 3)
    assert table.load()[1][KEY].epoch == 20
    table.apply({life_key(3, Life(KEY, 4)): None})
    _, stored = table.load()
    assert table.session(KEY, stored[KEY]) == second
    assert [life.epoch for life, _ in table.lives()] == [20]


def test_a_record_under_a_new_term_is_otherwise_the_same() -> None:
    session, _ = started()
    value = write_session(session, 3)
    assert under_term(value, 12) == write_session(session, 12)
    assert read_stored(4, under_term(value, 12)).term == 12


def test_states_are_found_among_changes() -> None:
    session, states = started()
    changes: dict[bytes, bytes | None] = {**written(session, states), marker_key(3): write_marker(Marker())}
    changes[life_key(3, Life(b"local/gone", 1))] = None
    assert stored_among(changes).keys() == {KEY}


@pytest.mark.parametrize("value", [b"", b"\x02" + bytes(40), b"\x01short"])
def test_an_unknown_version_of_a_state_stops_the_role(value: bytes) -> None:
    with pytest.raises(LogCorrupted, match="upgrade PML"):
        read_stored(0, value)


def test_an_unknown_version_of_a_marker_stops_the_role() -> None:
    with pytest.raises(LogCorrupted, match="upgrade PML"):
        read_marker(b'{"v": 2, "folded": 1}')


def test_ended_sessions_are_forgotten_once_they_are_written_and_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(states_module, "ENDED_KEPT", 2)
    store: dict[bytes, bytes] = {}
    states = States(3, PartitionTable(store, 3), {})
    sessions = {}
    for number in range(6):
        session, began = started(f"s{number}")
        store |= began.definitions
        sessions[f"local/s{number}".encode()] = ended(session) if number else session
    for key, session in sessions.items():
        states.put(key, session)
    assert len(states._sessions) == 6, "nothing that is not written yet is forgotten"
    for key, session in sessions.items():
        store |= {life_key(3, Life(key, session.epoch)): write_session(session, 1)}
    states.changed.clear()
    states.written(stored_among(dict(store)))
    assert len(states._sessions) == 3
    assert [key for key, _ in states.live()] == [b"local/s0"]
    assert {key: states.get(key) for key in sessions} == sessions
    states.drop(b"local/s1", epoch=3)
    assert states.get(b"local/s1") is not None
    states.drop(b"local/s1", epoch=4)
    assert states.get(b"local/s1") is None


def test_what_is_on_its_way_to_the_table_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written behind goes in batches: after the first the table does not have the second's states."""
    monkeypatch.setattr(states_module, "ENDED_KEPT", 0)
    store: dict[bytes, bytes] = {}
    states = States(3, PartitionTable(store, 3), {})
    sessions = {}
    for number in range(2):
        session, began = started(f"s{number}")
        store |= began.definitions
        sessions[f"local/s{number}".encode()] = ended(session)
    for key, session in sessions.items():
        states.put(key, session)
    states.changed.clear()
    batches = [
        {life_key(3, Life(key, session.epoch)): write_session(session, 1)}
        for key, session in sessions.items()
    ]
    for batch in batches:
        store |= batch
        states.written(stored_among(dict(batch)))
        assert {key: states.get(key) for key in sessions} == sessions
    assert not states._sessions


def test_a_session_that_came_back_while_its_old_life_was_removed_is_kept() -> None:
    """A run begins in the moment in which the sweep's tombstones are on their way."""
    first, began = started(epoch=4)
    store = written(ended(first), began)
    table = PartitionTable(store, 3)
    states = States(3, table, table.load()[1])
    again, _ = started(epoch=20)
    states.put(KEY, again)
    states.drop(KEY, epoch=4)
    assert (states.get(KEY), list(states.live())) == (again, [(KEY, again)])
    assert KEY not in states.stored
