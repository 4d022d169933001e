"""Requests to a server at a URL: where they may go, with which credentials, and what becomes of failures."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx2
import orjson

from pml.streams.bridge import http_failure
from pml.streams.bridge.credentials import Wallet
from pml.streams.bridge.http_failure import Failure, Rpc, response_of, rpc_of
from pml.streams.bridge.http_stream import EventLines, Waiting, read_whole
from pml.streams.bridge.server_specs import HttpServer, is_private
from pml.streams.bridge.unavailable import ServerUnavailable

# A host that is there answers at once; the call behind it has its own time-out.
CONNECT_TIMEOUT_S = 10.0
# What carries no call (a token, a goodbye, a notification) must not hold up those that do.
ASIDE_TIMEOUT_S = 10.0
GOODBYE_TIMEOUT_S = 2.0
CANCELLED = "notifications/cancelled"
REFUSED = "pml.refused"
_OF_THE_BODY = {"content-length", "content-encoding", "transfer-encoding"}


class HttpExchange(httpx2.AsyncBaseTransport):
    """The transport under the SDK's client.

    It never raises for one request, since the SDK would end the session with all its calls: what fails is
    answered as an error of JSON-RPC. Nothing is sent twice.
    """

    def __init__(self, spec: HttpServer, wallet: Wallet, answer_max_bytes: int) -> None:
        self._spec, self._wallet, self._limit = spec, wallet, answer_max_bytes
        self._shown, self._url = spec.shown(), httpx2.URL(spec.address())
        # Calls are limited by the bridge; here one must never wait for another.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        self._inner = httpx2.AsyncHTTPTransport(limits=limits)
        self._waiting: dict[int | str, Waiting] = {}
        self._aside: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, or say why not."""
        rpc = rpc_of(request)
        failure = self._prepare(request, rpc)
        if failure is not None:
            return response_of(failure, rpc)
        if rpc is not None and rpc.method == CANCELLED:
            self._send_aside(request, rpc)
            return httpx2.Response(202)
        return await self._exchange(request, rpc)

    async def aclose(self) -> None:
        """Close every connection."""
        for task in self._aside:
            task.cancel()
        await asyncio.gather(*self._aside, return_exceptions=True)
        await self._inner.aclose()

    def _prepare(self, request: httpx2.Request, rpc: Rpc | None) -> Failure | None:
        if REFUSED in request.extensions:
            return Failure(http_failure.CREDENTIALS_REFUSED, request.extensions[REFUSED])
        if not self._spec.insecure_http and not is_private(str(request.url)):
            return Failure(http_failure.REQUEST_REFUSED, f"{request.url.host} is not asked over plain http")
        request.headers["accept-encoding"] = "identity"
        request.extensions = {**request.extensions, "timeout": _timeout(request, rpc)}
        if (request.url.scheme, request.url.netloc) != (self._url.scheme, self._url.netloc):
            return None
        try:
            request.headers.update(self._wallet.headers())
        except ServerUnavailable as error:
            return Failure(http_failure.NOT_SENT, error.message)
        return None

    def _send_aside(self, request: httpx2.Request, rpc: Rpc) -> None:
        """A server that hangs must not keep the SDK from sending what comes after."""
        task = asyncio.create_task(self._cancel(request, rpc))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _cancel(self, request: httpx2.Request, rpc: Rpc) -> None:
        with suppress(httpx2.HTTPError):
            response = await self._inner.handle_async_request(request)
            await response.aclose()
        waiting = self._waiting.get(rpc.params.get("requestId", ""))
        if waiting is not None:
            waiting.give_up()

    async def _exchange(self, request: httpx2.Request, rpc: Rpc | None) -> httpx2.Response:
        waiting = Waiting()
        if rpc is not None and rpc.id is not None:
            self._waiting[rpc.id] = waiting
        streams = False
        try:
            response = await waiting.until(lambda: self._inner.handle_async_request(request))
            streams = _is_stream(response)
            if streams:
                return self._stream(response, rpc, waiting)
            return await self._whole(request, response, rpc, waiting)
        except httpx2.HTTPError as error:
            return response_of(http_failure.of_transport(error, self._shown), rpc)
        finally:
            if not streams:
                self._forget(rpc)

    def _stream(self, response: httpx2.Response, rpc: Rpc | None, waiting: Waiting) -> httpx2.Response:
        lines = EventLines(
            response, self._wallet, self._limit, rpc=rpc, waiting=waiting, closed=lambda: self._forget(rpc)
        )
        return httpx2.Response(response.status_code, headers=_headers(response), stream=lines)

    async def _whole(
        self, request: httpx2.Request, response: httpx2.Response, rpc: Rpc | None, waiting: Waiting
    ) -> httpx2.Response:
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return response_of(http_failure.unreadable("is compressed, which was not asked for"), rpc)
        body = await read_whole(response, self._limit, waiting)
        status = response.status_code
        if body is None:
            return response_of(http_failure.too_large(self._limit), rpc)
        if rpc is not None:  # an authorisation server may give the token that there is once more
            body = self._wallet.without_secrets(body)
        if rpc is not None and rpc.id is not None:
            failure = self._failure(request, response, body)
            if failure is not None:
                told = response_of(failure, rpc, status if status >= 400 else http_failure.GATEWAY_FAILED)
                told.headers.update({n: v for n, v in _headers(response) if n == "www-authenticate"})
                return told
        return httpx2.Response(status, headers=_headers(response), content=body)

    def _failure(self, request: httpx2.Request, response: httpx2.Response, body: bytes) -> Failure | None:
        status = response.status_code
        if status in (401, 403) or (status >= 400 and not _is_rpc_error(body)):
            in_session = "mcp-session-id" in request.headers
            return http_failure.of_status(response, self._shown, in_session=in_session)
        json = response.headers.get("content-type", "").lower().startswith("application/json")
        if status == 200 and json and not _is_json(body):
            return http_failure.unreadable("is no valid JSON")
        return None

    def _forget(self, rpc: Rpc | None) -> None:
        if rpc is not None and rpc.id is not None:
            self._waiting.pop(rpc.id, None)


def _timeout(request: httpx2.Request, rpc: Rpc | None) -> dict[str, float | None]:
    """In seconds; a call may take as long as the bridge lets it, and so may a stream of news."""
    connect = {"connect": CONNECT_TIMEOUT_S, "write": ASIDE_TIMEOUT_S, "pool": CONNECT_TIMEOUT_S}
    if request.method == "DELETE":
        return dict.fromkeys(("connect", "write", "pool", "read"), GOODBYE_TIMEOUT_S)
    news = request.method == "GET" and "text/event-stream" in request.headers.get("accept", "")
    call = rpc is not None and rpc.id is not None
    return {**connect, "read": None if call or news else ASIDE_TIMEOUT_S}


def _is_stream(response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "").lower()
    return response.status_code == 200 and kind.startswith("text/event-stream")


def _headers(response: httpx2.Response) -> list[tuple[str, str]]:
    return [(name, value) for name, value in response.headers.items() if name not in _OF_THE_BODY]


def _is_json(body: bytes) -> bool:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True


def _is_rpc_error(body: bytes) -> bool:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(answer, dict) and "jsonrpc" in answer and isinstance(answer.get("error"), dict)
