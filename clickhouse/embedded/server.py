"""ClickHouse's HTTP interface over the engine: `/`, `/ping`, `/replicas_status`."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, TypeVar

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pml.clickhouse.embedded.compression import Compressor, accepted, compressor, decompressed
from pml.clickhouse.embedded.engine import Engine, Query
from pml.clickhouse.embedded.errors import ClickHouseError
from pml.clickhouse.embedded.execution import Execution
from pml.clickhouse.embedded.queries import Queries, Running
from pml.clickhouse.embedded.request import MAX_BODY_BYTES, Credentials, body_of, form_of, query_of

T = TypeVar("T")

# A result up to this size is answered whole, with its summary; a larger one block by block as it comes.
WHOLE_RESULT_BYTES = 1 << 20
WAITED_RESULT_BYTES = 64 << 20
IDENTITY = {"X-PML-Embedded": "1"}


class ResultStream(StreamingResponse):
    """Lets go of its query however the sending ends, also when the client has gone."""

    def __init__(self, body: AsyncIterator[bytes], headers: dict[str, str], running: Running) -> None:
        super().__init__(body, headers=headers)
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._running.release()


class Interface:
    """The handlers of the routes."""

    def __init__(self, queries: Queries, credentials: Credentials) -> None:
        self._queries = queries
        self._credentials = credentials

    async def ping(self, request: Request) -> Response:
        return PlainTextResponse("Ok.\n", headers=IDENTITY)

    async def query(self, request: Request) -> Response:
        if request.method == "GET" and not request.query_params:
            return await self.ping(request)
        headers = self._headers(request)
        try:
            self._credentials.check(request)
            return await self._answer(request, await self._read(request), headers)
        except ClickHouseError as error:
            return _refusal(error, headers)
        except ClientDisconnect:
            return Response(status_code=499)

    async def _read(self, request: Request) -> Query:
        if request.headers.get("content-type", "").startswith(
            ("multipart/", "application/x-www-form-urlencoded")
        ):
            return query_of(request, b"", await form_of(request))
        encoding = request.headers.get("content-encoding", "")
        text = await self._queries.call(decompressed, await body_of(request), encoding, MAX_BODY_BYTES)
        return query_of(request, text, {})

    async def _answer(self, request: Request, query: Query, headers: dict[str, str]) -> Response:
        running = await self._queries.begin(query)
        limit = (
            WAITED_RESULT_BYTES
            if request.query_params.get("wait_end_of_query") == "1"
            else WHOLE_RESULT_BYTES
        )
        try:
            head, ended = await _unless_gone(request, self._first(running.execution, limit))
        except BaseException:
            running.release()
            raise
        if query.statement.gives_result:
            headers["X-ClickHouse-Format"] = query.output_format
        encoding = _wanted_encoding(request)
        if encoding:
            headers["Content-Encoding"] = encoding
        if ended:
            running.release()
            headers["X-ClickHouse-Summary"] = _summary(running.execution)
            return Response(_packed(b"".join(head), encoding), headers=headers)
        return self._stream(running, head, encoding, headers)

    async def _first(self, execution: Execution, limit_bytes: int) -> tuple[list[bytes], bool]:
        """The blocks up to the limit, and whether that was all."""
        head: list[bytes] = []
        size = 0
        async for block in self._queries.blocks(execution):
            head.append(block)
            size += len(block)
            if size > limit_bytes:
                return head, False
        return head, True

    def _stream(
        self, running: Running, head: list[bytes], encoding: str | None, headers: dict[str, str]
    ) -> ResultStream:
        tag = secrets.token_hex(8)
        headers["X-ClickHouse-Exception-Tag"] = tag
        blocks = self._blocks(running.execution, head, tag)
        return ResultStream(
            _compressed(blocks, compressor(encoding)) if encoding else blocks, headers, running
        )

    async def _blocks(self, execution: Execution, head: list[bytes], tag: str) -> AsyncIterator[bytes]:
        for block in head:
            yield block
        try:
            async for block in self._queries.blocks(execution):
                yield block
        except ClickHouseError as error:
            yield _late_error(error, tag)

    def _headers(self, request: Request) -> dict[str, str]:
        engine = self._queries.engine
        return {
            **IDENTITY,
            "Content-Type": "text/plain; charset=UTF-8",
            "X-ClickHouse-Server-Display-Name": engine.host,
            "X-ClickHouse-Query-Id": request.query_params.get("query_id") or str(uuid.uuid4()),
            "X-ClickHouse-Timezone": engine.timezone,
        }


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives.

    Raises:
        ClientDisconnect: its client does not wait for it any more.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        working.cancel()
        leaving.cancel()


async def _gone(request: Request) -> None:
    """Returns when the client has left; its request was read whole."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def application(engine: Engine, credentials: Credentials) -> Starlette:
    """The ASGI application; it closes the engine at its shutdown."""
    queries = Queries(engine)
    interface = Interface(queries, credentials)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(queries.close)

    routes = [
        Route("/ping", interface.ping),
        Route("/replicas_status", interface.ping),
        Route("/", interface.query, methods=["GET", "POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def _wanted_encoding(request: Request) -> str | None:
    if request.query_params.get("enable_http_compression") != "1":
        return None
    return accepted(request.headers.get("accept-encoding", ""))


def _packed(body: bytes, encoding: str | None) -> bytes:
    if encoding is None:
        return body
    packer = compressor(encoding)
    return packer.compress(body) + packer.flush()


async def _compressed(blocks: AsyncIterator[bytes], packer: Compressor) -> AsyncIterator[bytes]:
    async for block in blocks:
        yield packer.compress(block)
    yield packer.flush()


def _summary(execution: Execution) -> str:
    return orjson.dumps({name: str(value) for name, value in asdict(execution.summary).items()}).decode()


def _refusal(error: ClickHouseError, headers: dict[str, str]) -> Response:
    headers["X-ClickHouse-Exception-Code"] = str(error.number)
    return Response(f"{error}\n", status_code=error.status, headers=headers)


def _late_error(error: ClickHouseError, tag: str) -> bytes:
    """How a server reports an error in the middle of a result whose status is sent already."""
    message = f"{error}\n".encode()
    return b"\r\n__exception__\r\n%s\r\n%s%d %s\r\n__exception__\r\n" % (
        tag.encode(),
        message,
        len(message),
        tag.encode(),
    )
