from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from aiokafka.record import MemoryRecords

from pml.streams.local.jars import kafka_jars, local_repository, resolve_jars
from pml.streams.local.java import JavaProcess
from pml.streams.local.kafka_folder import SETTINGS, BrokerRecord, KafkaFolder, new_id


def test_a_cluster_id_is_never_taken_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([b"\xfb" + bytes(15), b"\xf8" + bytes(15), bytes(15) + b"\x01"])
    monkeypatch.setattr(secrets, "token_bytes", lambda _: next(drawn))
    assert new_id() == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_a_folder_is_formatted_once(tmp_path: Path) -> None:
    folder = KafkaFolder(tmp_path)
    assert not folder.is_formatted
    folder.format()
    assert folder.is_formatted
    properties = tmp_path / "data" / "meta.properties"
    names = dict(line.split("=") for line in properties.read_text().splitlines())
    assert (names["version"], names["node.id"]) == ("1", "1")
    assert len(names["cluster.id"]) == len(names["directory.id"]) == 22
    before = properties.read_bytes()
    folder.format()
    assert properties.read_bytes() == before


def test_a_format_that_was_cut_short_is_done_again(tmp_path: Path) -> None:
    folder = KafkaFolder(tmp_path)
    folder.format()
    (tmp_path / "data" / "meta.properties").rename(tmp_path / "data" / "meta.properties.tmp")
    (tmp_path / "data" / "bootstrap.checkpoint").write_bytes(b"half")
    folder.format()
    assert folder.is_formatted
    assert records(tmp_path / "data" / "bootstrap.checkpoint")


@pytest.mark.integration
async def test_a_folder_is_formatted_as_kafka_s_own_tool_does(tmp_path: Path) -> None:
    """Fails with another version of Kafka: take the new checkpoint into deploy/kafka."""
    folder, theirs = KafkaFolder(tmp_path / "ours"), tmp_path / "theirs"
    folder.path.mkdir()
    folder.write_settings(20_001, 20_002)
    folder.format()
    theirs.mkdir()
    for name in ("server.properties", "log4j2.yaml"):
        (theirs / name).write_bytes((folder.path / name).read_bytes())
    class_path = os.pathsep.join(map(str, await resolve_jars(kafka_jars(), local_repository())))
    arguments = ("-cp", class_path, "kafka.tools.StorageTool", "format", "-t", new_id(), "-c", SETTINGS)
    lock = folder.lock()
    assert lock is not None
    tool = JavaProcess(arguments, theirs, theirs / "console.log", inherited=lock)
    assert await tool.ends_within(60)
    assert tool.exit_code == 0, (theirs / "console.log").read_text()
    os.close(lock)
    ours, theirs = folder.path / "data", theirs / "data"
    assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()}
    assert records(ours / "bootstrap.checkpoint") == records(theirs / "bootstrap.checkpoint")
    assert keys(ours) == keys(theirs)


def keys(data: Path) -> set[str]:
    lines = (data / "meta.properties").read_text().splitlines()
    return {line.partition("=")[0] for line in lines if not line.startswith("#")}


def records(checkpoint: Path) -> list[tuple[bool, list[tuple[bytes | None, bytes | None]]]]:
    """What a checkpoint says, but for when."""
    batches, said = MemoryRecords(checkpoint.read_bytes()), []
    while (batch := batches.next_batch()) is not None:
        said.append((batch.is_control_batch, [(record.key, record.value) for record in batch]))
    return said


def test_one_process_at_a_time_holds_the_folder(tmp_path: Path) -> None:
    first = KafkaFolder(tmp_path / "kafka").lock()
    assert first is not None
    assert KafkaFolder(tmp_path / "kafka").lock() is None
    os.close(first)
    second = KafkaFolder(tmp_path / "kafka").lock()
    assert second is not None
    os.close(second)


def test_the_record_of_the_last_start_is_read_back(tmp_path: Path) -> None:
    folder = KafkaFolder(tmp_path)
    assert folder.read_record() is None
    folder.write_record(BrokerRecord(20_001, 20_002, 7))
    assert folder.read_record() == BrokerRecord(20_001, 20_002, 7)


@pytest.mark.parametrize("text", ["", '{"port":1', '{"port":1}', "[]"])
def test_a_record_that_was_cut_short_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "broker.json").write_text(text)
    assert KafkaFolder(tmp_path).read_record() is None


def test_the_settings_are_loopback_only_and_relative(tmp_path: Path) -> None:
    KafkaFolder(tmp_path).write_settings(20_001, 20_002)
    text = (tmp_path / "server.properties").read_text()
    assert "listeners=PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002\n" in text
    assert "controller.quorum.voters=1@127.0.0.1:20002\n" in text
    assert str(tmp_path) not in text
    assert (tmp_path / "log4j2.yaml").exists()


def test_a_slow_broker_is_waited_for_and_one_that_was_killed_is_soon_replaced(tmp_path: Path) -> None:
    folder = KafkaFolder(tmp_path)
    data = tmp_path / "data"
    data.mkdir()

    def silence_ms() -> tuple[str, ...]:
        folder.write_settings(20_001, 20_002)
        text = (tmp_path / "server.properties").read_text()
        return tuple(line for line in text.splitlines() if line.startswith("broker."))

    patient = ("broker.session.timeout.ms=9000", "broker.heartbeat.interval.ms=2250")
    assert silence_ms() == patient
    (data / "meta.properties").touch()
    assert silence_ms() == ("broker.session.timeout.ms=4000", "broker.heartbeat.interval.ms=1000")
    (data / ".kafka_cleanshutdown").touch()
    assert silence_ms() == patient


def test_the_last_lines_are_those_of_this_start(tmp_path: Path) -> None:
    folder = KafkaFolder(tmp_path)
    log = tmp_path / "server.log"
    log.write_text("yesterday\n")
    start = folder.log_size_bytes()
    with log.open("a") as stream:
        stream.write("today\n")
    (tmp_path / "console.log").write_text("a\nb\nc\n")
    assert folder.last_lines(start, count=2) == ["b", "c", "today"]


def test_the_last_lines_survive_a_rollover(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("new\n")
    assert KafkaFolder(tmp_path).last_lines(log_from_bytes=10_000) == ["new"]
