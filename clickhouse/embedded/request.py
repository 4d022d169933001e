"""What a request to ClickHouse's HTTP interface asks for."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from pml.clickhouse.embedded.engine import Query
from pml.clickhouse.embedded.errors import (
    AUTHENTICATION_FAILED,
    NOT_IMPLEMENTED,
    QUERY_IS_TOO_LARGE,
    ClickHouseError,
)
from pml.clickhouse.embedded.statement import split

# A batch of the sink is under 20 MiB; nothing else that PML sends is larger.
MAX_BODY_BYTES = 128 << 20

# Parameters of the interface that are no settings of the query. Sessions, quotas and roles are accepted and
# mean nothing: there is one user, and a query has a connection of its own.
_NO_SETTINGS = frozenset(
    (
        *("query", "query_id", "database", "default_format", "user", "password", "role", "quota_key"),
        *("session_id", "session_timeout", "session_check", "client_protocol_version"),
        *("compress", "decompress", "wait_end_of_query", "buffer_size", "stacktrace"),
    )
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The one user of the server."""

    user: str
    password: str

    def check(self, request: Request) -> None:
        """
        Raises:
            ClickHouseError: the request shows other credentials, or none.
        """
        user, password = _credentials(request)
        same = hmac.compare_digest(f"{user}\0{password}".encode(), f"{self.user}\0{self.password}".encode())
        if not same:
            raise ClickHouseError(
                AUTHENTICATION_FAILED,
                f"{user[:80]}: Authentication failed: no such user, or a wrong password.",
            )


def _credentials(request: Request) -> tuple[str, str]:
    headers, params = request.headers, request.query_params
    if "x-clickhouse-user" in headers or "x-clickhouse-key" in headers:
        return headers.get("x-clickhouse-user", "default"), headers.get("x-clickhouse-key", "")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(token, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        return user, password
    return params.get("user", "default"), params.get("password", "")


async def body_of(request: Request) -> bytes:
    """The body as it came.

    Raises:
        ClickHouseError: it is larger than `MAX_BODY_BYTES`.
    """
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise ClickHouseError(QUERY_IS_TOO_LARGE, f"The body is larger than {MAX_BODY_BYTES} bytes.")
        parts.append(part)
    return b"".join(parts)


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form: where parameters are too long for an address, clickhouse-connect sends one.

    Raises:
        ClickHouseError: the form is too large, broken, or has files (external data).
    """
    body = await body_of(request)

    async def replay() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    try:
        async with Request(request.scope, replay).form(max_files=0, max_part_size=MAX_BODY_BYTES) as form:
            return {name: value for name, value in form.items() if isinstance(value, str)}
    except HTTPException as error:
        raise ClickHouseError(
            NOT_IMPLEMENTED, f"Only a form of plain fields is supported: {error.detail}"
        ) from None


def query_of(request: Request, text: bytes, form: Mapping[str, str]) -> Query:
    """The query of a request whose plain body is `text` and whose form fields are `form`."""
    params = {**dict(request.query_params), **form}
    if params.get("compress", "0") != "0" or params.get("decompress", "0") != "0":
        raise ClickHouseError(
            NOT_IMPLEMENTED, "Use Content-Encoding and Accept-Encoding instead of (de)compress=1."
        )
    settings = {name: value for name, value in params.items() if name not in _NO_SETTINGS}
    if request.method == "GET" and settings.get("readonly", "0") == "0":
        settings["readonly"] = "2"
    named = params.get("query", "").encode()
    return Query(
        statement=split(named + b"\n" + text if named and text else named or text),
        database=params.get("database") or request.headers.get("x-clickhouse-database", ""),
        settings=settings,
        default_format=params.get("default_format")
        or request.headers.get("x-clickhouse-format", "TabSeparated"),
    )
