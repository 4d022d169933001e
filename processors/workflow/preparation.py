"""A task before its call: arguments with values, what the operator grants, what it touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pml.processors.speculation.guard import Grant, Refusal, grant, grant_if_approved, listed_tool
from pml.processors.speculation.touches import touches_of
from pml.processors.workflow.arguments import Resolved, Unresolved, Values, resolve, resolve_strictly
from pml.processors.workflow.catalog import Catalog
from pml.processors.workflow.draft import NO_SOURCES, Draft
from pml.processors.workflow.fields import Fields, RecordedFields, SchemaFields
from pml.processors.workflow.graph import Node
from pml.processors.workflow.inputs import Address
from pml.processors.workflow.state import Call, Isolation, Run
from pml.schemas.calls import CallError
from pml.schemas.canonical import NESTING_MAX, canonical_json, is_too_deep, keyed_hash
from pml.schemas.errors import PMLError
from pml.schemas.identifiers import call_id
from pml.schemas.sanitiser import sanitise
from pml.schemas.times import to_rfc3339

ARGUMENTS_BYTES_MAX = 1_048_576


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that can be made; where `consent` says why, only with a person's approval."""

    node: Node
    arguments: dict[str, Any]
    omitted: tuple[str, ...]
    mapped: Mapping[str, str]
    sanitised: Any
    arguments_hash: str
    granted: Grant
    touches: tuple[str, ...]
    consent: Refusal | None = None

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.granted.effect == "read"


@dataclass(frozen=True, slots=True)
class Unprepared:
    """A task whose call cannot be made."""

    node: Node
    error: CallError


def prepare(draft: Draft, run: Run, node: Node) -> Prepared | Unprepared:
    """A real call, or the error of its task."""
    try:
        return _prepared(draft, run, node, strictly=False)
    except PMLError as error:
        return _failed(node, error)


def prepare_strictly(
    draft: Draft, run: Run, node: Node, sources: Mapping[str, Address] = NO_SOURCES
) -> Prepared | Unprepared:
    """A speculative call: everything it needs is known, or there is none (spec FR9).

    Args:
        sources: waiting results of tasks that have none yet.
    """
    try:
        return _prepared(draft, run, node, strictly=True, sources=sources)
    except PMLError as error:
        return _failed(node, error)


def prepare_predicted(draft: Draft, node: Node, values: Values) -> Prepared | Unprepared:
    """A call that no run has asked for: its node is written in a prediction, not in a run."""
    absent = (_required(draft.catalog, node.tool) or frozenset()) - node.arguments.keys()
    if absent:
        message = f"{', '.join(sorted(absent))} is required and not given"
        return _refused(node, "UNRESOLVED_ARGUMENT", "VALIDATION", message)
    try:
        return _allowed(draft, node, resolve_strictly(node.arguments, values), strictly=True)
    except PMLError as error:
        return _failed(node, error)


def _prepared(
    draft: Draft, run: Run, node: Node, strictly: bool, sources: Mapping[str, Address] = NO_SOURCES
) -> Prepared | Unprepared:
    return _allowed(draft, node, resolve_node(draft, run, node, strictly, sources=sources), strictly)


def _allowed(
    draft: Draft, node: Node, resolved: Resolved | Unresolved, strictly: bool
) -> Prepared | Unprepared:
    """What is granted for a call with these arguments."""
    if isinstance(resolved, Unresolved):
        return _refused(node, "UNRESOLVED_ARGUMENT", "VALIDATION", resolved.message)
    server = draft.catalog.server_of(node.tool)
    granted = grant(node.tool, resolved.arguments, draft.catalog.permissions, server)
    consent = granted if isinstance(granted, Refusal) else None
    if isinstance(granted, Refusal):
        if strictly or not granted.asks_person:
            return _refused(node, granted.code, "PERMISSION", granted.message)
        granted = grant_if_approved(node.tool, resolved.arguments, draft.catalog.permissions, server)
    written = canonical_json(resolved.arguments)
    if len(written) > ARGUMENTS_BYTES_MAX:
        return _refused(
            node, "ARGUMENTS_TOO_LARGE", "VALIDATION", f"{len(written)} bytes; at most {ARGUMENTS_BYTES_MAX}"
        )
    if is_too_deep(resolved.arguments):
        return _refused(
            node, "ARGUMENTS_TOO_DEEP", "VALIDATION", f"nested deeper than {NESTING_MAX} levels; flatten them"
        )
    arguments_hash = keyed_hash(written, draft.catalog.policy.hash_key)
    return _assembled(node, resolved, arguments_hash, granted, consent)


