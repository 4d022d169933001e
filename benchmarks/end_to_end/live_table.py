"""What came of sessions on stacks and on the clock, side by side: a row for each set, and a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.end_to_end.clock import Account
from benchmarks.end_to_end.measure import Scale
from benchmarks.end_to_end.models import SIDES
from benchmarks.end_to_end.play import Play
from benchmarks.end_to_end.table import cells


@dataclass(frozen=True, slots=True)
class Fold:
    """What came of the sessions of a fold.

    `thresholds` has that of each side. `came` has what came of each side, and of nothing predicted, on its
    stack; `clock` for each side the learner that predicts, and what the clock says. `nothing` and `oracle`
    are on the clock.
    """

    play: Play
    thresholds: Mapping[str, float]
    came: Mapping[str, Account]
    clock: Mapping[str, tuple[str, Account]]
    nothing: Account
    oracle: Account


def row_of(told: Iterable[Fold]) -> dict[str, Any]:
    """One set, as JSON-serialisable values: all its folds together, and shares of each."""
    folds = list(told)
    sessions = [session for fold in folds for session in fold.play.sessions]
    scales = _scales(folds)
    return {
        "sessions": len(sessions),
        "calls": sum(len(session.made) for session in sessions),
        "may_run_early": scales["clock"].able,
        "nothing": {where: round(scale.nothing.wall_s, 2) for where, scale in scales.items()},
        "oracle": {"clock": round(scales["clock"].best.wall_s, 2)},
        **{side: _side(folds, side, scales) for side in SIDES},
    }


def _side(folds: Sequence[Fold], side: str, scales: Mapping[str, Scale]) -> dict[str, Any]:
    of_each = [_scales([fold]) for fold in folds]
    return {
        "learners": [fold.clock[side][0] for fold in folds],
        "thresholds": [fold.thresholds[side] for fold in folds],
        **{
            where: {
                **scale.told(_sum(folds, side, where)),
                "share_of_each_fold": [
                    own[where].told(_sum([fold], side, where))["share_of_oracle"]
                    for fold, own in zip(folds, of_each, strict=True)
                ],
            }
            for where, scale in scales.items()
        },
    }


def _scales(folds: Sequence[Fold]) -> dict[str, Scale]:
    nothing, best = (Account.total(getattr(fold, name) for fold in folds) for name in ("nothing", "oracle"))
    without, gain_s = Account.total(fold.came["nothing"] for fold in folds), nothing.wall_s - best.wall_s
    calls = [call for fold in folds for each in fold.play.sessions for call in fold.play.calls(each)[1:]]
    able = sum(call.safe for call in calls)
    # No stack knows what comes: there as well the oracle gains what it gains on the clock.
    return {
        "stack": Scale(without, Account(without.wall_s - gain_s), able),
        "clock": Scale(nothing, best, able),
    }


def _sum(folds: Sequence[Fold], side: str, where: str) -> Account:
    return Account.total(fold.came[side] if where == "stack" else fold.clock[side][1] for fold in folds)


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
                named = (name, f"{side} ({_names(told['learners'])})", _range(told["thresholds"]))
                table.add_row(*(named if where == "stack" else ("", "", "")), where, *cells(told[where]))
                name = ""
        ratio = row["nothing"]["stack"] / row["nothing"]["clock"]
        table.add_row("", "nothing", "", "stack ÷ clock", f"{ratio:.3f}")
    console.print(table)


def _names(learners: Sequence[str]) -> str:
    """Each once, in the order of the folds."""
    return ", ".join(dict.fromkeys(learners))


def _range(thresholds: Sequence[float]) -> str:
    least, most = min(thresholds), max(thresholds)
    return f"{least:g}" if least == most else f"{least:g}–{most:g}"
