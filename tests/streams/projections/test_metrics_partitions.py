"""What the metrics role says and writes of a partition that it loses meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP

from pml.schemas.errors import UndecodableRecord
from pml.streams.health import Health
from pml.streams.projections import role as module
from pml.streams.projections.metrics import Folded, PartitionMetrics
from pml.streams.projections.role import Metrics
from pml.streams.projections.table import key_of
from pml.streams.telemetry import CONSUMER_LAG
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.settings import folder_settings

TABLE_OF_ANOTHER = b"what the new owner wrote"


class Table(dict[bytes, bytes]):
    """As Faust's: what lies in it is also under `data.data`."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(data=self)


@pytest.fixture
def metrics(tmp_path: Path) -> Metrics:
    settings = folder_settings(tmp_path, "127.0.0.1:1", "lost")
    metrics = Metrics(settings, Health(tmp_path, "metrics"))
    metrics._table, metrics._producer = cast(Any, Table()), cast(Any, None)
    return metrics


async def own(metrics: Metrics, *partitions: int) -> None:
    """A rebalance."""
    app = cast(Any, None)
    await metrics._on_revoked(app, set())
    await metrics._on_assigned(app, {TP(metrics._topic, partition) for partition in partitions})


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


class Ends:
    """A consumer that is asked for the ends of partitions, and takes its time."""

    def __init__(self) -> None:
        self.asked: list[set[int]] = []
        self.answer = asyncio.Event()

    async def end_offsets(self, pairs: Any) -> dict[Any, int]:
        self.asked.append({pair.partition for pair in pairs})
        await self.answer.wait()
        return dict.fromkeys(pairs, 10)


async def test_nothing_is_told_of_a_partition_that_is_lost_while_its_end_is_asked_for(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TELL_S", 0.001)
    ends = Ends()
    await own(metrics, 0, 1)
    telling = asyncio.create_task(metrics._tell_often(ends))
    await eventually(lambda: len(ends.asked) == 1)
    await own(metrics, 0)
    monkeypatch.setattr(module, "TELL_S", PATIENCE_S)
    ends.answer.set()
    await eventually(lambda: "lag" in metrics._health.record.facts)
    telling.cancel()
    await asyncio.wait({telling})
    assert (ends.asked, metrics._health.record.facts["lag"]) == ([{0, 1}], 10)
    samples = [sample for family in CONSUMER_LAG.collect() for sample in family.samples]
    told = {s.labels["partition"]: s.value for s in samples if s.labels["topic"] == metrics._topic}
    assert told == {"0": 10}


async def test_what_was_folded_of_a_partition_that_is_lost_is_not_written(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    burying, buried = asyncio.Event(), asyncio.Event()

    async def bury(*_: Any) -> None:
        burying.set()
        await buried.wait()

    def fold(self: PartitionMetrics, records: list[Any]) -> Folded:
        return Folded([], [(records[-1], UndecodableRecord("no JSON"))])

    monkeypatch.setattr(module, "dead_letter", bury)
    monkeypatch.setattr(PartitionMetrics, "fold", fold)
    await own(metrics, 0)
    folding = asyncio.create_task(metrics._fold_chunk(0, [SimpleNamespace(offset=7)]))
    await asyncio.wait_for(burying.wait(), PATIENCE_S)
    await own(metrics, 1)
    metrics._table[key_of(0)] = TABLE_OF_ANOTHER
    buried.set()
    await folding
    assert metrics._table[key_of(0)] == TABLE_OF_ANOTHER
