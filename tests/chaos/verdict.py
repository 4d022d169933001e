"""What must hold after any chaos: the simulation's checks over what was written, the store, the roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pml.schemas.events import Event
from tests.chaos.faults import Faults
from tests.chaos.reading import Findings, Reading, Written
from tests.chaos.views import ENDS, differences
from tests.drills.verdict import check_store
from tests.drills.workshop import Ended, Workshop
from tests.simulation.ledger import Violation

# What a workflow, a tool, a person or an agent brings about.
GIVEN = frozenset(
    {
        "ABORTED",
        "APPROVAL_EXPIRED",
        "APPROVAL_REJECTED",
        "BAD_CONDITION",
        "DECISION_TIMEOUT",
        "TASK_FAILED",
        "TOOL_ERROR",
        "UNRESOLVED_ARGUMENT",
    }
)
# Because a role, the broker or a server was away for longer than somebody waits.
LATE = frozenset(
    {"CONNECTION_LOST", "DEADLINE", "OUTCOME_UNKNOWN", "RUN_TIMEOUT", "SERVER_UNAVAILABLE", "TIMEOUT"}
)
LATE_SHARE_MAX = 0.5
# Some recorded workflows wait for themselves.
REFUSED = frozenset({"CYCLE"})
# How long after trouble with the broker or its own standing still a role may end itself for it.
AFTER_S = 60.0
EARLY = ("speculation", "joined", "repeat")


@dataclass
class Outcome:
    """What one seed came to; `violations` is empty where everything held.

    Attributes:
        failures: failed runs by the code of their error; `task_failures`: tasks that failed for good.
        late: runs that failed because something was away, by the code that says so.
        self_ended: roles that ended by themselves.
    """

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
    late: int = 0
    events: int = 0
    void: int = 0
    effects: int = 0
    executions: int = 0

    @property
    def speculated(self) -> float:
        """The share of eligible calls that were speculated."""
        return self.eligible["speculated"] / max(1, self.eligible["eligible"])

    @property
    def late_share(self) -> float:
        """The share of runs that failed because something was away."""
        return self.late / max(1, sum(self.runs.values()))


def judge_log(outcome: Outcome, reading: Reading, written: Written) -> None:
    """Everything that the topics and the servers' own log say."""
    reading.go_through()
    events = [event for _, event in written.events]
    _tell(outcome, reading, events)
    _check_reasons(reading.findings, written, events)
    _check_shares(reading.findings, outcome)


async def judge_store(findings: Findings, workshop: Workshop, written: Written) -> None:
    """ClickHouse has each event that counts once, and its views say what the log says."""
    events = written.events
    try:
        await check_store(workshop, {(partition, event.offset) for partition, event in events})
        findings.check("ClickHouse has each event that counts once", True)
    except AssertionError as error:
        findings.check("ClickHouse has each event that counts once", False, error)
    for name, lines in (await differences(workshop, events)).items():
        findings.check(f"the view {name} says what the log says", not lines, "; ".join(lines[:5]))


def judge_roles(outcome: Outcome, findings: Findings, workshop: Workshop, faults: Faults) -> None:
    """A role ends itself only where the broker was away or it stood still itself."""
    for ended in workshop.found_dead:
        by_itself = ended.code > 0
        outcome.self_ended[ended.name] += by_itself
        explained = not by_itself or _explained(ended, faults)
        text = f"{ended.name} ended with {ended.code}: {workshop.tail(ended.name)[-800:]}"
        findings.check("no role ends by a defect", explained, text)
    findings.check("told to stop, a role stops", not faults.unclean, faults.unclean)


def judge_runs(findings: Findings, events: list[Event], asked: Mapping[str, str]) -> None:
    """Every run that was asked for, by its command, began once and has ended, or cannot be run.

    No account was found out of balance.
    """
    check, wanted = findings.check, dict(asked)
    for event in events:
        data: Any = event.data
        if event.type == "command.rejected" and event.command_id in wanted:
            code = data.error["code"]
            check("only what cannot run is refused", code in REFUSED, f"{event.id} {data.error}")
            del wanted[event.command_id]
    began = Counter(event.run_id for event in events if event.type == "run.started")
    once = Counter(wanted.values())
    check("every run began once", began == once, lambda: f"missing {once - began}, too much {began - once}")
    left = set(wanted.values()) - {event.run_id for event in events if event.type in ENDS}
    check("every run ended", not left, lambda: sorted(left))
    breaches = [event.id for event in events if event.type == "speculation.unbalanced"]
    check("no account breach was reported", not breaches, breaches)


def _explained(ended: Ended, faults: Faults) -> bool:
    return any(
        fault.began_s <= ended.at_s <= fault.ended_s + AFTER_S
        for fault in faults.done
        if fault.name.endswith("broker") or fault.name.startswith("pause")
    )


def _tell(outcome: Outcome, reading: Reading, events: list[Event]) -> None:
    outcome.events, outcome.void = reading.observer.counted, reading.observer.void
    outcome.eligible = reading.promises.eligible
    outcome.effects = len(reading.world.changes)
    outcome.executions = sum(map(len, reading.world.executions.values()))
    last: dict[str, Event] = {event.run_id or "": event for event in events if event.type in ENDS}
    outcome.runs = Counter(ENDS[event.type] for event in last.values())
    outcome.failures = Counter(_code(event) for event in last.values() if event.type == "run.failed")
    for event in events:
        data: Any = event.data
        if event.type == "speculation.ended":
            outcome.fates[data.reason or data.fate] += 1
        elif _for_good(event):
            outcome.task_failures[_code(event)] += 1
    away = {event.run_id for event in events if _for_good(event) and _code(event) in LATE}
    outcome.late = sum(
        event.type == "run.failed" and (run_id in away or _code(event) in LATE)
        for run_id, event in last.items()
    )


def _for_good(event: Event) -> bool:
    """Whether a task failed and is not tried again, or nobody knows."""
    data: Any = event.data
    return event.type == "task.unknown" or (event.type == "task.failed" and data.final)


def _code(event: Event) -> str:
    data: Any = event.data
    if event.type == "task.unknown":
        return "OUTCOME_UNKNOWN"
    if isinstance(data.error, dict):
        return str(data.error["code"])
    return "no code" if data.error is None else str(data.error.code)


def _check_reasons(findings: Findings, written: Written, events: list[Event]) -> None:
    """Whatever failed has a reason that workflows or faults give; a tool's error stands in its own log."""
    failed = {line["call_id"] for line in written.journal if line["kind"] == "failed"}
    for event in events:
        data: Any = event.data
        if _for_good(event) or event.type == "run.failed":
            code = _code(event)
            findings.check("a failure is explained", code in GIVEN | LATE, f"{event.id} {code} {data.error}")
        if event.type == "task.failed" and data.error.code == "TOOL_ERROR":
            findings.check("a tool that failed says so itself", data.call_id in failed, event.id)


def _check_shares(findings: Findings, outcome: Outcome) -> None:
    """Enough ended as it should, and enough was speculated, for all of this to say something."""
    check = findings.check
    check("most runs are not late", outcome.late_share <= LATE_SHARE_MAX, f"{outcome.late_share:.2f}")
    check("something ran early", outcome.eligible["speculated"] > 0, outcome.eligible)
    served = sum(outcome.eligible[f"served by {how}"] for how in EARLY)
    check("something was served early", served > 0, outcome.eligible)
