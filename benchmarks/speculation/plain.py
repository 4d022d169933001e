"""The baselines: the same workflows on the same MCP server through the SDK, without PML."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.speculation.conversion import SourceTask, timing
from benchmarks.speculation.sample import Drawn
from pml.schemas.errors import PMLError

REPLAY = Path(__file__).with_name("replay.py")


class ToolFailed(PMLError):
    """A tool that only sleeps did not answer."""

    code = "TOOL_FAILED"


class PlainDriver:
    """What somebody writes who has an MCP client and a DAG. Every method gives the seconds that it took."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def in_turn(self, drawn: Drawn) -> float:
        """One call after another, in the order of the record."""
        began = time.perf_counter()
        values: dict[str, Any] = {}
        for number in range(len(drawn.source.tasks)):
            await self._call(drawn, number, values)
        return time.perf_counter() - began

    async def by_layer(self, drawn: Drawn) -> float:
        """All calls of a layer at once, one layer after another."""
        began = time.perf_counter()
        values: dict[str, Any] = {}
        for layer in range(drawn.source.layers):
            async with asyncio.TaskGroup() as calls:
                for number in _of_layer(drawn.source.tasks, layer):
                    calls.create_task(self._call(drawn, number, values))
        return time.perf_counter() - began

    async def agent_loop(self, drawn: Drawn) -> float:
        """A decision before every single call: what an agent does whose model picks each tool."""
        began = time.perf_counter()
        values: dict[str, Any] = {}
        for number, thought_s in enumerate(drawn.thoughts_s):
            await asyncio.sleep(thought_s)
            await self._call(drawn, number, values)
        return time.perf_counter() - began

    async def _call(self, drawn: Drawn, number: int, values: dict[str, Any]) -> None:
        task = drawn.source.tasks[number]
        arguments = _resolved(task, values, drawn.source.context) | timing(task, drawn.tools_s[number])
        answer = await self._client.call_tool("read" if task.safe else "write", arguments)
        if answer.is_error or answer.structured_content is None:
            raise ToolFailed(f"{task.tool} of {drawn.source.id}: {answer.content}")
        values[task.id] = answer.structured_content["value"]


@asynccontextmanager
async def plain_driver() -> AsyncIterator[PlainDriver]:
    """A driver with a server of its own, while the block runs."""
    server = StdioServerParameters(command=sys.executable, args=[str(REPLAY)])
    async with Client(server, cache=None) as client:
        yield PlainDriver(client)


def _of_layer(tasks: Iterable[SourceTask], layer: int) -> list[int]:
    return [number for number, task in enumerate(tasks) if task.layer == layer]


def _resolved(task: SourceTask, values: dict[str, Any], context: Any) -> dict[str, Any]:
    """The arguments with values; a reference of a converted record names a task and its one field."""
    found: dict[str, Any] = {}
    for name, argument in task.arguments.items():
        if argument["type"] == "reference":
            found[name] = values[argument["expression"].partition(".")[0]]
        elif argument["type"] == "parameter":
            found[name] = context[argument["parameter_name"]]
        else:
            found[name] = argument["value"]
    return found
