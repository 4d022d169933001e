"""One process that runs one program, told and heard by lines."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from pml.processors.sandboxing.prepared import Prepared
from pml.streams.bridge.reaper import Reaper
from pml.streams.sandbox.errors import OutputTooLarge, SandboxDied, SandboxTimeout
from pml.streams.sandbox.interpreters import Command

if sys.platform == "linux":
    import resource

MIB = 1024 * 1024
# JSON that is escaped takes up to six bytes a letter, and a line has more in it than what is bounded.
_LINE_FACTOR, _LINE_MORE = 6, 65_536
# Starting an interpreter takes 20 to 100 ms; on a machine that has other things to do it takes longer.
START_TIMEOUT_S = 20.0
# The interpreter of Python notices the end of its time by itself and says on which line; it is asked first.
GRACE_S = 1.0


class SandboxProcess:
    """A program that runs. It is killed with its children when it is closed, and when this process dies.

    Args:
        timeout_s: for how long it may compute before it has to say something.
        bytes_max: of what it says at once.
    """

    def __init__(self, command: Command, reaper: Reaper, *, timeout_s: float, bytes_max: int) -> None:
        self._command, self._reaper = command, reaper
        self._timeout_s, self._bytes_max = timeout_s, bytes_max
        self._word = secrets.token_hex(16)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, program: Prepared, context: Mapping[str, Any], memory_mb: int) -> dict[str, Any]:
        """Begin a program; the first that it says.

        Raises:
            SandboxDied, SandboxTimeout, OutputTooLarge: it says nothing that can be read.
        """
        self._process = await asyncio.create_subprocess_exec(
            *self._command.arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(self._command.environment),
            cwd="/",
            limit=_LINE_FACTOR * self._bytes_max + _LINE_MORE,
            start_new_session=True,
        )
        self._reaper.hold(self._process.pid)
        if await self._line(START_TIMEOUT_S) != b"ready\n":
            raise SandboxDied("the interpreter of the program did not start")
        self._bound_memory(self._process.pid)
        told = {
            "word": self._word,
            "source": program.code,
            "more": program.more,
            "lines": program.lines,
            "context": context,
            "timeout_s": self._timeout_s,
            "memory_bytes": memory_mb * MIB,
            "bytes_max": self._bytes_max,
        }
        return await self.exchange(told)

    async def exchange(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Tell the program something, and hear what it says to that.

        Raises:
            SandboxDied, SandboxTimeout, OutputTooLarge: it says nothing that can be read.
        """
        await self._tell(told)
        word, _, text = (await self._line(self._timeout_s + GRACE_S)).partition(b" ")
        if word != self._word.encode():
            raise SandboxDied("the program broke out of its interpreter's protocol")
        try:
            said: dict[str, Any] = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise SandboxDied(
                "the program said what is no JSON: a text that holds half a character"
            ) from None
        return said

    async def close(self) -> None:
        """End the process and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        self._reaper.release(process.pid)
        await process.wait()

    async def _tell(self, told: Mapping[str, Any]) -> None:
        """One line in; a process that has ended says so when it is heard."""
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(orjson.dumps(told, option=orjson.OPT_NON_STR_KEYS) + b"\n")
            try:
                async with asyncio.timeout(START_TIMEOUT_S):
                    await self._process.stdin.drain()
            except TimeoutError:
                raise SandboxTimeout("the sandbox of the program did not take the results in time") from None

    async def _line(self, timeout_s: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(timeout_s):
                return await self._process.stdout.readuntil(b"\n")
        except TimeoutError:
            raise SandboxTimeout(f"the program computed for more than {self._timeout_s:g} s") from None
        except asyncio.LimitOverrunError:
            raise OutputTooLarge(f"the program said more than {self._bytes_max} bytes at once") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise SandboxDied(
                "the sandbox of the program ended: it took more than sandbox.memory_mb, or broke"
            ) from None

    def _bound_memory(self, pid: int) -> None:
        """No more than some above what it has now, where the system can bound another process."""
        if self._command.more_mb is None or sys.platform != "linux":
            return
        status = Path(f"/proc/{pid}/status").read_text()
        own_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData"))
        most = own_kb * 1024 + self._command.more_mb * MIB
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))
