"""A training set as arrays: whole columns as ClickHouse writes them, no Python object a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pml.clickhouse.client import Limits, Store
from pml.clickhouse.training.columns import (
    CALL_WORDS,
    TRACE_WORDS,
    Column,
    call_columns,
    columns_sql,
    cut_sql,
    record_dtype,
    snapshot_sql,
    trace_columns,
    words_sql,
)
from pml.clickhouse.training.outcome_score import SCORED, OutcomeScore
from pml.clickhouse.training.selection import Selection
from pml.processors.learning.packed_texts import text_array
from pml.processors.learning.time_cut import first_late
from pml.schemas.errors import StoreUnavailable

# A run that is tried again while it is read changes what was selected; that is rare and short.
TRIES = 3
# A training set is read whole: without the limits of a query of a person, but not without an end, and by one
# thread: the pipeline asks and writes meanwhile. Some millions of calls fit into this memory.
LIMITS = Limits(rows=0, time_s=3600, memory_bytes=2 << 30, result_bytes=0, threads=1)

Arrays = dict[str, NDArray[Any]]
Told = Callable[[int], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the selected traces; two states are the same where this is."""

    traces: int
    calls: int
    last_at: str
    sum: int
    widths: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pinned:
    """Traces that go on to be the same: `selection` ends after the last of them, `snapshot` is of them.

    `cuts` say where `validation_from` and `test_from` are in a split by time, RFC 3339.
    """

    selection: Selection
    snapshot: Snapshot
    cuts: Mapping[str, str] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        """For the queries of a training set."""
        return {**self.selection.parameters(), **self.cuts}


def read_arrays(
    store: Store,
    selection: Selection,
    told: Told = lambda _: None,
    *,
    outcome: OutcomeScore | None = None,
) -> Arrays:
    """The columns of a training set (docs/guide/training-set.md), those of traces and those of calls.

    Trace i has the calls `offsets[i]` to `offsets[i + 1]`. A column of words has numbers; `<name>_words` is
    what they stand for, each as long as it is (StringDType). Runs that end while this reads are not in it.

    Args:
        told: called with the bytes of each piece that was read.
        outcome: adds `scored`, int8 of each trace: what this score says of it.

    Raises:
        StoreUnavailable: the traces changed each time they were read.
        QueryError: ClickHouse refuses; the message says why.
    """
    return read_pinned(store, selection, lambda pinned: read_columns(store, pinned, told, outcome))[1]


def read_pinned(store: Store, selection: Selection, read: Callable[[Pinned], T]) -> tuple[Pinned, T]:
    """What is read, and of which traces: those that are there when it begins, whatever ends meanwhile.

    Args:
        read: is asked again where the traces changed under it.

    Raises:
        StoreUnavailable: the traces changed each time they were read.
        QueryError: ClickHouse refuses; the message says why.
    """
    for _ in range(TRIES):
        snapshot = take_snapshot(store, selection)
        fixed = replace(selection, until=_end(selection, snapshot))
        pinned = Pinned(fixed, snapshot, _cuts(store, fixed, snapshot.traces))
        found = read(pinned)
        if take_snapshot(store, fixed) == snapshot:
            return pinned, found
    raise StoreUnavailable("the traces changed while they were read; choose an earlier --until")


def read_columns(store: Store, pinned: Pinned, told: Told, outcome: OutcomeScore | None = None) -> Arrays:
    """The columns of `read_arrays`, of traces that were pinned.

    Raises:
        StoreUnavailable, QueryError
    """
    selection, (session, run) = pinned.selection, pinned.snapshot.widths
    of_traces = trace_columns({"session_id": session, "run_id": run})
    parameters = pinned.parameters()
    if outcome is not None:
        of_traces[SCORED] = outcome.column()
    scoring = {} if outcome is None else outcome.parameters()
    traces_query = columns_sql(of_traces, selection.split, calls=False)
    traces = _columns(store, traces_query, parameters | scoring, of_traces, told)
    of_calls = call_columns()
    calls = _columns(store, columns_sql(of_calls, calls=True), parameters, of_calls, told)
    offsets = np.concatenate(([0], np.cumsum(traces.pop("calls"))))
    return {**traces, "offsets": offsets, **calls, **_vocabularies(store, selection)}


def take_snapshot(store: Store, selection: Selection) -> Snapshot:
    """What is there now.

    Raises:
        StoreUnavailable, QueryError
    """
    row = store.query(snapshot_sql(), selection.parameters(), LIMITS).rows[0]
    traces, calls, last_at, total, session_width, run_width = row
    widths = (max(1, int(session_width)), max(1, int(run_width)))
    return Snapshot(int(traces), int(calls), str(last_at), int(total), widths)


def count_traces(store: Store, tenant: str, since: str) -> int:
    """How many runs of a tenant ended at or after `since` (RFC 3339).

    Raises:
        StoreUnavailable, QueryError
    """
    # Of the runs, each of which is one trace: the view reads what all calls of all time gave to count them.
    sql = (
        "SELECT count() FROM runs WHERE status IN ('completed', 'failed', 'aborted') "
        "AND tenant = {tenant:String} AND ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')"
    )
    counted = replace(LIMITS, time_s=60)
    return int(store.query(sql, {"tenant": tenant, "since": since}, counted).rows[0][0])


def _columns(
    store: Store, sql: str, parameters: Mapping[str, Any], columns: Mapping[str, Column], told: Told
) -> Arrays:
    dtype = record_dtype(columns)
    read = bytearray()
    with store.stream(sql, "RowBinary", parameters, LIMITS) as pieces:
        for piece in pieces:
            read += piece
            told(len(piece))
    rows = np.frombuffer(read, dtype=dtype)
    return {name: np.ascontiguousarray(rows[name]) for name in columns}


def _vocabularies(store: Store, selection: Selection) -> Arrays:
    """All by one query: most of what it costs is to plan the view, and each would read all traces again."""
    found = store.query(words_sql(), selection.parameters(), LIMITS).rows[0]
    names = [f"{name}_words" for name in (*TRACE_WORDS, *CALL_WORDS)]
    return {name: text_array(words) for name, words in zip(names, found, strict=True)}


def _cuts(store: Store, selection: Selection, traces: int) -> dict[str, str]:
    if selection.split != "time" or traces == 0:
        return {}
    late = {"validation_from": selection.validation + selection.test, "test_from": selection.test}
    return {name: _cut(store, selection, first_late(traces, share)) for name, share in late.items() if share}


def _cut(store: Store, selection: Selection, place: int) -> str:
    return str(store.query(cut_sql(), {**selection.parameters(), "place": place}, LIMITS).rows[0][0])


def _end(selection: Selection, snapshot: Snapshot) -> str:
    """The first moment after all that there is, RFC 3339 in UTC; nothing that ends later is read."""
    if snapshot.traces == 0:
        return min(selection.since, selection.until)  # nothing stays nothing, whatever ends later
    moment = np.datetime64(snapshot.last_at.removesuffix("Z"), "us") + np.timedelta64(1, "us")
    return f"{moment}Z"
