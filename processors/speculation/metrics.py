"""What speculation brought and cost: a fold of the log (DESIGN §4, Accounts).

A hit is a speculation that was served or joined, counted at its first use; later uses are repeats. A miss is
a real call that could have been speculated, counted at its final attempt. Waste is what was discarded or
failed. What shadow mode only planned, and what was called again to see whether it still says the same, have
accounts of their own and change none of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field, fields
from typing import Any, Literal, NamedTuple

import orjson

from pml.schemas.errors import LogCorrupted

VERSION = 1
# One value holds all tools of a partition and must stay far below 1 MB.
TOOLS_MAX = 500
OTHER_TOOLS = "(other)"
RUN_STATUSES = {"run.completed": "completed", "run.failed": "failed", "run.aborted": "aborted"}
TASK_ENDS = frozenset({"task.completed", "task.failed", "task.unknown"})
SHADOWED = frozenset({"speculation.planned", "speculation.scored", "speculation.held"})
VERIFIED = {"speculation.verified": "", "speculation.diverged": "diverged"}
OBSERVED = frozenset(
    {"speculation.started", "speculation.ended", *SHADOWED, *VERIFIED, *RUN_STATUSES, *TASK_ENDS}
)
"""The types that can add something; no other event needs to be decoded."""

PLANNED = "planned"
HELD = "held"
SPECULATED = "speculated"
# What rows of earlier releases lack at their end.
LATER: tuple[Any, ...] = ((), {}, 0, 0, {})

Account = Literal["started", "ended", "missed", "repeated", "called", "run", "shadow", "verified"]


class Observation(NamedTuple):
    """What one event says: `subject` is a tool, or the status of a run.

    `early` says of a call that could have run early whether it was speculated, `kind` why it was.
    """

    account: Account
    subject: str
    fate: str = ""
    reason: str = ""
    tool_ms: float = 0.0
    saved_ms: float = 0.0
    duration_ms: float = 0.0
    early: str = ""
    kind: str = ""


def observe(event_type: str, data: Mapping[str, Any]) -> Observation | None:
    """What an event's data adds to the accounts; None where it adds nothing."""
    if event_type == "speculation.ended":
        return Observation(
            "ended",
            data["tool"],
            data["fate"],
            data["reason"],
            data.get("tool_ms", 0.0),
            data.get("saved_ms", 0.0),
            kind=data.get("kind", ""),
        )
    if event_type == "speculation.started":
        return Observation("started", data["tool"], kind=data.get("kind", ""))
    if event_type in RUN_STATUSES:
        return Observation("run", RUN_STATUSES[event_type], duration_ms=data.get("duration_ms", 0))
    if event_type in SHADOWED:
        return _shadow(event_type, data)
    if event_type in VERIFIED:
        return Observation("verified", data["tool"], reason=VERIFIED[event_type] or data["outcome"])
    return _task(data) if event_type in TASK_ENDS else None


def _shadow(event_type: str, data: Mapping[str, Any]) -> Observation | None:
    """Plans that only lacked confidence are no business of shadow mode."""
    if not data.get("shadow"):
        return None
    if event_type == "speculation.planned":
        return Observation("shadow", data["tool"], reason=PLANNED)
    if event_type == "speculation.held":
        return Observation("shadow", data["tool"], reason=HELD)
    fate = "served" if data["success"] else "wasted"
    wasted_ms, saved_ms = data.get("wasted_ms") or 0.0, data.get("saved_ms") or 0.0
    return Observation("shadow", data["tool"], fate, data["reason"], wasted_ms, saved_ms)


def _task(data: Mapping[str, Any]) -> Observation | None:
    served_by, final = data.get("served_by", "call"), data.get("final", True)
    early = (data.get("early") or "") if final else ""
    if served_by == "repeat":
        return Observation("repeated", data["tool"], saved_ms=data.get("saved_ms", 0.0), early=early)
    if served_by == "call" and data.get("speculable") and data.get("call_id") and final:
        return Observation("missed", data["tool"], early=early)
    return Observation("called", data["tool"], early=early) if early else None


@dataclass(slots=True)
class FateTotals:
    """How many speculations ended so, the time their tools took and the latency that they saved."""

    count: int = 0
    tool_ms: float = 0.0
    saved_ms: float = 0.0

    def add(self, count: int, tool_ms: float, saved_ms: float) -> None:
        """Count more of the same."""
        self.count += count
        self.tool_ms += tool_ms
        self.saved_ms += saved_ms


@dataclass(slots=True)
class KindTotals:
    """The speculations of one kind: next layer, branch, prediction, exploration."""

    started: int = 0
    hits: int = 0
    wasted: int = 0
    saved_ms: float = 0.0
    wasted_ms: float = 0.0

    def see(self, seen: Observation) -> None:
        """Fold in that one began, or how one ended."""
        if seen.account == "started":
            self.started += 1
        elif seen.fate == "served":
            self.hits += 1
            self.saved_ms += seen.saved_ms
        else:
            self.wasted += 1
            self.wasted_ms += seen.tool_ms

    def add(self, other: KindTotals) -> None:
        """Count more of the same."""
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


