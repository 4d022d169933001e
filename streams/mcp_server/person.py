"""The person at the other end of a connection: whether there is one, and how they are asked (elicitation).

Before 2026-07-28 a server asks while the request goes on. Since then the request is answered with what is
needed, and comes again with it and with the state that it was given, which is sealed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pml.schemas.commands import ApprovalDecide
from pml.streams.mcp_server.form import word_of

Context = ServerRequestContext[Any, Any]
AUDIENCE = "pml"
# As long as a person may be waited for at most (options.approval_timeout_s).
STATE_TTL_S = 86_400.0
log = structlog.get_logger("pml.mcp")


class InputNeeded(Exception):
    """A request is answered with what a person has to say first."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("a person is asked")
        self.result = result


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may approve, at the client that sent a request.

    Attributes:
        principal: who it is, as commands name them.
    """

    principal: str
    context: Context

    async def ask(
        self, approval_id: str, form: ElicitRequestFormParams, place: Mapping[str, str], patience_s: float
    ) -> ApprovalDecide | None:
        """What they say within this time; None where they decide nothing.

        Args:
            place: what leads back to the run when the request comes again.

        Raises:
            InputNeeded: the request is to be answered with the form.
        """
        if self.context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            requests: dict[str, InputRequest] = {approval_id: ElicitRequest(params=form)}
            state = json.dumps({**place, "approval_id": approval_id})
            raise InputNeeded(InputRequiredResult(input_requests=requests, request_state=state))
        try:
            async with asyncio.timeout(patience_s):
                answer = await self.context.session.elicit_form(
                    form.message, form.requested_schema, self.context.request_id
                )
        except (TimeoutError, MCPError, ValidationError) as error:
            log.info("nobody answered a form", approval_id=approval_id, error=type(error).__name__)
            return None
        return word_of(approval_id, answer)


@dataclass(frozen=True, slots=True)
class Resumed:
    """A request that came again after a person was asked; `word` is what they said, if they decided."""

    run_id: str
    session_id: str
    approval_id: str
    word: ApprovalDecide | None


def resumed(params: CallToolRequestParams) -> Resumed | None:
    """What a request brings that was answered with a form before; None for one that comes for the first time.

    Its state was sealed by us for this caller and these arguments: the boundary lets no other one through.
    """
    if params.request_state is None:
        return None
    state: dict[str, str] = json.loads(params.request_state)
    answers: Mapping[str, Any] = params.input_responses or {}
    word = word_of(state["approval_id"], answers.get(state["approval_id"]))
    return Resumed(state["run_id"], state["session_id"], state["approval_id"], word)


def can_be_asked(context: Context) -> bool:
    """Whether the client shows forms, and can be reached."""
    capabilities = context.session.client_capabilities
    able = capabilities.elicitation if capabilities is not None else None
    if able is None or (able.form is None and able.url is not None):
        return False
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS or context.session.can_send_request


def boundary(key: bytes, identity: Any) -> RequestStateBoundary:
    """What seals the state of a request that comes again.

    Args:
        key: 32 secret bytes, the same in all processes that serve the same clients.
        identity: of a context, who sent it.
    """
    security = RequestStateSecurity(keys=[key], ttl=STATE_TTL_S, bind_principal=identity)
    return RequestStateBoundary(security, default_audience=AUDIENCE)
