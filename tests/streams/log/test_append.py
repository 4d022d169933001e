"""Appending whole batches where they are expected, on a real broker."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas.errors import BrokerUnavailable
from pml.schemas.topics import LOG_BYTES_MAX
from pml.streams.local.ports import free_port
from pml.streams.log.append import Appender, EventsTooLarge, InDoubt, Outgoing, Overtaken, cut
from tests.fixtures.patience import PATIENCE_S
from tests.streams.log.conftest import LIMITS, everything, made_topic

MIB = 1024 * 1024


def records(*values: bytes) -> list[Outgoing]:
    return [Outgoing(b"local/s", value, [("pml-offset", b"0")]) for value in values]


async def test_a_batch_lies_whole_where_it_was_expected(
    appender: Appender, options: dict[str, Any], topic: str
) -> None:
    await appender.append(topic, 0, 0, records(b"a", b"b"))
    await appender.append(topic, 0, 2, records(b"c"))
    await appender.append(topic, 1, 0, records(b"d"))
    lying = await everything(options, topic)
    assert [(record.offset, record.key, record.value) for record in lying] == [
        (0, b"local/s", b"a"),
        (1, b"local/s", b"b"),
        (2, b"local/s", b"c"),
    ]
    assert lying[0].headers == (("pml-offset", b"0"),)


async def test_an_overtaken_owner_is_told_where_its_batch_lies(
    appender: Appender, producing: dict[str, Any], topic: str
) -> None:
    other = Appender(producing)
    await other.append(topic, 0, 0, records(b"theirs"))
    await other.stop()
    with pytest.raises(Overtaken) as overtaken:
        await appender.append(topic, 0, 0, records(b"mine", b"too"))
    assert overtaken.value.details == {"expected": 0, "actual": 1}
    await appender.append(topic, 0, 3, records(b"next"))


async def test_owners_of_many_partitions_append_at_once(appender: Appender, topic: str) -> None:
    async def fill(partition: int) -> None:
        for base in range(0, 60, 3):
            await appender.append(topic, partition, base, records(b"x", b"y", b"z"))

    await asyncio.gather(fill(0), fill(1))


async def test_a_batch_of_several_mebibytes_is_one_batch(
    appender: Appender, options: dict[str, Any], topic: str
) -> None:
    await appender.append(topic, 0, 0, records(*[b"v" * MIB] * 8))
    assert len(await everything(options, topic)) == 8


async def test_events_that_fit_no_batch_are_not_sent(
    appender: Appender, options: dict[str, Any], topic: str
) -> None:
    with pytest.raises(EventsTooLarge):
        await appender.append(topic, 0, 0, records(*[b"v" * MIB] * 17))
    with pytest.raises(EventsTooLarge):
        await appender.append(topic, 0, 0, records(b"v" * LOG_BYTES_MAX))
    assert await everything(options, topic) == []
    await appender.append(topic, 0, 0, records(b"small"))


async def test_a_topic_with_a_lower_limit_refuses_and_the_next_append_succeeds(
    appender: Appender, options: dict[str, Any]
) -> None:
    """A refused batch leaves the producer's sequence numbers wrong for good: it has to be replaced."""
    topic = await made_topic(options, {**LIMITS, "max.message.bytes": "100000"})
    with pytest.raises(EventsTooLarge):
        await appender.append(topic, 0, 0, records(b"v" * 200_000))
    await appender.append(topic, 0, 0, records(b"small"))
    await appender.append(topic, 0, 1, records(b"small"))


class Mute(AIOKafkaProducer):  # type: ignore[misc]
    """The batch lands, however soon nobody waits for it any more, and its acknowledgement never comes."""

    async def send_batch(self, *args: Any, **options: Any) -> Any:
        landing = asyncio.create_task(self._landed(*args, **options))
        try:
            await asyncio.shield(landing)
        except asyncio.CancelledError:
            await landing
            raise
        return asyncio.get_running_loop().create_future()

    async def _landed(self, *args: Any, **options: Any) -> None:
        await (await super().send_batch(*args, **options))


class Failing(AIOKafkaProducer):  # type: ignore[misc]
    """The batch does not land."""

    async def send_batch(self, *args: Any, **options: Any) -> Any:
        raise KafkaTimeoutError


async def test_without_acknowledgement_the_append_is_in_doubt_and_the_producer_replaced(
    producing: dict[str, Any], options: dict[str, Any], topic: str
) -> None:
    made: list[Any] = []

    def producer(**values: Any) -> Any:
        made.append((Mute, Failing, AIOKafkaProducer)[len(made)](**values))
        return made[-1]

    appender = Appender(producing, timeout_s=3, new_producer=producer)
    with pytest.raises(InDoubt):
        await appender.append(topic, 0, 0, records(b"landed"))
    # The others must start in this time, and the last be acknowledged, on a busy machine too.
    appender._timeout_s = PATIENCE_S
    with pytest.raises(InDoubt, match="KafkaTimeoutError"):
        await appender.append(topic, 0, 1, records(b"lost"))
    await appender.append(topic, 0, 1, records(b"after"))
    await appender.stop()
    assert [record.value for record in await everything(options, topic)] == [b"landed", b"after"]
    assert [one._closed for one in made] == [True, True, True]


async def test_a_cancelled_append_leaves_no_producer_in_doubt(producing: dict[str, Any], topic: str) -> None:
    made: list[Any] = []

    def producer(**values: Any) -> Any:
        made.append((Mute if not made else AIOKafkaProducer)(**values))
        return made[-1]

    appender = Appender(producing, new_producer=producer)
    await appender.start()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(appender.append(topic, 0, 0, records(b"landed")), 0.3)
    await appender.append(topic, 0, 1, records(b"after"))
    await appender.stop()
    assert len(made) == 2


async def test_no_broker_is_an_error_that_says_so() -> None:
    appender = Appender({"bootstrap_servers": f"127.0.0.1:{free_port()}"}, timeout_s=5)
    with pytest.raises(BrokerUnavailable):
        await appender.start()
    await appender.stop()


@given(st.lists(st.integers(0, 500), max_size=40), st.integers(100, 900))
def test_batches_keep_order_and_limit(sizes: list[int], limit: int) -> None:
    wanted = [Outgoing(b"k", b"v" * size) for size in sizes]
    batches = list(cut(wanted, limit))
    assert [record for batch in batches for record in batch] == wanted
    assert all(len(batch) == 1 or sum(record.size for record in batch) <= limit for batch in batches)
    assert all(batches)


async def test_a_start_that_is_dropped_awaits_nothing() -> None:
    class Slow:
        async def start(self) -> None:
            await asyncio.sleep(60)

    starting = Appender({}, new_producer=lambda **_: Slow()).start()
    starting.send(None)
    starting.close()
    assert inspect.getcoroutinestate(starting) == inspect.CORO_CLOSED
