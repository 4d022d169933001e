"""How long a worker is waited for."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from pml.streams.health import WRITE_INTERVAL_S, Health
from pml.streams.local import services
from pml.streams.local.child import StartFailed
from pml.streams.local.services import Worker
from pml.streams.local.stack import WORKERS
from pml.streams.settings import Settings

# Twice as long as it may take until progress is seen that is made once in an interval.
PATIENCE_S = 4 * WRITE_INTERVAL_S


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    settings = Settings.load(data_dir=tmp_path, bridge={"start_timeout_s": 0.1})
    monkeypatch.setattr(services, "WORKER_START_TIMEOUT_S", PATIENCE_S)
    worker: Any = Worker(settings, ("orchestrator",))
    worker._child = SimpleNamespace(pid=os.getpid(), started_pid=os.getpid())
    return worker


async def test_a_worker_that_restores_its_tables_is_waited_for(worker: Any, tmp_path: Path) -> None:
    health = Health(tmp_path, "orchestrator")
    health.starting()
    waiting = asyncio.create_task(worker._becomes_ready())
    for offset in range(8):
        health.progress(restored=offset, lag=1)
        await asyncio.sleep(WRITE_INTERVAL_S)
    assert not waiting.done(), "given up while it got on"
    health.ready()
    assert await waiting


async def test_a_worker_that_stands_still_is_given_up(worker: Any, tmp_path: Path) -> None:
    health = Health(tmp_path, "orchestrator")
    health.starting()
    waiting = asyncio.create_task(worker._becomes_ready())
    lag = 0
    while not waiting.done():
        lag += 1
        health.progress(restored=7, lag=lag)
        await asyncio.sleep(PATIENCE_S / 10)
    assert not await waiting


async def test_a_worker_that_ended_is_given_up_at_once(worker: Any) -> None:
    worker._child.pid = None
    assert not await worker._becomes_ready()


@pytest.mark.skipif(sys.platform != "linux", reason="niceness is set on the leash, which Linux alone has")
async def test_who_stores_stands_behind_who_decides(tmp_path: Path) -> None:
    settings = Settings.load(data_dir=tmp_path)
    store = services.Store(settings)
    await store.start()
    try:
        assert psutil.Process(store.pid).nice() == min(os.nice(0) + services.BEHIND, 19)
    finally:
        await store.stop()
    workers = {roles: Worker(settings, roles).niceness for roles in WORKERS}
    assert workers == {WORKERS[0]: 0, WORKERS[1]: 0, WORKERS[2]: services.BEHIND, WORKERS[3]: 0}


async def test_a_worker_that_nothing_is_forked_for_is_a_program(tmp_path: Path) -> None:
    """As where processes are not forked."""
    settings = Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": "127.0.0.1:1"})
    with pytest.raises(StartFailed, match=r"(?s)the worker sink ended: .*does not answer"):
        await Worker(settings, ("sink",)).start()
