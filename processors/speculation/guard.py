"""What may run at all, and what may run early (DESIGN §4, conditions 1 and 5; spec story 12.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pml.schemas.calls import Effect
from pml.schemas.canonical import canonical_json
from pml.schemas.catalog import ServerTools, Tool, ToolHints
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import Permission, PermissionFile


@dataclass(frozen=True, slots=True)
class Grant:
    """A tool may be called for these arguments; `effect` is what the call does to the world."""

    pattern: str
    permission: Permission
    effect: Effect
    open_world: bool
    definition: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A tool may not be called; the message says how to allow it."""

    code: str
    message: str

    @property
    def asks_person(self) -> bool:
        """Whether a person may still allow a single call."""
        return self.code in {"APPROVAL_REQUIRED", "TOOL_NOT_APPROVED"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call may run before it is asked for, and why not."""

    allowed: bool
    reason: str = ""


def grant(
    tool: str, arguments: Mapping[str, Any], permissions: PermissionFile, server: ServerTools | None
) -> Grant | Refusal:
    """What the operator's file says about one call.

    Returns:
        Refusal TOOL_NOT_APPROVED: no entry names the tool, or it changed since it was approved.
        Refusal APPROVAL_REQUIRED: its entry wants a human's approval for each call.
    """
    found = permissions.find(tool)
    if found is None:
        return Refusal(
            "TOOL_NOT_APPROVED",
            f"{tool} is not in the permissions file; allow it with: pml tools approve {tool}",
        )
    pattern, permission = found
    listed = listed_tool(tool, server)
    definition = listed.definition if listed else ""
    if permission.definition and definition and permission.definition != definition:
        return Refusal(
            "TOOL_NOT_APPROVED",
            f"{tool} changed since it was approved; look at it and run: pml tools approve {tool}",
        )
    if permission.approval == "hil":
        return Refusal("APPROVAL_REQUIRED", f"{tool} needs a person's approval for each call (approval: hil)")
    hints = listed.hints if listed else ToolHints()
    trusted = server is not None and server.trusted
    return Grant(
        pattern,
        permission,
        _effect(permission, arguments, hints, trusted),
        _open_world(permission, hints, trusted),
        definition,
    )


def grant_if_approved(
    tool: str, arguments: Mapping[str, Any], permissions: PermissionFile, server: ServerTools | None
) -> Grant:
    """What a call may do once a person has approved it: as its entry says, else as the strictest would."""
    pattern, permission = permissions.find(tool) or ("", Permission())
    entry = permission.model_copy(update={"approval": "auto", "definition": None})
    granted = grant(tool, arguments, PermissionFile(tools={"*": entry}), server)
    assert isinstance(granted, Grant)
    return replace(granted, pattern=pattern)


def can_speculate(
    tool: str,
    arguments: Mapping[str, Any],
    permissions: PermissionFile,
    server: ServerTools | None,
    from_results: bool = False,
) -> Verdict:
    """Whether a call may run early, as far as the guard can tell.

    `from_results` says that arguments come from results of other tasks: those do not leave this
    machine early unless the operator allows it (condition 5). A tool that its server lists no longer has no
    hints that would narrow what the file allows: unknown, so no (condition 1).
    """
    if is_gone(tool, server):
        return Verdict(False, "not_listed")
    granted = grant(tool, arguments, permissions, server)
    if isinstance(granted, Refusal):
        return Verdict(False, granted.code.lower())
    return may_be_early(granted, from_results)


def may_be_early(granted: Grant, from_results: bool) -> Verdict:
    """Whether a call that may be made may be made early."""
    if granted.effect != "read":
        return Verdict(False, "effect")
    if not granted.permission.cacheable:
        return Verdict(False, "not_cacheable")
    if from_results and granted.open_world and not granted.permission.speculate_open_world:
        return Verdict(False, "open_world")
    return Verdict(True)


def requires_validation(tool: str, permissions: PermissionFile) -> bool:
    """Unknown tools and those with `approval: hil` need somebody's word first."""
    found = permissions.find(tool)
    return found is None or found[1].approval == "hil"


def listed_tool(tool: str, server: ServerTools | None) -> Tool | None:
    """The tool as its server listed it."""
    name = split_tool(tool)[1]
    return next((item for item in server.tools if item.name == name), None) if server else None


def is_gone(tool: str, server: ServerTools | None) -> bool:
    """Whether a server told what it has, and has no such tool."""
    return server is not None and server.status == "listed" and listed_tool(tool, server) is None


def may_run_early(tool: str, permissions: PermissionFile, server: ServerTools | None) -> bool:
    """Whether any arguments would let a call run early: what no argument can change is looked at first."""
    found = permissions.find(tool)
    if found is None or found[1].approval == "hil" or not found[1].cacheable or is_gone(tool, server):
        return False
    listed = listed_tool(tool, server)
    hints = listed.hints if listed else ToolHints()
    trusted = server is not None and server.trusted
    return _effect_at_best(found[1], hints, trusted) == "read"


def may_write(tool: str, permission: Permission, server: ServerTools | None) -> bool:
    """Whether a call of a tool may change the world. Arguments that are not known yet meet no condition."""
    listed = listed_tool(tool, server)
    hints = listed.hints if listed else ToolHints()
    trusted = server is not None and server.trusted
    return _effect(permission, {}, hints, trusted) == "write"


def _effect(permission: Permission, arguments: Mapping[str, Any], hints: ToolHints, trusted: bool) -> Effect:
    return _effect_at_best(permission, hints, trusted) if _matches(permission.when, arguments) else "write"


def _effect_at_best(permission: Permission, hints: ToolHints, trusted: bool) -> Effect:
    """Hints narrow what the file allows; only a trusted server's hint may widen a silent entry."""
    if _says_it_writes(hints):
        return "write"
    if trusted and permission.effect is None and hints.read_only is True:
        return "read"
    return permission.declared_effect


def _says_it_writes(hints: ToolHints) -> bool:
    """MCP: the destructive hint means something only where a tool is not read-only."""
    return hints.read_only is False or (hints.destructive is True and hints.read_only is None)


def _matches(when: Mapping[str, list[Any]], arguments: Mapping[str, Any]) -> bool:
    return all(
        name in arguments and any(_same(arguments[name], value) for value in allowed)
        for name, allowed in when.items()
    )


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is not true."""
    return canonical_json(one) == canonical_json(other)


def _open_world(permission: Permission, hints: ToolHints, trusted: bool) -> bool:
    """As the file says; else as the hint says, which may deny it only where its server is trusted."""
    if permission.open_world is not None:
        return permission.open_world
    if hints.open_world is True or (trusted and hints.open_world is False):
        return hints.open_world
    return permission.scope.startswith("network")
