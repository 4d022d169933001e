"""Errors as tools of this door answer them: structured, with `isError`, never as a success."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import orjson
import structlog
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from pml.schemas.codec import explain
from pml.schemas.errors import PMLError, WaitedTooLong
from pml.streams.gateway.problems import Unexpected
from pml.streams.mcp_server.bounds import STRUCTURED_BYTES_MAX, TEXT_BYTES_MAX, cut, cut_bytes, wire_bytes
from pml.streams.mcp_server.person import InputNeeded

MESSAGE_MAX = 2_000
# A broker that is away takes no command; who waits for a run waits 50 s at most, and clients give 60.
ANSWER_S = 55.0
log = structlog.get_logger("pml.mcp")


class InvalidArguments(PMLError):
    """Arguments that are not in the shape that the tool's schema has."""

    code = "INVALID_ARGUMENTS"


class NoResult(PMLError):
    """A task that has none: it goes on, failed or was skipped."""

    code = "NO_RESULT"


async def or_failed(answer: Awaitable[CallToolResult], run_id: str | None, tool: str) -> CallToolResult:
    """The answer, or what went wrong as one; only what the protocol has words for goes through."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await answer
    except (MCPError, InputNeeded):
        raise
    except ValidationError as error:
        return failed(InvalidArguments(f"the arguments are wrong: {explain(error)}"), run_id)
    except TimeoutError:
        told = f"no answer within {ANSWER_S:g} s; `pml status` says what is wrong"
        return failed(WaitedTooLong(told), run_id)
    except PMLError as error:
        return failed(error, run_id)
    except Exception as error:
        log.error("a tool failed", tool=tool, error=type(error).__name__, exc_info=True)
        return failed(Unexpected("PML made a mistake; its log says more"), run_id)


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
