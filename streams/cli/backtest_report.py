"""What `pml backtest` and `pml train` print of sessions that were played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pml.streams.cli.output import note, print_table, say

COLUMNS = (
    "tool",
    "calls",
    "begun",
    "hits",
    "wasted",
    "saved s",
    "wasted s",
    "really begun",
    "hits",
    "saved s",
)
THRESHOLD_COLUMNS = ("threshold", "begun", "hits", "wasted", "share wasted", "saved s", "wasted s")
MS_A_SECOND = 1_000


def print_report(report: Mapping[str, Any]) -> None:
    """All of a backtest: by tool, why calls did not begin, and what other thresholds would have come to."""
    title = (
        f"{report['model_id']} ({report['learner']}): {report['runs']} runs of {report['sessions']} sessions"
        f", threshold {report['threshold']:.2f}, budget {report['budget']}"
    )
    rows = [*report["tools"], {"tool": "all", **report["total"]}]
    print_table(COLUMNS, map(_row, rows), title)
    asked = max(1, report["asked"])
    say(f"asked {report['asked']} times, {report['right'] / asked:.0%} right about what came next")
    if report["withheld"]:
        told = ", ".join(f"{reason} {count}" for reason, count in report["withheld"].items())
        say(f"not begun: {told}")
    if report["unknown"]:
        say(f"{report['unknown']} calls more would have read results that nobody has seen")
    if report["left_out_runs"]:
        left_out = f"{report['left_out_runs']} earlier runs of that time are left out"
        note(f"{left_out}: more cannot be read at once; these begin at {report['since']}")
    if report["known_runs"]:
        note(f"{report['known_runs']} of the runs ended before the model was made: it may know them")
    if rows := list(_thresholds(report["thresholds"])):
        print_table(THRESHOLD_COLUMNS, rows, "at other thresholds")
    print_choice(report)


def print_line(found: Mapping[str, Any] | None, kept_aside: int) -> None:
    """One line of what a model would have begun in the sessions that its training kept aside, so many."""
    if found is None:
        told = (
            "the sessions that were kept aside have no values, as those of a file, so nothing was played"
            if kept_aside
            else "no session of named ones was kept aside, so nothing was played"
        )
        say(f"backtest: {told}")
        return
    total = found["total"]
    say(
        f"backtest of {found['runs']} runs that were kept aside, threshold {found['threshold']:.2f}: "
        f"{total['begun']} begun, {total['hits']} hits, {_seconds(total['saved_ms'])} s saved, "
        f"{_seconds(total['wasted_ms'])} s wasted"
    )
    print_choice(found)


def print_choice(report: Mapping[str, Any]) -> None:
    """The threshold that would have saved most, where it would have saved more than the one that holds."""
    best = next((row for row in report["thresholds"] if row["threshold"] == report["best_threshold"]), None)
    if best is None or best["saved_ms"] <= report["total"]["saved_ms"]:
        return
    say(
        f"{best['threshold']:.2f} would have saved most ({_seconds(best['saved_ms'])} s) with at most "
        f"{report['waste_most']:.0%} of what begins wasted: pml thresholds set {best['threshold']:.2f}"
    )


def _thresholds(rows: list[Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Those at which something would have begun; of several that come to the same the highest."""
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        if row["begun"] and (following is None or _came_to(row) != _came_to(following)):
            yield (
                f"{row['threshold']:.2f}",
                *(row[name] for name in ("begun", "hits", "wasted")),
                f"{row['wasted'] / row['begun']:.0%}",
                _seconds(row["saved_ms"]),
                _seconds(row["wasted_ms"]),
            )


def _came_to(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "threshold"}


def _row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    really = row["really"]
    return (
        *(row[name] for name in ("tool", "calls", "begun", "hits", "wasted")),
        _seconds(row["saved_ms"]),
        _seconds(row["wasted_ms"]),
        *(really["begun"], really["hits"], _seconds(really["saved_ms"])),
    )


def _seconds(time_ms: float) -> str:
    return f"{time_ms / MS_A_SECOND:.2f}"
