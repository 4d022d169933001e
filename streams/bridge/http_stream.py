"""Answers of a server at a URL while they arrive: bounded, without credentials, and one can be given up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import anyio
import httpx2

from pml.streams.bridge.credentials import Wallet
from pml.streams.bridge.http_failure import Rpc, body_of, too_large
from pml.streams.bridge.lines import LineReader, LongLine

T = TypeVar("T")


class Waiting:
    """The wait for an answer, which a cancelled call gives up."""

    def __init__(self) -> None:
        self._given_up = False
        self._scope: anyio.CancelScope | None = None

    async def until(self, step: Callable[[], Awaitable[T]]) -> T:
        """The next step of the answer.

        Raises:
            httpx2.ReadError: it was given up.
        """
        if not self._given_up:
            with anyio.CancelScope() as self._scope:
                return await step()
        raise httpx2.ReadError("the call was cancelled")

    def give_up(self) -> None:
        """Wait no longer."""
        self._given_up = True
        if self._scope is not None:
            self._scope.cancel()


class EventLines(httpx2.AsyncByteStream):
    """Server-sent events, line by line; a line that is too long becomes the error of its request."""

    def __init__(
        self,
        response: httpx2.Response,
        wallet: Wallet,
        limit: int,
        *,
        rpc: Rpc | None,
        waiting: Waiting,
        closed: Callable[[], None],
    ) -> None:
        self._response, self._wallet, self._limit = response, wallet, limit
        self._rpc, self._waiting, self._closed = rpc, waiting, closed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = LineReader(self._limit)
        chunks = aiter(self._response.stream)  # type: ignore[arg-type]
        while True:
            chunk = await self._waiting.until(lambda: anext(chunks, None))
            if chunk is None:
                return
            told = b"".join(self._told(line) for line in lines.feed(chunk))
            if told:
                yield told

    async def aclose(self) -> None:
        self._closed()
        await self._response.aclose()

    def _told(self, line: bytes | LongLine) -> bytes:
        if isinstance(line, bytes):
            return self._wallet.without_secrets(line) + b"\n"
        if self._rpc is None or self._rpc.id is None:
            return b""
        return b"data: " + body_of(self._rpc, too_large(self._limit)) + b"\n"


async def read_whole(response: httpx2.Response, limit: int, waiting: Waiting) -> bytes | None:
    """The body; None where it has more than `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    chunks = aiter(response.stream)  # type: ignore[arg-type]
    try:
        while (chunk := await waiting.until(lambda: anext(chunks, None))) is not None:
            size += len(chunk)
            if size > limit:
                return None
            parts.append(chunk)
    finally:
        await response.aclose()
    return b"".join(parts)
