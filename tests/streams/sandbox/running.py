"""Programs that the tests run in real sandboxes, with tools that are functions of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pml.schemas.stepping import SandboxProgram
from pml.schemas.structure import Language
from pml.streams.bridge.reaper import Reaper
from pml.streams.sandbox.programs import Earlier, Programs, Source
from pml.streams.settings import SandboxSettings

Tool = Callable[[str, dict[str, Any]], dict[str, Any]]
"""What a call gives: `{"value": …}` or `{"error": {…}}`."""
SETTINGS = SandboxSettings(step_timeout_s=2, memory_mb=64)


def echo(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Every tool gives back what it was asked; those of `bad` fail."""
    if tool.startswith("bad:"):
        return {"error": {"code": "TOOL_ERROR", "type": "UNKNOWN", "message": "it is broken"}}
    return {"value": {"tool": tool, **arguments}}


@asynccontextmanager
async def programs(folder: Path, settings: SandboxSettings = SETTINGS) -> AsyncIterator[Programs]:
    """A bridge's programs; nothing of them is left afterwards."""
    reaper = Reaper()
    found = Programs(settings, reaper, folder / "interpreters")
    try:
        yield found
    finally:
        await found.close()
        await asyncio.to_thread(reaper.close)


class Play:
    """One program from its beginning to its end; `steps` are the calls that it made at once."""

    def __init__(self, among: Programs, source: Source, tool: Tool = echo, name: str = "run_1") -> None:
        self._among, self._source, self._tool, self._name = among, source, tool, name
        self.steps: list[Earlier] = []

    async def step(self) -> dict[str, Any]:
        """What the program says now."""

        async def newest() -> Any:
            return self.steps[-1].results

        async def again() -> Any:
            return self._source, self.steps

        taken = tuple(range(len(self.steps)))
        said = await self._among.step(self._name, taken, newest, again)
        if "calls" in said:
            given = [self._tool(call.get("tool", ""), call["arguments"]) for call in said["calls"]]
            self.steps.append(Earlier(said["calls"], given))
        return said

    async def end(self) -> dict[str, Any]:
        """What the program comes to."""
        while "calls" in (said := await self.step()):
            pass
        return said


def source(language: Language, text: str, context: dict[str, Any]) -> Source:
    """A program that is linked with nothing."""
    return Source(SandboxProgram(language=language, source=text), context)


async def played(
    cache: Path, language: Language, text: str, tool: Tool = echo, **context: Any
) -> tuple[dict[str, Any], list[list[tuple[str, dict[str, Any]]]]]:
    """What a program comes to, and the calls of each of its steps."""
    async with programs(cache) as among:
        play = Play(among, source(language, text, context), tool)
        end = await play.end()
    return end, [[(call["tool"], call["arguments"]) for call in step.calls] for step in play.steps]
