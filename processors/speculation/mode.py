"""Whether a call may run early, be planned only, or neither (DESIGN §4, condition 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pml.schemas.catalog import SpeculationMode
from pml.schemas.identifiers import split_tool

_ORDER: tuple[SpeculationMode, ...] = ("off", "shadow", "on")
SCOPES = ("tenant", "server", "tool")


def strictest(modes: Iterable[SpeculationMode]) -> SpeculationMode:
    """The one of several modes that allows least; on where there is none."""
    return min(modes, key=_ORDER.index, default="on")


def mode_of(switches: Mapping[str, SpeculationMode], tenant: str, tool: str) -> SpeculationMode:
    """What the switches that fit a tenant's call of a tool allow.

    Args:
        switches: by scope: `tenant=NAME`, `server=NAME`, `tool=SERVER:NAME`; any other is for all.
    """
    mine = {f"tenant={tenant}", f"server={split_tool(tool)[0]}", f"tool={tool}"}
    return strictest(mode for scope, mode in switches.items() if scope in mine or for_all(scope))


def for_all(scope: str) -> bool:
    """Whether a switch is for every call."""
    return scope.partition("=")[0] not in SCOPES or "=" not in scope
