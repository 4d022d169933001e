"""What came of sessions on stacks and on the clock, side by side: a row for each set, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.end_to_end.clock import Account
from benchmarks.end_to_end.measure import SIDES
from benchmarks.end_to_end.play import Play


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
    return {
        "sessions": len(play.sessions),
        "calls": len(play.sessions) + len(calls),
        "may_run_early": sum(call.safe for call in calls),
        "nothing": {"stack": round(without.wall_s, 2), "clock": round(nothing.wall_s, 2)},
        "oracle": {"clock": round(best.wall_s, 2)},
        **{
            side: {
                "learner": clock[side][0],
                "threshold": thresholds[side],
                "stack": _told(came[side], without.wall_s, gain_s),
                "clock": _told(clock[side][1], nothing.wall_s, gain_s),
            }
            for side in SIDES
        },
    }


def _told(account: Account, without_s: float, gain_s: float) -> dict[str, Any]:
    """Beside nothing predicted in the same place, and beside what the oracle gains on the clock."""
    return {
        "wall_s": round(account.wall_s, 2),
        "times_as_long": round(account.wall_s / without_s, 4),
        "begun": account.begun,
        "hits": account.hits,
        "waste": round(account.waste, 4) if account.waste != float("inf") else None,
        "share_of_oracle": round((without_s - account.wall_s) / gain_s, 4) if gain_s > 0 else None,
    }


def show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print a table for a person: each side on its stack, and below that on the clock."""
    table = Table(title="through the proxy, beside the clock", box=box.SIMPLE, pad_edge=False)
    for column in ("set (sessions, calls, of them may run early)", "predicted by", "at", "on"):
        table.add_column(column)
    for column in ("÷ without", "begun", "hits", "waste", "of the oracle's gain"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        name = f"{row['name']} ({row['sessions']:,}, {row['calls']:,}, {row['may_run_early']:,})"
        for side in SIDES:
            told = row[side]
            for where in ("stack", "clock"):
                named = (name, f"{side} ({told['learner']})", f"{told['threshold']:g}")
                table.add_row(*(named if where == "stack" else ("", "", "")), where, *_cells(told[where]))
                name = ""
        ratio = row["nothing"]["stack"] / row["nothing"]["clock"]
        table.add_row("", "nothing", "", "stack ÷ clock", f"{ratio:.3f}")
    console.print(table)


def _cells(told: Mapping[str, Any]) -> tuple[str, ...]:
    waste, share = told["waste"], told["share_of_oracle"]
    return (
        f"{told['times_as_long']:.3f}",
        f"{told['begun']:,}",
        f"{told['hits']:,}",
        "all" if waste is None else f"{waste:.2f}",
        "" if share is None else f"{share:.2f}",
    )
