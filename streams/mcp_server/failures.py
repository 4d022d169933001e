"""Errors as tools of this door answer them: structured, with `isError`, never as a success."""

from __future__ import annotations

from typing import Any

import orjson
from mcp_types import CallToolResult, TextContent

from pml.schemas.errors import PMLError
from pml.streams.mcp_server.bounds import STRUCTURED_BYTES_MAX, TEXT_BYTES_MAX, cut, cut_bytes, wire_bytes

MESSAGE_MAX = 2_000


class InvalidArguments(PMLError):
    """Arguments that are not in the shape that the tool's schema has."""

    code = "INVALID_ARGUMENTS"


class NoResult(PMLError):
    """A task that has none: it goes on, failed or was skipped."""

    code = "NO_RESULT"


def failed(error: PMLError, run_id: str | None = None, text: str | None = None) -> CallToolResult:
    """The answer that tells an error, with `text` or in a line; details that are too large are left out."""
    told = error.as_dict()
    told["message"] = cut(told["message"], MESSAGE_MAX)
    named = told["details"].get("run_id")
    body: dict[str, Any] = {**told, "run_id": run_id or named, "details": _plain(told["details"])}
    if wire_bytes(body) > STRUCTURED_BYTES_MAX:
        body["details"] = {"omitted": "too large"}
    line = f"{body['code']}: {body['message']}" + (" (try again)" if body["retryable"] else "")
    content = TextContent(text=cut_bytes(text or line, TEXT_BYTES_MAX))
    return CallToolResult(content=[content], structured_content=body, is_error=True)


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    """Details as JSON has them."""
    plain: dict[str, Any] = orjson.loads(orjson.dumps(details, default=str, option=orjson.OPT_NON_STR_KEYS))
    return plain
