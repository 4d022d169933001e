"""All topics and the servers' own log, read at the end and gone through in the order of time.

The simulation's reader and checks look at each record as they do in the simulation. Times are the broker's
and the servers', of one machine, in whole milliseconds; what happened in the same one is put in the order
of causes: what a tool did, events, the calls that follow, claims, calls that reached their tool, outcomes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from pml.processors.workflow import Catalog, Policy
from pml.schemas.codec import decode_catalog, decode_claim, decode_event
from pml.schemas.events import Event
from pml.schemas.topics import SESSION_PARTITIONS, Topics
from pml.streams.log.reader import counted
from pml.streams.orchestrator.role import policy
from tests.chaos.faults import Fault
from tests.chaos.journal import Journal
from tests.drills.verdict import read_topic
from tests.drills.workshop import Workshop
from tests.simulation.arrivals import Arrivals
from tests.simulation.broker import Broker, Record
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.observer import Observer
from tests.simulation.play import effects_once, replay
from tests.simulation.promises import Promises
from tests.simulation.tools import Toolbox
from tests.simulation.world import Change, Execution, World

VIOLATIONS_MAX = 50
# A decision may count so long after its owner took its catalog: it was paused, or its append in doubt.
SNAPSHOTS_S = 40.0
# After a broker is back, or a role woke, its catalog counts as out of contact until it has heard something.
CONTACT_S = 10.0
# How long a bridge without trouble may take to read a call.
PATIENCE_S = 5.0
Step = tuple[int, int, int, Callable[[], None]]


class Clock:
    """The time of what is being looked at, in seconds since 1970."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def time(self) -> float:
        """As an event loop has it."""
        return self.now_s


class Findings(Ledger):
    """Keeps every violation, not only the first."""

    found: list[Violation]

    def fail(self, name: str, found: str) -> None:
        """A check did not hold."""
        if len(self.found) < VIOLATIONS_MAX:
            self.found.append(Violation(name, self.loop.time(), found))


class Expectations(Promises):
    """The simulation's; near trouble an owner may have been out of contact, and speculated or not."""

    faults: Sequence[Fault] = ()

    def _recent(self, at_s: float) -> list[Catalog]:
        found = super()._recent(at_s)
        if not any(fault.began_s <= at_s <= fault.ended_s + CONTACT_S for fault in self.faults):
            return found
        return [replace(found[-1], switches={**found[-1].switches, "contact": "off"}), *found]


@dataclass
class Written:
    """What an installation wrote: the topics, the servers' own log, and when what was in trouble."""

    policy: Policy
    topics: Topics
    faults: list[Fault]
    journal: list[dict[str, Any]]
    records: dict[str, list[Record]] = field(default_factory=dict)

    @property
    def events(self) -> list[tuple[int, Event]]:
        """The events that count, with their partition, in order of the log."""
        return [
            (record.partition, decode_event(record.value))
            for record in self.records[self.topics.events]
            if counted(record)
        ]


async def everything_written(workshop: Workshop, faults: list[Fault]) -> Written:
    """Read all of it."""
    topics = workshop.settings.topics
    journal = list(Journal(Path(workshop.store_folder) / "journal.jsonl").lines())
    written = Written(policy(workshop.settings), topics, faults, journal)
    sessions = (topics.commands, topics.events, topics.tool_calls, topics.call_claims, topics.tool_outcomes)
    lengths = {**dict.fromkeys(sessions, SESSION_PARTITIONS), topics.catalog: 1, topics.dead_letters: 1}
    for topic, partitions in lengths.items():
        found = await read_topic(workshop, topic, partitions)
        written.records[topic] = [_record(record) for record in found]
    return written


def _record(found: Any) -> Record:
    place = (found.topic, found.partition, found.offset)
    return Record(*place, found.timestamp, found.key, found.value, tuple(found.headers))


