"""`calls`: what must be running now, derived from the state (DESIGN §2, rule 5).

It can be asked at any time; a repeated call carries the same call id. Arguments are resolved again
from the full values and compared with what was recorded: different or expired ones are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pml.processors.workflow.arguments import Resolved, Values, resolve
from pml.processors.workflow.draft import Results, context_of, full_arguments, has_task
from pml.processors.workflow.elements import addresses_in
from pml.processors.workflow.fields import RecordedFields
from pml.processors.workflow.inputs import Address, GoneCall, Payloads
from pml.processors.workflow.prediction_values import prediction_asked
from pml.processors.workflow.state import Call, Internal, Run, Session, Source
from pml.processors.workflow.steps import step_request
from pml.processors.workflow.verify_rule import VerifyFailed, filled
from pml.schemas.analysis import ANALYSE_TOOL
from pml.schemas.calls import CallRun
from pml.schemas.canonical import value_hash
from pml.schemas.commands import RunStart
from pml.schemas.inlining import INLINE_TOOL
from pml.schemas.matching import MATCH_TOOL
from pml.schemas.prediction import PREDICT_TOOL
from pml.schemas.stepping import STEP_TOOL
from pml.schemas.times import to_rfc3339

READS_COMMAND = frozenset({ANALYSE_TOOL, INLINE_TOOL, MATCH_TOOL})
"""Internal calls that are given something of the command that began their run."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that must be running, of a task or of a speculation.

    One that asks what became of a task's write has the `template` of its own arguments. A predicted one is
    written down at `plan`, and reads nothing of its run.
    """

    run: Run
    task_id: str
    tool: str
    attempt: int
    call: Call
    speculative: bool
    sources: tuple[Source, ...] = ()
    template: Mapping[str, Any] | None = None
    plan: Address | None = None


def wanted(session: Session) -> Iterator[Wanted]:
    """Everything that must be running: tasks, speculations that no task has joined, what is called again."""
    joined: set[str] = set()
    for run in session.runs.values():
        for task_id, task in run.tasks.items():
            if run.live and task.status == "running" and task.call:
                joined.add(task.call.call_id)
                yield Wanted(run, task_id, run.node(task_id).tool, task.attempt, task.call, speculative=False)
    for call_id, entry in session.speculations.items():
        if entry.status == "running" and call_id not in joined:
            run = session.runs[entry.run_id]
            yield Wanted(run, entry.task_id, entry.tool, 1, entry.call, True, entry.sources, plan=entry.plan)
    for again in session.verifications.values():
        yield Wanted(
            session.runs[again.run_id], again.task_id, again.tool, 1, again.call, True, again.sources
        )
    for item in session.inquiries.values():
        if item.call is not None:
            run = session.runs[item.run_id]
            yield Wanted(run, item.task_id, item.tool, 1, item.call, False, template=item.template)


def call_needs(session: Session) -> set[Address]:
    """The full values that `calls` reads."""
    asking = (item for item in session.internals.values() if item.tool in READS_COMMAND)
    found: set[Address] = {session.runs[item.run_id].payload for item in asking}
    for internal in session.internals.values():
        found |= addresses_in(internal)
    for item in wanted(session):
        found.update(source.result for source in item.sources)
        if item.plan is not None:
            found.add(item.plan)
            continue
        found |= {item.run.payload, *item.run.expansions, *_plans(item)}
        if item.run.graph is not None:
            results = (item.run.task(name).result for name in item.run.node(item.task_id).references)
            found.update(address for address in results if address)
    return found


def calls(session: Session, payloads: Payloads, hash_key: bytes) -> list[CallRun | GoneCall]:
    """All calls that must be running; `GoneCall` where the arguments cannot be had any more."""
    internal = [_internal(session, item, payloads) for item in session.internals.values()]
    return [*internal, *(_call(session, item, payloads, hash_key) for item in wanted(session))]


def _call(session: Session, item: Wanted, payloads: Payloads, hash_key: bytes) -> CallRun | GoneCall:
    arguments = _arguments(item, payloads)
    if arguments is None or value_hash(arguments, hash_key) != item.call.arguments_hash:
        return GoneCall(item.call.call_id, session.tenant, session.session_id)
    return call_run(session, item, arguments)


def _arguments(item: Wanted, payloads: Payloads) -> dict[str, Any] | None:
    if item.plan is not None:
        return _predicted(item, payloads)
    start = payloads.get(item.run.payload)
    plans = (payloads.get(address) for address in _plans(item))
    plan = next((plan for plan in plans if plan is not None and has_task(plan, item.task_id)), None)
    expansions = [payloads[address] for address in item.run.expansions if address in payloads]
    if start is None or plan is None or len(expansions) < len(item.run.expansions):
        return None
    fields = RecordedFields(dict(item.call.mapped))
    results = Results(item.run, payloads, addresses_of(item.sources))
    values = Values(context_of(start, expansions), results, fields)
    # What was optional and had no value then has none now: nothing is required a second time.
    resolved = resolve(full_arguments(plan, item.task_id), values, required=frozenset())
    if not isinstance(resolved, Resolved):
        return None
    return resolved.arguments if item.template is None else _asked(item.template, resolved.arguments)


def _predicted(item: Wanted, payloads: Payloads) -> dict[str, Any] | None:
    """Those that the prediction wrote down, and results that its other calls gave."""
    plan = payloads.get(item.plan) if item.plan else None
    if plan is None:
        return None
    values = Values({}, Results(None, payloads, addresses_of(item.sources)))
    resolved = resolve(full_arguments(plan, item.task_id), values, required=frozenset())
    return resolved.arguments if isinstance(resolved, Resolved) else None


def _asked(template: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return {name: filled(value, arguments) for name, value in template.items()}
    except VerifyFailed:
        return None


def _plans(item: Wanted) -> tuple[Address, ...]:
    """Where the task of a call is written down; of a run that has ended it is in one of its plans."""
    run = item.run
    if run.graph is None:
        return (*reversed(run.replans), run.payload)
    return (run.written_at(run.node(item.task_id).plan),)


def addresses_of(sources: Iterable[Source]) -> dict[str, Address]:
    """The waiting results of tasks that have none yet."""
    return {source.task_id: source.result for source in sources}


def _internal(session: Session, item: Internal, payloads: Payloads) -> CallRun | GoneCall:
    if item.tool in READS_COMMAND and session.runs[item.run_id].payload not in payloads:
        return GoneCall(item.call_id, session.tenant, session.session_id)
    return internal_call(session, item, payloads)


def internal_call(session: Session, item: Internal, payloads: Payloads) -> CallRun:
    """The record of a call of the server `pml`: what is small is in the state, texts are in its command."""
    return CallRun(
        call_id=item.call_id,
        tenant=session.tenant,
        session_id=session.session_id,
        traceparent=session.runs[item.run_id].traceparent,
        run_id=item.run_id,
        task_id="",
        tool=item.tool,
        arguments=_given(session, item, payloads),
        speculative=False,
        effect="read",
        timeout_ms=item.timeout_ms,
        deadline_at=to_rfc3339(item.deadline_ms),
    )


def _given(session: Session, item: Internal, payloads: Payloads) -> dict[str, Any]:
    """What is asked: a step of a program follows from the state alone."""
    if item.tool == STEP_TOOL:
        return step_request(session.runs[item.run_id]).model_dump(mode="json", exclude_none=True)
    if item.tool == PREDICT_TOOL:
        return prediction_asked(item, payloads).model_dump(mode="json")
    return {**item.arguments, **_of_command(item.tool, payloads.get(session.runs[item.run_id].payload))}


def _of_command(tool: str, start: RunStart | None) -> dict[str, Any]:
    """What of a command an internal call is about, secrets and all."""
    if start is None or tool not in READS_COMMAND:
        return {}
    if tool == MATCH_TOOL:
        return {"intent": start.intent}
    if tool == INLINE_TOOL:
        return {"workflow": start.workflow.model_dump(mode="json")} if start.workflow else {}
    return {"source": start.code.source} if start.code else {}


def call_run(session: Session, item: Wanted, arguments: dict[str, Any]) -> CallRun:
    """The record of `pml.tool-calls`."""
    return CallRun.model_construct(
        type="call.run",
        version=1,
        call_id=item.call.call_id,
        tenant=session.tenant,
        session_id=session.session_id,
        traceparent=item.run.traceparent,
        run_id=item.run.run_id,
        task_id=item.task_id,
        attempt=item.attempt,
        tool=item.tool,
        arguments=arguments,
        speculative=item.speculative,
        effect=item.call.effect,
        definition=item.call.definition,
        timeout_ms=item.call.timeout_ms,
        deadline_at=to_rfc3339(item.call.deadline_ms),
        isolation=item.call.isolation,
        approval_id=_approval_id(item),
    )


def _approval_id(item: Wanted) -> str | None:
    own = not item.speculative and item.template is None
    approval = item.run.task(item.task_id).approval if own else None
    return approval.approval_id if approval else None
