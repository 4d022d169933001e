"""Data sets on the modelled clock, each kept as soon as it is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.end_to_end.measure import AT_HALF, WHAT_IFS
from benchmarks.end_to_end.models import SIDES
from benchmarks.end_to_end.sets import ANSWER_S, ASKED_S, SETS, Rehearsal, rehearsals
from benchmarks.figures import Figure
from benchmarks.kept_rows import Row, in_order, kept_rows, measured_now
from benchmarks.machine import CHANGED, UNKNOWN, OthersWatch, commit
from benchmarks.plan import Plan
from benchmarks.report import Result

NAME = "end_to_end"
SESSIONS = 1_000


def measured(
    folder: Path,
    names: Sequence[str],
    plan: Plan,
    others: OthersWatch,
    *,
    most: int,
    models: Path | None,
) -> Iterator[tuple[Rehearsal, Row]]:
    """Each set as it comes, and its row; that is kept where as many sessions as usual are played.

    Args:
        folder: of the data sets.
        most: so many sessions of each fold are played at most.
        models: where they stay, None: nowhere.
    """
    found: dict[str, Row] = {}
    for rehearsal in rehearsals(folder, names, plan.seed, most, _work(plan, models)):
        row = found[rehearsal.name] = measured_now(rehearsal.row())
        plan.say(f"{rehearsal.name} is measured on the clock")
        if most == SESSIONS:
            kept = {**kept_rows(NAME, plan.seed), **found}
            result(in_order(kept, SETS), plan, others, most).write()
        yield rehearsal, row


def result(rows: Sequence[Row], plan: Plan, others: OthersWatch, most: int) -> Result:
    """What there is of all sets."""
    facts = {"asked_s": ASKED_S, "answer_s": ANSWER_S, "sessions_of_a_fold_most": most, "sets": rows}
    return Result.of(NAME, _figures(rows), plan, others, facts)


def _work(plan: Plan, models: Path | None) -> Path:
    """A folder for the models of this commit; another one may learn something else of the same sessions."""
    now = commit()
    if models is None:
        return plan.folder / "models"
    if now == UNKNOWN or now.endswith(CHANGED):
        plan.say("models are not kept: files differ from the commit, or there is none")
        return plan.folder / "models"
    return models.absolute() / now


def _figures(rows: Sequence[Row]) -> list[Figure]:
    """Seconds with predictions beside those without."""
    return [
        Figure(f"{row['name']}: {side}", "s", (row[side]["wall_s"],), (row["unpredicted_s"],))
        for row in rows
        for side in (*SIDES, AT_HALF, *WHAT_IFS, "oracle")
    ]
