"""Whether a capability may run early: only if everything in it may (DESIGN §4.1; spec story 12.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pml.processors.speculation.guard import Verdict, can_speculate, requires_validation
from pml.schemas.catalog import Capability, ServerTools
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import LiteralValue, Reference, Task, leaves

DEPTH_MAX = 5


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a verdict about capabilities is found with."""

    capabilities: Mapping[str, Capability]
    permissions: PermissionFile
    servers: Mapping[str, ServerTools]


def can_speculate_capability(capability_id: str, around: Surroundings) -> Verdict:
    """Whether all that a capability does, directly or through others, may run before it is asked for.

    Returns:
        The first refusal, with the tool or capability that it is about: `effect (files:write_file)`;
        `unknown`, `cycle`, `too_deep` and `program` are those of capabilities.
    """
    return _verdict(capability_id, around, ())


def capability_requires_validation(capability_id: str, around: Surroundings) -> bool:
    """Whether anything in a capability needs somebody's word first; one that is not understood does."""
    return _needs_word(capability_id, around, ())


def _verdict(capability_id: str, around: Surroundings, above: tuple[str, ...]) -> Verdict:
    reason = _broken(capability_id, around, above)
    if reason:
        return Verdict(False, f"{reason} ({capability_id})")
    if not around.capabilities[capability_id].tasks:
        return Verdict(False, f"program ({capability_id})")
    for task in around.capabilities[capability_id].tasks:
        if task.capability is not None:
            found = _verdict(task.capability, around, (*above, capability_id))
        else:
            found = _of_tool(task, around)
        if not found.allowed:
            return found
    return Verdict(True)


def _broken(capability_id: str, around: Surroundings, above: tuple[str, ...]) -> str:
    if capability_id in above:
        return "cycle"
    if capability_id not in around.capabilities:
        return "unknown"
    return "too_deep" if len(above) >= DEPTH_MAX else ""


def _of_tool(task: Task, around: Surroundings) -> Verdict:
    """Only what is written down is known of its arguments; what depends on others counts as unsafe."""
    tool = task.tool or ""
    literals = {name: item.value for name, item in task.arguments.items() if isinstance(item, LiteralValue)}
    derived = any(isinstance(leaf, Reference) for item in task.arguments.values() for leaf in leaves(item))
    server = around.servers.get(split_tool(tool)[0])
    found = can_speculate(tool, literals, around.permissions, server, from_results=derived)
    return found if found.allowed else Verdict(False, f"{found.reason} ({tool})")


def _needs_word(capability_id: str, around: Surroundings, above: tuple[str, ...]) -> bool:
    if _broken(capability_id, around, above):
        return True
    record = around.capabilities[capability_id]
    return any(_needs_word(name, around, (*above, capability_id)) for name in record.capabilities) or any(
        requires_validation(tool, around.permissions) for tool in record.tools
    )
