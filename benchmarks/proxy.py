"""`proxy`: a call through PML's proxy, beside the same call by the same client at the server itself.

The server does nothing and both sides speak stdio with the official client, so the difference is the proxy:
a command, an orchestrator, a bridge, the log, and a result that is read back. Each call has other arguments.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.figures import Figure, percentile
from benchmarks.plan import Plan, in_turns
from benchmarks.stack import NOOP, bench_settings
from pml.schemas.errors import PMLError
from pml.streams.local.supervisor import supervised
from pml.streams.settings import Settings

TOOL = "read"
PROXIED = f"noop__{TOOL}"
CALLS = 100
AT_ONCE = (1, 8)
WARM_UP_CALLS = 40
PERCENTILES = (50, 99)
LISTED_S = 60.0


class CallFailed(PMLError):
    """A call that was to be measured did not give its number back."""

    code = "CALL_FAILED"


@dataclass(slots=True)
class Side:
    """A client, the tool's name there, and percentiles by how many calls are open and percent."""

    client: Client
    tool: str
    calls: int = 0
    found: dict[tuple[int, int], list[float]] = field(default_factory=dict)

    async def measure(self, at_once: int, calls: int = CALLS) -> None:
        """One round: so many calls, always so many of them open."""
        left = iter(range(calls))
        took_ms: list[float] = []
        await asyncio.gather(*(self._one_after_another(left, took_ms) for _ in range(at_once)))
        for percent in PERCENTILES:
            self.found.setdefault((at_once, percent), []).append(percentile(took_ms, percent))

    async def _one_after_another(self, left: Iterator[int], took_ms: list[float]) -> None:
        for _ in left:
            self.calls += 1
            number = self.calls
            began = time.perf_counter()
            answer = await self.client.call_tool(self.tool, {"number": number})
            took_ms.append((time.perf_counter() - began) * 1_000)
            if answer.is_error or answer.structured_content != {"number": number}:
                raise CallFailed(f"{self.tool} answered {answer.content!r:.300}")


async def measure(plan: Plan) -> Sequence[Figure]:
    """Both sides in every round, one call at a time and several."""
    settings = bench_settings(plan.folder)
    async with (
        supervised(settings, plan.say),
        Client(at_the_server()) as direct,
        through_pml(settings) as proxied,
    ):
        sides = Side(proxied, PROXIED), Side(direct, TOOL)
        plan.say("warming up")
        for side in sides:
            await side.measure(AT_ONCE[-1], WARM_UP_CALLS)
            side.found.clear()
        for number in range(plan.rounds):
            for at_once in AT_ONCE:
                plan.say(f"round {number + 1} of {plan.rounds}: {at_once} at once")
                await in_turns(number, *(partial(side.measure, at_once) for side in sides))
    return [figure(*sides, at_once, percent) for at_once in AT_ONCE for percent in PERCENTILES]


def at_the_server() -> StdioServerParameters:
    """The server itself."""
    return StdioServerParameters(command=sys.executable, args=[str(NOOP)])


@asynccontextmanager
async def through_pml(
    settings: Settings, wanted: Collection[str] = frozenset({PROXIED})
) -> AsyncIterator[Client]:
    """A client of `pml mcp` that has these tools.

    Raises:
        CallFailed: one is not offered.
    """
    environment = {**os.environ, **settings.environment()}
    command = ["-m", "pml.streams.cli", "mcp", "--tools", "proxy"]
    server = StdioServerParameters(command=sys.executable, args=command, env=environment)
    async with Client(server) as client:
        await _until_listed(client, wanted)
        yield client


async def _until_listed(client: Client, wanted: Collection[str]) -> None:
    missing = set(wanted)
    try:
        async with asyncio.timeout(LISTED_S):
            while missing := missing - await _listed(client):
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise CallFailed(f"{min(missing)} is not offered after {LISTED_S:g} s") from None


async def _listed(client: Client) -> set[str]:
    """The names of all tools, of every page."""
    page = await client.list_tools()
    names = {tool.name for tool in page.tools}
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        names |= {tool.name for tool in page.tools}
    return names


def figure(proxied: Side, direct: Side, at_once: int, percent: int) -> Figure:
    """One percentile of both sides."""
    calls = "one call at a time" if at_once == 1 else f"{at_once} calls at once"
    key = (at_once, percent)
    return Figure(f"{calls}, p{percent}", "ms", tuple(proxied.found[key]), tuple(direct.found[key]))
