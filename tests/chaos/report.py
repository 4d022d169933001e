"""What a chaos run says of itself, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tests.chaos.verdict import Outcome

TABLES = (
    "faults",
    "commands",
    "runs",
    "failures",
    "task_failures",
    "fates",
    "eligible",
    "self_ended",
    "checks",
)


def lines(outcome: Outcome, folder: Path) -> Iterator[str]:
    """For people; a seed that failed says what did not hold, and where its data are."""
    yield (
        f"seed {outcome.seed}, {outcome.seconds:.0f} s: {sum(outcome.runs.values())} runs, "
        f"{outcome.events} events that count, {outcome.void} void, {outcome.executions} calls ran, "
        f"{outcome.effects} effects, {sum(outcome.faults.values())} faults"
    )
    yield (
        f"eligible calls {outcome.eligible['eligible']}, speculated {outcome.eligible['speculated']} "
        f"({outcome.speculated:.0%}); settings {outcome.settings}"
    )
    yield f"runs that failed because something was away {outcome.late} ({outcome.late_share:.0%})"
    for title in TABLES:
        counts = getattr(outcome, title)
        yield f"{title.replace('_', ' ')}"
        yield from (f"  {count:>9}  {name}" for name, count in sorted(counts.items()))
    if outcome.violations:
        yield f"{len(outcome.violations)} violations; data are kept in {folder}"
        yield from (
            f"  {item.check}, at {item.at_s:.3f}: {item.found[:2_000]}" for item in outcome.violations
        )
    else:
        yield "every check held"


def as_dict(outcome: Outcome, folder: Path) -> dict[str, Any]:
    """For programs."""
    plain = {item.name: getattr(outcome, item.name) for item in fields(outcome)}
    shares = {
        "eligible_calls_speculated": round(outcome.speculated, 3),
        "late_runs": round(outcome.late_share, 3),
    }
    violations = [asdict(item) for item in outcome.violations]
    return {**plain, **shares, "violations": violations, "folder": str(folder)}
