"""What a server answered becomes a result or an error with a type."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

from pml.schemas.calls import CallEnded
from pml.schemas.codec import decode_outcome
from pml.streams.bridge.outcomes import outgoing
from pml.streams.bridge.results import MESSAGE_MAX_CHARACTERS, answer_of, failure_of, tool_error
from pml.streams.bridge.stdio import RESULT_TOO_LARGE, message_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def result(**fields: Any) -> types.CallToolResult:
    return types.CallToolResult(**{"content": [], **fields})


@given(JSON)
def test_whatever_a_server_answers_can_be_sent(structured: Any) -> None:
    status, kept, error = answer_of(result(structured_content=structured), 10_000)
    outcome = CallEnded(
        call_id="c", tenant="t", session_id="s", status=status, result=kept, error=error, duration_ms=1
    )
    assert decode_outcome(outgoing(outcome).value).status == status
    assert (status == "ok") is (error is None)


def test_structure_that_is_no_object_is_kept_under_result() -> None:
    _, kept, _ = answer_of(result(structured_content=[1, 2]), 10_000)
    assert kept is not None
    assert (kept.structured, kept.bare) == ({"result": [1, 2]}, True)


def test_what_a_tool_says_of_its_failure_is_kept_where_it_has_room() -> None:
    said = result(
        content=[types.TextContent(text="no such file")], structured_content={"errno": 2}, is_error=True
    )
    status, kept, error = answer_of(said, 10_000)
    assert kept is not None
    assert error is not None
    assert (status, error.message) == ("error", "no such file")
    assert (kept.content, kept.structured) == ([{"type": "text", "text": "no such file"}], {"errno": 2})
    assert answer_of(said, 20)[:2] == ("error", None)


def test_of_its_meta_a_server_keeps_what_is_its_own() -> None:
    kept = answer_of(result(_meta={"io.modelcontextprotocol/serverInfo": {}, "trace": 1}), 10_000)[1]
    assert kept is not None
    assert kept.meta == {"trace": 1}


def test_an_error_of_the_protocol_keeps_its_code() -> None:
    error = failure_of(MCPError(types.INVALID_PARAMS, "what?"), "srv")[2]
    assert error is not None
    assert error.details == {"jsonrpc_code": types.INVALID_PARAMS}


@given(st.integers(1, 3_000))
def test_the_limit_is_exact(size: int) -> None:
    answer = answer_of(result(structured_content={"x": "y" * size}), 2_000)
    envelope = len('{"content":[],"structured":{"x":""}}')
    assert (answer[0] == "ok") is (size + envelope <= 2_000)


def test_an_error_without_words_still_says_something() -> None:
    status, kept, error = answer_of(result(is_error=True), 10_000)
    assert error is not None
    assert kept is not None
    assert (status, kept.content, error.type) == ("error", [], "UNKNOWN")
    assert error.message


@given(st.text(st.characters(), min_size=1, max_size=50).map(lambda text: text * 200))
def test_an_errors_message_is_bounded_and_can_be_encoded(message: str) -> None:
    kept = tool_error("TOOL_ERROR", message).message
    assert len(kept) <= MESSAGE_MAX_CHARACTERS
    assert kept.encode()


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (MCPError(types.CONNECTION_CLOSED, "Connection closed"), "CONNECTION_LOST", "NETWORK"),
        (MCPError(types.REQUEST_TIMEOUT, "too late"), "TIMEOUT", "TIMEOUT"),
        (MCPError(types.INVALID_PARAMS, "what?"), "TOOL_ERROR", "VALIDATION"),
        (MCPError(types.INVALID_PARAMS, "Unknown tool: x"), "TOOL_ERROR", "NOT_FOUND"),
        (
            MCPError(types.INVALID_REQUEST, "Roots not supported"),
            "CLIENT_REQUEST_DECLINED",
            "VALIDATION",
        ),
        (MCPError(RESULT_TOO_LARGE, "the server answered with 9 bytes"), "RESULT_TOO_LARGE", "VALIDATION"),
        (RuntimeError("Invalid structured content\nOn instance: secret"), "RESULT_INVALID", "VALIDATION"),
        (OSError("broken pipe"), "CALL_FAILED", "NETWORK"),
    ],
)
def test_what_the_client_raises_has_a_code_and_a_type(error: Exception, code: str, kind: str) -> None:
    status, kept, failure = failure_of(error, "srv")
    assert failure is not None
    assert (status, kept, failure.code, failure.type) == ("error", None, code, kind)
    assert "secret" not in failure.message


@given(st.binary(max_size=200).map(lambda line: line.replace(b"\n", b"")))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    message = message_of(line)
    assert message is None or message.jsonrpc == "2.0"
