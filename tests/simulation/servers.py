"""MCP servers of the simulation: they take their time, fail, hang, end; a write may outlive its caller."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from pml.schemas.catalog import ServerTools
from pml.streams.bridge.secret_values import NO_SECRETS
from pml.streams.bridge.unavailable import ServerUnavailable
from tests.simulation.loop import PROCESS, Process, SimulatedLoop
from tests.simulation.tools import Toolbox, ToolFailed, ToolSpec, answer, effect
from tests.simulation.world import Execution, World

HANG_S = 40.0


@dataclass
class Hands:
    """What runs calls on the world.

    `troubles` says how likely a call `fails`, `hangs`, is `slow`, ends its server (`lost`) or finds it
    `down`. `on_run` sees each call as it reaches its tool.
    """

    loop: SimulatedLoop
    random: Random
    world: World
    toolbox: Toolbox
    troubles: Mapping[str, float]
    counts: Counter[str] = field(default_factory=Counter)
    finished: set[tuple[Process | None, str]] = field(default_factory=set)
    running: set[tuple[Process | None, str]] = field(default_factory=set)
    quiet: bool = False
    latency_s: tuple[float, float] = (0.02, 0.6)
    on_run: Callable[[ToolSpec, Mapping[str, Any], str, bool, str], None] = lambda *_: None

    def is_running(self, call_id: str) -> bool:
        """Whether the present process runs this call already."""
        return (PROCESS.get(), call_id) in self.running

    def has_run(self, call_id: str) -> bool:
        """Whether the present process ran this call to its end."""
        return (PROCESS.get(), call_id) in self.finished

    def trouble(self) -> str | None:
        """What goes wrong with a call, if anything."""
        if self.quiet:
            return None
        dice = self.random.random()
        for name, likely in self.troubles.items():
            dice -= likely
            if dice < 0:
                self.counts[f"tool {name}"] += 1
                return name
        return None

    def seconds(self) -> float:
        """How long one half of a call takes."""
        return self.random.uniform(*self.latency_s)


class ServerDouble:
    """One configured server, as the dispatcher and the runner see it."""

    def __init__(self, name: str, hands: Hands) -> None:
        self.name, self._hands, self.secrets = name, hands, NO_SECRETS
        self.concurrency = hands.toolbox.concurrency.get(name, 4)

    @property
    def record(self) -> ServerTools:
        """What it lists."""
        return self._hands.toolbox.servers()[self.name]

    def answered(self, tenant: str) -> None:
        """A call was answered."""

    @asynccontextmanager
    async def session(self, tenant: str, session_id: str) -> AsyncIterator[SessionDouble]:
        """A running session, unless the server is down.

        Raises:
            ServerUnavailable: it is.
        """
        if self._hands.trouble() == "down":
            raise ServerUnavailable(f"the MCP server {self.name} cannot be started")
        yield SessionDouble(self.name, self._hands, f"{tenant}/{session_id}")


@dataclass
class SessionDouble:
    """Calls of one conversation."""

    server: str
    hands: Hands
    session: str

    async def call(self, tool: str, arguments: dict[str, Any], meta: dict[str, Any]) -> types.CallToolResult:
        """Run a tool.

        Raises:
            MCPError: the server ended meanwhile.
        """
        spec = self.hands.toolbox.specs[f"{self.server}:{tool}"]
        call_id, early = meta["pml/call-id"], bool(meta["pml/speculative"])
        self.hands.on_run(spec, arguments, call_id, early, self.session)
        place = (PROCESS.get(), call_id)
        self.hands.running.add(place)
        try:
            result = await self._run(spec, arguments, call_id, early)
            self.hands.finished.add(place)
            return result
        finally:
            self.hands.running.discard(place)

    async def _run(
        self, spec: ToolSpec, arguments: dict[str, Any], call_id: str, early: bool
    ) -> types.CallToolResult:
        trouble = self.hands.trouble()
        if trouble == "fails":
            await asyncio.sleep(self.hands.seconds())
            return failure(self.hands.random.choice(["network is down", "invalid input", "boom"]))
        if spec.writes(arguments):
            return await self._write(spec, arguments, call_id, trouble)
        return await self._read(spec, arguments, call_id, early, trouble)

    async def _read(
        self, spec: ToolSpec, arguments: dict[str, Any], call_id: str, early: bool, trouble: str | None
    ) -> types.CallToolResult:
        hands = self.hands
        await asyncio.sleep(self._before(trouble))
        try:
            value = answer(spec, arguments, hands.world.values, round(hands.loop.time() * 1000))
        except ToolFailed as error:
            return failure(str(error))
        self._ran(spec, call_id, early, False, value)
        await asyncio.sleep(hands.seconds())
        self._maybe_lost(trouble)
        return success(value)

    async def _write(
        self, spec: ToolSpec, arguments: dict[str, Any], call_id: str, trouble: str | None
    ) -> types.CallToolResult:
        """The effect happens outside of whoever called; a server may die with its bridge before it."""
        hands, process = self.hands, PROCESS.get()
        done: asyncio.Future[Any] = hands.loop.create_future()
        survives = hands.random.random() < 0.5

        def act() -> None:
            if process is not None and not process.alive and not survives:
                return
            value = effect(
                spec, arguments, hands.world, at_s=hands.loop.time(), who=self.session, call_id=call_id
            )
            self._ran(spec, call_id, False, True, value)
            if not done.done():
                done.set_result(value)

        hands.loop.outside(self._before(trouble), act)
        value = await done
        await asyncio.sleep(hands.seconds())
        self._maybe_lost(trouble)
        return success(value)

    def _before(self, trouble: str | None) -> float:
        if trouble == "hangs":
            return HANG_S
        return self.hands.seconds() * (8 if trouble == "slow" else 1)

    def _maybe_lost(self, trouble: str | None) -> None:
        if trouble == "lost":
            raise MCPError(code=types.CONNECTION_CLOSED, message="Connection closed")

    def _ran(self, spec: ToolSpec, call_id: str, early: bool, wrote: bool, value: Any) -> None:
        world = self.hands.world
        now_s = self.hands.loop.time()
        world.ran(Execution(call_id, spec.name, self.session, "", now_s, world.position, early, wrote, value))


def success(value: dict[str, Any]) -> types.CallToolResult:
    """A result with structured content."""
    return types.CallToolResult(content=[], structured_content=value)


def failure(message: str) -> types.CallToolResult:
    """An answer that says that the tool failed."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)