class Reading:
    """What the simulation's checks say of what was written."""

    def __init__(self, written: Written, toolbox: Toolbox) -> None:
        self._written, self._toolbox = written, toolbox
        self.topics = written.topics
        self.clock = Clock()
        clock: Any = self.clock
        self.findings = Findings(clock)
        self.findings.found = []
        self.shelf = Broker(lambda: round(self.clock.now_s * 1000))
        self.world = World()
        self.observer = Observer(self.shelf, self.topics, self.findings, written.policy.hash_key)
        self.observer.session_ttl_ms = written.policy.session_ttl_ms
        self.observer.patience_s = PATIENCE_S
        self.promises = Expectations(
            self.observer, self.findings, self.world, toolbox, written.policy, snapshots_s=SNAPSHOTS_S
        )
        self.promises.faults = written.faults
        self.claimed: set[str] = set()
        self.arrivals = Arrivals(self.promises, lambda: self.claimed)
        for records in written.records.values():
            for record in records:
                self.shelf.lane((record.topic, record.partition)).records.append(record)

    def go_through(self) -> None:
        """Look at everything, then at what has become of it."""
        self._look_for_gaps()
        for at_ms, _, _, look in heapq.merge(*self._lanes(), key=lambda step: step[:3]):
            self.clock.now_s = max(self.clock.now_s, at_ms / 1000)
            look()
        random = Random(0)
        for life in self.observer.lives.values():
            replay(self.findings, random, life)
        effects_once(self.findings, self.world)
        letters = self.shelf.records(self.topics.dead_letters)
        self.findings.check("nothing is a dead letter", not letters, lambda: letters[0])

    def _look_for_gaps(self) -> None:
        """Coordinates of payloads are offsets: nothing may be missing before them."""
        for topic, records in self._written.records.items():
            for record in records if topic != self.topics.catalog else ():
                lane = self.shelf.lane((topic, record.partition))
                whole = record.offset < lane.end and lane.records[record.offset] is record
                self.findings.check("a partition has no gap", whole, lambda r=record: r)

    # ---- what happened, in order

    def _lanes(self) -> Iterator[Iterable[Step]]:
        topics, observer = self.topics, self.observer
        yield self._snapshots()
        yield sorted(self._effects(), key=lambda step: step[:3])
        for number in range(SESSION_PARTITIONS):
            yield self._batches(number)
            yield self._each(topics.tool_calls, number, 2, self._call)
            yield self._each(topics.call_claims, number, 3, self._claim)
            yield self._each(topics.tool_outcomes, number, 5, lambda record: observer.landed([record]))
        yield (
            (line["at_ms"], 4, place, lambda line=line: self._reached(line))
            for place, line in enumerate(self._written.journal)
            if line["kind"] == "reached"
        )

    def _each(self, topic: str, number: int, rank: int, look: Callable[[Record], None]) -> Iterator[Step]:
        latest_ms = 0
        for record in self.shelf.lane((topic, number)).records:
            latest_ms = max(latest_ms, record.timestamp)
            yield latest_ms, rank, number, lambda record=record: look(record)

    def _batches(self, number: int) -> Iterator[Step]:
        """The events of one input lie together and count together; what is written again is another batch."""
        batch: list[Record] = []
        last: Event | None = None
        for record in self.shelf.lane((self.topics.events, number)).records:
            event = decode_event(record.value)
            if last and (last.cause is None or event.cause != last.cause or event.seq <= last.seq):
                yield self._batch(batch)
                batch = []
            batch.append(record)
            last = event
        if batch:
            yield self._batch(batch)

    def _batch(self, batch: list[Record]) -> Step:
        return batch[0].timestamp, 1, batch[0].partition, lambda: self.observer.landed(batch)

    def _effects(self) -> Iterator[Step]:
        for place, line in enumerate(self._written.journal):
            if line["kind"] == "ran":
                yield line["at_ms"], 0, place, lambda line=line: self._ran(line)

    def _call(self, record: Record) -> None:
        """A bridge that is not in trouble takes it at once: from then on it knows what a task waits for."""
        self.observer.landed([record])
        at_s = record.timestamp / 1000
        trouble = (f for f in self._written.faults if f.began_s - PATIENCE_S < at_s < f.ended_s + SNAPSHOTS_S)
        if not any(trouble):
            self.observer.handled(record.partition, record.offset + 1)

    def _ran(self, line: dict[str, Any]) -> None:
        call_id, wrote = line["call_id"], bool(line.get("wrote"))
        started = self.observer.calls.get(call_id)
        who = started.key.decode() if started else ""
        at_s = line["at_ms"] / 1000
        if wrote:
            self.world.write(Change(at_s, line["resource"], line["text"], who, call_id))
        self.world.ran(
            Execution(call_id, line["tool"], who, "", at_s, line["change"], False, wrote, line["value"])
        )

    def _reached(self, line: dict[str, Any]) -> None:
        spec = self._toolbox.specs[line["tool"]]
        self.arrivals.look(spec, line["arguments"], line["call_id"], line["early"])

    def _claim(self, record: Record) -> None:
        if counted(record):
            self.claimed.add(decode_claim(record.value).call_id)

    def _snapshots(self) -> Iterator[Step]:
        """The catalogs that owners may have decided with: as published, and as one out of contact has it."""
        catalog = Catalog(self._written.policy)
        made: list[tuple[int, Catalog]] = []
        for record in self.shelf.records(self.topics.catalog):
            if record.value is None:
                kind, _, name = (record.key or b"").decode().partition("/")
                catalog = catalog.without(kind, name)
            else:
                catalog = catalog.with_record(decode_catalog(record.value))
            made.append((record.timestamp, catalog))
        for place, (at_ms, snapshot) in enumerate(made):
            yield at_ms, -1, place, lambda seen=(at_ms / 1000, snapshot): self.promises.snapshots.append(seen)
