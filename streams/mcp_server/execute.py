"""`pml_execute`: run code or a DAG."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema, model_validator

from pml.schemas.base import Json, Name
from pml.schemas.commands import Code
from pml.schemas.discovery import DiscoverRequest
from pml.schemas.errors import WaitedTooLong
from pml.schemas.structure import Language
from pml.schemas.workflow import Options
from pml.streams.client import Submission, wait_for_answer
from pml.streams.mcp_server.discover import FOUND_BYTES_MAX, fitting_items
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.following import follow
from pml.streams.mcp_server.run_answer import RunAnswer
from pml.streams.mcp_server.session_parts import Part
from pml.streams.mcp_server.shapes import DAG, WAIT_S, Asked, Wait

HEARD_S = 1.0
"""How long somebody who does not wait is kept, at most, until the session has taken the run."""
NOTHING_RAN = "Nothing ran. Send code or a dag; or, for a capability, the intent again with a context."
_CODE = (
    "A program whose calls are `await mcp.<server>.<tool>(...)`, in Python (keyword arguments) or TypeScript "
    "(one object). Values of the context are the parameters of `main`, or `args.<name>`."
)


_INTENT = (
    "What it is for, in words. With `context` and neither code nor dag, the learned capability that it means "
    "runs; alone, nothing runs and the answer has suggestions."
)


class ExecuteAsked(Asked):
    """What is to be run: `code`, `dag`, or with a context the learned capability that the intent means."""

    intent: Annotated[str | None, Field(max_length=10_000, description=_INTENT)] = None
    code: Annotated[str | None, Field(min_length=1, max_length=262_144, description=_CODE)] = None
    language: Annotated[Language | None, Field(description="Without it, told by how it is written.")] = None
    dag: Annotated[dict[str, Json] | None, WithJsonSchema(DAG)] = None
    context: Annotated[
        dict[str, Json],
        Field(default_factory=dict, description="Parameters of the code, the DAG or the capability."),
    ]
    session: Annotated[
        Name | None,
        Field(description="Runs of one session share what was run early. Default: this connection's."),
    ] = None
    run_id: Annotated[
        Name | None,
        Field(
            description="Your own id: asked again with the same content, it is the same run, and run once."
        ),
    ] = None
    timeout_s: Annotated[float | None, Field(gt=0, le=86_400, description="Of the whole run.")] = None
    per_layer_validation: Annotated[
        bool, Field(description="Wait after each layer for pml_continue, pml_replan or pml_abort.")
    ] = False
    wait_s: Wait = WAIT_S

    @model_validator(mode="after")
    def _one_of_them(self) -> ExecuteAsked:
        if self.code is not None and self.dag is not None:
            raise ValueError("give either code or dag")
        if self.language is not None and self.code is None:
            raise ValueError("language goes with code")
        if self.code is None and self.dag is None and not self.intent:
            raise ValueError("give code, dag or intent")
        return self

    @property
    def looks_only(self) -> bool:
        """Whether nothing is to be run: there is an intent and nothing else."""
        return self.code is None and self.dag is None and "context" not in self.model_fields_set


async def execute(call: Call, asked: ExecuteAsked) -> RunAnswer:
    """Begin a run, or attach to the one of that id, and wait for it; or say what an intent could mean.

    Raises:
        Refused, BrokerUnavailable, Busy: as `follow` has them.
    """
    if asked.looks_only:
        return await _suggested(call, asked.intent or "")
    call.door.waiting.check()

    async def once(part: Part, _: float) -> RunAnswer:
        return await _once(call, asked, part)

    return await call.conversation(asked.session, asked.run_id).begin(once)


async def _once(call: Call, asked: ExecuteAsked, part: Part) -> RunAnswer:
    """Begin a run in a part of its conversation, and wait for it.

    A part that is full must have the time to say so, however short the caller waits.
    """
    submission = await call.door.producer.start_run(
        **what_to_run(asked, part.early),
        intent=asked.intent,
        context=asked.context,
        session_id=part.session_id,
        run_id=asked.run_id,
        tenant=call.caller.tenant,
        principal=call.caller.principal,
        traceparent=call.traceparent,
        request=call.request,
    )
    call.door.remembered.keep(submission.tenant, submission.run_id, submission.session_id)
    answer = await follow(call, submission, asked.wait_s)
    if answer.status == "queued" and part.session_id is not None and asked.wait_s < HEARD_S:
        await _hear(call, submission)
    return answer


async def _hear(call: Call, submission: Submission) -> None:
    """Wait until the session has taken a run, or for as long as somebody is kept who does not wait.

    Raises:
        Refused: it does not take it.
    """
    with suppress(WaitedTooLong):
        await wait_for_answer(call.door.settings, submission, timeout_s=HEARD_S)


async def _suggested(call: Call, intent: str) -> RunAnswer:
    request = DiscoverRequest(intent=intent)
    found = await call.door.finder.discover(call.caller.tenant, request)
    items = fitting_items(found.items, FOUND_BYTES_MAX)
    return RunAnswer(status="suggestions", suggestions=items, notice=NOTHING_RAN)


def what_to_run(asked: ExecuteAsked, early: bool = True) -> dict[str, Any]:
    """The workflow or program, or none, with its options; those of the call come before those of the DAG.

    Unless it may be `early`, nothing of it runs early or is served by what did.
    """
    options = options_of(asked) | ({} if early else {"speculation": "off"})
    if asked.code is not None:
        code = Code(source=asked.code, language=asked.language)
        return {"workflow": code, "options": Options.model_validate(options) if options else None}
    if asked.dag is None:
        return {"workflow": None, "options": Options.model_validate(options) if options else None}
    dag = dict(asked.dag)
    own = dag.get("options")
    if options and (own is None or isinstance(own, dict)):
        dag["options"] = {**(own or {}), **options}
    return {"workflow": dag}


def options_of(asked: ExecuteAsked) -> dict[str, Any]:
    """Those that were given."""
    validation = {"per_layer_validation": True} if asked.per_layer_validation else {}
    return validation if asked.timeout_s is None else {**validation, "timeout_s": asked.timeout_s}
