"""The calls of a run that a person is asked about before any of them begins (DESIGN §4, Approvals).

What is known of a call is shown, and consent is for that: a call whose arguments come from results is shown
with what they come from. What has no room here is asked about in its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pml.processors.speculation.guard import Grant, Refusal, grant, grant_if_approved
from pml.processors.speculation.touches import touches_of
from pml.processors.workflow.arguments import Resolved, resolve
from pml.processors.workflow.consent import NOBODY, description_of, patience_ms, status_without
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.graph import Node, read_by
from pml.processors.workflow.preparation import Prepared, prepare
from pml.processors.workflow.release import skip_reason
from pml.processors.workflow.state import Asked, Run
from pml.schemas.canonical import value_hash
from pml.schemas.codec import encode
from pml.schemas.errors import PMLError
from pml.schemas.events import ApprovalCall, ApprovalExpired, ApprovalRequested
from pml.schemas.identifiers import approval_id
from pml.schemas.sanitiser import sanitise, sanitise_text
from pml.schemas.times import to_rfc3339
from pml.schemas.workflow import Argument, Expression, Reference

SHOWN_BYTES_MAX = 131_072
"""Of all calls together: nobody reads more, and the event stays small beside its batch."""
_DESCRIPTION_BYTES_MAX = 500
_SOURCE_BYTES_MAX = 500


def calls_to_show(draft: Draft, run: Run, tools: Iterable[str] = ()) -> tuple[tuple[ApprovalCall, ...], int]:
    """The calls that need a person's word and have not begun, and how many have no room.

    Args:
        tools: what the program of a run names that has no tasks before it asks for some.
    """
    kept: list[ApprovalCall] = []
    room, omitted = SHOWN_BYTES_MAX, 0
    for call in (*_of_tasks(draft, run), *_of_tools(draft, tools)):
        size = len(encode(call))
        if size <= room:
            kept.append(call)
            room -= size
        else:
            omitted += 1
    return tuple(kept), omitted


def ask_about_all(draft: Draft, run: Run, calls: tuple[ApprovalCall, ...], omitted: int) -> None:
    """Ask a person; nothing of the run begins before they have answered, or their time is over."""
    only = calls[0] if len(calls) == 1 else None
    shown = [(call.task_id, call.tool, call.arguments_hash, call.definition) for call in calls]
    everything = value_hash(shown, draft.catalog.policy.hash_key)
    message = f"{len(calls) + omitted} calls need a person's approval"
    requested = ApprovalRequested(
        approval_id=approval_id(draft.next_event_id),
        task_id=only.task_id if only else "",
        layer=min(call.layer for call in calls),
        tool=only.tool if only else "",
        description=only.description if only else "",
        arguments=only.arguments if only else None,
        arguments_hash=(only.arguments_hash if only else None) or everything,
        effect="write" if any(call.effect == "write" for call in calls) else "read",
        touches=tuple(sorted({touch for call in calls for touch in call.touches})),
        definition=only.definition if only else "",
        code=only.code if only else "APPROVAL_REQUIRED",
        message=only.message if only else message,
        expires_at=to_rfc3339(draft.now_ms + patience_ms(draft, run)),
        calls=calls,
        omitted=omitted or None,
    )
    draft.emit(requested, run)


def withdraw_all(draft: Draft, run_id: str, because: Literal["timeout", "run_ended", "replanned"]) -> None:
    """Nobody will answer any more what was asked about all calls, if anything was."""
    run = draft.run(run_id)
    asked = run.waits.asked
    if asked is None:
        return
    expired = ApprovalExpired(
        **NOBODY.fields(),
        **about(run, asked),
        because=because,
        run_status=status_without(run, asked.approval_id),
    )
    draft.emit(expired, run)


def about(run: Run, asked: Asked) -> dict[str, str]:
    """What the end of a request about all calls says of it: where it was about one alone, which."""
    only = next(iter(asked.calls)) if len(asked.calls) == 1 else ""
    assert run.graph is not None
    node = run.graph.nodes.get(only)
    told = {"task_id": only, "tool": node.tool} if node else {"task_id": "", "tool": only}
    return {"approval_id": asked.approval_id, **told}


def _of_tasks(draft: Draft, run: Run) -> Iterator[ApprovalCall]:
    assert run.graph is not None
    asking: dict[str, Refusal | None] = {}
    for node in run.graph.nodes.values():
        if node.tool not in asking:
            asking[node.tool] = _refusal(draft, node.tool)
        refusal = asking[node.tool]
        if refusal is not None and run.unreleased(node.id) and skip_reason(run, node) is None:
            yield from _call(draft, run, node, refusal)


def _of_tools(draft: Draft, tools: Iterable[str]) -> Iterator[ApprovalCall]:
    for tool in dict.fromkeys(tools):
        refusal = _refusal(draft, tool)
        if refusal is not None:
            granted = _granted(draft, tool, {})
            touches = touches_of(tool, granted.permission.touches, None, None)
            yield _shown(draft, tool, refusal, granted, touches, conditional=True)


def _refusal(draft: Draft, tool: str) -> Refusal | None:
    """Why a tool needs a person's word, which is the same for all its arguments; None where it does not."""
    found = grant(tool, {}, draft.catalog.permissions, draft.catalog.server_of(tool))
    return found if isinstance(found, Refusal) and found.asks_person else None


