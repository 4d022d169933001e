"""ClickHouse beside the log: each counted event once, and views that say what the log says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from pml.clickhouse.client import Limits, Store
from pml.schemas.events import Event
from pml.streams.connection import store_url
from tests.drills.workshop import Workshop
from tests.fixtures.patience import PATIENCE_S

ROWS_MAX = Limits(rows=1_000_000)
ENDS = {"run.completed": "completed", "run.failed": "failed", "run.aborted": "aborted"}
ATTEMPTS = {"task.completed", "task.failed", "task.unknown", "task.skipped"}
SETTLED = {"done": "completed", "not_done": "failed"}
QUERIES = {
    "runs": "SELECT tenant, session_id, epoch, run_id, status FROM runs",
    "tasks": "SELECT partition, log_offset, run_id, task_id, attempt, status, served_by FROM tasks",
    "speculations": "SELECT partition, log_offset, run_id, call_id, fate, reason FROM speculations",
}
Row = tuple[Any, ...]


async def differences(workshop: Workshop, events: Iterable[tuple[int, Event]]) -> dict[str, list[str]]:
    """By view, rows that only the log or only ClickHouse has; events come with their partition."""
    known = list(events)
    wanted = {"runs": _runs(known), "tasks": _tasks(known), "speculations": _speculations(known)}
    found = {name: await asyncio.to_thread(_rows, workshop, query) for name, query in QUERIES.items()}
    return {name: _differ(wanted[name], found[name]) for name in QUERIES}


def _rows(workshop: Workshop, query: str) -> list[Row]:
    settings = workshop.settings
    with Store.connect(
        store_url(settings), settings.clickhouse.database, answer_timeout_s=PATIENCE_S
    ) as store:
        return [tuple(row) for row in store.query(query, limits=ROWS_MAX).rows]


def _differ(wanted: list[Row], found: list[Row]) -> list[str]:
    twice = len(found) - len(set(found))
    lines = [f"{row} is missing" for row in sorted(set(wanted) - set(found), key=repr)]
    lines += [f"{row} is too much" for row in sorted(set(found) - set(wanted), key=repr)]
    return lines + ([f"{twice} rows are there twice"] if twice else [])


def _runs(events: list[tuple[int, Event]]) -> list[Row]:
    """The newest status of each run, which has ended."""
    last: dict[Row, str] = {}
    for _, event in events:
        if event.type in ENDS:
            last[event.tenant, event.session_id, event.epoch, event.run_id] = ENDS[event.type]
    return [(*run, status) for run, status in last.items()]


def _tasks(events: list[tuple[int, Event]]) -> list[Row]:
    """One row an attempt: where somebody settled it, at the place where that was said."""
    found: list[Row] = []
    unknown: dict[Row, Row] = {}
    for partition, event in events:
        data: Any = event.data
        place = (partition, event.offset, event.run_id)
        if event.type in ATTEMPTS:
            status = event.type.removeprefix("task.")
            attempt = getattr(data, "attempt", 0)
            row = (*place, data.task_id, attempt, status, getattr(data, "served_by", ""))
            found.append(row)
            if status == "unknown":
                unknown[_attempt(event)] = row
        elif event.type == "task.resolved" and data.resolution in SETTLED:
            doubted = unknown.pop(_attempt(event))
            found.remove(doubted)
            found.append((*place, data.task_id, data.attempt, SETTLED[data.resolution], doubted[-1]))
    return found


def _attempt(event: Event) -> Row:
    data: Any = event.data
    return event.tenant, event.session_id, event.epoch, event.run_id, data.task_id, data.attempt


def _speculations(events: list[tuple[int, Event]]) -> list[Row]:
    return [
        (partition, event.offset, event.run_id, data.call_id, data.fate, data.reason or "")
        for partition, event in events
        if event.type == "speculation.ended" and (data := _data(event))
    ]


def _data(event: Event) -> Any:
    return event.data
