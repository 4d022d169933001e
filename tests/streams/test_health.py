import asyncio
import subprocess
import sys
from pathlib import Path

import psutil

from pml.schemas.errors import LogCorrupted
from pml.streams.health import WRITE_INTERVAL_S, Health, read_all
from pml.streams.local.processes import ProcessId


def state_of(data_dir: Path) -> str:
    (record,) = read_all(data_dir)
    return record.state


def test_a_role_tells_its_state_from_start_to_stop(tmp_path: Path) -> None:
    health = Health(tmp_path, "sink")
    health.starting()
    assert state_of(tmp_path) == "starting"
    health.ready(position=3)
    assert state_of(tmp_path) == "ready"
    assert read_all(tmp_path)[0].facts == {"position": 3}
    health.stopped()
    assert state_of(tmp_path) == "stopped"


def test_a_failure_is_kept_with_its_code(tmp_path: Path) -> None:
    health = Health(tmp_path, "sink")
    health.failed(LogCorrupted("the log cannot be read"))
    (record,) = read_all(tmp_path)
    assert record.state == "failed"
    assert record.last_error is not None
    assert (record.last_error["code"], record.last_error["message"]) == (
        "LOG_CORRUPTED",
        "the log cannot be read",
    )


async def test_facts_are_written_at_most_twice_a_second_and_the_last_is_not_lost(tmp_path: Path) -> None:
    health = Health(tmp_path, "bridge")
    health.ready()
    writes = set()
    for number in range(200):
        health.progress(position=number)
        writes.add(read_all(tmp_path)[0].facts.get("position"))
        await asyncio.sleep(0)
    assert len(writes) <= 2
    async with asyncio.timeout(WRITE_INTERVAL_S + 5):
        while read_all(tmp_path)[0].facts.get("position") != 199:
            await asyncio.sleep(0.02)


def test_a_process_that_vanished_is_dead_and_swept_by_the_next(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with process:
        vanished = Health(tmp_path, "metrics")
        vanished.record = vanished.record.model_copy(update={"process": ProcessId.of(process.pid)})
        vanished.path = vanished.path.with_name(f"metrics-{process.pid}.json")
        vanished.ready()
        assert state_of(tmp_path) == "ready"
    assert state_of(tmp_path) == "dead"
    Health(tmp_path, "metrics").starting()
    assert state_of(tmp_path) == "starting"


def test_a_number_that_was_used_again_is_another_process() -> None:
    own = ProcessId.own()
    assert own.alive
    assert not own.model_copy(update={"created": own.created - 10}).alive
    assert own.created == psutil.Process().create_time()


def test_files_of_others_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "broken.json").write_text("{")
    assert read_all(tmp_path) == []