@dataclass(slots=True)
class ToolTotals:
    """The accounts of one tool; fates by (fate, reason), of shadow mode and of verified hits too."""

    started: int = 0
    misses: int = 0
    repeats: int = 0
    repeats_saved_ms: float = 0.0
    fates: dict[tuple[str, str], FateTotals] = field(default_factory=dict)
    shadow: dict[tuple[str, str], FateTotals] = field(default_factory=dict)
    verified: dict[str, int] = field(default_factory=dict)
    eligible: int = 0
    speculated: int = 0
    kinds: dict[str, KindTotals] = field(default_factory=dict)

    def fate(self, fate: str, reason: str) -> FateTotals:
        """The account of one fate and reason, opened where there is none."""
        account = self.fates.get((fate, reason))
        if account is None:
            account = self.fates[fate, reason] = FateTotals()
        return account

    def kind(self, kind: str) -> KindTotals:
        """The account of one kind, opened where there is none."""
        account = self.kinds.get(kind)
        if account is None:
            account = self.kinds[kind] = KindTotals()
        return account


@dataclass(slots=True)
class RunTotals:
    """Runs that ended with one status."""

    count: int = 0
    duration_ms: float = 0.0


@dataclass(slots=True)
class Totals:
    """All accounts of one partition, or of several added up."""

    tools: dict[str, ToolTotals] = field(default_factory=dict)
    runs: dict[str, RunTotals] = field(default_factory=dict)

    def tool(self, name: str) -> ToolTotals:
        """The accounts of a tool; tools beyond the limit share one."""
        totals = self.tools.get(name)
        if totals is None:
            if len(self.tools) >= TOOLS_MAX:
                name = OTHER_TOOLS
            totals = self.tools.setdefault(name, ToolTotals())
        return totals

    def add(self, seen: Observation) -> None:
        """Fold one observation in."""
        if seen.account == "run":
            run = self.runs.setdefault(seen.subject, RunTotals())
            run.count += 1
            run.duration_ms += seen.duration_ms
            return
        tool = self.tool(seen.subject)
        if seen.early:
            tool.eligible += 1
            tool.speculated += seen.early == SPECULATED
        if seen.kind:
            tool.kind(seen.kind).see(seen)
        if seen.account == "started":
            tool.started += 1
        elif seen.account == "ended":
            tool.fate(seen.fate, seen.reason).add(1, seen.tool_ms, seen.saved_ms)
        elif seen.account == "missed":
            tool.misses += 1
        elif seen.account == "shadow":
            shadow = tool.shadow.setdefault((seen.fate, seen.reason), FateTotals())
            shadow.add(1, seen.tool_ms, seen.saved_ms)
        elif seen.account == "verified":
            tool.verified[seen.reason] = tool.verified.get(seen.reason, 0) + 1
        elif seen.account == "repeated":
            tool.repeats += 1
            tool.repeats_saved_ms += seen.saved_ms


def total(parts: Iterable[Totals]) -> Totals:
    """All parts added up."""
    whole = Totals()
    for part in parts:
        for name, tool in part.tools.items():
            _merge_tool(whole.tool(name), tool)
        for status, run in part.runs.items():
            into = whole.runs.setdefault(status, RunTotals())
            into.count += run.count
            into.duration_ms += run.duration_ms
    return whole


