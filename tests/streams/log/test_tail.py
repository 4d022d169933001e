"""Reading to the end, and single records, with standing consumers on a real broker."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import ConsumerStoppedError, KafkaConnectionError
from aiokafka.structs import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas.errors import BrokerUnavailable
from pml.streams.local.ports import free_port
from pml.streams.log.append import Appender, Outgoing
from pml.streams.log.tail import OffsetGone, Tails, spans
from tests.fixtures.patience import PATIENCE_S


async def fill(appender: Appender, topic: str, partition: int, count: int) -> None:
    for start in range(0, count, 500):
        values = [str(number).encode() for number in range(start, min(start + 500, count))]
        await appender.send(topic, partition, [Outgoing(b"k", value) for value in values])


async def offsets(tails: Tails, topic: str, partition: int, start: int, end: int) -> list[int]:
    return [record.offset async for records in tails.read(topic, partition, start, end) for record in records]


async def test_a_tail_is_read_once_and_in_order(appender: Appender, tails: Tails, topic: str) -> None:
    await fill(appender, topic, 0, 2_000)
    await fill(appender, topic, 1, 10)
    assert await tails.end(topic, 0) == 2_000
    assert await offsets(tails, topic, 0, 700, 2_000) == list(range(700, 2_000))
    assert await offsets(tails, topic, 0, 5, 9) == [5, 6, 7, 8]
    assert await offsets(tails, topic, 1, 0, 10) == list(range(10))
    assert await offsets(tails, topic, 0, 2_000, 2_000) == []
    assert await tails.ends([(topic, 0), (topic, 1)]) == {(topic, 0): 2_000, (topic, 1): 10}


async def test_more_readers_than_consumers_take_turns(appender: Appender, tails: Tails, topic: str) -> None:
    await fill(appender, topic, 0, 100)
    read = await asyncio.gather(*(offsets(tails, topic, 0, start, 100) for start in range(8)))
    assert read == [list(range(start, 100)) for start in range(8)]


async def test_single_records_are_found_and_gone_ones_are_absent(
    appender: Appender, tails: Tails, topic: str, options: dict[str, Any]
) -> None:
    await fill(appender, topic, 0, 1_500)
    admin = AIOKafkaAdminClient(**options)
    await admin.start()
    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=3)})
    await admin.close()
    found = await tails.at(topic, 0, [2, 3, 1_400, 40, 1_499, 1_500, 99_999])
    assert {offset: record.value for offset, record in found.items()} == {
        3: b"3",
        40: b"40",
        1_400: b"1400",
        1_499: b"1499",
    }
    assert await tails.at(topic, 0, []) == {}
    with pytest.raises(OffsetGone):
        await offsets(tails, topic, 0, 0, 10)
    assert await offsets(tails, topic, 0, 3, 5) == [3, 4], "a reader that met an error is replaced"


async def test_an_end_that_nobody_wrote_is_given_up(tails: Tails, topic: str, appender: Appender) -> None:
    await fill(appender, topic, 0, 1)
    tails._silence_s = 0.6
    with pytest.raises(BrokerUnavailable, match="up to 5"):
        await offsets(tails, topic, 0, 0, 5)


class Failing:
    """A consumer that fails and takes its time to stop; stopped, it says so."""

    def __init__(self, fails: bool) -> None:
        self.fails, self.closed, self.stopping, self.stopped = fails, False, asyncio.Event(), asyncio.Event()

    async def start(self) -> None: ...

    def assignment(self) -> list[Any]:
        return []

    def pause(self, *_: Any) -> None: ...

    async def end_offsets(self, pairs: Any) -> dict[Any, int]:
        if self.closed:
            raise ConsumerStoppedError
        if self.fails:
            raise KafkaConnectionError("gone")
        return dict.fromkeys(pairs, 1)

    async def stop(self) -> None:
        self.closed = True
        self.stopping.set()
        if self.fails:
            await self.stopped.wait()


async def test_a_reader_that_is_cut_off_while_it_closes_is_not_used_again() -> None:
    made: list[Failing] = []

    def new(**_: Any) -> Failing:
        made.append(Failing(fails=not made))
        return made[-1]

    tails = Tails({}, consumers=1, new_consumer=new)
    await tails.start()
    reading = asyncio.create_task(tails.end("t", 0))
    await asyncio.wait_for(made[0].stopping.wait(), PATIENCE_S)
    reading.cancel()
    await asyncio.wait({reading})
    made[0].stopped.set()
    assert await tails.end("t", 0) == 1
    assert len(made) == 2
    await tails.stop()


async def test_no_broker_is_an_error_that_says_so() -> None:
    tails = Tails({"bootstrap_servers": f"127.0.0.1:{free_port()}"}, silence_s=5)
    with pytest.raises(BrokerUnavailable):
        await tails.start()
    await tails.stop()


@given(st.lists(st.integers(0, 3_000), unique=True), st.integers(1, 600))
def test_spans_cover_what_is_wanted_and_little_else(wanted: list[int], gap: int) -> None:
    wanted = sorted(wanted)
    ranges = spans(wanted, gap)
    assert all(any(start <= offset < end for start, end in ranges) for offset in wanted)
    assert all(start in wanted and end - 1 in wanted for start, end in ranges)
    assert all(after - end >= gap for (_, end), (after, _) in itertools.pairwise(ranges))