def _granted(draft: Draft, tool: str, arguments: dict[str, Any]) -> Grant:
    return grant_if_approved(tool, arguments, draft.catalog.permissions, draft.catalog.server_of(tool))


def _call(draft: Draft, run: Run, node: Node, refusal: Refusal) -> Iterator[ApprovalCall]:
    """The call of a task; none where it cannot be made, so that its task will fail in its turn."""
    place: dict[str, Any] = {"task_id": node.id, "layer": node.layer}
    place["conditional"] = True if node.conditions else None
    if all(run.task(name).ended for name in node.references):
        prepared = prepare(draft, run, node)
        if isinstance(prepared, Prepared):
            known = {"arguments": prepared.sanitised, "arguments_hash": prepared.arguments_hash}
            yield _shown(draft, node.tool, refusal, prepared.granted, prepared.touches, **place, **known)
        return
    try:
        arguments, computed = _in_part(draft, run, node)
    except PMLError:
        return
    granted, safe = _granted(draft, node.tool, arguments), sanitise(arguments)
    plain = safe if isinstance(safe, dict) else {}
    touches = touches_of(node.tool, granted.permission.touches, arguments, plain)
    yield _shown(draft, node.tool, refusal, granted, touches, **place, arguments=safe, computed=computed)


def _in_part(draft: Draft, run: Run, node: Node) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments that no result is read for, and what the others come from.

    Raises:
        PayloadGone: what wrote them down is past its retention.
    """
    written = draft.arguments_of(run, node.id)
    computed = {name: _source(argument) for name, argument in written.items() if read_by(argument)}
    own = {name: argument for name, argument in written.items() if name not in computed}
    resolved = resolve(own, draft.values(run), required=())
    known = resolved.arguments if isinstance(resolved, Resolved) else {}
    return known, {sanitise_text(name, _SOURCE_BYTES_MAX): text for name, text in computed.items()}


def _source(argument: Argument) -> str:
    """What a value will be taken from: as it was written, or the tasks that parts of it are read from."""
    match argument:
        case Reference(expression=text) | Expression(code=text):
            return sanitise_text(text, _SOURCE_BYTES_MAX)
    return sanitise_text(", ".join(sorted(read_by(argument))), _SOURCE_BYTES_MAX)


def _shown(
    draft: Draft, tool: str, refusal: Refusal, granted: Grant, touches: tuple[str, ...], **fields: Any
) -> ApprovalCall:
    return ApprovalCall(
        tool=tool,
        description=description_of(draft, tool, _DESCRIPTION_BYTES_MAX),
        effect=granted.effect,
        touches=touches,
        definition=granted.definition,
        code=refusal.code,
        message=sanitise_text(refusal.message),
        **fields,
    )
