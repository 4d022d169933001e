"""Parts of Faust and aiokafka that are overridden or relied on: an upgrade that moves them fails here."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiokafka
import faust
import pytest
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.consumer import Consumer as BaseConsumer
from faust.transport.consumer import ThreadDelegateConsumer
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st
from mode import Service

from pml.streams import app as chunk_app
from pml.streams.app import (
    FETCH_WAIT_MS,
    ChunkApp,
    ChunkConsumer,
    ChunkThread,
    ChunkTransport,
    Fetched,
    IdempotentProducer,
    chunk_topic,
    cut_chunks,
    make_app,
    restored,
    run_app,
)
from pml.streams.long_polls import LongPolls
from pml.streams.settings import Settings
from tests.fixtures.patience import PATIENCE_S


def names(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def source(function: Any) -> str:
    return inspect.getsource(function)


@pytest.fixture
def app(tmp_path: Path) -> ChunkApp:
    settings = Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": "127.0.0.1:1"})
    return make_app("orchestrator", settings, instance_id="worker-1")


@pytest.fixture
async def ready(app: ChunkApp) -> AsyncIterator[ChunkApp]:
    """The app with a consumer that never starts; its thread's loop is ours to close."""
    yield app
    app.consumer._thread.thread_loop.close()


def test_the_versions_are_those_that_were_measured() -> None:
    assert faust.__version__ == "0.15.3"
    assert aiokafka.__version__.startswith("0.14.")


def test_what_is_overridden_is_there_with_the_same_parameters() -> None:
    overridden = {
        ChunkThread: (
            driver.AIOKafkaConsumerThread,
            ["_create_worker_consumer", "_seek_wait", "_fetch_records"],
        ),
        ChunkConsumer: (
            driver.Consumer,
            ["_new_consumer_thread", "getmany", "_new_offset", "_add_gap", "perform_seek"],
        ),
        IdempotentProducer: (driver.Producer, ["_settings_extra"]),
    }
    for ours, (theirs, methods) in overridden.items():
        for method in methods:
            assert method in vars(ours), method
            assert names(getattr(ours, method)) == names(getattr(theirs, method)), method
    assert {"Consumer", "Producer"} <= vars(driver.Transport).keys()


def test_what_is_called_is_there() -> None:
    assert names(BaseConsumer._wait_next_records) == ["self", "timeout"]
    assert names(driver.Consumer._to_message) == ["self", "tp", "record"]
    assert names(BaseConsumer._is_changelog_tp) == ["self", "tp"]
    assert names(driver.AIOKafkaConsumerThread.seek_wait) == ["self", "partitions"]
    assert names(Service.wait_first)[:2] == ["self", "coros"]
    assert "self._fetch_records" in source(driver.AIOKafkaConsumerThread.getmany)
    assert "self._seek_wait" in source(driver.AIOKafkaConsumerThread.seek_wait)
    assert {"pause_partitions", "resume_partitions", "assignment"} <= set(dir(driver.Consumer))
    assert "self._thread = self._new_consumer_thread()" in source(ThreadDelegateConsumer.__init__)
    for attribute in ("_acked", "_acked_index", "_read_offset"):
        assert f"self.{attribute}" in source(BaseConsumer.__init__)


def test_the_order_that_recovery_relies_on_is_still_faust_s() -> None:
    """Table restored, then our hook awaited, then the seek, then the flow."""
    completed = source(Recovery.on_recovery_completed)
    steps = ["on_rebalance_complete.send()", "consumer.perform_seek()", "consumer.resume_flow()"]
    places = [completed.index(step) for step in steps]
    assert places == sorted(places)
    restart = source(Recovery._restart_recovery.fun)
    assert restart.index("signal_recovery_end.wait()") < restart.index("self.on_recovery_completed")
    assert "self.tables.on_rebalance" in source(faust.App._on_partitions_assigned)
    assert "self.recovery.on_rebalance" in source(TableManager.on_rebalance)
    assert "consumer_generation_id = generation" in source(
        driver.ConsumerRebalanceListener.on_partitions_assigned
    )


def test_aiokafka_keeps_the_private_parts_that_are_touched() -> None:
    fetcher = source(aiokafka.AIOKafkaConsumer.start)
    assert "fetch_max_wait_ms=self._fetch_max_wait_ms" in fetcher
    assert "fetch_min_bytes=self._fetch_min_bytes" in fetcher
    assert "self._sender" in source(aiokafka.AIOKafkaProducer.__init__)
    assert inspect.iscoroutinefunction(aiokafka.producer.sender.Sender.close)
    assert "self._closed = True" in source(aiokafka.AIOKafkaProducer.stop)
    builder = aiokafka.producer.message_accumulator.BatchBuilder
    assert names(builder.append) == ["self", "timestamp", "key", "value", "headers"]


