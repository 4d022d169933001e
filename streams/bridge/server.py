"""One configured MCP server: its sessions, how it is started again, and what it last listed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import structlog

from pml.schemas.catalog import ServerTools
from pml.streams.bridge.backoff import Backoff
from pml.streams.bridge.http import http_transport
from pml.streams.bridge.listing import listed, unavailable
from pml.streams.bridge.secret_values import NO_SECRETS
from pml.streams.bridge.server_specs import HttpServer, ServerSpec, StdioServer
from pml.streams.bridge.session import Connect, Session
from pml.streams.bridge.stdio import StdioOptions, stdio_transport
from pml.streams.bridge.unavailable import ServerUnavailable
from pml.streams.telemetry import MCP_SERVER_UP

# A call may wait this long for a server that may not be started again yet; beyond it fails at once.
BACKOFF_WAIT_MAX_S = 2.0
# A tenant's or session's own process is kept between the steps of a conversation, not for ever.
IDLE_S = 600.0
SESSIONS_MAX = 32

log = structlog.get_logger("pml.bridge")
Scope = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What all servers of a bridge share."""

    stdio: StdioOptions
    concurrency: int
    start_timeout_s: float
    on_listed: Callable[[ServerTools], None]


class Server:
    """Starts sessions when they are needed, shares them as `isolation` says, and ends idle ones."""

    def __init__(self, name: str, spec: ServerSpec, options: ServerOptions) -> None:
        self.name, self.spec, self._options = name, spec, options
        # What a server at a URL answers comes without its credentials (`credentials.Wallet`).
        self.secrets = spec.secrets() if isinstance(spec, StdioServer) else NO_SECRETS
        self.concurrency = spec.concurrency or options.concurrency
        self.record = unavailable(name, spec, self.concurrency, "it was not started yet")
        self._sessions: dict[Scope, Session] = {}
        self._opening: dict[Scope, asyncio.Task[Session]] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._leaving: set[Session] = set()
        self._closing = False
        self._listing: asyncio.Task[None] | None = None

    async def start(self) -> ServerTools:
        """Start it once to list its tools; the record says `unavailable` where that fails."""
        try:
            async with self.session("", "") as session:
                if self.spec.isolation == "shared":
                    return self.record
            await session.close()
        except ServerUnavailable as error:
            self._publish(unavailable(self.name, self.spec, self.concurrency, error.message))
        return self.record

    @asynccontextmanager
    async def session(self, tenant: str, session_id: str) -> AsyncIterator[Session]:
        """A running session for this tenant and conversation; it is not ended while it is held.

        Raises:
            ServerUnavailable: it cannot be started, may not yet be started again, or is ended for good.
        """
        session = await self._current(self._scope(tenant, session_id))
        session.hold()
        try:
            yield session
        finally:
            session.release()

    @property
    def may_start(self) -> bool:
        """Whether a start would not only be told to wait."""
        return not self._backoff("").remaining_s(_now_s())

    def answered(self, tenant: str) -> None:
        """A call was answered: the server works, for this tenant at least."""
        self._backoff(tenant).succeeded()

    async def end_idle(self) -> None:
        """End what nobody has used for ten minutes, but for a shared session."""
        if self.spec.isolation == "shared":
            return
        before = _now_s() - IDLE_S
        idle = [s for s in self._sessions.values() if not s.active and s.used_at_s < before]
        await asyncio.gather(*(session.close() for session in idle))

    async def close(self) -> None:
        """End every session."""
        self._closing = True
        tasks = [*self._opening.values(), *([self._listing] if self._listing else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(s.close() for s in [*self._sessions.values(), *self._leaving]))

    def _backoff(self, tenant: str) -> Backoff:
        """One tenant's wrong credentials keep no other waiting."""
        return self._backoffs.setdefault(tenant if self._has_tenants else "", Backoff())

    @property
    def _has_tenants(self) -> bool:
        return isinstance(self.spec, HttpServer) and bool(self.spec.tenants)

    def _connect(self, tenant: str) -> Connect:
        spec, stdio = self.spec, self._options.stdio
        if isinstance(spec, HttpServer):
            return partial(http_transport, self.name, spec, tenant, stdio.line_max_bytes)
        return partial(stdio_transport, spec, stdio)

    def _scope(self, tenant: str, session_id: str) -> Scope:
        return {"shared": (), "tenant": (tenant,), "session": (tenant, session_id)}[self.spec.isolation]

    async def _current(self, scope: Scope) -> Session:
        session = self._sessions.get(scope)
        if session is not None and session.alive:
            return session
        if self._closing:
            raise ServerUnavailable(f"the MCP server {self.name} is being ended with its bridge")
        opening = self._opening.get(scope)
        if opening is None:
            opening = self._opening[scope] = asyncio.create_task(self._open(scope))
            opening.add_done_callback(lambda task: self._opened(scope, task))
        return await asyncio.shield(opening)

    def _opened(self, scope: Scope, task: asyncio.Task[Session]) -> None:
        del self._opening[scope]
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may be left to wait

    async def _open(self, scope: Scope) -> Session:
        tenant = scope[0] if scope else ""
        await self._until_allowed(tenant)
        await self._make_room()
        session = Session(self.name, self._connect(tenant), lambda: self._list_again(scope), self.secrets)
        try:
            await session.open(self._options.start_timeout_s)
        except ServerUnavailable as error:
            self._backoff(tenant).failed(_now_s())
            self._tell_up(tenant, up=False)
            log.warning("server not started", server=self.name, error=error.message)
            raise
        self._take(scope, session)
        self._tell_up(tenant, up=True)
        if self._lists(tenant):
            self._publish_list(session)
        return session

    def _take(self, scope: Scope, session: Session) -> None:
        session.used_at_s = _now_s()
        if scope in self._sessions:
            self._leaving.add(self._sessions[scope])
        self._sessions[scope] = session
        session.on_end(lambda: self._ended(scope, session))

    def _lists(self, tenant: str) -> bool:
        """Whether what is seen with these credentials is what the catalog says."""
        return not self._has_tenants or not tenant

    def _tell_up(self, tenant: str, *, up: bool) -> None:
        if self._lists(tenant):
            MCP_SERVER_UP.labels(self.name).set(int(up))

    async def _until_allowed(self, tenant: str) -> None:
        wait_s = self._backoff(tenant).remaining_s(_now_s())
        if wait_s > BACKOFF_WAIT_MAX_S:
            raise ServerUnavailable(
                f"the MCP server {self.name} failed again and again; it is started again in {wait_s:.0f} s",
                retry_after_s=round(wait_s, 1),
            )
        await asyncio.sleep(wait_s)

    async def _make_room(self) -> None:
        """The least recently used idle session ends where there are too many."""
        idle = [session for session in self._sessions.values() if not session.active]
        if len(self._sessions) >= max(SESSIONS_MAX, self.concurrency) and idle:
            await min(idle, key=lambda session: session.used_at_s).close()

    def _ended(self, scope: Scope, session: Session) -> None:
        self._leaving.discard(session)
        if self._sessions.get(scope) is session:
            del self._sessions[scope]
        if not session.closed_by_us:
            tenant = scope[0] if scope else ""
            self._backoff(tenant).failed(_now_s())
            self._tell_up(tenant, up=False)
            log.warning("server ended", server=self.name)

    def _list_again(self, scope: Scope) -> None:
        """The server says that its tools changed; one reading at a time is enough."""
        session = self._sessions.get(scope)
        if session is not None and (self._listing is None or self._listing.done()) and not self._closing:
            tenant = scope[0] if scope else ""
            again = self._read_list(session) if self._lists(tenant) else self._start_again()
            self._listing = asyncio.create_task(again)

    async def _start_again(self) -> None:
        """A tenant heard of it: the list is read with the credentials that it is always read with."""
        await self.start()

    async def _read_list(self, session: Session) -> None:
        try:
            await session.list_again()
        except Exception as error:
            said = self.secrets.taken_from(str(error))[:200]
            log.warning("tools not listed again", server=self.name, error=said)
        else:
            self._publish_list(session)

    def _publish_list(self, session: Session) -> None:
        self._publish(listed(self.name, self.spec, self.concurrency, session.tools, self.secrets))

    def _publish(self, record: ServerTools) -> None:
        self.record = record
        self._options.on_listed(record)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
