"""The sessions of one partition: live ones and those used last in memory, ended ones in the table."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from pml.processors.workflow import Session, definition_name, definition_record
from pml.schemas.events import Event
from pml.schemas.identifiers import session_key
from pml.streams.log.recovery import Stored
from pml.streams.orchestrator.table import Life, PartitionTable, definition_key

# Ended sessions that stay decoded; a state takes some 10 KB.
ENDED_KEPT = 500


class States:
    """What the owner of a partition knows of its sessions, and what the table does not know yet.

    `changed` are the sessions whose record is to be written, `definitions` those of runs that began.
    """

    def __init__(self, number: int, table: PartitionTable, stored: Mapping[bytes, Stored]) -> None:
        self._number = number
        self._table = table
        self._stored = dict(stored)
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._live: set[bytes] = set()
        self.changed: set[bytes] = set()
        self.definitions: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> Session | None:
        """The session of a key, decoded from the table if it is not in memory."""
        session = self._sessions.get(key)
        if session is not None:
            self._sessions.move_to_end(key)
            return session
        stored = self._stored.get(key)
        return None if stored is None else self._table.session(key, stored)

    def put(self, key: bytes, session: Session) -> None:
        """A session changed. It stays in memory until it is written, so nothing can be forgotten here."""
        self._sessions[key] = session
        self._sessions.move_to_end(key)
        self.changed.add(key)
        (self._live.add if session.live else self._live.discard)(key)

    def begin(self, event: Event) -> None:
        """Keep the definition of a run that began, or of its new plan."""
        name = definition_name(event)
        if name is not None:
            life = Life(session_key(event.tenant, event.session_id), event.epoch)
            key = definition_key(self._number, life, name)
            self.definitions[key] = definition_record(event)

    def live(self) -> Iterator[tuple[bytes, Session]]:
        """All sessions with a run that has not ended."""
        return ((key, self._sessions[key]) for key in list(self._live))

    def written(self, records: Mapping[bytes, Stored]) -> None:
        """The table has these records now."""
        self._stored |= records
        self._forget_ended()

    def drop(self, key: bytes, epoch: int) -> None:
        """The record of an ended life was removed; the session may have begun another one meanwhile."""
        stored = self._stored.get(key)
        if stored is not None and stored.epoch == epoch:
            del self._stored[key]
            session = self._sessions.get(key)
            if session is not None and session.epoch == epoch:
                del self._sessions[key]

    @property
    def stored(self) -> Mapping[bytes, Stored]:
        """What the table has of each session's latest life."""
        return self._stored

    def __len__(self) -> int:
        return len(self._stored.keys() | self._sessions.keys())

    def _forget_ended(self) -> None:
        spare = len(self._sessions) - len(self._live) - ENDED_KEPT
        if spare <= 0:
            return
        ended = (key for key in self._sessions if key not in self._live and self._is_written(key))
        for key in [key for _, key in zip(range(spare), ended, strict=False)]:
            del self._sessions[key]

    def _is_written(self, key: bytes) -> bool:
        """Whether the table has this very state: one that is on its way there is not `changed` any more."""
        session, stored = self._sessions[key], self._stored.get(key)
        return stored is not None and (stored.epoch, stored.last_offset) == (
            session.epoch,
            session.last_offset,
        )