def test_the_app_is_set_up_as_it_was_measured(app: ChunkApp) -> None:
    conf = app.conf
    assert conf.id == "pml.orchestrator"
    assert isinstance(app.transport, ChunkTransport)
    assert (conf.web_enabled, conf.topic_disable_leader, conf.stream_wait_empty) == (False, True, False)
    assert (conf.broker_session_timeout, conf.broker_heartbeat_interval) == (10, 2)
    assert (conf.broker_commit_interval, conf.consumer_group_instance_id) == (0.5, "worker-1")
    assert str(conf.datadir).endswith("faust/orchestrator")
    assert conf.processing_guarantee == faust.types.enums.ProcessingGuarantee.AT_LEAST_ONCE


async def test_the_consumer_s_thread_polls_briefly(ready: ChunkApp) -> None:
    ready.finalize()
    thread = ready.consumer._thread
    assert isinstance(thread, ChunkThread)
    consumer = thread._create_worker_consumer(ready.transport)
    assert (consumer._fetch_min_bytes, consumer._fetch_max_wait_ms) == (1, FETCH_WAIT_MS)
    await consumer.stop()
    assert ready.producer._settings_extra() == {"acks": "all", "enable_idempotence": True}


@pytest.mark.parametrize(("min_bytes", "long"), [(1, True), (65_536, False)])
async def test_a_consumer_that_gathers_nothing_polls_long_when_idle(
    ready: ChunkApp, monkeypatch: pytest.MonkeyPatch, min_bytes: int, long: bool
) -> None:
    async def start(thread: ChunkThread) -> None:
        fetcher = SimpleNamespace(_fetch_max_wait_ms=FETCH_WAIT_MS, _get_actions_per_node=str)
        thread._consumer = SimpleNamespace(_fetcher=fetcher)

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "on_start", start)
    ready.delivery = replace(ready.delivery, fetch_min_bytes=min_bytes)
    thread = ready.consumer._thread
    await thread.on_start()
    planned_by = getattr(thread._consumer._fetcher._get_actions_per_node, "__self__", None)
    assert isinstance(planned_by, LongPolls) == long


def records(*offsets: int, size: int = 1) -> list[Any]:
    return [
        SimpleNamespace(
            topic="in",
            partition=0,
            offset=offset,
            timestamp=1_000,
            timestamp_type=1,
            headers=(),
            key=b"k",
            value=b"v" * size,
            checksum=None,
            serialized_key_size=1,
            serialized_value_size=size,
        )
        for offset in offsets
    ]


async def test_agents_get_whole_chunks_and_tables_get_single_records(ready: ChunkApp) -> None:
    table = ready.Table("t", key_type=bytes, value_type=bytes, partitions=12)
    agent_topic = chunk_topic(ready, "in")
    ready.finalize()
    inputs, changelog = TP("in", 0), TP(table.changelog_topic.get_topic_name(), 0)
    found = {inputs: records(*range(450)), changelog: records(7, 8)}
    delivered = list(ready.consumer._messages(found))
    chunks = [message for tp, message in delivered if tp == inputs]
    assert [len(message.value) for message in chunks] == [200, 200, 50]
    assert [message.offset for message in chunks] == [199, 399, 449]
    assert [message.offset for tp, message in delivered if tp == changelog] == [7, 8]
    event = await agent_topic.decode(chunks[0], propagate=True)
    assert event.value is chunks[0].value


async def test_what_was_fetched_before_a_seek_is_passed_over(ready: ChunkApp) -> None:
    """A fetch may outlast a rebalance: what it brings is from before the seek and is read again."""
    ready.finalize()
    consumer, tp = ready.consumer, TP("in", 0)
    consumer._sought_generation = ready.consumer_generation_id
    fetched = Fetched({tp: records(0)})
    fetched.seeks = {tp: consumer._thread.seeks[tp]}
    assert consumer._is_current(tp, fetched)
    consumer._thread.seeks.update([tp])
    assert not consumer._is_current(tp, fetched)
    fetched.seeks = {tp: consumer._thread.seeks[tp]}
    ready.consumer_generation_id = 7
    assert not consumer._is_current(tp, fetched), "inputs wait until the rebalance has sought them"


