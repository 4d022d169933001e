"""Calls of the built-in server `pml`: work that is not pure or not cheap (DESIGN §2, rule 2).

They belong to a run and to no task: no permission is asked, and they count in no hit, miss or waste. A run
that ends forgets them. Nothing waits for `pml:recall`; a run without tasks waits for what brings it some.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from pml.processors.memory.influence import influence
from pml.processors.workflow.calls import READS_COMMAND, internal_call
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.learning import complexity_of
from pml.processors.workflow.settling import safe_error
from pml.processors.workflow.state import Internal, Run, Session
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.events import InternalEnded, InternalStarted
from pml.schemas.identifiers import call_id
from pml.schemas.memory import RECALL_TOOL, RecallAnswer, RecallRequest
from pml.schemas.sanitiser import sanitise
from pml.schemas.times import to_rfc3339

# A few times what it takes; an answer that comes later finds most of its run decided.
RECALL_TIMEOUT_MS = 2_000
_NO_ANSWER = CallError(
    code="TIMEOUT",
    type="TIMEOUT",
    message="the server pml gave no answer in time; the run goes on without it",
    retryable=True,
)


def ask_memory(draft: Draft, run_id: str) -> None:
    """Ask what became of the run's tools in its context, where an answer could change a confidence."""
    run = draft.run(run_id)
    tools = _uncertain_tools(run)
    if not tools or draft.catalog.policy.memory_influence == "off" or run.speculation == "off":
        return
    request = RecallRequest(
        workflow_type=run.workflow_type,
        context={"domain": run.domain, "complexity": complexity_of(sanitise(draft.values(run).context))},
        k=0,
        tools=tools,
        before=to_rfc3339(draft.now_ms),
    )
    begin_internal(draft, run, RECALL_TOOL, request.model_dump(mode="json"), RECALL_TIMEOUT_MS)


def begin_internal(draft: Draft, run: Run, tool: str, arguments: dict[str, Any], timeout_ms: int) -> None:
    """Give work to the server `pml`; arguments are kept whole, so they must be small and safe to keep."""
    name = call_id(draft.next_event_id)
    draft.emit(
        InternalStarted(
            call_id=name,
            tool=tool,
            arguments=arguments,
            timeout_ms=timeout_ms,
            deadline_at=to_rfc3339(draft.now_ms + timeout_ms + draft.catalog.policy.bridge_grace_ms),
        ),
        run,
    )
    item = draft.session.internals[name]
    if tool in READS_COMMAND:
        draft.payload(run.payload)
    draft.calls.append(internal_call(draft.session, item, draft.payloads))


def end_recall(draft: Draft, item: Internal, outcome: CallEnded) -> None:
    """Memory answered."""
    result = outcome.result.structured if outcome.result else None
    answer = _past_of_tools(item, result) if outcome.status == "ok" else None
    end_with(draft, item, answer, None if answer else error_of(outcome), outcome.duration_ms)


def give_up(draft: Draft, item: Internal, error: CallError = _NO_ANSWER) -> None:
    """Nobody waits for an answer any more."""
    end_with(draft, item, None, error, 0.0)


def influence_of(session: Session, run_id: str, tool: str) -> float | None:
    """What the past adds to the confidence that a tool's task will be needed; None where nobody said."""
    return session.influences.get(run_id, {}).get(tool)


def _uncertain_tools(run: Run) -> tuple[str, ...]:
    """The tools of tasks behind a condition: only their confidence is below 1."""
    assert run.graph is not None
    return tuple(sorted({node.tool for node in run.graph.nodes.values() if node.conditions}))


def end_with(
    draft: Draft,
    item: Internal,
    answer: dict[str, Any] | None,
    error: CallError | None,
    duration_ms: float,
) -> None:
    """Keep what came of an internal call: what the run goes on with, or why there is nothing."""
    ended = InternalEnded(
        call_id=item.call_id, tool=item.tool, answer=answer, error=error, duration_ms=duration_ms
    )
    draft.emit(ended, draft.run(item.run_id))


def _past_of_tools(item: Internal, result: Any) -> dict[str, Any] | None:
    """Counts and what they add, of the tools that were asked about; None where the answer is none."""
    try:
        pasts = RecallAnswer.model_validate(result).tools
    except ValidationError:
        return None
    asked = item.arguments["tools"]
    return {
        "tools": {
            tool: {**past.model_dump(), "influence": influence(past)}
            for tool, past in pasts.items()
            if tool in asked
        }
    }


def error_of(outcome: CallEnded) -> CallError:
    """Why the server `pml` gave nothing that the run can go on with."""
    return safe_error(outcome.error or CallError(code="BAD_ANSWER", message="the server pml gave no answer"))
