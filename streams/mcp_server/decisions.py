"""`pml_continue`, `pml_replan`, `pml_abort`: what an agent decides about a run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError, WithJsonSchema

from pml.schemas.base import Json
from pml.schemas.codec import explain
from pml.schemas.commands import CommandData, RunAbort, RunContinue, RunReplan
from pml.schemas.errors import WorkflowInvalid
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.following import follow
from pml.streams.mcp_server.lookups import session_for
from pml.streams.mcp_server.run_answer import RunAnswer
from pml.streams.mcp_server.shapes import (
    DECISION,
    TASK,
    WAIT_S,
    Asked,
    Checkpoint,
    Reason,
    RunId,
    Session,
    Wait,
)

Parts = tuple[dict[str, Json], ...]


class ContinueAsked(Asked):
    """Go on with a run that waits at a checkpoint."""

    run_id: RunId
    session: Session = None
    checkpoint_id: Checkpoint = None
    reason: Reason = ""
    wait_s: Wait = WAIT_S


class ReplanAsked(Asked):
    """Other tasks in place of what has not run."""

    run_id: RunId
    session: Session = None
    tasks: Annotated[
        Parts,
        WithJsonSchema({"type": "array", "items": TASK, "description": "They may build on completed tasks."}),
    ] = ()
    decisions: Annotated[Parts, WithJsonSchema({"type": "array", "items": DECISION})] = ()
    checkpoint_id: Checkpoint = None
    hold: Annotated[bool, Field(description="Wait again before they begin.")] = False
    reason: Reason = ""
    wait_s: Wait = WAIT_S


class AbortAsked(Asked):
    """Stop a run."""

    run_id: RunId
    session: Session = None
    reason: Reason = ""
    wait_s: Wait = WAIT_S


async def continue_run(call: Call, asked: ContinueAsked) -> RunAnswer:
    """Let a run go on from the checkpoint that it waits at."""
    data = RunContinue(checkpoint_id=asked.checkpoint_id, reason=asked.reason)
    return await _decided(call, asked, data)


async def replan(call: Call, asked: ReplanAsked) -> RunAnswer:
    """Replace what has not run.

    Raises:
        WorkflowInvalid: a task or decision is badly written.
    """
    fields = asked.model_dump(include={"tasks", "decisions", "checkpoint_id", "hold", "reason"})
    try:
        data = RunReplan.model_validate(fields)
    except ValidationError as error:
        raise WorkflowInvalid("WORKFLOW_INVALID", f"the plan is wrong: {explain(error)}") from None
    return await _decided(call, asked, data)


async def abort(call: Call, asked: AbortAsked) -> RunAnswer:
    """Stop a run: nothing new begins, an unsafe call that runs is awaited."""
    return await _decided(call, asked, RunAbort(reason=asked.reason))


async def _decided(
    call: Call, asked: ContinueAsked | ReplanAsked | AbortAsked, data: CommandData
) -> RunAnswer:
    call.door.waiting.check()
    submission = await call.door.producer.decide(
        asked.run_id,
        data,
        session_id=await session_for(call, asked.run_id, asked.session),
        tenant=call.caller.tenant,
        principal=call.caller.principal,
        traceparent=call.traceparent,
    )
    return await follow(call, submission, asked.wait_s)
