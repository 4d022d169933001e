"""The embedded broker, for real: each of these starts Java, or looks at one that runs."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from pml.schemas.errors import ConfigurationError
from pml.streams.local import kafka as kafka_module
from pml.streams.local.kafka import BrokerInUse, BrokerStartFailed, EmbeddedKafka
from pml.streams.local.kafka_folder import KafkaFolder
from pml.streams.local.kafka_probe import answers
from pml.streams.local.polling import until
from pml.streams.local.ports import HOST, choose_port, free_port
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import is_gone

pytestmark = pytest.mark.integration

SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from pml.streams.local.kafka import EmbeddedKafka

async def main():
    broker = EmbeddedKafka(Path(sys.argv[1]))
    await broker.start()
    print(broker.pid, flush=True)
    await broker.wait()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    embedded = EmbeddedKafka(tmp_path_factory.mktemp("module"))
    asyncio.run(embedded.start())
    yield embedded
    asyncio.run(embedded.stop())


async def create_topic(bootstrap_servers: str, topic: str, **configs: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        response = await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=configs)])
        assert [error[1] for error in response.topic_errors] == [0]
    finally:
        await admin.close()


async def topics_of(bootstrap_servers: str) -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        return set(await admin.list_topics())
    finally:
        await admin.close()


async def produce(bootstrap_servers: str, topic: str, values: list[bytes]) -> None:
    size = 1024 + max(map(len, values))
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap_servers, acks="all", enable_idempotence=True, max_request_size=size
    ) as producer:
        await asyncio.gather(*[await producer.send(topic, value, partition=0) for value in values])


async def consume(bootstrap_servers: str, topic: str) -> list[bytes]:
    partition = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        records: list[bytes] = []
        while await consumer.position(partition) < end:
            batch = await consumer.getmany(partition, timeout_ms=1_000)
            records += [record.value for record in batch.get(partition, [])]
        return records


def holder_is_gone(data_dir: Path) -> bool:
    lock = KafkaFolder(data_dir / "kafka").lock()
    if lock is not None:
        os.close(lock)
    return lock is not None


async def test_a_record_is_produced_and_consumed(broker: EmbeddedKafka) -> None:
    await create_topic(broker.bootstrap_servers, "orders")
    await produce(broker.bootstrap_servers, "orders", [b"one", b"two"])
    assert await consume(broker.bootstrap_servers, "orders") == [b"one", b"two"]


async def test_a_result_of_8_mib_fits(broker: EmbeddedKafka) -> None:
    value = b"x" * (9 * 1024 * 1024)
    await create_topic(broker.bootstrap_servers, "results")
    await produce(broker.bootstrap_servers, "results", [value])
    assert await consume(broker.bootstrap_servers, "results") == [value]


async def test_two_brokers_run_side_by_side(broker: EmbeddedKafka, kafka: str) -> None:
    assert broker.bootstrap_servers != kafka
    await create_topic(broker.bootstrap_servers, "only-here")
    assert "only-here" in await topics_of(broker.bootstrap_servers)
    assert "only-here" not in await topics_of(kafka)


async def test_topics_are_never_created_by_accident(broker: EmbeddedKafka) -> None:
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        assert "misspelt" not in await consumer.topics()
        consumer.subscribe(["misspelt"])
        assert await consumer.getmany(timeout_ms=500) == {}
    assert "misspelt" not in await topics_of(broker.bootstrap_servers)


async def test_a_folder_in_use_is_refused_and_its_broker_lives_on(broker: EmbeddedKafka) -> None:
    with pytest.raises(BrokerInUse, match=f"process {broker.pid}, port"):
        await EmbeddedKafka(broker.folder.parent).start()
    assert broker.alive()
    assert await answers(HOST, int(broker.bootstrap_servers.partition(":")[2]))


async def test_starting_what_runs_does_nothing(broker: EmbeddedKafka) -> None:
    pid = broker.pid
    await broker.start()
    assert broker.pid == pid


def test_ctrl_c_in_the_terminal_does_not_reach_the_broker(broker: EmbeddedKafka) -> None:
    assert broker.pid is not None
    assert os.getsid(broker.pid) == os.getpgid(broker.pid) == broker.pid != os.getsid(0)


async def test_the_broker_listens_on_loopback_only(broker: EmbeddedKafka) -> None:
    connections = psutil.Process(broker.pid).net_connections("inet")
    listening = [each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN]
    assert len(listening) == 2
    assert {ip.removeprefix("::ffff:") for ip in listening} == {HOST}


async def test_data_and_address_survive_a_stop_and_a_kill(tmp_path: Path) -> None:
    values = [b"%d" % number for number in range(2_000)]
    async with EmbeddedKafka(tmp_path) as broker:
        address = broker.bootstrap_servers
        await create_topic(address, "kept")
        await produce(address, "kept", values[:1_000])
    assert not broker.alive()
    again = EmbeddedKafka(tmp_path)
    await again.start()
    assert again.bootstrap_servers == address
    await produce(address, "kept", values[1_000:])
    assert again.pid is not None
    os.kill(again.pid, signal.SIGKILL)
    assert await again.wait() == -signal.SIGKILL
    await again.start()
    assert again.bootstrap_servers == address
    assert await consume(address, "kept") == values
    await again.stop()
    await again.stop()


async def test_a_killed_supervisor_leaves_no_broker_behind(tmp_path: Path) -> None:
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SUPERVISOR, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert supervisor.stdout is not None
    broker = psutil.Process(int(await supervisor.stdout.readline()))
    supervisor.kill()
    await supervisor.wait()
    assert await until(lambda: is_gone(broker) and holder_is_gone(tmp_path), 0.02, PATIENCE_S)


async def test_a_broker_that_dies_while_starting_says_why(tmp_path: Path) -> None:
    data = tmp_path / "kafka" / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=7\n")
    broker = EmbeddedKafka(tmp_path)
    with pytest.raises(BrokerStartFailed, match="Stored node id 7 doesn't match") as caught:
        await broker.start()
    assert str(tmp_path) in caught.value.message
    assert not broker.alive()
    assert holder_is_gone(tmp_path)


async def test_a_port_that_was_asked_for_and_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind((HOST, free_port()))
        other.listen()
        with pytest.raises(ConfigurationError, match="is taken"):
            await EmbeddedKafka(tmp_path, port=other.getsockname()[1]).start()
    assert holder_is_gone(tmp_path)


async def test_a_port_that_somebody_took_first_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as other:
        other.bind((HOST, free_port()))
        other.listen()
        taken = other.getsockname()[1]
        chosen = iter([taken])
        monkeypatch.setattr(
            kafka_module, "choose_port", lambda *a, **k: next(chosen, 0) or choose_port(*a, **k)
        )
        async with EmbeddedKafka(tmp_path) as broker:
            assert broker.bootstrap_servers != f"{HOST}:{taken}"
            assert await topics_of(broker.bootstrap_servers) == set()


async def test_a_start_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    broker = EmbeddedKafka(tmp_path)
    start = asyncio.create_task(broker.start())
    assert await until(broker.alive, 0.01, PATIENCE_S)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not broker.alive()
    assert holder_is_gone(tmp_path)
