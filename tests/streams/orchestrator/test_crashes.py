"""Killed at every step of rules 3 and 4, with work in flight: nothing is lost, nothing is twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pml.streams.local.kafka import EmbeddedKafka
from pml.streams.local.supervisor import BACKOFF_FIRST_S, BACKOFF_MAX_S
from tests.fixtures.commands import Command, start_role
from tests.fixtures.patience import PATIENCE_S
from tests.streams.orchestrator.world import Installation, beside, until, workflow

POINTS = (
    "orchestrator.before_append",
    "orchestrator.after_append:2",
    "orchestrator.after_calls:2",
    "orchestrator.after_acknowledge:3",
    "orchestrator.after_states:14",
    "orchestrator.after_marker:14",
    "orchestrator.after_restore:3",
    "orchestrator.after_taken:3",
    "orchestrator.after_fold:3",
    "orchestrator.after_catalog:3",
    "orchestrator.after_live_calls:3",
    "orchestrator.after_seek",
)
SESSIONS = tuple(f"s{number}" for number in range(10))
# An append is in doubt after 8 s without a broker, and then the role ends and is started again.
RIDDEN_OUT_S = 7.0
LOG_SHOWN = 20_000


def show(log: Path) -> None:
    """Let pytest print the end of a worker's log where the test failed."""
    sys.stdout.write(log.read_text()[-LOG_SHOWN:])


@asynccontextmanager
async def worker(
    installation: Installation, crash_at: str = "", instance: str = ""
) -> AsyncIterator[Command]:
    """An orchestrator in a process of its own; with an instance name it is back in the group at once."""
    environment = {**os.environ, **installation.settings.environment(), "PML_CRASH_AT": crash_at}
    if instance:
        environment["PML_ORCHESTRATOR__INSTANCE_ID"] = instance
    folder = installation.settings.data_dir
    log = folder / "worker.log"
    process = start_role("orchestrator", environment, log, folder)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.ended()
        show(log)


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_at_any_step_loses_and_repeats_nothing(installation: Installation, point: str) -> None:
    async with installation.bridge() as asked:
        for session in SESSIONS:
            await installation.start_run(session, definition=workflow(3))
        async with worker(installation, point, "w1") as killed:
            assert await asyncio.wait_for(killed.ended(), PATIENCE_S) == -signal.SIGKILL
        async with worker(installation, instance="w1") as process:
            for session in SESSIONS:
                await installation.wait_for(session, "run.completed")
            assert process.returncode is None
    await installation.check()
    assert len(asked) == 3 * len(SESSIONS)


async def test_an_owner_that_was_paused_until_another_took_over_spoils_nothing(
    installation: Installation,
) -> None:
    async with installation.bridge(), worker(installation) as paused:
        await installation.start_run("first")
        await installation.wait_for("first", "run.completed")
        for session in SESSIONS:
            await installation.start_run(session, definition=workflow(5))
        await until(installation.calls, "work in flight")
        paused.send_signal(signal.SIGSTOP)
        async with worker(installation) as other:
            for session in SESSIONS:
                await installation.wait_for(session, "run.completed")
            paused.send_signal(signal.SIGCONT)
            for session in SESSIONS:
                await installation.start_run(session, f"again-{session}")
            for session in SESSIONS:
                await installation.wait_for(session, "run.completed", count=2)
            assert (paused.returncode, other.returncode) == (None, None)
    await installation.check()


@asynccontextmanager
async def kept_up(installation: Installation) -> AsyncIterator[list[int]]:
    """An orchestrator that is started again whenever it ends, as the supervisor does; its exit codes."""
    ends: list[int] = []

    async def keep() -> None:
        while True:
            async with worker(installation) as process:
                ends.append(await process.ended())
            await asyncio.sleep(min(BACKOFF_FIRST_S * 2 ** (len(ends) - 1), BACKOFF_MAX_S))

    async with beside(keep()):
        yield ends


@pytest.mark.parametrize("away_s", [0, 25])
async def test_a_broker_that_is_killed_and_comes_back_costs_time_and_nothing_else(
    tmp_path: Path, away_s: float
) -> None:
    async with (
        EmbeddedKafka(tmp_path) as broker,
        Installation(broker.bootstrap_servers, tmp_path).opened() as installation,
        installation.bridge() as asked,
        kept_up(installation) as ends,
    ):
        for session in SESSIONS:
            await installation.start_run(session, definition=workflow(6))
        await until(installation.calls, "work in flight")
        killed_s = time.monotonic()
        broker.kill()
        await asyncio.sleep(away_s)
        await broker.start()
        was_away_s = time.monotonic() - killed_s
        for session in SESSIONS:
            await installation.wait_for(session, "run.completed")
        assert not ends or was_away_s > RIDDEN_OUT_S, "its own retries carry it over a short while"
        await installation.check()
        assert len(asked) == 6 * len(SESSIONS)
