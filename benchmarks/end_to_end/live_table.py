"""What came of sessions on stacks and on the clock, side by side: a row for each set, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.end_to_end.clock import Account
from benchmarks.end_to_end.measure import SIDES, Scale
from benchmarks.end_to_end.play import Play
from benchmarks.end_to_end.table import cells


def row_of(
    play: Play,
    thresholds: Mapping[str, float],
    came: Mapping[str, Account],
    clock: Mapping[str, tuple[str, Account]],
    ends: tuple[Account, Account],
) -> dict[str, Any]:
    """One set, as JSON-serialisable values.

    Args:
        thresholds: of each side.
        came: what came of each side, and of nothing predicted, on its stack.
        clock: of each side the learner that predicts, and what the clock says.
        ends: nothing predicted and the oracle, on the clock.
    """
    nothing, best = ends
    without, gain_s = came["nothing"], nothing.wall_s - best.wall_s
    calls = [call for session in play.sessions for call in play.calls(session)[1:]]
    able = sum(call.safe for call in calls)
    # No stack knows what comes: there as well the oracle gains what it gains on the clock.
    on_stack = Scale(without, Account(without.wall_s - gain_s), able)
    on_clock = Scale(nothing, best, able)
    return {
        "sessions": len(play.sessions),
        "calls": len(play.sessions) + len(calls),
        "may_run_early": able,
        "nothing": {"stack": round(without.wall_s, 2), "clock": round(nothing.wall_s, 2)},
        "oracle": {"clock": round(best.wall_s, 2)},
        **{
            side: {
                "learner": clock[side][0],
                "threshold": thresholds[side],
                "stack": on_stack.told(came[side]),
                "clock": on_clock.told(clock[side][1]),
            }
            for side in SIDES
        },
    }


def show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print a table for a person: each side on its stack, and below that on the clock."""
    table = Table(title="through the proxy, beside the clock", box=box.SIMPLE, pad_edge=False)
    for column in ("set (sessions, calls, of them may run early)", "predicted by", "at", "on"):
        table.add_column(column)
    for column in ("÷ without", "begun", "hits", "hit rate", "waste", "of the oracle's gain"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        name = f"{row['name']} ({row['sessions']:,}, {row['calls']:,}, {row['may_run_early']:,})"
        for side in SIDES:
            told = row[side]
            for where in ("stack", "clock"):
                named = (name, f"{side} ({told['learner']})", f"{told['threshold']:g}")
                table.add_row(*(named if where == "stack" else ("", "", "")), where, *cells(told[where]))
                name = ""
        ratio = row["nothing"]["stack"] / row["nothing"]["clock"]
        table.add_row("", "nothing", "", "stack ÷ clock", f"{ratio:.3f}")
    console.print(table)
