"""What a record of an input topic is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow import Input, Unreadable
from pml.schemas.calls import CallEnded
from pml.schemas.commands import Command
from pml.schemas.identifiers import session_key
from pml.schemas.topics import Topics
from pml.streams.connection import partition_for
from pml.streams.orchestrator.intake import Misrouted, Poison, read

TOPICS = Topics()
KEY = session_key("local", "s")
RIGHT = partition_for(KEY)


@dataclass(frozen=True)
class Record:
    value: bytes | None
    key: bytes | None = KEY
    topic: str = TOPICS.commands
    partition: int = RIGHT
    offset: int = 5
    timestamp: int = 1_700_000_000_000
    headers: tuple[tuple[str, bytes], ...] = ()


START = {"type": "run.start", "command_id": "c", "session_id": "s", "data": {"intent": "hello"}}
ENDED = {"type": "call.ended", "call_id": "x", "tenant": "local", "session_id": "s", "status": "cancelled"}


def test_a_command_and_an_outcome_become_inputs() -> None:
    command = read(TOPICS, Record(orjson.dumps(START)))
    assert isinstance(command, Input)
    assert isinstance(command.message, Command)
    assert (command.tenant, command.session_id, command.time_ms) == ("local", "s", 1_700_000_000_000)
    assert command.address == (TOPICS.commands, RIGHT, 5)
    outcome = read(TOPICS, Record(orjson.dumps(ENDED), topic=TOPICS.tool_outcomes))
    assert isinstance(outcome, Input)
    assert isinstance(outcome.message, CallEnded)


def test_a_record_in_another_partition_is_misrouted_readable_or_not() -> None:
    wrong = (RIGHT + 1) % 12
    for value in (orjson.dumps(START), b"{"):
        assert read(TOPICS, Record(value, partition=wrong)) == Misrouted(RIGHT, KEY)


def test_a_record_without_a_key_goes_where_its_message_belongs() -> None:
    for key in (None, b"", b"nonsense", b"a/b/c", b"\xff/\xff"):
        assert read(TOPICS, Record(orjson.dumps(START), key=key, partition=(RIGHT + 1) % 12)) == Misrouted(
            RIGHT, KEY
        )
        there = read(TOPICS, Record(orjson.dumps(START), key=key))
        assert isinstance(there, Input)
        assert there.session_id == "s"
        assert isinstance(read(TOPICS, Record(b"{", key=key)), Poison)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"type": "run.teleport"}, "UNKNOWN_TYPE_OR_VERSION"),
        ({"version": 99}, "UNKNOWN_TYPE_OR_VERSION"),
        ({"data": {"workflow": 3}}, "UNDECODABLE"),
        ({"type": 7}, "UNDECODABLE"),
        ({"nobody_knows": 1}, "UNDECODABLE"),
    ],
)
def test_a_command_that_cannot_be_read_is_answered_where_its_id_is_known(
    fields: dict[str, object], code: str
) -> None:
    found = read(TOPICS, Record(orjson.dumps(START | fields)))
    assert isinstance(found, Poison)
    assert found.error.code == code
    assert found.answer is not None
    assert isinstance(found.answer.message, Unreadable)
    assert (found.answer.message.command_id, found.answer.message.code) == ("c", code)


def test_nobody_is_answered_where_nobody_is_known() -> None:
    for value in (b"{", b"[]", None, orjson.dumps({"type": "run.start"}), b'{"command_id": "a b"}'):
        found = read(TOPICS, Record(value))
        assert isinstance(found, Poison)
        assert found.answer is None
    outcome = Record(orjson.dumps(ENDED | {"status": "odd", "command_id": "c"}), topic=TOPICS.tool_outcomes)
    unanswered = read(TOPICS, outcome)
    assert isinstance(unanswered, Poison)
    assert unanswered.answer is None


@given(st.binary(max_size=200), st.one_of(st.none(), st.binary(max_size=30)), st.booleans())
def test_no_bytes_raise(value: bytes, key: bytes | None, outcome: bool) -> None:
    record = Record(value, key=key, topic=TOPICS.tool_outcomes if outcome else TOPICS.commands)
    assert isinstance(read(TOPICS, record), (Input, Misrouted, Poison))
    assert isinstance(read(TOPICS, replace(record, key=KEY)), (Input, Poison))
