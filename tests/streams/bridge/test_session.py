"""What a request that did not leave this machine means for a call."""

from __future__ import annotations

from typing import Any, cast

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from pml.streams.bridge.http_failure import NOT_SENT
from pml.streams.bridge.results import failure_of
from pml.streams.bridge.session import Session
from pml.streams.bridge.unavailable import ServerUnavailable


class Client:
    """Cannot reach its server."""

    async def call_tool(self, *_: Any, **__: Any) -> types.CallToolResult:
        raise MCPError(NOT_SENT, "http://127.0.0.1:1/mcp cannot be reached")


def session() -> Session:
    session = Session("files", cast(Any, None), lambda: None)
    session.tools = (types.Tool(name="read", input_schema={"type": "object"}),)
    session._client = cast(Any, Client())
    return session


async def test_a_call_of_a_listed_tool_was_not_sent_and_may_be_sent_in_another_session() -> None:
    one = session()
    with pytest.raises(ServerUnavailable, match="cannot be reached"):
        await one.call("read", {}, {})
    assert not one.alive


async def test_a_call_of_a_tool_that_is_not_listed_may_have_been_sent() -> None:
    """The SDK lists the tools again behind its answer: it may be this request that was not sent."""
    one = session()
    with pytest.raises(MCPError, match="cannot be reached") as raised:
        await one.call("write", {}, {})
    status, _, error = failure_of(raised.value, "files")
    assert error is not None
    assert (status, error.code) == ("error", "CONNECTION_LOST")
    assert not one.alive
