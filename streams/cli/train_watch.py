"""`pml train --watch`: what it prints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from pml.streams.cli.output import note, print_json_line
from pml.streams.cli.session import load_settings, person, run_async

MEMORY_MB = 2_048
TIME_LIMIT = "1h"
Every = Annotated[
    str | None, typer.Option(metavar="TIME", help="With --watch: so long after the last one, as 6h.")
]
NewTraces = Annotated[
    int | None, typer.Option(min=1, help="With --watch: as soon as so many more runs have ended.")
]
MemoryLimit = Annotated[
    int | None,
    typer.Option(
        "--memory-mb", min=64, help="With --watch: what one training may take.", show_default=str(MEMORY_MB)
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="With --watch: how long one training may run, without what it stands still for others.",
        show_default=TIME_LIMIT,
    ),
]
Keep = Annotated[
    int | None,
    typer.Option(min=1, help="With --watch: how many of the newest models stay.", show_default="20"),
]
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def duration_s(text: str | None, option: str) -> float | None:
    """Seconds of a duration such as `90s`, `30m`, `6h` or `1d`.

    Raises:
        typer.BadParameter: it is none.
    """
    if text is None:
        return None
    found = _DURATION.fullmatch(text.strip())
    if found is None or float(found[1]) == 0:
        raise typer.BadParameter(f"{text!r} is no duration such as 90s, 30m, 6h or 1d", param_hint=option)
    return float(found[1]) * SECONDS[found[2]]


def watch_trainings(
    options: Sequence[str],
    *,
    tenant: str,
    schedule: tuple[str | None, int | None],
    limits: tuple[int, str],
    keep: int | None,
    promote: bool,
    json: bool,
) -> None:
    """Train whenever it is due until Ctrl-C; `limits` are MiB of memory and a duration.

    Raises:
        ConfigurationError: no schedule was given.
        typer.BadParameter: a duration is none.
    """
    from pml.streams.clock import now_ms
    from pml.streams.learning.limited import MIB, Limits
    from pml.streams.learning.pruning import KEEP
    from pml.streams.learning.retraining import Job, Schedule, last_training_ms, retrain, steps_of

    settings = load_settings()
    wanted = Schedule(duration_s(schedule[0], "--every"), schedule[1])
    time_s = duration_s(limits[1], "--time-limit")
    assert time_s is not None
    bounds = Limits(limits[0] * MIB, time_s)
    job = Job(tenant, options, bounds, person() if promote else None, keep or KEEP)
    steps = steps_of(settings, job, now_ms)
    last_ms = last_training_ms(settings, tenant)
    run_async(retrain(wanted, steps, last_ms, print_json_line if json else lambda told: note(line(told))))


def line(told: Mapping[str, Any]) -> str:
    """What happened, for a person."""
    at, event = told["at"][:19] + "Z", told["event"]
    if event == "waiting":
        return f"{at} waiting: the last training was {told['last'][:19]}Z"
    if event == "started":
        return f"{at} training: {told['reason']}"
    if event == "failed":
        return f"{at} failed, the next one comes: {told['message']} ({told['code']})"
    if event == "pruned":
        return f"{at} removed, for newer ones came: {', '.join(told['removed'])}"
    way = f" ({told['gave_way_s']:g} s of it gave way to others)" if told["gave_way_s"] else ""
    took = f"{told['took_s']:g} s{way}, {told['peak_mb']} MiB"
    return f"{at} {told['model_id']} ({told['serves']}), {took}; {told['why']}. {told['reason']}"
