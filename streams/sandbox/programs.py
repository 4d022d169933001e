"""Programs that run, from one wait to the next; what stands at a wait is kept for a while (ADR 14).

A step is a function of the program, its context and the results so far. So a program that stands here goes on
with new results, and one that does not is run again from its beginning with the recorded ones: the same.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pml.processors.sandboxing.prepared import Part, Prepared, placed
from pml.processors.sandboxing.python_source import prepared_python
from pml.processors.sandboxing.typescript_source import prepared_typescript
from pml.schemas.stepping import SandboxProgram
from pml.streams.bridge.reaper import Reaper
from pml.streams.sandbox.errors import NotDeterministic
from pml.streams.sandbox.interpreters import command_of
from pml.streams.sandbox.process import SandboxProcess
from pml.streams.settings import SandboxSettings

Said = dict[str, Any]
"""What a program says: its `calls`, or its `value` or `error`."""
Results = Sequence[dict[str, Any]]
"""What calls gave: `value` or `error` each."""


@dataclass(frozen=True, slots=True)
class Source:
    """A program and what its caller gives it."""

    program: SandboxProgram
    context: dict[str, Any]


@dataclass(slots=True)
class Standing:
    """A program that waits: its process, and what names each step that it took."""

    process: SandboxProcess
    parts: tuple[Part, ...]
    taken: tuple[Any, ...]
    expires_s: float = field(default=0.0)


@dataclass(frozen=True, slots=True)
class Earlier:
    """A step that was taken before: the calls that the program asked for then, and what they gave."""

    calls: Sequence[dict[str, Any]]
    results: Results


class Stepping(Protocol):
    """What runs programs: those of sandboxes, or of a test."""

    async def step(
        self,
        name: str,
        taken: tuple[Any, ...],
        newest: Callable[[], Awaitable[Results]],
        again: Callable[[], Awaitable[tuple[Source, Sequence[Earlier]]]],
    ) -> Said:
        """What a program says after the steps that it took: see `Programs`."""

    async def tend(self) -> None:
        """End what has stood for too long."""

    async def close(self) -> None:
        """End every program."""


class Programs:
    """Runs programs; `cache` is a folder for interpreters."""

    def __init__(self, settings: SandboxSettings, reaper: Reaper, cache: Path) -> None:
        self._settings, self._reaper, self._cache = settings, reaper, cache
        self._standing: OrderedDict[str, Standing] = OrderedDict()
        self._running, self._busy = asyncio.Semaphore(settings.live_max), 0

    async def step(
        self,
        name: str,
        taken: tuple[Any, ...],
        newest: Callable[[], Awaitable[Results]],
        again: Callable[[], Awaitable[tuple[Source, Sequence[Earlier]]]],
    ) -> Said:
        """What a program says after the steps that it took.

        Args:
            name: of the run.
            taken: what names each step; a program that stands after all but the last goes on.
            newest: the results of the last step.
            again: the program and all its steps, for one that does not stand here.

        Raises:
            SandboxMissing, SandboxTimeout, SandboxDied, OutputTooLarge, NotDeterministic: as they say.
            SourceError, WorkflowInvalid: the program cannot begin.
        """
        async with self._running:
            self._busy += 1
            try:
                await self._make_room(name)
                standing = await self._standing_before(name, taken)
                if standing is not None:
                    return await self._go_on(name, standing, taken, newest)
                return await self._run_again(name, taken, again)
            finally:
                self._busy -= 1

    async def tend(self) -> None:
        """End what has stood for too long."""
        now_s = asyncio.get_running_loop().time()
        for name in [name for name, item in self._standing.items() if item.expires_s <= now_s]:
            standing = self._standing.pop(name, None)
            if standing is not None:
                await standing.process.close()

    async def close(self) -> None:
        """End every program."""
        while self._standing:
            await self._standing.popitem()[1].process.close()

    @property
    def standing(self) -> tuple[str, ...]:
        """The runs whose programs stand here."""
        return tuple(self._standing)

    async def _standing_before(self, name: str, taken: tuple[Any, ...]) -> Standing | None:
        """The program where it waits for exactly the last of these steps."""
        standing = self._standing.pop(name, None)
        if standing is not None and not (taken and standing.taken == taken[:-1]):
            await standing.process.close()
            return None
        return standing

    async def _go_on(
        self, name: str, standing: Standing, taken: tuple[Any, ...], newest: Callable[[], Awaitable[Results]]
    ) -> Said:
        try:
            said = await standing.process.exchange({"results": await newest()})
        except BaseException:
            await standing.process.close()
            raise
        return await self._kept(name, standing.process, standing.parts, taken, said)

    async def _run_again(
        self,
        name: str,
        taken: tuple[Any, ...],
        again: Callable[[], Awaitable[tuple[Source, Sequence[Earlier]]]],
    ) -> Said:
        source, earlier = await again()
        settings = self._settings
        command = command_of(source.program.language, settings.memory_mb, self._cache)
        program = await asyncio.to_thread(prepared, source)
        process = SandboxProcess(
            command, self._reaper, timeout_s=settings.step_timeout_s, bytes_max=settings.output_max_bytes
        )
        try:
            said = await process.start(program, source.context, settings.memory_mb)
            for step in earlier:
                if said.get("calls") != step.calls:
                    raise NotDeterministic(
                        "the program asked for other calls than the first time; it may depend on nothing but "
                        "its parameters and the results of its calls"
                    )
                said = await process.exchange({"results": step.results})
        except BaseException:
            await process.close()
            raise
        return await self._kept(name, process, program.parts, taken, said)

    async def _kept(
        self, name: str, process: SandboxProcess, parts: tuple[Part, ...], taken: tuple[Any, ...], said: Said
    ) -> Said:
        if "calls" in said:
            expires_s = asyncio.get_running_loop().time() + self._settings.idle_s
            self._standing[name] = Standing(process, parts, taken, expires_s)
        else:
            await process.close()
        return placed(said, parts)

    async def _make_room(self, name: str) -> None:
        """Those that run and those that stand are together no more than the setting says."""
        others = [other for other in self._standing if other != name]
        for other in others[: max(0, len(others) + self._busy - self._settings.live_max)]:
            standing = self._standing.pop(other, None)
            if standing is not None:
                await standing.process.close()


def prepared(source: Source) -> Prepared:
    """The program as its interpreter takes it.

    Raises:
        SourceError, WorkflowInvalid: it cannot begin.
    """
    prepare = prepared_python if source.program.language == "python" else prepared_typescript
    return prepare(source.program.source, source.context, source.program.linked)
