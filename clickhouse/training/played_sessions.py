"""Sessions as they went on, with every call of every run and its time: what a backtest is held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from pml.clickhouse.client import Store
from pml.clickhouse.training.session_values import Stretch, element_of, json_object, json_value, latest_runs
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
    return PlayedRun(
        element=element_of(row),
        request=str(row["request"]),
        started_ms=int(row["started_us"]) // 1_000,
        ended_ms=int(row["ended_us"]) // 1_000,
        calls=tuple(_calls(row["tasks"])),
    )


def _calls(tasks: Iterable[Any]) -> Iterator[PlayedCall]:
    """Those that were made: no skipped task was."""
    for _, tool, arguments, result, called, tool_ms in tasks:
        if called and not tool.startswith(_OWN_SERVER):
            yield PlayedCall(tool, json_object(arguments), json_value(result), float(tool_ms))
