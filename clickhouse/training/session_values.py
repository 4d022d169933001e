"""Sessions with the values of their runs: what arguments of the next call are learned from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import orjson

from pml.clickhouse.client import Limits, Store
from pml.clickhouse.training.selection import EARLIEST, LATEST
from pml.processors.learning.known_sessions import KnownSession
from pml.processors.learning.scene import Past
from pml.schemas.errors import QueryError

# Nobody looks for an argument in a longer one; it is taken as one that is not known.
VALUE_BYTES_MAX = 65_536
RUNS_MAX = 20_000
LIMITS = Limits(rows=RUNS_MAX, time_s=120, result_bytes=512 << 20)
# Codes of ClickHouse: the time and the memory of a query, the bytes of a result.
TOO_MUCH = frozenset({159, 241, 396})


@dataclass(frozen=True, slots=True)
class Stretch:
    """The latest runs of a tenant that ended in [since, until), RFC 3339; at most so many."""

    tenant: str
    since: str = EARLIEST
    until: str = LATEST
    most: int = RUNS_MAX


def read_session_values(store: Store, stretch: Stretch) -> tuple[KnownSession, ...]:
    """The sessions in the order of their first runs; of each the runs, as they ended.

    Raises:
        StoreUnavailable, QueryError
    """
    sessions: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in latest_runs(store, stretch):
        sessions.setdefault((row["session_id"], row["epoch"]), []).append(row)
    return tuple(known for runs in sessions.values() if (known := _session(runs)).elements)


def count_runs(store: Store, stretch: Stretch) -> int:
    """How many runs a stretch has, also those that are too many to be read.

    Raises:
        StoreUnavailable, QueryError
    """
    sql = (
        "SELECT count() FROM runs WHERE tenant = {tenant:String} AND session_id != run_id "
        "AND status IN ('completed', 'failed', 'aborted') "
        "AND ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC') "
        "AND ended_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')"
    )
    given = {name: getattr(stretch, name) for name in ("tenant", "since", "until")}
    return int(store.query(sql, given, LIMITS).rows[0][0])


def latest_runs(store: Store, stretch: Stretch) -> list[dict[str, Any]]:
    """The rows of `latest_runs.sql` as they ended: of fewer runs where the values of all are too much.

    A row's `tasks` are (id, tool, arguments, result, whether it was called, ms).

    Raises:
        StoreUnavailable, QueryError
    """
    most = min(stretch.most, RUNS_MAX)
    while True:
        try:
            rows = store.query(_sql(), _given(stretch, most), LIMITS).as_dicts()
        except QueryError as error:
            # What was read yesterday must not end a training for good because results have grown.
            if error.details.get("number") not in TOO_MUCH or most <= 1:
                raise
            most //= 2
        else:
            return sorted(map(_settled, rows), key=lambda row: (row["ended_us"], row["log_offset"]))


def _given(stretch: Stretch, most: int) -> dict[str, Any]:
    return {**asdict(stretch), "most": most, "value_bytes": VALUE_BYTES_MAX}


def _sql() -> str:
    return (files("pml.clickhouse") / "training" / "latest_runs.sql").read_text("utf-8")


def _settled(row: dict[str, Any]) -> dict[str, Any]:
    """Of a task that ended more than once, its last end."""
    last = {task[0]: number for number, task in enumerate(row["tasks"])}
    return {**row, "tasks": [row["tasks"][number] for number in sorted(last.values())]}


def _session(runs: Sequence[dict[str, Any]]) -> KnownSession:
    """What is visible before a run is what the one before it told, before the first what a client said with
    it; it ended with its last run that did something, whether that has a name or not, as its columns say
    (`session_columns.py`)."""
    ended_us = [int(row["ended_us"]) for row in runs if row["tasks"]]
    known = [(element, row) for row in runs if (element := element_of(row)) is not None]
    told = [str(row["request"]) for _, row in known]
    return KnownSession(
        elements=tuple(element for element, _ in known),
        texts=(str(known[0][1]["wanted"]), *told[:-1]) if known else (),
        ended_ms=ended_us[-1] // 1_000 if ended_us else 0,
        name=(str(runs[0]["session_id"]), int(runs[0]["epoch"])),
        end_text=told[-1] if told else "",
        ends_ms=tuple(int(row["ended_us"]) // 1_000 for _, row in known),
    )


def element_of(row: Mapping[str, Any]) -> Past | None:
    """What a run is to a model; None where nothing can be learned of it: no task, or of no capability.

    All its tasks count, as in the session itself (`processors/workflow/elements.py`): what has no result
    failed, or was skipped.
    """
    tasks = [tuple(task) for task in row["tasks"]]
    if len(tasks) == 1:
        _, tool, arguments, result, *_ = tasks[0]
        return Past(tool, json_object(arguments), json_value(result), _context(row["context"]))
    if not tasks or not row["capability_id"]:
        return None
    return Past(row["capability_id"], json_object(row["context"]), _results(tasks))


def _context(text: str) -> dict[str, Any]:
    """What was told beside a call; what was too large for the log says nothing of its values."""
    found = json_object(text)
    return {} if "_truncated" in found else found


def _results(tasks: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    return {task_id: json_value(result) for task_id, _, _, result, *_ in tasks if result}


def json_object(text: str) -> dict[str, Any]:
    """What is written there; empty where it is no object."""
    found = json_value(text)
    return found if isinstance(found, dict) else {}


def json_value(text: str) -> Any:
    """What is written there; None where nothing is, or it is no JSON."""
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