def _merge_tool(into: ToolTotals, tool: ToolTotals) -> None:
    into.started += tool.started
    into.misses += tool.misses
    into.repeats += tool.repeats
    into.repeats_saved_ms += tool.repeats_saved_ms
    into.eligible += tool.eligible
    into.speculated += tool.speculated
    for (fate, reason), account in tool.fates.items():
        into.fate(fate, reason).add(account.count, account.tool_ms, account.saved_ms)
    for key, account in tool.shadow.items():
        into.shadow.setdefault(key, FateTotals()).add(account.count, account.tool_ms, account.saved_ms)
    for outcome, count in tool.verified.items():
        into.verified[outcome] = into.verified.get(outcome, 0) + count
    for kind, account_of_kind in tool.kinds.items():
        into.kind(kind).add(account_of_kind)


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures that people ask for, of one tool or of all.

    `wasted` counts speculations that were discarded or failed, `wasted_ms` the time their tools took;
    `running` is what has been started and not ended (waiting results included). `fates` counts by
    `fate:reason`. `hit_rate` is the share of the calls that could have been served early and were; None where
    there was neither hit nor miss. Hits of predictions are in `hits` and not in the rate: what is not
    predicted is no miss. `eligible` counts the calls after a first layer that were allowed to run
    early and for which speculation was on, `speculated` those of them that one was begun for, and
    `eligible_calls_speculated` is their share: a report of safety that speculates nothing proves nothing.
    `shadow` says what shadow mode planned, how much of it would have been served, and how much sooner;
    `verified` how often a tool that was called again said the same. `kinds` keeps next layer, branch and
    prediction apart.
    """

    hits: int = 0
    misses: int = 0
    repeats: int = 0
    wasted: int = 0
    started: int = 0
    running: int = 0
    saved_ms: float = 0.0
    repeats_saved_ms: float = 0.0
    wasted_ms: float = 0.0
    hit_rate: float | None = None
    eligible: int = 0
    speculated: int = 0
    eligible_calls_speculated: float | None = None
    fates: dict[str, int] = field(default_factory=dict)
    shadow: dict[str, Any] = field(default_factory=dict)
    verified: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, dict[str, float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON-serialisable values."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def summarise(tools: Iterable[ToolTotals]) -> Summary:
    """The figures of these tools together."""
    whole = ToolTotals()
    for tool in tools:
        _merge_tool(whole, tool)
    served = [account for (fate, _), account in whole.fates.items() if fate == "served"]
    wasted = [account for (fate, _), account in whole.fates.items() if fate != "served"]
    hits = sum(account.count for account in served)
    # Of a call that nobody had written down, nobody could say that it was missed.
    known = hits - (whole.kinds["prediction"].hits if "prediction" in whole.kinds else 0)
    asked = known + whole.misses
    return Summary(
        hits=hits,
        misses=whole.misses,
        repeats=whole.repeats,
        wasted=sum(account.count for account in wasted),
        started=whole.started,
        running=whole.started - sum(account.count for account in whole.fates.values()),
        saved_ms=sum(account.saved_ms for account in served),
        repeats_saved_ms=whole.repeats_saved_ms,
        wasted_ms=sum(account.tool_ms for account in wasted),
        hit_rate=known / asked if asked else None,
        eligible=whole.eligible,
        speculated=whole.speculated,
        eligible_calls_speculated=whole.speculated / whole.eligible if whole.eligible else None,
        fates={f"{fate}:{reason}": account.count for (fate, reason), account in sorted(whole.fates.items())},
        shadow=_shadow_summary(whole.shadow),
        verified=dict(sorted(whole.verified.items())),
        kinds={kind: asdict(account) for kind, account in sorted(whole.kinds.items())},
    )


def _shadow_summary(shadow: Mapping[tuple[str, str], FateTotals]) -> dict[str, Any]:
    """What shadow mode planned, and what came of it."""
    by_reason = {reason: account for (fate, reason), account in sorted(shadow.items()) if fate}
    served = [account for (fate, _), account in shadow.items() if fate == "served"]
    wasted = [account for (fate, _), account in shadow.items() if fate == "wasted"]
    return {
        "planned": sum(account.count for key, account in shadow.items() if key == ("", PLANNED)),
        "held": sum(account.count for key, account in shadow.items() if key == ("", HELD)),
        "would_serve": sum(account.count for account in served),
        "would_waste": sum(account.count for account in wasted),
        "would_save_ms": sum(account.saved_ms for account in served),
        "would_waste_ms": sum(account.tool_ms for account in wasted),
        "reasons": {reason: account.count for reason, account in by_reason.items()},
    }


def encode_totals(totals: Totals, offset: int) -> bytes:
    """Totals and the log offset of the last event in them (-1: none), as one value: state and guard."""
    tools = {name: _tool_row(tool) for name, tool in totals.tools.items()}
    runs = {status: [run.count, run.duration_ms] for status, run in totals.runs.items()}
    return orjson.dumps({"version": VERSION, "offset": offset, "tools": tools, "runs": runs})


def decode_totals(value: bytes) -> tuple[Totals, int]:
    """Totals and guard out of their value.

    Raises:
        LogCorrupted: the value is none of ours, or of a newer release.
    """
    try:
        stored = orjson.loads(value)
        if stored["version"] != VERSION:
            raise LogCorrupted(
                f"the metrics were written in version {stored['version']}, this release reads {VERSION}; "
                "upgrade PML"
            )
        tools = {name: _tool_of(row) for name, row in stored["tools"].items()}
        runs = {status: RunTotals(*row) for status, row in stored["runs"].items()}
        return Totals(tools, runs), stored["offset"]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise LogCorrupted(
            f"the stored metrics cannot be read ({error}); rebuild them from the log"
        ) from None


def _tool_row(tool: ToolTotals) -> list[Any]:
    fates = [[*key, account.count, account.tool_ms, account.saved_ms] for key, account in tool.fates.items()]
    shadow = [
        [*key, account.count, account.tool_ms, account.saved_ms] for key, account in tool.shadow.items()
    ]
    counted = [tool.started, tool.misses, tool.repeats, tool.repeats_saved_ms, fates, shadow, tool.verified]
    kinds = {kind: astuple(account) for kind, account in tool.kinds.items()}
    return [*counted, tool.eligible, tool.speculated, kinds]


def _tool_of(row: list[Any]) -> ToolTotals:
    started, misses, repeats, repeats_saved_ms, fates, *later = row
    shadow, verified, eligible, speculated, kinds = (*later, *LATER[len(later) :])
    return ToolTotals(
        *(started, misses, repeats, repeats_saved_ms, _fates_of(fates), _fates_of(shadow), dict(verified)),
        *(eligible, speculated),
        kinds={kind: KindTotals(*account) for kind, account in kinds.items()},
    )


def _fates_of(rows: Iterable[list[Any]]) -> dict[tuple[str, str], FateTotals]:
    return {(fate, reason): FateTotals(*account) for fate, reason, *account in rows}
