"""The orchestrator's Faust table: a control record a session, a definition a run, a marker a partition.

Keys begin with the partition, so that a partition that is lost takes its keys with it, and name the epoch:
what a late owner writes or removes of an earlier life never touches a later one. Values go into Faust's
store directly, because `table[key] = value` needs a stream's current event; the changelog is appended as
batches by an appender, awaited, and Faust replays it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from pml.processors.workflow import MissingDefinition, Session, decode_session, encode_session
from pml.schemas.errors import LogCorrupted
from pml.schemas.topics import LOG_BYTES_MAX, SESSION_PARTITIONS
from pml.streams.log.recovery import Marker, Stored

if TYPE_CHECKING:  # who only reads records needs no Faust
    from pml.streams.app import ChunkApp

NAME = "sessions"
VERSION = 1
# version, term, offset of the last event, its time, live
HEADER = struct.Struct(">BqqqB")
EPOCH_DIGITS = 20
# Compact hard: 100 busy sessions are 720,000 writes an hour, and a replay reads 4,200 records/s.
CHANGELOG = {
    "cleanup.policy": "compact",
    "segment.ms": "60000",
    "min.cleanable.dirty.ratio": "0.01",
    # A tombstone must outlive any replay that began before it.
    "delete.retention.ms": "86400000",
    "max.message.bytes": str(LOG_BYTES_MAX),
}


class SessionTable:
    """The Faust table, by partitions."""

    def __init__(self, app: ChunkApp) -> None:
        self._table = app.Table(
            NAME,
            key_type=bytes,
            value_type=bytes,
            partitions=SESSION_PARTITIONS,
            extra_topic_configs=CHANGELOG,
        )

    @property
    def changelog(self) -> str:
        """The topic that it is restored from."""
        return str(self._table.changelog_topic.get_topic_name())

    def partition(self, number: int) -> PartitionTable:
        """The records of one partition, as Faust restored them."""
        return PartitionTable(self._table.data.data, number)

    def drop(self, number: int) -> None:
        """Forget a partition that is lost: Faust replays it whole when it comes back."""
        store = self._table.data.data
        prefix = partition_prefix(number)
        for key in [key for key in store if key.startswith(prefix)]:
            del store[key]


@dataclass(frozen=True, slots=True)
class Life:
    """A session's life: its key in session topics and the log offset of its first event."""

    session: bytes
    epoch: int


class PartitionTable:
    """The records of one partition over a store of keys and values."""

    def __init__(self, store: MutableMapping[bytes, bytes], number: int) -> None:
        self._store = store
        self._number = number

    def load(self) -> tuple[Marker, dict[bytes, Stored]]:
        """The marker, and of each session the state of its latest life.

        Raises:
            LogCorrupted: a record has a version that this release does not know.
        """
        latest: dict[bytes, Stored] = {}
        for life, value in self.lives():
            stored = read_stored(life.epoch, value)
            if life.session not in latest or latest[life.session].epoch < life.epoch:
                latest[life.session] = stored
        marker = self._store.get(marker_key(self._number))
        return (read_marker(marker) if marker else Marker()), latest

    def lives(self) -> Iterator[tuple[Life, bytes]]:
        """Every life of every session, and its record."""
        prefix = partition_prefix(self._number) + b"session/"
        for key, value in self._store.items():
            if key.startswith(prefix):
                yield life_of(key), value

    def session(self, session: bytes, stored: Stored) -> Session | None:
        """The state in a record; None where a definition that it names is missing."""

        def definition(name: str) -> bytes | None:
            return self._store.get(definition_key(self._number, Life(session, stored.epoch), name))

        decoded = decode_session(stored.data[HEADER.size :], definition)
        return None if isinstance(decoded, MissingDefinition) else decoded

    def definitions(self, lives: set[Life]) -> list[bytes]:
        """The keys of the definitions that belong to these lives."""
        prefix = partition_prefix(self._number) + b"definition/"
        return [key for key in self._store if key.startswith(prefix) and life_of(key) in lives]

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Take over what the changelog holds now."""
        for key, value in changes.items():
            if value is None:
                self._store.pop(key, None)
            else:
                self._store[key] = value


def partition_prefix(number: int) -> bytes:
    """What all keys of a partition begin with."""
    return b"%05d/" % number


def marker_key(number: int) -> bytes:
    """The key of a partition's marker."""
    return partition_prefix(number) + b"marker"


def life_key(number: int, life: Life) -> bytes:
    """The key of the control record of a session's life."""
    return b"%ssession/%0*d/%s" % (partition_prefix(number), EPOCH_DIGITS, life.epoch, life.session)


def definition_key(number: int, life: Life, name: str) -> bytes:
    """The key of a run's definition, or of a later plan of it (`run_id/number`)."""
    prefix = partition_prefix(number)
    return b"%sdefinition/%0*d/%s/%s" % (prefix, EPOCH_DIGITS, life.epoch, life.session, name.encode())


def is_session(key: bytes) -> bool:
    """Whether it is the key of a control record."""
    return key[5:14] == b"/session/"


def is_definition(key: bytes) -> bool:
    """Whether it is the key of a definition."""
    return key[5:17] == b"/definition/"


def life_of(key: bytes) -> Life:
    """The life that the key of a control record or of a definition is of."""
    _, _, epoch, tenant, session = key.split(b"/")[:5]
    return Life(tenant + b"/" + session, int(epoch))


def write_session(session: Session, term: int) -> bytes:
    """The control record of a session under a term."""
    head = HEADER.pack(VERSION, term, session.last_offset, session.last_event_ms, session.live)
    return head + encode_session(session)


def under_term(value: bytes, term: int) -> bytes:
    """The same record under another term, without decoding it."""
    version, _, last_offset, last_event_ms, live = HEADER.unpack_from(value)
    return HEADER.pack(version, term, last_offset, last_event_ms, live) + value[HEADER.size :]


def read_stored(epoch: int, value: bytes) -> Stored:
    """What recovery needs of a control record.

    Raises:
        LogCorrupted: its version is unknown here.
    """
    version = value[0] if value else None
    if version != VERSION or len(value) < HEADER.size:
        raise LogCorrupted(
            f"a state record has version {version}; this release reads version {VERSION}: upgrade PML"
        )
    _, term, last_offset, last_event_ms, live = HEADER.unpack_from(value)
    return Stored(term, epoch, last_offset, last_event_ms, bool(live), value)


def stored_among(changes: Mapping[bytes, bytes | None]) -> dict[bytes, Stored]:
    """The states among records of the table, by session."""
    states = ((life_of(key), value) for key, value in changes.items() if value and is_session(key))
    return {life.session: read_stored(life.epoch, value) for life, value in states}


def write_marker(marker: Marker) -> bytes:
    """The marker's record."""
    return orjson.dumps(
        {"v": VERSION, "folded": marker.folded, "term": marker.term, "causes": dict(marker.causes)}
    )


def read_marker(value: bytes) -> Marker:
    """The marker in a record.

    Raises:
        LogCorrupted: its version is unknown here.
    """
    fields: dict[str, Any] = orjson.loads(value)
    if fields.get("v") != VERSION:
        raise LogCorrupted(
            f"a marker has version {fields.get('v')}; this release reads version {VERSION}: upgrade PML"
        )
    return Marker(fields["folded"], fields["term"], fields["causes"])
