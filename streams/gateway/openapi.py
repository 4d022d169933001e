"""`/openapi.json`: what the door takes and gives, made from its routes and models."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel

from pml.schemas.commands import ApprovalDecide
from pml.schemas.discovery import DiscoverRequest
from pml.schemas.workflow import Workflow
from pml.streams.gateway.requests import RunRequest

_PARAMETER = re.compile(r"\{(\w+)\}")
_QUERY = {
    "GET /v1/runs": ("session", "status", "limit", "cursor"),
    "POST /v1/runs": ("wait_s",),
    "POST /v1/runs/{run_id}/score": ("session",),
    "GET /v1/approvals": ("session", "all", "limit"),
    "GET /v1/dead-letters": ("limit", "cursor"),
    "GET /v1/tools": (),
    "GET /v1/capabilities": (),
    "GET /v1/models": (),
    "POST /v1/discover": (),
}
_HEADERS = {
    "Idempotency-Key": "1 to 255 characters of your own: the same key with the same content is obeyed once.",
    "Last-Event-ID": "The id of the last event that came, epoch-seq; a seq alone is of the first epoch.",
}
_FAILURE = {
    "description": "a problem (RFC 9457)",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_PROBLEM = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "message": {"type": "string"},
        "retryable": {"type": "boolean"},
        "details": {"type": "object"},
        "run_id": {"type": ["string", "null"]},
    },
    "required": ["title", "status", "detail", "code", "retryable"],
}


def openapi(routes: Iterable[tuple[str, str, Callable[..., Any]]]) -> dict[str, Any]:
    """The document (OpenAPI 3.1)."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM, "Workflow": {}}
    schemas["Workflow"] = _schema(Workflow, schemas)
    paths: dict[str, dict[str, Any]] = {}
    for method, path, handler in routes:
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, handler, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "PML", "version": version("procedural-memory-layer")},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }


def _operation(
    method: str, path: str, handler: Callable[..., Any], schemas: dict[str, Any]
) -> dict[str, Any]:
    said = inspect.getdoc(handler.func if isinstance(handler, partial) else handler) or ""
    places = [_parameter(name, "path", required=True) for name in _PARAMETER.findall(path)]
    queries = _QUERY.get(f"{method} {path}", ("session", "wait_s") if method == "POST" else ("session",))
    operation: dict[str, Any] = {
        "summary": said.splitlines()[0] if said else "",
        "operationId": _operation_id(method, path),
        "parameters": [*places, *(_parameter(name, "query", required=False) for name in queries)],
        "responses": {"200": {"description": "done", "content": _content(path)}, "default": _FAILURE},
    }
    if path == "/v1/runs" and method == "POST":
        operation["responses"]["202"] = {"description": "taken; `Location` says where to look"}
    if path.endswith("/events"):
        operation["responses"]["204"] = {"description": "the run has ended and nothing came after"}
    operation["parameters"] += [_header(name) for name in _headers(method, path)]
    if method == "POST":
        body = _body(path, handler, schemas)
        operation["requestBody"] = {"content": {"application/json": {"schema": body}}}
    return operation


def _headers(method: str, path: str) -> tuple[str, ...]:
    """What is sent beside a request: commands are obeyed once, a stream goes on where it was lost."""
    if path.endswith("/events"):
        return ("Last-Event-ID",)
    return ("Idempotency-Key",) if method == "POST" and path != "/v1/discover" else ()


def _header(name: str) -> dict[str, Any]:
    return {**_parameter(name, "header", required=False), "description": _HEADERS[name]}


def _body(path: str, handler: Callable[..., Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """What a body holds: a command's data without what the path says already."""
    if path == "/v1/runs":
        schema = _schema(RunRequest, schemas)
        schema["properties"]["workflow"] = {"$ref": "#/components/schemas/Workflow"}
        return schema
    if path == "/v1/discover":
        return _schema(DiscoverRequest, schemas)
    given = handler.keywords if isinstance(handler, partial) else {}
    schema = _schema(given.get("model", ApprovalDecide), schemas)
    said = {"task_id"} if "model" in given else {"approval_id", "decision"}
    schema["properties"] = {name: item for name, item in schema["properties"].items() if name not in said}
    schema["required"] = [name for name in schema.get("required", []) if name not in said]
    return schema


def _schema(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of a model; what it is made of goes to those of the document."""
    schema = model.model_json_schema(by_alias=False, ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    return schema


def _content(path: str) -> dict[str, Any]:
    kind = "text/event-stream" if path.endswith("/events") else "application/json"
    return {kind: {"schema": {"type": "string" if path.endswith("/events") else "object"}}}


def _parameter(name: str, place: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": {"type": "string"}}


def _operation_id(method: str, path: str) -> str:
    words = [word for word in re.split(r"[/{}_-]+", path) if word not in ("", "v1")]
    return "_".join([method.lower(), *words])
