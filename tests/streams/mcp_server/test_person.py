"""Asking the person at a client: while the request goes on, or by answering it; and the way back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequestFormParams,
    ElicitResult,
    FormElicitationCapability,
    UrlElicitationCapability,
)

from pml.streams.mcp_server.person import InputNeeded, Person, can_be_asked, resumed
from tests.streams.mcp_server.clients import connected

FORM = ElicitRequestFormParams(message="May it?", requested_schema={"type": "object", "properties": {}})
PLACE = {"run_id": "run_1", "session_id": "ses_1"}
YES = ElicitResult(action="accept", content={"decision": "approve"})
OLD, NEW = "2025-11-25", "2026-07-28"


class Session:
    """A connection whose client says what it can, and answers forms in some way."""

    def __init__(self, answer: Any = None, capabilities: ClientCapabilities | None = None) -> None:
        self.answer, self.client_capabilities = answer, capabilities
        self.can_send_request = True

    async def elicit_form(self, message: str, schema: Any, request_id: Any) -> ElicitResult:
        assert (message, request_id) == (FORM.message, 7)
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return self.answer  # type: ignore[no-any-return]


class Context:
    """A request over it."""

    def __init__(self, session: Session, version: str = OLD) -> None:
        self.session, self.protocol_version, self.request_id = session, version, 7


async def asked(answer: Any, version: str = OLD) -> Any:
    person = Person("person:ada", Context(Session(answer), version))  # type: ignore[arg-type]
    return await person.ask("apr_1", FORM, PLACE, 0.05)


async def test_before_2026_a_person_is_asked_while_the_request_goes_on() -> None:
    word = await asked(YES)
    assert (word.approval_id, word.decision, word.via) == ("apr_1", "approve", "elicitation")


@pytest.mark.parametrize("answer", [None, MCPError(-1, "no"), ElicitResult(action="cancel")])
async def test_nobody_is_waited_for_longer_than_the_request_may_take(answer: Any) -> None:
    assert await asked(answer) is None


async def test_since_2026_the_request_is_answered_with_the_form_and_says_where_to_go_on() -> None:
    with pytest.raises(InputNeeded) as needed:
        await asked(None, NEW)
    result = needed.value.result
    assert result.input_requests is not None
    assert result.input_requests["apr_1"].params == FORM
    assert json.loads(result.request_state or "") == {**PLACE, "approval_id": "apr_1"}


def again(**answers: Any) -> Any:
    state = json.dumps({**PLACE, "approval_id": "apr_1"})
    return resumed(CallToolRequestParams(name="x", request_state=state, input_responses=answers or None))


def test_only_the_answer_to_what_was_asked_counts() -> None:
    assert again(apr_1=YES).word.decision == "approve"
    assert (again(apr_2=YES).word, again().word) == (None, None)
    assert (again().run_id, again().session_id) == ("run_1", "ses_1")
    assert resumed(CallToolRequestParams(name="x", input_responses={"apr_1": YES})) is None


FORMS = ElicitationCapability(form=FormElicitationCapability())
URLS = ElicitationCapability(url=UrlElicitationCapability())


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    ("able", "asks"), [(None, False), (ElicitationCapability(), True), (FORMS, True), (URLS, False)]
)
def test_a_client_is_asked_that_shows_forms(able: Any, asks: bool, version: str) -> None:
    session = Session(capabilities=ClientCapabilities(elicitation=able))
    assert can_be_asked(Context(session, version)) is asks  # type: ignore[arg-type]
    assert not can_be_asked(Context(Session(), version))  # type: ignore[arg-type]


def test_before_2026_a_client_that_cannot_be_reached_is_not_asked() -> None:
    session = Session(capabilities=ClientCapabilities(elicitation=FORMS))
    session.can_send_request = False
    assert not can_be_asked(Context(session))  # type: ignore[arg-type]


async def test_a_state_that_the_server_did_not_seal_is_refused(tmp_path: Path) -> None:
    forged = json.dumps({**PLACE, "approval_id": "apr_1"})
    async with connected(tmp_path) as client:
        assert isinstance(client, Client)
        with pytest.raises(MCPError, match="requestState"):
            await client.session.call_tool(
                "pml_execute", {"intent": "x"}, input_responses={"apr_1": YES}, request_state=forged
            )
