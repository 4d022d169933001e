"""What goes wrong between here and a server at a URL, as JSON-RPC errors: one call fails, not the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from pml.streams.bridge.stdio import RESULT_TOO_LARGE, RESULT_UNREADABLE

# Beside the two of stdio, outside the range that JSON-RPC reserves.
NOT_SENT = 31_003
CREDENTIALS_REFUSED = 31_004
ANSWER_LOST = 31_005
REQUEST_REFUSED = 31_006
SERVER_BUSY = 31_007
GATEWAY_FAILED = 502


@dataclass(frozen=True, slots=True)
class Failure:
    """One of the codes above, and words for people without any secret."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Rpc:
    """The JSON-RPC message that a request carries; `id` is None for a notification."""

    id: int | str | None
    method: str
    params: dict[str, Any]


def rpc_of(request: httpx2.Request) -> Rpc | None:
    """The message in a request's body; None for one of another kind (a token, a stream, a goodbye)."""
    if request.method != "POST" or request.headers.get("content-type") != "application/json":
        return None
    body = orjson.loads(request.content)
    if not isinstance(body, dict) or "jsonrpc" not in body:
        return None
    return Rpc(body.get("id"), body.get("method", ""), body.get("params") or {})


def body_of(rpc: Rpc, failure: Failure) -> bytes:
    """The error as the server would have answered it."""
    error = {"code": failure.code, "message": failure.message}
    return orjson.dumps({"jsonrpc": "2.0", "id": rpc.id, "error": error})


def response_of(failure: Failure, rpc: Rpc | None, status: int = GATEWAY_FAILED) -> httpx2.Response:
    """An answer that says it; a notification is taken as sent, since nobody waits for it."""
    if rpc is None:
        return httpx2.Response(status, json={"error": failure.message})
    if rpc.id is None:
        return httpx2.Response(202)
    return httpx2.Response(
        status, headers={"content-type": "application/json"}, content=body_of(rpc, failure)
    )


def of_transport(error: Exception, shown: str) -> Failure:
    """A request that did not get there, or whose answer did not come back."""
    kind = type(error).__name__
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
        return Failure(NOT_SENT, f"{shown} cannot be reached ({kind}); check that it runs, and its `url`")
    return Failure(ANSWER_LOST, f"the connection to {shown} ended before it had answered ({kind})")


def of_status(response: httpx2.Response, shown: str, *, in_session: bool) -> Failure:
    """A status of 400 and more, without the body: it may repeat what was sent."""
    status = response.status_code
    match status:
        case 401:
            return Failure(
                CREDENTIALS_REFUSED,
                f"{shown} answered 401: it does not accept the credentials; correct `headers` or `oauth` of "
                "this server in mcp-servers.yaml, or the variable or file that they name",
            )
        case 403:
            return Failure(
                CREDENTIALS_REFUSED,
                f"{shown} answered 403: the credentials may not do this; give them the right at the server, "
                "or give others in mcp-servers.yaml",
            )
        case 404 if in_session:
            return Failure(NOT_SENT, f"{shown} does not know the session any more; it was started again")
        case 429:
            return Failure(SERVER_BUSY, f"{shown} answered 429: it takes no more requests for now")
        case _ if status >= 500:
            return Failure(ANSWER_LOST, f"{shown} answered {status}")
    return Failure(REQUEST_REFUSED, f"{shown} answered {status}; check the `url` of this server")


def too_large(limit: int) -> Failure:
    """More than may be kept."""
    return Failure(RESULT_TOO_LARGE, f"the server answered with more than {limit} bytes")


def unreadable(why: str) -> Failure:
    """No JSON-RPC message."""
    return Failure(RESULT_UNREADABLE, f"the server's answer {why}")
