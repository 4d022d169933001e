"""A program of ours as a child process: on a leash, in a session of its own, its output in a bounded file."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pml.schemas.errors import PMLError
from pml.streams.local.leash import leashed

LOG_BYTES_MAX = 16 * 1024 * 1024
TAIL_BYTES = 4_096


class StartFailed(PMLError):
    """A part of the local stack did not come up."""

    code = "START_FAILED"


class Running(Protocol):
    """A process that was started, as asyncio has them."""

    @property
    def pid(self) -> int:
        """Its process id, also after its end."""

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""

    async def wait(self) -> int:
        """Wait until it ends; its exit code."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""


# Starts a process that appends to this log.
Launch = Callable[[Path], Awaitable[Running]]


class Child:
    """One process that may be started again after it ended.

    The kernel kills it when this process is gone (Linux), and Ctrl-C in a terminal does not reach it.
    """

    def __init__(self, launch: Launch, log: Path) -> None:
        self.log = log
        self._launch = launch
        self._process: Running | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while it lives."""
        return self._process.pid if self._process and self._process.returncode is None else None

    @property
    def started_pid(self) -> int | None:
        """The process id of the last start, whether or not it lives."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start it; it appends to its log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        trim(self.log)
        self._process = await self._launch(self.log)

    async def wait(self) -> int:
        """Wait until it ends; its exit code (negative: the signal that ended it), 0 if it never began."""
        return await self._process.wait() if self._process else 0

    async def stop(self, timeout_s: float) -> None:
        """Ask it to end; kill it if it has not within `timeout_s`."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    def last_words(self, lines: int = 5) -> str:
        """The last lines of its log."""
        return last_lines(self.log, lines)


def program(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    niceness: int = 0,
    stdin: int = asyncio.subprocess.DEVNULL,
) -> Launch:
    """How a program is started, with exactly these variables."""

    async def launch(log: Path) -> Running:
        with log.open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *leashed(list(command), niceness),
                stdin=stdin,
                stdout=output,
                stderr=output,
                env=dict(environment),
                start_new_session=True,
            )

    return launch


def last_lines(path: Path, lines: int) -> str:
    """The last lines of a file; empty where it does not exist."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])


def trim(log: Path, bytes_max: int = LOG_BYTES_MAX) -> None:
    """Put a log that has grown too large aside as `….1`; whoever appends to it goes on at its start."""
    if log.exists() and log.stat().st_size > bytes_max:
        shutil.copyfile(log, log.with_name(log.name + ".1"))
        os.truncate(log, 0)
