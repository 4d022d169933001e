"""Writing states behind: changed states, awaited, then the marker as it was before them (rules 3 and 4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import structlog

from pml.processors.workflow import Session
from pml.schemas.errors import BrokerUnavailable
from pml.streams.crash_points import crash_point
from pml.streams.log.append import InDoubt, Outgoing, cut
from pml.streams.log.recovery import Marker
from pml.streams.orchestrator.partition import Left, Partition
from pml.streams.orchestrator.table import (
    Life,
    life_key,
    marker_key,
    read_stored,
    stored_among,
    under_term,
    write_marker,
    write_session,
)

# Encoding a batch holds up the loop: 128 KiB are some 100 states, a few milliseconds.
BATCH_BYTES = 128 * 1024
# Tombstones only free space. An hour past the time to live no input can be late by a clock's error.
TOMBSTONE_SLACK_S = 3_600
SWEEP_S = 60.0
SWEPT_AT_ONCE = 1_000

log = structlog.get_logger("pml.orchestrator")


@dataclass(frozen=True, slots=True)
class Pending:
    """A snapshot of what the table does not have yet; states do not change, so this one cannot either."""

    term: int
    marker: Marker
    definitions: Mapping[bytes, bytes]
    sessions: Mapping[bytes, Session]
    untouched: Mapping[bytes, tuple[Life, bytes]]

    def records(self, number: int) -> Iterator[tuple[bytes, bytes | None]]:
        """Table keys and values, in the order in which they are to be written."""
        yield from self.definitions.items()
        for key, session in self.sessions.items():
            yield life_key(number, Life(key, session.epoch)), write_session(session, self.term)
        for life, value in self.untouched.values():
            yield life_key(number, life), under_term(value, self.term)


class WriteBehind:
    """Writes what changed in one partition to the changelog, every `write_behind_s` seconds.

    Args:
        retake: awaited under the partition's lock where it must be taken under a new term.
    """

    def __init__(
        self, partition: Partition, changelog: str, retake: Callable[[Partition], Awaitable[None]]
    ) -> None:
        self._partition = partition
        self._changelog = changelog
        self._retake = retake
        self._swept_at = float("-inf")

    async def run(self) -> None:
        """Write for ever; at once after a takeover.

        Raises:
            BrokerUnavailable, InDoubt: the broker does not take what has to be written.
        """
        pause_s = self._partition.shell.settings.orchestrator.write_behind_s
        self._swept_at = _now_s()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._partition.restamp.wait()
            if not self._partition.ready or self._partition.restoring:
                await asyncio.sleep(pause_s)  # with a restamp to do: whoever takes it again says so
                continue
            try:
                await self.write()
                if _now_s() - self._swept_at > SWEEP_S:
                    await self.sweep(self._partition.shell.now_ms())
            except (InDoubt, BrokerUnavailable) as doubt:
                await self._begin_new_term(doubt)

    async def write(self) -> None:
        """(1) states and definitions, awaited, (2) the marker as it was before them.

        Nothing is written while the partition is being taken, or was lost to another owner, and nothing
        more under a term that has ended meanwhile.

        Raises:
            InDoubt, BrokerUnavailable: something may be written, or be written late.
        """
        pending = self._pending()
        if pending is None:
            return
        for batch in cut(_outgoing(pending.records(self._partition.number)), BATCH_BYTES):
            if not await self._append(batch, pending.term):
                self._put_back(pending)
                return
        crash_point("orchestrator.after_states")
        marker = Outgoing(marker_key(self._partition.number), write_marker(pending.marker))
        if not await self._append([marker], pending.term):
            self._put_back(pending)
            return
        crash_point("orchestrator.after_marker")

    async def sweep(self, at_ms: int) -> int:
        """Remove ended lives that are past their time to live, a bounded number; how many.

        Only while nothing waits to be decided: an input that waits may be in time for a session.

        Raises:
            InDoubt, BrokerUnavailable: as for `write`.
        """
        self._swept_at = _now_s()
        if len(self._partition.inbox) or not self._partition.ready:
            return 0
        expired, term = set(self._expired(at_ms)), self._partition.term
        keys = [life_key(self._partition.number, life) for life in expired]
        keys += self._partition.table.definitions(expired)
        for batch in cut([Outgoing(key, None) for key in keys], BATCH_BYTES):
            if not await self._append(batch, term):
                return 0
        for life in expired:
            self._partition.states.drop(life.session, life.epoch)
        return len(expired)

    def _pending(self) -> Pending | None:
        partition, states = self._partition, self._partition.states
        if not partition.ready or partition.restoring:
            return None
        everything = partition.restamp.is_set()
        partition.restamp.clear()
        changed, states.changed = states.changed, set()
        definitions, states.definitions = states.definitions, {}
        if not (changed or definitions or everything):
            return None
        marker = Marker(partition.end, partition.term, dict(partition.causes))
        sessions = {key: session for key in changed if (session := states.get(key)) is not None}
        stored = states.stored.items() if everything else ()
        untouched = {
            key: (Life(key, state.epoch), state.data) for key, state in stored if key not in sessions
        }
        return Pending(partition.term, marker, definitions, sessions, untouched)

    async def _append(self, batch: list[Outgoing], term: int) -> bool:
        """Write one batch of a term; False where the partition is not ours under it, before or by now.

        An owner that stood still in the middle of this may have taken the partition again: what the batch
        holds is then older than what is known.
        """
        partition = self._partition
        if partition.term != term or not partition.ready or partition.restoring:
            return False
        await partition.shell.outbox.send(self._changelog, partition.number, batch)
        if partition.term != term or partition.restoring:
            return False
        changes = {record.key or b"": record.value for record in batch}
        partition.table.apply(changes)
        partition.states.written(stored_among(changes))
        return True

    def _put_back(self, pending: Pending) -> None:
        """A rebalance came between, and a replay may have brought what is older: all is written after it."""
        partition = self._partition
        if partition.term == pending.term:
            partition.states.changed |= pending.sessions.keys()
            partition.states.definitions = {**pending.definitions, **partition.states.definitions}
            partition.restamp.set()

    async def _begin_new_term(self, doubt: InDoubt | BrokerUnavailable) -> None:
        """What is in doubt may be written late, over something newer of the same term: take another one."""
        log.warning("table write in question", partition=self._partition.number, reason=doubt.message)
        async with self._partition.lock:
            with suppress(Left):
                await self._retake(self._partition)

    def _expired(self, at_ms: int) -> Iterator[Life]:
        timeouts = self._partition.shell.settings.timeouts
        last_ms = at_ms - int((timeouts.session_ttl_s + TOMBSTONE_SLACK_S) * 1000)
        changed = self._partition.states.changed
        found = 0
        for life, value in self._partition.table.lives():
            stored = read_stored(life.epoch, value)
            if not stored.live and stored.last_event_ms < last_ms and life.session not in changed:
                found += 1
                yield life
            if found == SWEPT_AT_ONCE:
                return


def _outgoing(records: Iterator[tuple[bytes, bytes | None]]) -> Iterator[Outgoing]:
    return (Outgoing(key, value) for key, value in records)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
