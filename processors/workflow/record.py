"""State as bytes: one small control record a session, one definition record a run (DESIGN §3, State).

Fields are written by position, addresses with an index into the record's list of topics, so that a
control record stays under 1 KB plus 100 bytes a task. The format is our own and versioned: a version
that this release does not know stops the role.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import orjson

from pml.processors.workflow.elements import foreseen_key
from pml.processors.workflow.graph import Deferred, Graph, grown
from pml.processors.workflow.inputs import Address
from pml.processors.workflow.state import (
    NO_WAITS,
    UNNAMED,
    Abort,
    Accounts,
    Approval,
    Asked,
    Call,
    Counts,
    Element,
    Foreseen,
    Inquiry,
    Internal,
    Pause,
    Plan,
    Run,
    Session,
    Source,
    Speculation,
    TaskState,
    TaskStatus,
    Verification,
    Waits,
)
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import Event, RunExpanded, RunReplanned, RunStarted, ServedBy
from pml.schemas.permissions import RetryRule
from pml.schemas.structure import Language
from pml.schemas.workflow import Workflow

VERSION = 1
_STATUSES: tuple[TaskStatus, ...] = ("pending", "running", "completed", "failed", "skipped", "unknown")
# Bits of one number, in this order for ever.
_FLAGS = ("speculable", "barred", "replaces", "crossed", "held", "eligible", "speculated")
_SERVED: tuple[ServedBy, ...] = ("call", "speculation", "joined", "repeat")


@dataclass(frozen=True, slots=True)
class MissingDefinition:
    """A definition that a run needs is not at hand: read it from the log."""

    name: str


def definition_record(event: Event) -> bytes:
    """What is kept of a `run.started`, `run.expanded` or `run.replanned`, once for each."""
    data = event.data
    assert isinstance(data, (RunStarted, RunExpanded, RunReplanned))
    plan = {} if isinstance(data, RunStarted) else {"kept": data.kept, "plan": data.number}
    return orjson.dumps({"v": VERSION, "definition": data.definition, **plan})


def definition_name(event: Event) -> str | None:
    """The name of the definition that an event brings; None for most events."""
    if isinstance(event.data, RunStarted):
        return event.run_id
    data = event.data
    return f"{event.run_id}/{data.number}" if isinstance(data, (RunExpanded, RunReplanned)) else None


def encode_session(session: Session) -> bytes:
    """The control record."""
    topics: list[str] = []
    fields_ = {
        "runs": [_run_out(run, topics) for run in session.runs.values()],
        "speculations": [_speculation_out(item, topics) for item in session.speculations.values()],
    }
    head = {
        "v": VERSION,
        "tenant": session.tenant,
        "session": session.session_id,
        "at": [session.epoch, session.seq, session.last_offset, session.last_event_ms],
        "accounts": _accounts_out(session.accounts),
        "doubtful": session.doubtful,
        **({"obeyed": session.obeyed} if session.obeyed else {}),
        **({"paces": session.paces} if session.paces else {}),
        **({"scores": session.scores} if session.scores else {}),
        "topics": topics,
    }
    if session.verifications:
        fields_["verifications"] = [_again_out(item, topics) for item in session.verifications.values()]
    if session.past:
        fields_["past"] = [_element_out(item, topics) for item in session.past]
    if session.foreseen:
        fields_["foreseen"] = [_foreseen_out(item) for item in session.foreseen.values()]
    if session.inquiries:
        fields_["inquiries"] = [[name, *_inquiry_out(item)] for name, item in session.inquiries.items()]
    return orjson.dumps(head | fields_ | _internal_out(session))


def decode_session(data: bytes, definitions: Callable[[str], bytes | None]) -> Session | MissingDefinition:
    """The session of a control record.

    Args:
        definitions: the definition record of a run, None where it is not at hand.

    Raises:
        LogCorrupted: the record was written by a release that this one does not know.
    """
    record = _open(data)
    topics = record["topics"]
    runs: dict[str, Run] = {}
    for item in record["runs"]:
        graph = _graph(item, definitions)
        if isinstance(graph, MissingDefinition):
            return graph
        runs[item[0]] = _run_in(item, topics, graph)
    epoch, seq, last_offset, last_event_ms = record["at"]
    speculations = [_speculation_in(item, topics) for item in record["speculations"]]
    again = [_again_in(item, topics) for item in record.get("verifications", ())]
    foreseen = [_foreseen_in(row) for row in record.get("foreseen", ())]
    return Session(
        tenant=record["tenant"],
        session_id=record["session"],
        epoch=epoch,
        seq=seq,
        last_offset=last_offset,
        last_event_ms=last_event_ms,
        runs=runs,
        speculations={item.call.call_id: item for item in speculations},
        doubtful={call_id: tuple(touches) for call_id, touches in record["doubtful"].items()},
        accounts=Accounts(*record["accounts"]),
        obeyed=record.get("obeyed", {}),
        internals={item[0]: Internal(*item) for item in record.get("internals", ())},
        influences=record.get("influences", {}),
        verifications={item.call.call_id: item for item in again},
        paces=record.get("paces", {}),
        scores=record.get("scores", {}),
        inquiries={row[0]: _inquiry_in(row[1:]) for row in record.get("inquiries", ())},
        past=tuple(_element_in(row, topics) for row in record.get("past", ())),
        foreseen={foreseen_key(item.run_id, item.task_id): item for item in foreseen},
    )


def _accounts_out(accounts: Accounts) -> list[Any]:
    """What shadow mode modelled comes last, and is left out where it planned nothing."""
    row = _values(accounts)
    return row if accounts.planned else row[:-3]


def _internal_out(session: Session) -> dict[str, Any]:
    """Nothing where there is nothing: most sessions ask the server `pml` for nothing."""
    out: dict[str, Any] = {}
    if session.internals:
        out["internals"] = [_values(item) for item in session.internals.values()]
    if session.influences:
        out["influences"] = session.influences
    return out


def _open(data: bytes) -> dict[str, Any]:
    record: dict[str, Any] = orjson.loads(data)
    if record.get("v") != VERSION:
        raise LogCorrupted(
            f"a state record has version {record.get('v')}; this release reads version {VERSION}: upgrade PML"
        )
    return record


def _graph(item: list[Any], definitions: Callable[[str], bytes | None]) -> Graph | MissingDefinition | None:
    """Of a run that has ended and left no tasks, nothing is needed any more.

    One that goes on needs its graph also before its first task has begun, and after a replan.
    """
    live, kept = item[1] in {"running", "waiting"}, bool(item[11])
    if not (live or kept):
        return None
    replans = item[18][7] if len(item) > 18 and item[18] else []
    if _sandbox(item):
        return _grown(item[0], len(replans), definitions)
    name = f"{item[0]}/{len(replans)}" if replans else item[0]
    data = definitions(name)
    if data is None:
        return MissingDefinition(name)
    record = _open(data)
    return Deferred(record["definition"], record.get("kept", {}), record.get("plan", 0))


def _sandbox(item: list[Any]) -> Language | None:
    return item[21] if len(item) > 21 else None


def _grown(run_id: str, plans: int, definitions: Callable[[str], bytes | None]) -> Graph | MissingDefinition:
    """The graph of a run whose program runs in the sandbox: each plan brought its own layer."""
    graph = Graph({}, {}, ())
    for number in range(1, plans + 1):
        data = definitions(f"{run_id}/{number}")
        if data is None:
            return MissingDefinition(f"{run_id}/{number}")
        graph = grown(graph, Workflow.model_validate(_open(data)["definition"]), number)
    return graph


def _values(item: Any) -> list[Any]:
    return [getattr(item, field.name) for field in fields(item)]


def _address_out(address: Address | None, topics: list[str]) -> list[int] | None:
    if address is None:
        return None
    if address[0] not in topics:
        topics.append(address[0])
    return [topics.index(address[0]), address[1], address[2]]


def _address_in(item: list[int], topics: list[str]) -> Address:
    return topics[item[0]], item[1], item[2]


def _run_out(run: Run, topics: list[str]) -> list[Any]:
    return [
        run.run_id,
        run.status,
        _address_out(run.payload, topics),
        run.payload_hash,
        run.started_ms,
        run.deadline_ms,
        run.speculation,
        run.principal,
        run.command_id,
        run.traceparent,
        run.layer,
        {task_id: _task_out(task, topics) for task_id, task in run.tasks.items()},
        run.decisions,
        run.path,
        _values(run.counts),
        run.first_failure,
        run.workflow_type,
        run.domain,
        *_rare_out(run, topics),
    ]


def _waits_out(run: Run, topics: list[str]) -> list[Any]:
    waits = run.waits
    pause, abort = waits.pause, waits.abort
    return [
        *(waits.checkpoints, waits.cleared, waits.errors, waits.since_ms),
        _values(pause) if pause else None,
        _values(abort) if abort else None,
        waits.replanned,
        [_address_out(address, topics) for address in run.replans],
        *_words_out(waits),
    ]


def _words_out(waits: Waits) -> list[Any]:
    """What a person is asked, or said, about several calls; left out where it is nothing."""
    if waits.asked is None and not waits.consents:
        return []
    consents = {name: _values(given) for name, given in waits.consents.items()}
    return [_values(waits.asked) if waits.asked else None, consents]


def _asked_in(row: list[Any]) -> Asked:
    approval_id, expires_ms, calls = row
    return Asked(approval_id, expires_ms, {name: (hashed, known) for name, (hashed, known) in calls.items()})


def _waits_in(row: list[Any]) -> Waits:
    checkpoints, cleared, errors, since_ms, pause, abort, replanned = row[:7]
    asked, consents = row[8:10] if len(row) > 8 else (None, {})
    return Waits(
        checkpoints,
        cleared,
        errors,
        since_ms,
        Pause(*pause) if pause else None,
        Abort(*abort) if abort else None,
        replanned,
        _asked_in(asked) if asked else None,
        {name: Approval(*given) for name, given in consents.items()},
    )


def _replans_in(row: list[Any], topics: list[str]) -> tuple[Address, ...]:
    return tuple(_address_in(address, topics) for address in row[7])


def _run_in(item: list[Any], topics: list[str], graph: Graph | None) -> Run:
    return Run(
        run_id=item[0],
        status=item[1],
        payload=_address_in(item[2], topics),
        payload_hash=item[3],
        started_ms=item[4],
        deadline_ms=item[5],
        speculation=item[6],
        principal=item[7],
        command_id=item[8],
        traceparent=item[9],
        graph=graph,
        layer=item[10],
        tasks={task_id: _task_in(task, topics) for task_id, task in item[11].items()},
        decisions=item[12],
        path=tuple(item[13]),
        counts=Counts(*item[14]),
        first_failure=item[15],
        workflow_type=item[16] if len(item) > 16 else UNNAMED,
        domain=item[17] if len(item) > 17 else UNNAMED,
        waits=_waits_in(item[18]) if len(item) > 18 and item[18] is not None else NO_WAITS,
        replans=_replans_in(item[18], topics) if len(item) > 18 and item[18] is not None else (),
        plans={task_id: _plan_in(row) for task_id, row in (item[19] if len(item) > 19 else {}).items()},
        capability_id=item[20] if len(item) > 20 else None,
        sandbox=_sandbox(item),
        predicts=len(item) > 22,
    )


def _task_out(task: TaskState, topics: list[str]) -> list[Any]:
    """Trailing defaults are left out: an ended task takes a few dozen bytes."""
    row = [
        _STATUSES.index(task.status),
        task.attempt,
        _SERVED.index(task.served_by),
        sum(1 << place for place, name in enumerate(_FLAGS) if getattr(task, name)),
        _address_out(task.result, topics),
        task.serves,
        task.skip_reason,
        task.retry_ms,
        [task.retry.attempts, task.retry.backoff_ms] if task.retry else None,
        _call_out(task.call) if task.call else None,
        task.earlier or None,
        _values(task.approval) if task.approval else None,
        task.error,
    ]
    while row[-1] is None or row[-1] == "":
        row.pop()
    return row


def _task_in(row: list[Any], topics: list[str]) -> TaskState:
    whole = row + [None] * (13 - len(row))
    status, attempt, served_by, early, result, serves, skip_reason, retry_ms, retry, call = whole[:10]
    earlier, approval, error = whole[10:13]
    return TaskState(
        status=_STATUSES[status],
        attempt=attempt,
        served_by=_SERVED[served_by],
        **{name: bool(early & 1 << place) for place, name in enumerate(_FLAGS)},
        result=_address_in(result, topics) if result else None,
        serves=serves,
        skip_reason=skip_reason or "",
        retry_ms=retry_ms,
        retry=RetryRule(attempts=retry[0], backoff_ms=retry[1]) if retry else None,
        call=_call_in(call) if call else None,
        earlier=earlier or 0,
        approval=Approval(*approval) if approval else None,
        error=tuple(error) if error else None,
    )


def _call_out(call: Call) -> list[Any]:
    """What is mapped, which is rare, comes last and is left out where there is nothing."""
    row = _values(call)
    return row if call.mapped else row[:-1]


def _call_in(row: list[Any]) -> Call:
    mapped = tuple((name, field) for name, field in row[12]) if len(row) > 12 else ()
    values = [*row[:5], tuple(row[5]), *row[6:12], mapped]
    return Call(*values)


def _rare_out(run: Run, topics: list[str]) -> list[Any]:
    """What few runs have at a time, left out at the end where there is nothing."""
    plain = run.waits == NO_WAITS and not run.replans
    waits = None if plain else _waits_out(run, topics)
    plans = {task_id: _values(plan) for task_id, plan in run.plans.items()}
    if run.predicts:
        return [waits, plans, run.capability_id, run.sandbox, 1]
    if run.sandbox is not None:
        return [waits, plans, run.capability_id, run.sandbox]
    if run.capability_id is not None:
        return [waits, plans, run.capability_id]
    return [waits, plans] if plans else [waits] if waits else []


def _plan_in(row: list[Any]) -> Plan:
    values = [*row[:7], tuple(row[7]), row[8]]
    return Plan(*values)


def _speculation_out(item: Speculation, topics: list[str]) -> list[Any]:
    row = [
        item.run_id,
        item.task_id,
        item.tool,
        item.kind,
        item.confidence,
        _call_out(item.call),
        item.status,
        item.served,
        item.stale,
        _address_out(item.result, topics),
        item.result_hash,
        item.result_bytes,
        item.tool_ms,
        item.expires_ms,
    ]
    if item.plan is not None:
        return [*row, _sources_out(item.sources, topics), _address_out(item.plan, topics)]
    return [*row, _sources_out(item.sources, topics)] if item.sources else row


def _speculation_in(row: list[Any], topics: list[str]) -> Speculation:
    sources = _sources_in(row[14] if len(row) > 14 else [], topics)
    result = _address_in(row[9], topics) if row[9] else None
    plan = _address_in(row[15], topics) if len(row) > 15 else None
    values = [*row[:5], _call_in(row[5]), *row[6:9], result, *row[10:14], sources, plan]
    return Speculation(*values)


def _foreseen_out(item: Foreseen) -> list[Any]:
    return [item.run_id, item.task_id, item.tool, _values(item.plan)]


def _foreseen_in(row: list[Any]) -> Foreseen:
    return Foreseen(row[0], row[1], row[2], _plan_in(row[3]))


def _element_out(item: Element, topics: list[str]) -> list[Any]:
    results = [[task_id, _address_out(address, topics)] for task_id, address in item.results]
    return [item.name, _address_out(item.payload, topics), results]


def _element_in(row: list[Any], topics: list[str]) -> Element:
    results = tuple((task_id, _address_in(address, topics)) for task_id, address in row[2])
    return Element(row[0], _address_in(row[1], topics), results)


def _again_out(item: Verification, topics: list[str]) -> list[Any]:
    facts = [item.run_id, item.task_id, item.tool, item.kind, item.confidence, item.started_seq]
    return [*facts, item.result_hash, _call_out(item.call), _sources_out(item.sources, topics)]


def _again_in(row: list[Any], topics: list[str]) -> Verification:
    values = [*row[:7], _call_in(row[7]), _sources_in(row[8], topics)]
    return Verification(*values)


def _inquiry_out(item: Inquiry) -> list[Any]:
    return [*_values(item)[:-1], _call_out(item.call) if item.call else None]


def _inquiry_in(row: list[Any]) -> Inquiry:
    values = [*row[:6], _call_in(row[6]) if row[6] else None]
    return Inquiry(*values)


def _sources_out(sources: tuple[Source, ...], topics: list[str]) -> list[Any]:
    return [[one.task_id, one.call_id, _address_out(one.result, topics)] for one in sources]


def _sources_in(rows: list[Any], topics: list[str]) -> tuple[Source, ...]:
    return tuple(_source_in(row, topics) for row in rows)


def _source_in(row: list[Any], topics: list[str]) -> Source:
    return Source(row[0], row[1], _address_in(row[2], topics))
