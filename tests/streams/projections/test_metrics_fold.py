"""The fold of one partition, without a broker."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.speculation.metrics import Totals, summarise
from pml.schemas.codec import encode
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import EventData
from pml.streams.log.reader import event_headers
from pml.streams.projections.metrics import PartitionMetrics
from tests.log_writer import (
    event_of,
    run_completed,
    run_started,
    speculation_ended,
    task_completed,
    task_started,
)


@dataclass(frozen=True)
class Held:
    """A record as a consumer has it."""

    offset: int
    value: bytes | None
    headers: list[tuple[str, bytes]]
    key: bytes | None = b"local/s"


def record(offset: int, data: EventData, written_for: int | None = None) -> Held:
    place = offset if written_for is None else written_for
    event = event_of(data, offset, place, "2026-11-22T10:00:00.000000Z")
    return Held(offset, encode(event), event_headers(event))


FACTS: list[EventData] = [
    run_started(),
    task_started(),
    task_completed(speculable=True),
    task_completed(served_by="repeat", saved_ms=4.0),
    speculation_ended(),
    speculation_ended("discarded", "expired", tool_ms=7.0),
    run_completed(duration_ms=12),
]
LOGS = st.lists(st.tuples(st.sampled_from(FACTS), st.booleans()), max_size=30).map(
    lambda items: [
        record(offset, data, None if good else offset + 1) for offset, (data, good) in enumerate(items)
    ]
)


def folded(log: list[Held]) -> PartitionMetrics:
    metrics = PartitionMetrics()
    metrics.fold(log)
    return metrics


@given(LOGS, st.lists(st.integers(0, 30), max_size=8))
def test_chunks_and_repeated_deliveries_change_nothing(log: list[Held], cuts: list[int]) -> None:
    metrics, start = PartitionMetrics(), 0
    for cut in cuts:
        metrics.fold(log[max(0, start - 3) : cut])
        start = max(start, cut)
        metrics = PartitionMetrics.decode(metrics.encode())
    metrics.fold(log[max(0, start - 3) :])
    assert metrics == folded(log)


def test_what_each_event_adds() -> None:
    metrics = folded([record(offset, data) for offset, data in enumerate(FACTS)])
    summary = summarise(metrics.totals.tools.values())
    assert (summary.hits, summary.misses, summary.repeats, summary.wasted) == (1, 1, 1, 1)
    assert (summary.saved_ms, summary.wasted_ms) == (9.0, 7.0)
    assert metrics.totals.runs["completed"].duration_ms == 12
    assert metrics.offset == len(FACTS) - 1


def test_records_that_do_not_count_add_nothing_and_are_passed() -> None:
    metrics = folded([record(0, speculation_ended(), written_for=1), Held(1, b"garbage", [])])
    assert metrics.totals == Totals()
    assert metrics.offset == 1


@pytest.mark.parametrize(
    "value", [b"no json", b'{"type":"speculation.ended","data":{}}', b'{"type":"x"}', None]
)
def test_a_broken_record_between_good_ones_is_handed_out(value: bytes | None) -> None:
    broken = replace(record(1, speculation_ended()), value=value)
    metrics = PartitionMetrics()
    chunk = metrics.fold([record(0, speculation_ended()), broken, record(2, speculation_ended())])
    assert [(held.offset, error.code) for held, error in chunk.broken] == [(1, "UNDECODABLE")]
    assert summarise(metrics.totals.tools.values()).hits == 2


def test_an_event_of_a_newer_release_stops_the_fold_and_leaves_the_accounts() -> None:
    newer = replace(
        record(1, speculation_ended()), value=b'{"type":"speculation.ended","version":2,"data":{}}'
    )
    metrics = PartitionMetrics()
    with pytest.raises(LogCorrupted, match="version 2"):
        metrics.fold([record(0, speculation_ended()), newer])
    assert metrics == PartitionMetrics()


def test_a_hole_in_the_log_stops_the_fold() -> None:
    metrics = folded([record(5, speculation_ended())])
    with pytest.raises(LogCorrupted, match="offset 7 after 5"):
        metrics.fold([record(7, speculation_ended())])
    assert metrics.offset == 5
