"""`/v1/approvals`: a person's word about single calls."""

from __future__ import annotations

from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from pml.schemas.commands import ApprovalDecide
from pml.streams.approval_list import find_approval, list_approvals
from pml.streams.client import wait_for_answer
from pml.streams.gateway import requests
from pml.streams.gateway.answers import json_response, page
from pml.streams.gateway.callers import Caller
from pml.streams.gateway.doors import Doors
from pml.streams.gateway.runs import ANSWER_S, naming


async def show_all(request: Request, caller: Caller, doors: Doors) -> Response:
    """Requests that wait for a person, with their calls; with `all=true` also those that were settled."""
    caller.require("runs:read")
    asked = request.query_params
    everything = asked.get("all") == "true"
    rows = await list_approvals(
        doors.settings, caller.tenant, asked.get("session"), everything, requests.limit(request)
    )
    return page(rows)


async def decide(
    request: Request, caller: Caller, doors: Doors, decision: Literal["approve", "reject"]
) -> Response:
    """Let calls run with exactly the arguments that were shown, or not.

    With `computed` also those of them whose arguments were not known when they were shown.
    """
    caller.require("approvals:write")
    approval_id, command_id = requests.name_of(request, "approval_id"), requests.command_id(request)
    asked = await find_approval(
        doors.settings, caller.tenant, approval_id, request.query_params.get("session")
    )
    fixed = {"approval_id": approval_id, "decision": decision, "via": "http"}
    data = await requests.command_data(request, ApprovalDecide, **fixed)
    with doors.waiting.one_more(), naming(asked["run_id"]):
        submission = await doors.producer.decide(
            asked["run_id"],
            data,
            session_id=asked["session_id"],
            command_id=command_id,
            tenant=caller.tenant,
            principal=caller.principal,
        )
        event = await wait_for_answer(doors.settings, submission, timeout_s=ANSWER_S)
    return json_response(
        {"approval_id": approval_id, "run_id": asked["run_id"], "decision": decision, "answer": event.type}
    )
