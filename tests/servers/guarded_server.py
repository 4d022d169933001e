"""An MCP server over streamable HTTP that wants credentials, with the OAuth server that gives them.

`guarded_server.py PORT LOG [--json]`. Tools want one of the tokens in the file LOG.tokens (a line each), or
one that `/token` gave out and that is not in LOG.revoked; it gives out that in LOG.token, where there is one.
The log has a line for each request: {"path", "authorization", "host"}.
"""

from __future__ import annotations

import gc

gc.disable()  # it would take a sixth of the imports, and this process lives briefly

import asyncio
import base64
import json
import sys
import uuid
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

PORT, LOG = int(sys.argv[1]), Path(sys.argv[2])
HERE = f"http://127.0.0.1:{PORT}"
CLIENT = ("robot", "client-secret-tulip-4711")
GIVEN: dict[str, float] = {}
MEETING = asyncio.Barrier(5)
server = MCPServer("guarded")


@server.tool()
async def who(context: Context) -> str:
    """Repeats what it was shown, as servers that are curious do."""
    headers = context.headers or {}
    return f"you are {headers.get('authorization')} {headers.get('x-org')}"


@server.tool()
async def address(context: Context) -> str:
    """Repeats the address at which it was asked."""
    request: Any = context.request_context.request
    return str(request.url)


@server.tool()
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "at last"


@server.tool()
async def meet() -> str:
    """Answers as soon as five calls of it run at the same time."""
    await asyncio.wait_for(MEETING.wait(), 60)
    return "all are there"


@server.tool()
async def fail(context: Context) -> str:
    raise ToolError(f"bad credentials {(context.headers or {}).get('authorization')}")


class Guard:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await answer_to(Request(scope, receive)) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send)


async def answer_to(request: Request) -> Response | None:
    note(request)
    if request.url.path != "/mcp":
        return await other_page(request)
    return None if allowed(request.headers.get("authorization", "")) else refusal(request)


def note(request: Request) -> None:
    line = {
        "path": request.url.path,
        "authorization": request.headers.get("authorization"),
        "host": request.headers.get("host"),
    }
    with LOG.open("a") as file:
        file.write(json.dumps(line) + "\n")


def allowed(authorization: str) -> bool:
    token = authorization.removeprefix("Bearer ")
    named = lines(LOG.with_suffix(".tokens"))
    return token in named or (token in GIVEN and token not in lines(LOG.with_suffix(".revoked")))


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def refusal(request: Request) -> Response:
    said = f"I do not know {request.headers.get('authorization')}"
    metadata = f'Bearer resource_metadata="{HERE}/.well-known/oauth-protected-resource"'
    return JSONResponse({"error": said}, 401, {"www-authenticate": metadata})


async def other_page(request: Request) -> Response | None:
    match request.url.path:
        case "/.well-known/oauth-protected-resource":
            return JSONResponse({"resource": f"{HERE}/mcp", "authorization_servers": [HERE]})
        case "/.well-known/oauth-authorization-server":
            return JSONResponse(metadata())
        case "/token":
            return await token(request)
        case "/away":
            return RedirectResponse(request.query_params["to"], 307)
        case "/broken":
            return Response("an internal story with passwords", 503)
        case "/forbidden":
            return JSONResponse({"error": request.headers.get("authorization")}, 403)
        case "/compressed":
            return Response(b"\x1f\x8b" + b"x" * 100, headers={"content-encoding": "gzip"})
        case "/endless":
            return Response(b"x" * 5_000_000, media_type="application/json")
    return None


def metadata() -> dict[str, Any]:
    return {
        "issuer": HERE,
        "authorization_endpoint": f"{HERE}/authorize",
        "token_endpoint": f"{HERE}/token",
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": ["code"],
    }


async def token(request: Request) -> Response:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    form = await request.form()
    right = kind == "Basic" and base64.b64decode(given).decode() == ":".join(CLIENT)
    if not right or form["grant_type"] != "client_credentials":
        return JSONResponse({"error": "invalid_client", "error_description": f"not {given}"}, 401)
    made = next(iter(lines(LOG.with_suffix(".token"))), f"access-token-{uuid.uuid4().hex}")
    GIVEN[made] = 0
    return JSONResponse({"access_token": made, "token_type": "Bearer", "expires_in": 3600})


if __name__ == "__main__":
    app = server.streamable_http_app(json_response="--json" in sys.argv)
    uvicorn.run(Guard(app), host="127.0.0.1", port=PORT, log_level="error")