def _assembled(
    node: Node, resolved: Resolved, arguments_hash: str, granted: Grant, consent: Refusal | None
) -> Prepared:
    sanitised = sanitise(resolved.arguments)
    plain = sanitised if isinstance(sanitised, dict) else {}
    return Prepared(
        node=node,
        arguments=resolved.arguments,
        omitted=resolved.omitted,
        mapped=resolved.mapped,
        sanitised=sanitised,
        arguments_hash=arguments_hash,
        granted=granted,
        touches=touches_of(node.tool, granted.permission.touches, resolved.arguments, plain),
        consent=consent,
    )


def resolve_node(
    draft: Draft,
    run: Run,
    node: Node,
    strictly: bool,
    *,
    call: Call | None = None,
    sources: Mapping[str, Address] = NO_SOURCES,
) -> Resolved | Unresolved:
    """The arguments of a node from the full values.

    Args:
        call: of a node that has begun; then its arguments are resolved as they were.

    Raises:
        PayloadGone: the command that started the run, or a result, is past its retention.
    """
    arguments = draft.arguments_of(run, node.id)
    values = replace(draft.values(run, sources), fields=_fields(draft, run, node, call))
    for reference in sorted(node.references):
        address = sources.get(reference) or run.task(reference).result
        if address is not None:
            draft.payload(address)
    # What was optional and had no value then has none now: nothing is required a second time.
    required = _required(draft.catalog, node.tool) if call is None else frozenset[str]()
    absent = (required or frozenset()) - arguments.keys()
    if strictly and absent:
        return Unresolved(dict.fromkeys(sorted(absent), "is required and not given"))
    return resolve_strictly(arguments, values) if strictly else resolve(arguments, values, required)


def _fields(draft: Draft, run: Run, node: Node, call: Call | None) -> Fields:
    if call is not None:
        return RecordedFields(dict(call.mapped))
    assert run.graph is not None
    return SchemaFields(draft.catalog, run.graph, node.tool)


def _required(catalog: Catalog, tool: str) -> frozenset[str] | None:
    listed = listed_tool(tool, catalog.server_of(tool))
    required = listed.input_schema.get("required") if listed else None
    if listed is None:
        return None
    return (
        frozenset(name for name in required if isinstance(name, str))
        if isinstance(required, list)
        else frozenset()
    )


def _failed(node: Node, error: PMLError) -> Unprepared:
    """What its arguments are made of is gone, or no JSON."""
    return Unprepared(node, CallError(code=error.code, type="VALIDATION", message=error.message))


def _refused(node: Node, code: str, kind: str, message: str) -> Unprepared:
    return Unprepared(
        node, CallError(code=code, type=kind, message=f"task {node.id} ({node.tool}): {message}")
    )


def started_fields(draft: Draft, prepared: Prepared) -> dict[str, Any]:
    """The fields that `task.started` and `speculation.started` have in common."""
    node, permission = prepared.node, prepared.granted.permission
    policy = draft.catalog.policy
    patience_ms = timeout_ms(draft.catalog, prepared)
    return {
        "task_id": node.id,
        "layer": node.layer,
        "tool": node.tool,
        "call_id": call_id(draft.next_event_id),
        "arguments": prepared.sanitised,
        "arguments_hash": prepared.arguments_hash,
        "omitted": prepared.omitted,
        "mapped": dict(prepared.mapped) or None,
        "effect": prepared.granted.effect,
        "touches": prepared.touches,
        "cacheable": permission.cacheable,
        "ttl_s": ttl_ms(draft.catalog, prepared) / 1_000,
        "timeout_ms": patience_ms,
        "deadline_at": to_rfc3339(
            draft.now_ms + policy.queue_timeout_ms + patience_ms + policy.bridge_grace_ms
        ),
        "permission": prepared.granted.pattern,
        "definition": prepared.granted.definition,
        "isolation": _isolation(draft.catalog, node.tool),
    }


def ttl_ms(catalog: Catalog, prepared: Prepared) -> int:
    """How old a result may be that serves a call."""
    return catalog.policy.kept_ms(prepared.granted.permission)


def timeout_ms(catalog: Catalog, prepared: Prepared) -> int:
    """How long a call may take once it has begun."""
    if prepared.node.timeout_ms is not None:
        return prepared.node.timeout_ms
    configured = prepared.granted.permission.timeout_s
    return catalog.policy.task_timeout_ms if configured is None else round(configured * 1_000)


def _isolation(catalog: Catalog, tool: str) -> Isolation:
    server = catalog.server_of(tool)
    return server.isolation if server else "shared"
