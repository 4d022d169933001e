"""What calls of the past did beyond their results: what they touched and changed, whether they may run early.

By the permissions of now, as the pipeline would take them (DESIGN §4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pml.processors.learning.argument_values import is_redacted
from pml.processors.speculation.guard import (
    Grant,
    Refusal,
    grant,
    grant_if_approved,
    may_be_early,
    may_run_early,
)
from pml.processors.speculation.played import PlayedCall
from pml.processors.speculation.touches import any_overlap, touches_of
from pml.processors.workflow.catalog import Catalog
from pml.schemas.canonical import canonical_json


def may_ever(catalog: Catalog, tool: str) -> bool:
    """Whether a tool may run early at all, whatever it is called with."""
    server = catalog.server_of(tool)
    listed = server is not None and server.status == "listed"
    return listed and may_run_early(tool, catalog.permissions, server)


def touched(catalog: Catalog, tool: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What a call touches; the whole server where a value that says it was taken out of the log."""
    told = {name: value for name, value in arguments.items() if not is_redacted(canonical_json(value))}
    templates = _granted(catalog, tool, arguments).permission.touches
    return touches_of(tool, templates, arguments, told)


def written(call: PlayedCall, catalog: Catalog) -> tuple[str, ...]:
    """What it may have changed: nothing, where it only reads."""
    if _granted(catalog, call.tool, call.arguments).effect == "read":
        return ()
    return touched(catalog, call.tool, call.arguments)


def before_writes(calls: Sequence[PlayedCall], catalog: Catalog) -> Iterator[PlayedCall]:
    """The reads of what none of the calls before them had changed (DESIGN §4, condition 3)."""
    changed: list[str] = []
    for call in calls:
        changes = written(call, catalog)
        changed += changes
        reads = () if changes or not changed else touched(catalog, call.tool, call.arguments)
        if not changes and not any_overlap(reads, changed):
            yield call


def serves_for_ms(catalog: Catalog, tool: str, arguments: Mapping[str, Any]) -> int | None:
    """How long the result may wait to be asked for, ms; None: such a call must not begin early."""
    granted = grant(tool, arguments, catalog.permissions, catalog.server_of(tool))
    if isinstance(granted, Refusal) or not may_be_early(granted, from_results=True).allowed:
        return None
    return catalog.policy.kept_ms(granted.permission)


def _granted(catalog: Catalog, tool: str, arguments: Mapping[str, Any]) -> Grant:
    """What a call that was made may do; where nothing allows it, somebody did."""
    server = catalog.server_of(tool)
    granted = grant(tool, arguments, catalog.permissions, server)
    if isinstance(granted, Refusal):
        return grant_if_approved(tool, arguments, catalog.permissions, server)
    return granted
