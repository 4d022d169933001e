"""What answers look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from starlette.responses import Response


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON document; nobody on the way keeps a copy."""
    body = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, "application/json")


def page(items: Sequence[Any], next_cursor: str | None = None) -> Response:
    """A list as all lists are."""
    return json_response({"items": list(items), "next_cursor": next_cursor})
