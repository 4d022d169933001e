"""Workers as forks of a process that has made their imports (Linux): this end of `template.py`."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from pml.streams.local.child import Child, Launch, Running, StartFailed, program
from pml.streams.local.template import Fork, Told

STOP_TIMEOUT_S = 5


def forks_here() -> bool:
    """Whether processes are forked on this system: elsewhere they could outlive what they are forked from."""
    return sys.platform == "linux"


class Template:
    """The process that is forked; it is started when it is first needed, and again if it is gone.

    Its forks end with it, and it ends with this process.
    """

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        self._environment = environment
        self._starting = asyncio.Lock()
        self._connection: _Connection | None = None

    async def start(self) -> None:
        """Let it begin with its imports; the first fork waits for their end."""
        async with self._starting:
            if self._connection is None or self._connection.closed:
                self._connection = await _connect(self._log, self._environment)

    async def stop(self) -> None:
        """End it, and what was forked from it and runs."""
        async with self._starting:
            if self._connection is not None:
                await self._connection.close()
                self._connection = None

    def forked(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, niceness: int = 0
    ) -> Launch:
        """How `pml` is started with these arguments and exactly these variables."""

        async def launch(log: Path) -> Running:
            await self.start()
            assert self._connection is not None, "it was started"
            fork = Fork(arguments=tuple(arguments), environment=dict(environment), log=log, niceness=niceness)
            return await self._connection.fork(fork)

        return launch


class Forked:
    """A fork that runs or has run."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.Event()

    async def wait(self) -> int:
        """Wait until it ends; its exit code."""
        await self._ended.wait()
        assert self.returncode is not None, "it has ended"
        return self.returncode

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def end(self, code: int) -> None:
        """It has ended."""
        self.returncode = code
        self._ended.set()

    def _send(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it ended, and that is about to be told
                os.kill(self.pid, number)


class _Connection:
    """What is said to one such process and what it tells."""

    def __init__(self, process: Child, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._asked: list[asyncio.Future[Forked]] = []
        self._running: dict[int, Forked] = {}
        self._listening = asyncio.create_task(self._listen())

    @property
    def closed(self) -> bool:
        return self._listening.done()

    async def fork(self, fork: Fork) -> Forked:
        """Ask for a fork; it answers in the order in which it is asked."""
        answer: asyncio.Future[Forked] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._writer.write(orjson.dumps(fork.model_dump(mode="json")) + b"\n")
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            answer.add_done_callback(_kill)
            raise

    async def close(self) -> None:
        self._writer.close()
        await self._process.stop(STOP_TIMEOUT_S)
        await self._listening

    async def _listen(self) -> None:
        try:
            async for line in self._reader:
                self._hear(Told.model_validate_json(line))
        except ConnectionError:
            pass
        finally:
            self._end_all()

    def _hear(self, told: Told) -> None:
        if told.code is not None:
            self._running.pop(told.pid).end(told.code)
            return
        forked = self._running[told.pid] = Forked(told.pid)
        self._asked.pop(0).set_result(forked)

    def _end_all(self) -> None:
        """The kernel has killed whatever ran."""
        self._writer.close()
        for forked in self._running.values():
            forked.end(-signal.SIGKILL)
        for answer in self._asked:
            words = self._process.last_words(1)
            answer.set_exception(StartFailed(f"what workers are forked from ended: {words}"))


async def _connect(log: Path, environment: Mapping[str, str]) -> _Connection:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    command = [sys.executable, "-m", "pml.streams.local.template"]
    with theirs:
        process = Child(program(command, environment, stdin=theirs.fileno()), log)
        try:
            await process.start()
        except BaseException:
            writer.close()
            raise
    return _Connection(process, reader, writer)


def _kill(answer: asyncio.Future[Forked]) -> None:
    """Nobody waits for it any more."""
    if not answer.cancelled() and answer.exception() is None:
        answer.result().kill()
