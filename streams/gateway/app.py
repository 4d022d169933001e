"""The HTTP door: routes, errors, and what every request passes (CONTRACT.md, For programs)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pml.schemas.commands import RunScore, TaskResolve
from pml.schemas.errors import PMLError
from pml.streams.discovery.finder import Finder
from pml.streams.gateway import approvals, catalog, discovery, event_stream, runs
from pml.streams.gateway.answers import json_response
from pml.streams.gateway.callers import Caller, Callers
from pml.streams.gateway.dashboard import Dashboard
from pml.streams.gateway.doors import Doors
from pml.streams.gateway.guards import Guards, Rate
from pml.streams.gateway.openapi import openapi
from pml.streams.gateway.problems import Unexpected, problem
from pml.streams.gateway.tokens import TokenFile
from pml.streams.mcp_server.http import PATH, McpEndpoint, session_manager
from pml.streams.settings import Settings

Handler = Callable[[Request, Caller, Doors], Awaitable[Response]]
log = structlog.get_logger("pml.gateway")


ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("POST", "/v1/runs", runs.start),
    ("GET", "/v1/runs", runs.show_all),
    ("GET", "/v1/runs/{run_id}", runs.show),
    ("GET", "/v1/runs/{run_id}/events", event_stream.follow),
    ("GET", "/v1/runs/{run_id}/tasks/{task}/result", runs.result),
    ("POST", "/v1/runs/{run_id}/tasks/{task}/resolve", partial(runs.decide, model=TaskResolve)),
    *(
        ("POST", f"/v1/runs/{{run_id}}/{name}", partial(runs.decide, model=model))
        for name, model in runs.DECISIONS.items()
    ),
    ("POST", "/v1/runs/{run_id}/score", partial(runs.score, model=RunScore)),
    ("GET", "/v1/approvals", approvals.show_all),
    ("POST", "/v1/approvals/{approval_id}/approve", partial(approvals.decide, decision="approve")),
    ("POST", "/v1/approvals/{approval_id}/reject", partial(approvals.decide, decision="reject")),
    ("POST", "/v1/discover", discovery.discover),
    ("GET", "/v1/tools", catalog.tools),
    ("GET", "/v1/capabilities", discovery.capabilities),
    ("GET", "/v1/models", catalog.models),
    ("GET", "/v1/dead-letters", catalog.dead_letters),
    ("GET", "/v1/dead-letters/{letter_id}", catalog.dead_letter),
)


def make_app(
    settings: Settings, opened: Callable[[], Any], ready: Callable[[], dict[str, Any] | None]
) -> Starlette:
    """The application.

    Args:
        opened: gives a context manager whose value is the producer of commands.
        ready: what is not ready yet; None where everything is.
    """
    gateway = settings.gateway
    callers = Callers(TokenFile(settings.data_dir), open_to_all=gateway.on_loopback)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with opened() as producer, Finder(settings) as finder:
            app.state.doors = Doors(settings, producer, finder, callers)
            app.state.mcp = session_manager(app.state.doors)
            async with app.state.mcp.run():
                yield

    dashboard = Dashboard()
    return Starlette(
        routes=[
            *(Route(path, _handled(handler), methods=[method]) for method, path, handler in ROUTES),
            Route("/healthz", _alive),
            Route("/readyz", partial(_ready, ready)),
            Route("/metrics", _metrics),
            Route("/openapi.json", _openapi),
            Route(PATH, McpEndpoint()),
            Route("/ui", dashboard.enter),
            Route("/ui/{name:path}", dashboard.show),
        ],
        middleware=[
            Middleware(
                Guards,
                hosts=gateway.hosts,
                origins=gateway.origins,
                body_bytes_max=gateway.body_bytes_max,
                rate=Rate(gateway.requests_per_s, gateway.burst),
                token_of=callers.token_id,
            )
        ],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )


def _handled(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        doors: Doors = request.app.state.doors
        try:
            caller = doors.callers.of(request.headers.get("authorization"))
            return await handler(request, caller, doors)
        except PMLError as error:
            return problem(error, request.path_params.get("run_id"))
        except Exception as error:
            log.error("a request failed", path=request.url.path, error=type(error).__name__, exc_info=True)
            return problem(Unexpected("PML made a mistake; its log says more"))

    return endpoint


async def _alive(request: Request) -> Response:
    return json_response({"status": "alive"})


async def _ready(ready: Callable[[], dict[str, Any] | None], request: Request) -> Response:
    missing = ready()
    return json_response({"status": "ready"} if missing is None else missing, 200 if missing is None else 503)


async def _metrics(request: Request) -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _openapi(request: Request) -> Response:
    return json_response(openapi(ROUTES))


async def _http_error(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: no such path, no such method."""
    assert isinstance(error, HTTPException)
    refused = PMLError(f"{request.method} {request.url.path}: {error.detail}")
    refused.code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "BAD_REQUEST")
    return problem(refused)
