"""What an MCP server answered, as a result or an error of a call. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from pml.processors.workflow.errors import ErrorType, classify
from pml.schemas.calls import CallError, CallStatus, ToolResult
from pml.streams.bridge.http_failure import (
    ANSWER_LOST,
    CREDENTIALS_REFUSED,
    REQUEST_REFUSED,
    SERVER_BUSY,
)
from pml.streams.bridge.secret_values import NO_SECRETS, SecretValues
from pml.streams.bridge.stdio import RESULT_TOO_LARGE, RESULT_UNREADABLE

# An error's text goes into the log cut to 2 KB; a little more keeps what redaction may remove.
MESSAGE_MAX_CHARACTERS = 4_096
# What lies behind it cannot show in a message: an error of 8 MiB must not hold up what comes after it.
SEARCHED_CHARACTERS = 65_536
PROTOCOL_META = "io.modelcontextprotocol/"
_RETRYABLE: frozenset[ErrorType] = frozenset({"TIMEOUT", "NETWORK"})

Answer = tuple[CallStatus, ToolResult | None, CallError | None]


def answer_of(result: types.CallToolResult, max_bytes: int, secrets: SecretValues = NO_SECRETS) -> Answer:
    """Status, result and error of an answer; a result over `max_bytes` of JSON is an error.

    The result is what the server answered, and goes to who called. The error, which the log keeps, is without
    the `secrets` of the server.
    """
    kept = tool_result(result)
    if result.is_error:
        words = _text(kept.content) or "the tool failed without a message"
        said = tool_error("TOOL_ERROR", secrets.taken_from(words[:SEARCHED_CHARACTERS]))
        return "error", kept if _fits(kept, max_bytes) else None, said
    try:
        size = _size(kept)
    except TypeError as error:
        return failed("RESULT_UNREADABLE", "VALIDATION", f"the result cannot be kept as JSON: {error}")
    return too_large(size, max_bytes) if size > max_bytes else ("ok", kept, None)


def _size(result: ToolResult) -> int:
    return len(orjson.dumps(result.model_dump(exclude_none=True)))


def _fits(result: ToolResult, max_bytes: int) -> bool:
    """Whether what a tool said of its failure can be kept; its message is kept in any case."""
    try:
        return _size(result) <= max_bytes
    except TypeError:
        return False


def tool_result(result: types.CallToolResult) -> ToolResult:
    """Every content block as the server wrote it, and the structured content where there is one.

    Structured content that is no object is kept under `result`, as the SDK's servers wrap it.
    """
    structured = result.structured_content
    bare = structured is not None and not isinstance(structured, dict)
    return ToolResult(
        content=[_plain(block) for block in result.content],
        structured={"result": structured} if bare else structured,
        bare=bare or None,
        meta=own_meta(result.meta),
    )


def own_meta(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a server says in `_meta` besides what the protocol writes there itself."""
    kept = {name: value for name, value in (meta or {}).items() if not name.startswith(PROTOCOL_META)}
    return kept or None


def failure_of(error: Exception, server: str, secrets: SecretValues = NO_SECRETS) -> Answer:
    """What an exception of the SDK's client means for the call."""
    words = error.message if isinstance(error, MCPError) else str(error)
    said = secrets.taken_from(words[:SEARCHED_CHARACTERS])
    match error:
        case MCPError(code=types.CONNECTION_CLOSED):
            return failed(
                "CONNECTION_LOST",
                "NETWORK",
                f"the MCP server {server} ended during the call; its log: log/mcp/{server}.log",
            )
        case MCPError(code=code) if code == ANSWER_LOST:
            return failed("CONNECTION_LOST", "NETWORK", f"the MCP server {server}: {said}")
        case MCPError(code=code) if code == CREDENTIALS_REFUSED:
            return failed("CREDENTIALS_REFUSED", "PERMISSION", f"the MCP server {server}: {said}")
        case MCPError(code=code) if code == REQUEST_REFUSED:
            return failed("REQUEST_REFUSED", "VALIDATION", f"the MCP server {server}: {said}")
        case MCPError(code=code) if code == SERVER_BUSY:
            return failed("SERVER_BUSY", "NETWORK", f"the MCP server {server}: {said}")
        case MCPError(code=types.PARSE_ERROR) if said.startswith("Failed to parse"):
            return failed("RESULT_UNREADABLE", "VALIDATION", f"{server} answered in a wrong shape")
        case MCPError(code=code) if code == RESULT_TOO_LARGE:
            return _oversized(said)
        case MCPError(code=code) if code == RESULT_UNREADABLE:
            return failed("RESULT_UNREADABLE", "VALIDATION", said)
        case MCPError(code=types.REQUEST_TIMEOUT):
            return failed("TIMEOUT", "TIMEOUT", said)
        case MCPError(code=code):
            return "error", None, _protocol_error(code, said)
        case ValidationError():
            return failed("RESULT_UNREADABLE", "VALIDATION", f"{server} answered in a wrong shape")
        case RuntimeError():
            return failed("RESULT_INVALID", "VALIDATION", said.partition("\n")[0])
    return "error", None, tool_error("CALL_FAILED", f"{type(error).__name__}: {said}")


def timed_out(seconds: float) -> Answer:
    """The call did not end in time."""
    return failed("TIMEOUT", "TIMEOUT", f"the tool did not answer within {seconds:g} s")


def too_large(size: int, max_bytes: int) -> Answer:
    """The result is over the limit."""
    return _oversized(f"the result has {size} bytes, over the limit of {max_bytes}")


def failed(code: str, kind: ErrorType, message: str) -> Answer:
    """An error whose type is known."""
    return (
        "error",
        None,
        CallError(code=code, type=kind, message=_cut(message), retryable=kind in _RETRYABLE),
    )


def tool_error(code: str, message: str) -> CallError:
    """An error whose type its words tell."""
    kind = classify(message)
    return CallError(code=code, type=kind, message=_cut(message), retryable=kind in _RETRYABLE)


def _oversized(message: str) -> Answer:
    advice = "ask for less, or raise bridge.result_max_bytes"
    return failed("RESULT_TOO_LARGE", "VALIDATION", f"{message}; {advice}")


def _protocol_error(code: int, message: str) -> CallError:
    """JSON-RPC's own codes say more than words do."""
    details = {"jsonrpc_code": code}
    if code == types.INVALID_PARAMS and classify(message) != "NOT_FOUND":
        return CallError(code="TOOL_ERROR", type="VALIDATION", message=_cut(message), details=details)
    if code == types.INVALID_REQUEST and message.endswith("not supported"):
        return CallError(
            code="CLIENT_REQUEST_DECLINED",
            type="VALIDATION",
            message=_cut(f"the server asked for something PML declines: {message}"),
        )
    return tool_error("TOOL_ERROR", message).model_copy(update={"details": details})


def _plain(block: BaseModel) -> dict[str, Any]:
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


def _text(content: list[dict[str, Any]]) -> str:
    return "\n".join(block["text"] for block in content if block.get("type") == "text")


def _cut(message: str) -> str:
    """Bounded, and without the lone surrogates that UTF-8 cannot hold."""
    text = message.encode(errors="replace").decode()
    return text if len(text) <= MESSAGE_MAX_CHARACTERS else text[: MESSAGE_MAX_CHARACTERS - 1] + "…"
