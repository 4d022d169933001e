"""What a record of an input topic is: an input, one for another partition, or nothing that can be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from pml.processors.workflow import Input, Unreadable
from pml.schemas.calls import CallEnded
from pml.schemas.codec import decode_command, decode_outcome
from pml.schemas.commands import Command
from pml.schemas.errors import PMLError, UndecodableRecord, UnknownMessage
from pml.schemas.identifiers import is_name, session_key, split_session_key
from pml.schemas.topics import Topics
from pml.streams.connection import partition_for


class InputRecord(Protocol):
    """A record of `pml.commands` or `pml.tool-outcomes`, as aiokafka gives it."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Misrouted:
    """A record that belongs to another partition, and the key it belongs there by."""

    partition: int
    key: bytes


@dataclass(frozen=True, slots=True)
class Poison:
    """A record for the dead letters, and the input that answers whoever sent it, where that can be known."""

    error: PMLError
    answer: Input | None


def read(topics: Topics, record: InputRecord) -> Input | Misrouted | Poison:
    """Decode a record and see that it lies where its session lives.

    The key names the session; where there is no valid key, the message does, and the record is routed again.
    """
    message: Command | CallEnded | None = None
    error: PMLError | None = None
    try:
        message = _decode(topics, record)
    except (UndecodableRecord, UnknownMessage) as failure:
        error = failure
    key = _key(record, message)
    if key is None:
        return Poison(error or UndecodableRecord("the record's key must be tenant/session_id"), None)
    right = partition_for(key)
    if right != record.partition:
        return Misrouted(right, key)
    if message is not None:
        return _input(record, key, message)
    assert error is not None
    return _unreadable(topics, record, key, error)


def _decode(topics: Topics, record: InputRecord) -> Command | CallEnded:
    return decode_command(record.value) if record.topic == topics.commands else decode_outcome(record.value)


def _key(record: InputRecord, message: Command | CallEnded | None) -> bytes | None:
    if split_session_key(record.key) is not None:
        return record.key
    if message is None or not (is_name(message.tenant) and is_name(message.session_id)):
        return None
    return session_key(message.tenant, message.session_id)


def _input(record: InputRecord, key: bytes, message: Command | CallEnded | Unreadable) -> Input:
    session = split_session_key(key)
    assert session is not None
    return Input(record.topic, record.partition, record.offset, record.timestamp, *session, message)


def _unreadable(topics: Topics, record: InputRecord, key: bytes, error: PMLError) -> Input | Poison:
    if record.topic != topics.commands:
        return Poison(error, None)
    fields = _fields(record.value)
    command_id, kind = fields.get("command_id", fields.get("commandId")), fields.get("type")
    if not isinstance(command_id, str) or not is_name(command_id):
        return Poison(error, None)
    kind = kind if isinstance(kind, str) else ""
    return Poison(error, _input(record, key, Unreadable(error.code, error.message, command_id, kind)))


def _fields(value: bytes | None) -> dict[str, Any]:
    try:
        fields = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}
