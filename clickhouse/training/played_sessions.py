"""Sessions as they went on, with every call of every run and its time: what a backtest is held against."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from pml.clickhouse.client import Store
from pml.clickhouse.training.session_values import Stretch, json_value, latest_runs
from pml.processors.learning.scene import Past
from pml.processors.speculation.played import PlayedCall, PlayedRun

# The same for a tool that no server of its own has.
_OWN_SERVER = "pml:"


def read_played_sessions(
    store: Store, stretch: Stretch, only: Set[tuple[str, int]] | None = None
) -> tuple[tuple[PlayedRun, ...], ...]:
    """The sessions in the order of their first runs; of each the runs, as they ended.

    Args:
        only: id and epoch of those that are wanted; None: all.

    Raises:
        StoreUnavailable, QueryError
    """
    sessions: dict[tuple[str, int], list[PlayedRun]] = {}
    for row in latest_runs(store, stretch):
        name = (str(row["session_id"]), int(row["epoch"]))
        if only is None or name in only:
            sessions.setdefault(name, []).append(_run(row))
    return tuple(map(tuple, sessions.values()))


def _run(row: Mapping[str, Any]) -> PlayedRun:
    calls = [(str(task[0]), _call(task)) for task in row["tasks"] if task[4]]
    return PlayedRun(
        element=_element(row, calls),
        request=str(row["request"]),
        started_ms=int(row["started_us"]) // 1_000,
        ended_ms=int(row["ended_us"]) // 1_000,
        calls=tuple(call for _, call in calls if not call.tool.startswith(_OWN_SERVER)),
    )


def _call(row: Any) -> PlayedCall:
    _, tool, arguments, result, _, tool_ms = row
    return PlayedCall(str(tool), _object(arguments), json_value(result), float(tool_ms))


def _element(row: Mapping[str, Any], calls: list[tuple[str, PlayedCall]]) -> Past | None:
    """What the run is to a model, as in `session_values`; None where it is nothing."""
    if len(calls) == 1:
        ((_, call),) = calls
        return Past(call.tool, call.arguments, call.result)
    if not calls or not row["capability_id"]:
        return None
    results = {name: call.result for name, call in calls if call.result is not None}
    return Past(row["capability_id"], _object(row["context"]), results)


def _object(text: str) -> dict[str, Any]:
    found = json_value(text)
    return found if isinstance(found, dict) else {}
