"""Whether a speculative call may run here and now: the guard, the switch, contact with the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pml.processors.speculation.guard import can_speculate
from pml.processors.speculation.mode import for_all, mode_of, strictest
from pml.schemas.calls import CallRun
from pml.schemas.catalog import SpeculationMode
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import PermissionFile
from pml.streams.bridge.server import Server

# A switch must hold within two seconds everywhere, so who heard nothing for that long assumes `off`.
CONTACT_MAX_S = 2.0


class Gate:
    """What the bridge itself knows about speculation; the orchestrator decided before (DESIGN §4)."""

    def __init__(self, mode: SpeculationMode, servers: Mapping[str, Server]) -> None:
        self._mode, self._servers = mode, servers
        self._heard_at_s = float("-inf")
        self.permissions = PermissionFile()
        self.switches: dict[str, SpeculationMode] = {}

    def heard(self) -> None:
        """The broker answered just now."""
        self._heard_at_s = asyncio.get_running_loop().time()

    @property
    def open(self) -> bool:
        """Whether anything may be speculated now."""
        connected = asyncio.get_running_loop().time() - self._heard_at_s <= CONTACT_MAX_S
        everybody = (mode for scope, mode in self.switches.items() if for_all(scope))
        return connected and strictest((self._mode, *everybody)) == "on"

    def lets(self, run: CallRun) -> bool:
        """Whether no switch forbids this call to run early."""
        return self.open and mode_of(self.switches, run.tenant, run.tool) == "on"

    def refusal(self, run: CallRun) -> str | None:
        """Why this speculative call must not run; None where it may."""
        if not self.lets(run):
            return "switched_off"
        if run.effect != "read":
            return "effect"
        server = self._servers.get(split_tool(run.tool)[0])
        verdict = can_speculate(run.tool, run.arguments, self.permissions, server.record if server else None)
        return None if verdict.allowed else verdict.reason
