"""Claims of one partition: an unsafe call runs only under a claim that counts (DESIGN §2, rule 6).

The owner of a calls' partition appends to the same partition of the claims, expecting the offset; a
claim that lands elsewhere is void. So of two bridges that both believe to own a partition one wins,
and the other learns of it before it sends anything to a server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

from pml.schemas.calls import CallClaim, CallRun
from pml.schemas.codec import decode_claim, encode
from pml.schemas.errors import LogCorrupted, UndecodableRecord, UnknownMessage
from pml.schemas.identifiers import session_key
from pml.streams.bridge.patience import patiently
from pml.streams.clock import Clock, now_ms
from pml.streams.log.append import Appender, Outgoing, Overtaken
from pml.streams.log.reader import CONTENT_TYPE, OFFSET_HEADER, TYPE_HEADER, LogRecord, counted
from pml.streams.log.tail import Tails

# No call record rests longer than 25 h, so an older claim can answer no question.
REMEMBERED_MS = 25 * 3_600_000


class TimedRecord(LogRecord, Protocol):
    """A record with the broker's time."""

    @property
    def timestamp(self) -> int: ...


class Claims:
    """The claims that count, and the next offset. One claim is appended at a time."""

    def __init__(
        self,
        topic: str,
        partition: int,
        runner: str,
        appender: Appender,
        tails: Tails,
        *,
        now_ms: Clock = now_ms,
    ) -> None:
        self._topic, self._partition, self._runner = topic, partition, runner
        self._appender, self._tails, self._now_ms = appender, tails, now_ms
        self._lock = asyncio.Lock()
        self._claimed: dict[str, str] = {}
        self._times_ms: dict[str, int] = {}
        self._end = 0
        self.lost = False

    def __contains__(self, call_id: str) -> bool:
        """Whether anybody has claimed this call."""
        return call_id in self._claimed

    def __len__(self) -> int:
        """How many claims are remembered."""
        return len(self._claimed)

    async def load(self, start: int) -> None:
        """Read the claims from `start`, or from where the last reading ended, to the end.

        Raises:
            BrokerUnavailable, OffsetGone: of the reader.
            LogCorrupted: a claim that counts cannot be read.
        """
        async with self._lock:
            self._end = max(self._end, start)
            await self._catch_up()

    async def claim(self, run: CallRun, call_offset: int) -> bool:
        """Claim a call for this runner. False: somebody has it, or the partition is no longer ours.

        Raises:
            BrokerUnavailable, InDoubt: the broker was away for too long.
        """
        async with self._lock:
            if run.call_id in self._claimed:
                return False
            return await patiently(lambda: self._try_until_known(run, call_offset))

    async def _try_until_known(self, run: CallRun, call_offset: int) -> bool:
        """Where an append is in doubt the next one tells: it lands elsewhere if that one landed."""
        while not self.lost:
            try:
                await self._append(run, call_offset)
                return True
            except Overtaken:
                await self._catch_up()
            if run.call_id in self._claimed:
                # In doubt before, and here it is: what this process appended it may run.
                return self._claimed[run.call_id] == self._runner
        return False

    async def _append(self, run: CallRun, call_offset: int) -> None:
        claim = CallClaim(
            call_id=run.call_id,
            tenant=run.tenant,
            session_id=run.session_id,
            traceparent=run.traceparent,
            call_offset=call_offset,
            runner=self._runner,
            offset=self._end,
        )
        await self._appender.append(self._topic, self._partition, self._end, [outgoing(claim)])
        self._remember(claim, self._now_ms())
        self._end += 1
        self._forget()

    async def _catch_up(self) -> None:
        end = await self._tails.end(self._topic, self._partition)
        async for records in self._tails.read(self._topic, self._partition, self._end, end):
            self._fold(records)
        self._end = max(self._end, end)
        self._forget()

    def _fold(self, records: Iterable[TimedRecord]) -> None:
        for record in records:
            if counted(record):
                self._remember(_decoded(record), record.timestamp)

    def _remember(self, claim: CallClaim, time_ms: int) -> None:
        self._claimed[claim.call_id] = claim.runner
        self._times_ms[claim.call_id] = max(time_ms, next(reversed(self._times_ms.values()), 0))

    def _forget(self) -> None:
        """Claims older than any call record that can still be delivered; they are in order of time."""
        newest_ms = next(reversed(self._times_ms.values()), 0)
        old = _older(self._times_ms, newest_ms - REMEMBERED_MS)
        for call_id in old:
            del self._claimed[call_id], self._times_ms[call_id]


def outgoing(claim: CallClaim) -> Outgoing:
    """The record of a claim, with the offset that it is written for."""
    headers = [
        (TYPE_HEADER, claim.type.encode()),
        ("pml-version", str(claim.version).encode()),
        ("pml-tenant", claim.tenant.encode()),
        (OFFSET_HEADER, str(claim.offset).encode()),
        ("content-type", CONTENT_TYPE),
    ]
    return Outgoing(session_key(claim.tenant, claim.session_id), encode(claim), headers)


def _decoded(record: LogRecord) -> CallClaim:
    try:
        return decode_claim(record.value)
    except (UndecodableRecord, UnknownMessage) as error:
        raise LogCorrupted(
            f"the claim at offset {record.offset} cannot be read: {error.message}; "
            "run the release that wrote it"
        ) from None


def _older(times_ms: Mapping[str, int], limit_ms: int) -> list[str]:
    old: list[str] = []
    for call_id, time_ms in times_ms.items():
        if time_ms >= limit_ms:
            break
        old.append(call_id)
    return old
