"""A tool is asked whether an unsafe call of unknown outcome happened (DESIGN §2, rule 6: `verify`).

Once for each such call, when it can no longer be at work. A certain answer settles the task as a person's
word would; anything else leaves it to a person. Another write of the same things in the session, beside it
or after it, makes the question worthless: nobody could tell whose effect is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pml.processors.speculation.guard import Refusal, grant
from pml.processors.speculation.touches import any_overlap, touches_of
from pml.processors.workflow.arguments import Unresolved
from pml.processors.workflow.calls import Wanted, call_run
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.preparation import ARGUMENTS_BYTES_MAX, Prepared, resolve_node, started_fields
from pml.processors.workflow.settling import safe_error
from pml.processors.workflow.state import Inquiry
from pml.processors.workflow.verify_rule import AMBIGUOUS, VerifyFailed, filled, flaw, happened, rule_of
from pml.schemas.calls import CallError
from pml.schemas.canonical import canonical_json, keyed_hash, value_hash
from pml.schemas.errors import PayloadGone, PMLError
from pml.schemas.events import TaskUnverified, TaskVerifying
from pml.schemas.permissions import VerifyRule
from pml.schemas.sanitiser import sanitise

_NO_ANSWER = CallError(
    code="TIMEOUT", type="TIMEOUT", message="the tool that was to verify gave no answer in time"
)


def reach_inquiry(draft: Draft, unknown_call_id: str) -> None:
    """Its time has come: the tool is asked, or has not answered."""
    inquiry = draft.session.inquiries.get(unknown_call_id)
    if inquiry is None:
        return
    if inquiry.call is None:
        if inquiry.due_ms <= draft.now_ms:
            _ask(draft, unknown_call_id, inquiry)
    elif inquiry.call.deadline_ms <= draft.now_ms:
        give_up(draft, unknown_call_id, _NO_ANSWER)


def find_inquiry(draft: Draft, call_id: str) -> tuple[str, Inquiry] | None:
    """The question that a call asks, and the unknown call that it is about."""
    known = draft.session.inquiries.items()
    return next((item for item in known if item[1].call and item[1].call.call_id == call_id), None)


def verdict(draft: Draft, inquiry: Inquiry, result: Any) -> bool:
    """Whether an answer says that the write happened.

    Raises:
        VerifyFailed: it says nothing for certain.
        PayloadGone: the arguments of the write are past their retention.
    """
    return happened(inquiry.done, result, _arguments_of_write(draft, inquiry))


def give_up(draft: Draft, unknown_call_id: str, error: CallError, answered: bool = False) -> None:
    """The task stays unknown; nobody asks again."""
    inquiry = draft.session.inquiries[unknown_call_id]
    run = draft.run(inquiry.run_id)
    node, call = run.node(inquiry.task_id), inquiry.call
    unverified = TaskUnverified(
        task_id=node.id,
        attempt=run.task(node.id).attempt,
        layer=node.layer,
        tool=inquiry.tool or node.tool,
        unknown_call_id=unknown_call_id,
        call_id=call.call_id if call else None,
        error=safe_error(error),
    )
    draft.emit(unverified, run)
    if call is not None and not answered:
        draft.cancel(run, call.call_id, error.code.lower())


def give_up_overtaken_inquiries(draft: Draft, touches: tuple[str, ...]) -> None:
    """A write begins: from here nobody can tell whose effect the tool would see."""
    for unknown_call_id in list(draft.session.inquiries):
        if any_overlap(draft.session.doubtful.get(unknown_call_id, ()), touches):
            give_up(draft, unknown_call_id, AMBIGUOUS)


def as_failure(error: PMLError) -> CallError:
    """Why there is no certain answer, as an event keeps it."""
    return CallError(code=error.code, type="VALIDATION", message=error.message)


def _ask(draft: Draft, unknown_call_id: str, inquiry: Inquiry) -> None:
    try:
        rule = _usable_rule(draft, inquiry)
        prepared = _prepared(draft, inquiry, rule)
    except PMLError as error:
        give_up(draft, unknown_call_id, as_failure(error))
        return
    run = draft.run(inquiry.run_id)
    verifying = TaskVerifying(
        **started_fields(draft, prepared),
        attempt=run.task(inquiry.task_id).attempt,
        unknown_call_id=unknown_call_id,
        template=rule.arguments,
        done=rule.done,
    )
    draft.emit(verifying, run)
    asked = draft.session.inquiries[unknown_call_id]
    assert asked.call is not None
    item = Wanted(run, asked.task_id, asked.tool, 1, asked.call, False, template=asked.template)
    draft.calls.append(call_run(draft.session, item, prepared.arguments))


def _usable_rule(draft: Draft, inquiry: Inquiry) -> VerifyRule:
    """The rule as the file has it now.

    Raises:
        VerifyFailed: there is none any more, or it cannot be used.
    """
    permissions = draft.catalog.permissions
    rule = rule_of(permissions, draft.run(inquiry.run_id).node(inquiry.task_id).tool)
    if rule is None:
        raise VerifyFailed("its entry declares no verify any more")
    wrong = flaw(permissions, rule)
    if wrong:
        raise VerifyFailed(wrong)
    return rule


def _prepared(draft: Draft, inquiry: Inquiry, rule: VerifyRule) -> Prepared:
    """The call that asks.

    Raises:
        VerifyFailed: it may not be made, or would not read.
        PayloadGone: the arguments of the write are past their retention.
    """
    run = draft.run(inquiry.run_id)
    call = run.task(inquiry.task_id).call
    arguments = filled(rule.arguments, _arguments_of_write(draft, inquiry))
    granted = grant(rule.tool, arguments, draft.catalog.permissions, draft.catalog.server_of(rule.tool))
    if isinstance(granted, Refusal):
        raise VerifyFailed(granted.message)
    written = canonical_json(arguments)
    if granted.effect != "read" or len(written) > ARGUMENTS_BYTES_MAX:
        raise VerifyFailed(f"{rule.tool} with these arguments does not only read, or they are too large")
    sanitised = sanitise(arguments)
    plain = sanitised if isinstance(sanitised, dict) else {}
    return Prepared(
        node=replace(run.node(inquiry.task_id), tool=rule.tool, timeout_ms=None),
        arguments=arguments,
        omitted=(),
        mapped=dict(call.mapped) if call else {},
        sanitised=sanitised,
        arguments_hash=keyed_hash(written, draft.catalog.policy.hash_key),
        granted=granted,
        touches=touches_of(rule.tool, granted.permission.touches, arguments, plain),
    )


def _arguments_of_write(draft: Draft, inquiry: Inquiry) -> Mapping[str, Any]:
    run = draft.run(inquiry.run_id)
    call = run.task(inquiry.task_id).call
    resolved = resolve_node(draft, run, run.node(inquiry.task_id), strictly=False, call=call)
    if (
        call is None
        or isinstance(resolved, Unresolved)
        or value_hash(resolved.arguments, draft.catalog.policy.hash_key) != call.arguments_hash
    ):
        raise PayloadGone("the arguments of the write are not what they were when it began")
    return resolved.arguments
