"""What every request passes: its host, its origin, its size, its rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pml.schemas.errors import Refused
from pml.streams.gateway.problems import problem
from pml.streams.gateway.requests import whole_number

TokenOf = Callable[[str | None], str | None]
"""The id of the token that an `Authorization` header proves; None where it proves none."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})
CALLERS_MAX = 10_000
"""Callers whose rate is remembered; of more, the one that called longest ago begins anew."""


class HostNotAllowed(Refused):
    """A name that this door does not answer to: DNS rebinding comes in that way."""

    code = "HOST_NOT_ALLOWED"


class OriginNotAllowed(Refused):
    """A web page of somewhere else."""

    code = "ORIGIN_NOT_ALLOWED"


class TooLarge(Refused):
    """A body of more bytes than are taken."""

    code = "TOO_LARGE"


class RateLimited(Refused):
    """More requests than one caller may send."""

    code = "RATE_LIMITED"
    retryable = True


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_s: float


class Rate:
    """A bucket of tokens for each caller: so many a second, and as many at once as `burst`."""

    def __init__(self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, caller: str) -> bool:
        """Whether this caller may send one more now."""
        now_s = self._clock()
        bucket = self._buckets.setdefault(caller, _Bucket(self._burst, now_s))
        self._buckets.move_to_end(caller)
        if len(self._buckets) > CALLERS_MAX:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self._burst, bucket.tokens + (now_s - bucket.at_s) * self._per_s)
        bucket.at_s = now_s
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


class Guards:
    """ASGI middleware: refuses before anything is read or run.

    Args:
        hosts: the names that this door answers to, besides those of loopback.
        origins: whole origins (`https://example.org`) of web pages that may call.
        body_bytes_max: of a request.
        rate: of each caller.
        token_of: who a caller proves to be; whoever proves nothing counts by address.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str],
        origins: Collection[str],
        body_bytes_max: int,
        *,
        rate: Rate,
        token_of: TokenOf,
    ) -> None:
        self._app = app
        self._hosts = LOOPBACK_NAMES | {host.lower() for host in hosts}
        self._origins = frozenset(origins)
        self._body_bytes_max = body_bytes_max
        self._rate = rate
        self._token_of = token_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await problem(refusal)(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), send)

    def _refusal(self, scope: Scope) -> Refused | None:
        headers = Headers(scope=scope)
        host = _host_of(f"//{headers.get('host', '')}")
        if host.lower() not in self._hosts:
            return HostNotAllowed(f"this door does not answer to the name {host!r}; see gateway.hosts")
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin):
            return OriginNotAllowed(f"web pages of {origin} may not call; see gateway.origins")
        length = whole_number(headers.get("content-length", "0"))
        if length is None or length > self._body_bytes_max:
            return self._too_large()
        if not self._rate.take(self._caller(scope, headers)):
            return RateLimited("too many requests; wait a few seconds")
        return None

    def _caller(self, scope: Scope, headers: Headers) -> str:
        """Whose requests these are: what a header only says would be another caller each time."""
        token_id = self._token_of(headers.get("authorization"))
        # No address has a space in it.
        return _network(scope) if token_id is None else f"token {token_id}"

    def _is_own(self, origin: str) -> bool:
        return origin in self._origins or _host_of(origin) in self._hosts

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a body has at most {self._body_bytes_max:,} bytes")

    def _bounded(self, receive: Receive) -> Receive:
        """A body without a length counts while it comes."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._body_bytes_max:
                raise self._too_large()
            return message

        return counted


def _network(scope: Scope) -> str:
    """Where a request comes from; of IPv6 the network, in which a host chooses its address itself."""
    host: str = (scope.get("client") or ("?",))[0]
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv4Address):
        return host
    return str(address.ipv4_mapped or f"{int(address) >> 64:x}/64")


def _host_of(address: str) -> str:
    """The host that an address names; empty where it is no address."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