async def test_what_is_fetched_before_the_seek_is_acknowledged_is_kept(
    ready: ChunkApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread reads on from the new position at once, and reads it only once."""
    ready.finalize()
    consumer, tp = ready.consumer, TP("in", 0)
    ready.consumer_generation_id, ready.rebalancing = 7, True
    consumer.flow_active = True
    delivered: list[Any] = []
    before, after = Fetched({tp: records(4)}), Fetched({tp: records(5)})

    async def delivering(fetched: Fetched) -> None:
        delivered.extend([fetched] if await consumer._is_wanted(tp, fetched) else [])

    async def seek_wait(partitions: Any) -> None:
        before.seeks = dict(consumer._thread.seeks) | {tp: 0}
        tasks.append(asyncio.create_task(delivering(before)))
        await asyncio.sleep(0)
        consumer._thread.seeks.update(partitions.keys())
        after.seeks = dict(consumer._thread.seeks)
        tasks.append(asyncio.create_task(delivering(after)))
        await asyncio.sleep(0)

    async def nothing() -> dict[Any, Any]:
        return {}

    tasks: list[asyncio.Task[None]] = []
    monkeypatch.setattr(consumer, "seek_to_committed", nothing)
    monkeypatch.setattr(consumer, "assignment", lambda: {tp})
    monkeypatch.setattr(consumer._thread, "seek_wait", seek_wait)
    await consumer.perform_seek()
    ready.rebalancing = False
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE_S)
    assert delivered == [after]


async def test_a_seek_that_fails_lets_no_input_through(
    ready: ChunkApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.finalize()
    consumer, tp = ready.consumer, TP("in", 0)

    async def fails(_: Any) -> None:
        raise TimeoutError

    async def nothing() -> dict[Any, Any]:
        return {}

    monkeypatch.setattr(consumer, "seek_to_committed", nothing)
    monkeypatch.setattr(consumer, "assignment", lambda: {tp})
    monkeypatch.setattr(consumer._thread, "seek_wait", fails)
    with pytest.raises(TimeoutError):
        await consumer.perform_seek()
    fetched = Fetched({tp: records(0)})
    fetched.seeks = {tp: consumer._thread.seeks[tp]}
    assert not consumer._is_current(tp, fetched)


async def test_a_partition_that_is_lost_while_it_is_delivered_ends_nobody(
    ready: ChunkApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.finalize()
    consumer, tp = ready.consumer, TP("in", 0)

    def lost(_: TP) -> int:
        raise AssertionError("Partition is not assigned")

    monkeypatch.setattr(consumer._thread, "highwater", lost)
    consumer._note_end(tp)
    assert tp not in ready.monitor.tp_end_offsets
    monkeypatch.setattr(consumer._thread, "highwater", lambda _: 7)
    consumer._note_end(tp)
    assert ready.monitor.tp_end_offsets[tp] == 7


async def test_commits_follow_the_highest_acknowledged_chunk(ready: ChunkApp) -> None:
    ready.finalize()
    consumer, tp = ready.consumer, TP("in", 0)
    assert consumer._new_offset(tp) is None
    consumer._acked[tp] += [199, 399]
    consumer._acked_index[tp] |= {199, 399}
    assert consumer._new_offset(tp) == 400
    assert consumer._new_offset(tp) is None
    await consumer._add_gap(tp, 1, 199)
    assert not consumer._gap[tp]


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 7), st.integers(1, 500))
def test_chunks_keep_every_record_in_order_and_their_limits(
    sizes: list[int], limit: int, limit_bytes: int
) -> None:
    found = [record for index, size in enumerate(sizes) for record in records(index, size=size)]
    chunks = list(cut_chunks(found, limit, limit_bytes))
    assert [record for chunk in chunks for record in chunk] == found
    for chunk in chunks:
        assert 1 <= len(chunk) <= limit
        assert len(chunk) == 1 or sum(len(record.value) + 1 for record in chunk) <= limit_bytes


async def test_what_was_read_of_changelogs_is_told_while_they_are_restored(ready: ChunkApp) -> None:
    ready.finalize()
    assert restored(ready) == 0
    ready.tables.recovery.active_offsets.update({TP("t-changelog", 0): 7, TP("t-changelog", 1): 5})
    assert restored(ready) == 12
    assert "offsets[tp] = offset" in source(Recovery._slurp_changelogs.fun)


async def test_the_app_ends_with_the_reason_of_its_failure(app: ChunkApp) -> None:
    from pml.streams.app import run_app

    failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failure.set_exception(RuntimeError("the reason"))

    async def started() -> None:
        return None

    app.start, app.stop = started, started
    with pytest.raises(RuntimeError, match="the reason"):
        await run_app(app, asyncio.Event(), failure)


class Stand:
    """What `run_app` uses of an app; its stop takes `stop_s` and ends with `error`."""

    conf = SimpleNamespace(id="stand")

    def __init__(self, stop_s: float, error: Exception | None = None) -> None:
        self.stop_s, self.error, self.stopped = stop_s, error, False

    def finalize(self) -> None:
        pass

    async def start(self) -> None:
        pass

    async def wait_first(self, waiting: Any) -> None:
        await waiting

    async def stop(self) -> None:
        await asyncio.sleep(self.stop_s)
        if self.error is not None:
            raise self.error
        self.stopped = True


def failed(message: str) -> asyncio.Future[None]:
    failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failure.set_exception(RuntimeError(message))
    return failure


@pytest.mark.parametrize(
    "app", [Stand(3600), Stand(0), Stand(0, ValueError("no"))], ids=["hangs", "ends", "fails"]
)
async def test_a_failed_app_is_left_in_time_and_its_failure_told(
    app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_app, "LEAVE_TIMEOUT_S", 0.05)
    async with asyncio.timeout(5):
        with pytest.raises(RuntimeError, match="lost"):
            await run_app(app, asyncio.Event(), failed("lost"))
    assert app.stopped == (app.stop_s == 0 and app.error is None)


async def test_an_app_that_is_told_to_stop_gets_the_time_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_app, "LEAVE_TIMEOUT_S", 0.01)
    app: Any = Stand(0.1)
    stop = asyncio.Event()
    stop.set()
    await run_app(app, stop)
    assert app.stopped
