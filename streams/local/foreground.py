"""A stack that runs as long as this process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from pml.streams.local.jars import kafka_jars, local_repository, resolve_jars
from pml.streams.local.supervisor import Report, Supervisor
from pml.streams.settings import Settings

INTERRUPTED_TWICE = 130


def run_in_foreground(settings: Settings, report: Report, on_ready: Callable[[], None]) -> None:
    """Run the stack until SIGINT or SIGTERM; a second one ends at once, and the kernel takes the children.

    Raises:
        AlreadyUp: another one runs on this data folder.
        PMLError: a part did not start.
    """
    asyncio.run(_run(Supervisor(settings, report, on_ready)))


def fetch_jars(settings: Settings) -> None:
    """Bring the broker's jars, with a progress bar, where a broker will be started and they are missing.

    Raises:
        PrerequisiteError: one cannot be fetched.
    """
    if settings.embedded_broker:
        asyncio.run(resolve_jars(kafka_jars(), local_repository()))


async def _run(supervisor: Supervisor) -> None:
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(INTERRUPTED_TWICE)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    await supervisor.run(stop)
