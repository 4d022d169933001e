"""Taking a partition over, and catching up after a doubt (DESIGN §2, rules 3 and 4).

Steps of rule 4, as they are numbered there: (1) Faust has restored the table when this runs; (2) to (6) are
`take_over`; (7) and (8) follow from the partition's positions; (9) is the first pass of write-behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from pml.processors.workflow import Session, evolve
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import Event
from pml.streams.crash_points import crash_point
from pml.streams.log.append import Outgoing
from pml.streams.log.recovery import Folding, Stored, fold, recover, take
from pml.streams.orchestrator.calls import send_all_calls
from pml.streams.orchestrator.partition import Partition
from pml.streams.orchestrator.shell import Shell
from pml.streams.orchestrator.states import States

log = structlog.get_logger("pml.orchestrator")


@dataclass(frozen=True, slots=True)
class KafkaLog:
    """One partition of the log as recovery sees it."""

    shell: Shell
    number: int

    async def end(self) -> int:
        """The offset that the next record will get."""
        return await self.shell.tails.end(self.shell.topics.events, self.number)

    async def append(self, base: int, records: Sequence[Outgoing]) -> None:
        """Append by rules 1 and 3."""
        await self.shell.log.append(self.shell.topics.events, self.number, base, records)

    def read(self, start: int, end: int) -> AsyncIterator[list[Any]]:
        """All records from `start` up to `end`."""
        return self.shell.tails.read(self.shell.topics.events, self.number, start, end)


async def take_over(partition: Partition) -> None:
    """Make the partition ours. The caller holds its lock.

    (2) append `partition.taken`: its offset is the term; (3) fold the log up to it; (4) rebuild what is
    stale; (5) read the catalog to its end; (6) send the calls of all live sessions. A rebalance may cancel
    this anywhere: until (4) is done the partition is as it was, and until (6) is done it is not ready.

    Raises:
        LogCorrupted: the log or the table cannot be read; the role stops.
        InDoubt, BrokerUnavailable: the broker does not answer.
    """
    partition.ready = False
    shell, kafka_log = partition.shell, KafkaLog(partition.shell, partition.number)
    clock = asyncio.get_running_loop().time
    began_s = clock()
    marker, stored = partition.table.load()
    crash_point("orchestrator.after_restore")
    term = await take(kafka_log, partition.number, shell.owner, shell.now_ms)
    crash_point("orchestrator.after_taken")
    states = States(partition.number, partition.table, stored)
    folding = _folding(states, states.get)
    await recover(kafka_log, folding, marker, stored, term + 1)
    crash_point("orchestrator.after_fold")
    _become(partition, term, states, folding)
    await shell.catalog.catch_up()
    crash_point("orchestrator.after_catalog")
    await send_all_calls(shell, partition.number, (session for _, session in states.live()))
    crash_point("orchestrator.after_live_calls")
    partition.ready = True
    partition.restamp.set()
    log.info(
        "partition taken",
        partition=partition.number,
        term=term,
        sessions=len(states),
        rebuilt=_rebuilt(stored, folding),
        took_ms=round((clock() - began_s) * 1000),
    )


async def catch_up(partition: Partition) -> bool:
    """Fold what was appended since, after a doubt; whether the partition is still ours.

    Where it is, the calls of what changed are sent. The caller holds the lock and begins again with the
    same inputs.

    Raises:
        LogCorrupted: an event does not join our states.
        InDoubt, BrokerUnavailable: the broker does not answer.
    """
    kafka_log = KafkaLog(partition.shell, partition.number)
    folding = _folding(partition.states, partition.states.get)
    folding.end, folding.causes = partition.end, dict(partition.causes)
    await fold(kafka_log, folding, await kafka_log.end())
    if folding.taken > partition.term:
        partition.ready = False
        return False
    if folding.rebuild:
        raise LogCorrupted(
            f"{len(folding.rebuild)} sessions of partition {partition.number} do not join what we wrote"
        )
    _take_in(partition, folding)
    await send_all_calls(partition.shell, partition.number, folding.sessions.values())
    return True


async def is_ours(partition: Partition) -> bool:
    """Whether nobody appended since we did: a partition kept through a rebalance is then not taken again."""
    return partition.ready and partition.end == await KafkaLog(partition.shell, partition.number).end()


async def pass_expired(partition: Partition) -> None:
    """Go on where the inputs begin now: what is past its retention is neither lag nor a hole.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    places = [(topic, partition.number) for topic in partition.positions]
    for (topic, _), first in (await partition.shell.tails.beginnings(places)).items():
        partition.handled[topic] = max(first - 1, partition.handled.get(topic, -1))


def _folding(states: States, load: Any) -> Folding[Session]:
    """Folds with the core; definitions of runs that began come along."""

    def evolve_and_keep(session: Session | None, event: Event) -> Session:
        states.begin(event)
        return evolve(session, event)

    return Folding(evolve_and_keep, load, 0)


def _become(partition: Partition, term: int, states: States, folding: Folding[Session]) -> None:
    """From here on the partition is what the log says, under our term."""
    partition.term, partition.states = term, states
    partition.deadlines.clear()
    _take_in(partition, folding)


def _take_in(partition: Partition, folding: Folding[Session]) -> None:
    partition.end, partition.causes = folding.end, folding.causes
    for topic, offset in folding.causes.items():
        partition.handled[topic] = max(offset, partition.handled.get(topic, -1))
    for key, session in folding.sessions.items():
        partition.states.put(key, session)
        partition.deadlines.arm(key, session)


def _rebuilt(stored: dict[bytes, Stored], folding: Folding[Session]) -> int:
    """How many states of the table were not what the log says."""
    return sum(
        1
        for key, state in stored.items()
        if key in folding.sessions and folding.sessions[key].last_offset != state.last_offset
    )
