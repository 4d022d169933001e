"""What must hold after any chaos: the simulation's checks over what was written, the store, how roles ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pml.schemas.codec import decode_event
from pml.schemas.events import Event
from tests.chaos.faults import Faults
from tests.chaos.reading import Reading
from tests.chaos.views import ENDS, differences
from tests.chaos.work import Post, Watch, open_work
from tests.drills.verdict import check_store
from tests.drills.workshop import Ended, Workshop
from tests.simulation.ledger import Violation
from tests.simulation.tools import Toolbox

# Because a role or the broker was away for longer than somebody waits.
LATE = frozenset({"TIMEOUT", "DEADLINE", "RUN_TIMEOUT"})
LATE_SHARE_MAX = 0.5
# How long after trouble with the broker or its own standing still a role may end itself for it.
AFTER_S = 60.0
EARLY = ("speculation", "joined", "repeat")


@dataclass
class Outcome:
    """What one seed came to; `violations` is empty where everything held."""

    seed: int
    seconds: float
    settings: dict[str, Any]
    violations: list[Violation] = field(default_factory=list)
    checks: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    task_failures: Counter[str] = field(default_factory=Counter)
    eligible: Counter[str] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    self_ended: Counter[str] = field(default_factory=Counter)
    events: int = 0
    void: int = 0
    effects: int = 0
    executions: int = 0

    @property
    def share(self) -> float:
        """The share of eligible calls that were speculated."""
        return self.eligible["speculated"] / max(1, self.eligible["eligible"])


async def verdict(
    outcome: Outcome, workshop: Workshop, toolbox: Toolbox, faults: Faults, watch: Watch, post: Post
) -> None:
    """Check everything, into the outcome."""
    reading = Reading(workshop, toolbox, faults.done)
    check = reading.findings.check
    left = open_work(watch, post)
    check("everything settles once faults stop", not left, lambda: left[:20])
    await reading.read()
    await asyncio.to_thread(reading.go_through)
    events = [(record.partition, decode_event(record.value)) for record in reading.events]
    await _check_views(reading, workshop, events)
    _check_roles(reading, workshop, faults)
    _check_sums(reading, [event for _, event in events], post)
    _tell(outcome, reading, [event for _, event in events])
    _check_shares(reading, outcome)
    outcome.violations, outcome.checks = reading.findings.found, reading.findings.counts
    outcome.faults, outcome.commands = faults.counts, post.counts


async def _check_views(reading: Reading, workshop: Workshop, events: list[tuple[int, Event]]) -> None:
    check = reading.findings.check
    try:
        await check_store(workshop, {(partition, event.offset) for partition, event in events})
    except AssertionError as error:
        reading.findings.fail("ClickHouse has each event that counts once", str(error))
    check("ClickHouse has each event that counts once", True)
    ordered = sorted(events, key=lambda item: (item[0], item[1].offset))
    for name, lines in (await differences(workshop, ordered)).items():
        check(f"the view {name} says what the log says", not lines, lambda lines=lines: lines[:5])


def _check_roles(reading: Reading, workshop: Workshop, faults: Faults) -> None:
    """A role ends itself only where the broker was away or it stood still itself."""
    for ended in workshop.found_dead:
        explained = ended.code <= 0 or _explained(ended, faults)
        text = f"{ended.name} ended with {ended.code}: {workshop.tail(ended.name)[-800:]}"
        reading.findings.check("no role ends by a defect", explained, text)
    reading.findings.check("told to stop, a role stops", not faults.unclean, lambda: faults.unclean)


def _explained(ended: Ended, faults: Faults) -> bool:
    return any(
        fault.began_s <= ended.at_s <= fault.ended_s + AFTER_S
        for fault in faults.done
        if fault.name.endswith("broker") or fault.name.startswith("pause")
    )


def _check_sums(reading: Reading, events: list[Event], post: Post) -> None:
    """Every run that was asked for began once and has ended; no account was found out of balance."""
    check = reading.findings.check
    asked = {c.run_id for c in post.sent.values() if c.type == "run.start"}
    started = Counter(event.run_id for event in events if event.type == "run.started")
    check("every run began once", started == Counter(asked), lambda: started - Counter(asked))
    ended = {event.run_id for event in events if event.type in ENDS}
    check("every run ended", asked <= ended, lambda: sorted(asked - ended))
    breaches = [event.id for event in events if event.type == "speculation.unbalanced"]
    check("no account breach was reported", not breaches, lambda: breaches)


def _tell(outcome: Outcome, reading: Reading, events: list[Event]) -> None:
    outcome.events, outcome.void = reading.observer.counted, reading.observer.void
    outcome.eligible = reading.promises.eligible
    outcome.effects = len(reading.world.changes)
    outcome.executions = sum(map(len, reading.world.executions.values()))
    last: dict[str, Event] = {event.run_id or "": event for event in events if event.type in ENDS}
    outcome.runs = Counter(ENDS[event.type] for event in last.values())
    for event in events:
        data: Any = event.data
        if event.type == "speculation.ended":
            outcome.fates[data.reason or data.fate] += 1
        elif event.type == "task.failed" and data.final:
            outcome.task_failures[data.error.code] += 1
        elif event.type == "task.unknown":
            outcome.task_failures["unknown"] += 1
    for event in last.values():
        error = getattr(event.data, "error", None)
        if event.type == "run.failed":
            outcome.failures[error["code"] if error else "no code"] += 1


def _check_shares(reading: Reading, outcome: Outcome) -> None:
    """Enough ended as it should, and enough was speculated, for all of this to say something."""
    check, runs = reading.findings.check, sum(outcome.runs.values())
    late = sum(count for code, count in outcome.failures.items() if code in LATE)
    check("most runs are not late", late <= LATE_SHARE_MAX * runs, f"{late} of {runs}")
    check("something ran early", outcome.eligible["speculated"] > 0, outcome.eligible)
    check("something was served early", any(outcome.eligible[f"served by {how}"] for how in EARLY), "")
