"""What stands behind every call: the settings, one producer, who calls, and which runs began here."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from mcp.server.context import ServerRequestContext

from pml.schemas.canonical import NotJson, canonical_json
from pml.schemas.identifiers import DEFAULT_TENANT, is_name
from pml.streams.client import IntentProducer
from pml.streams.discovery.finder import Finder
from pml.streams.gateway.callers import Caller
from pml.streams.gateway.doors import Waiting
from pml.streams.mcp_server.failures import InvalidArguments
from pml.streams.mcp_server.person import Person, Resumed, can_be_asked
from pml.streams.mcp_server.session_parts import KNOWN_S, Conversation, SessionParts
from pml.streams.settings import Settings

if TYPE_CHECKING:
    from pml.streams.mcp_server.proxy.proxy import Proxy

LOCAL_AGENT = Caller(DEFAULT_TENANT, "agent:mcp", frozenset({"runs:read", "runs:write"}))
"""Who calls over stdio: an agent of whoever sits at this machine, and never that person."""
SESSION_META = "pml/session"
REQUEST_META = "pml/request"
REQUEST_CHARACTERS_MAX = 10_000
CONTEXT_META = "pml/context"
# As much as the log keeps of it: what is larger could not be learned from.
CONTEXT_BYTES_MAX = 10_240
MCP_SESSION_HEADER = "mcp-session-id"
REMEMBERED_MAX = 10_000
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class Remembered:
    """The sessions of runs that began here, as long as there is room: ClickHouse is a moment behind."""

    def __init__(self, most: int = REMEMBERED_MAX) -> None:
        self._most = most
        self._sessions: OrderedDict[tuple[str, str], str] = OrderedDict()

    def keep(self, tenant: str, run_id: str, session_id: str) -> None:
        """Remember one more; the one that was kept longest ago makes room."""
        self._sessions[tenant, run_id] = session_id
        self._sessions.move_to_end((tenant, run_id))
        if len(self._sessions) > self._most:
            self._sessions.popitem(last=False)

    def find(self, tenant: str, run_id: str) -> str | None:
        """The session of a run of this tenant, if it is remembered."""
        return self._sessions.get((tenant, run_id))


@dataclass(frozen=True, slots=True)
class Door:
    """One for each server.

    Args:
        caller_of: who sent a request.

    `waiting` counts the requests that wait; over HTTP it is the one of all doors. `connection_session` is the
    session of the one connection that there is, over stdio. `person_of` says who sits at the client and may
    approve, if anybody does, and `state_key` seals what a client keeps while they are asked.
    """

    settings: Settings
    producer: IntentProducer
    finder: Finder
    caller_of: Callable[[ServerRequestContext[Any, Any]], Caller]
    waiting: Waiting = field(default_factory=Waiting)
    remembered: Remembered = field(default_factory=Remembered)
    parts: SessionParts = field(default_factory=SessionParts)
    proxy: Proxy | None = None
    connection_session: str | None = None
    person_of: Callable[[Caller], str | None] = lambda caller: None
    state_key: bytes = field(default_factory=lambda: token_bytes(32))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: through which door, by whom, in which session, and how its progress is told.

    `meta_session` is what the client's host says, `mcp_session` what the transport has. `person` may be asked
    where the call waits for approval; `resumed` is what came of it, in a call that comes again. `request` and
    `context` are what the host says of what the user wants, and values that it knows.
    """

    door: Door
    caller: Caller
    report: Report
    meta_session: str | None = None
    mcp_session: str | None = None
    traceparent: str | None = None
    person: Person | None = None
    resumed: Resumed | None = None
    request: str | None = None
    context: Mapping[str, Any] | None = None

    def conversation(self, asked: str | None = None, run_id: str | None = None) -> Conversation:
        """Where a new run begins, the same for every tool; without a name the run is its own.

        So is one whose id somebody chose: asked for over another connection, it is to be found again.
        """
        named = self.meta_session or asked or (None if run_id else self.mcp_session)
        known_s = min(KNOWN_S, self.door.settings.timeouts.session_ttl_s / 4)
        return Conversation(
            self.door.parts, self.caller.tenant, named, known_s, from_first=run_id is not None
        )

    def session_named(self, asked: str | None) -> str | None:
        """The session that somebody names for a run that there is."""
        return asked or self.meta_session


def call_of(
    door: Door, caller: Caller, context: ServerRequestContext[Any, Any], resumed: Resumed | None = None
) -> Call:
    """The call that a request is.

    Raises:
        InvalidArguments: the session in `_meta` is no name, or the context no object of a bounded size.
    """
    headers = getattr(context.request, "headers", {})
    return Call(
        door,
        caller,
        context.session.report_progress,
        meta_session=meta_session(context.meta),
        mcp_session=derived_session(headers.get(MCP_SESSION_HEADER)) or door.connection_session,
        traceparent=traceparent(context.meta),
        person=_person(door, caller, context),
        resumed=resumed,
        request=request_in(context.meta),
        context=context_in(context.meta),
    )


def _person(door: Door, caller: Caller, context: ServerRequestContext[Any, Any]) -> Person | None:
    """Who may be asked through the client of a request."""
    principal = door.person_of(caller)
    return Person(principal, context) if principal and can_be_asked(context) else None


def meta_session(meta: Mapping[str, Any] | None) -> str | None:
    """The session that the client's host names in `_meta`.

    Raises:
        InvalidArguments: it is no name.
    """
    named = (meta or {}).get(SESSION_META)
    if named is None:
        return None
    if not isinstance(named, str) or not is_name(named):
        raise InvalidArguments(f"_meta {SESSION_META} is 1 to 128 letters, digits or ._:@+-")
    return named


def request_in(meta: Mapping[str, Any] | None) -> str | None:
    """What the client's host says of what the user wants; its beginning, where that is long."""
    given = (meta or {}).get(REQUEST_META)
    return given[:REQUEST_CHARACTERS_MAX] if isinstance(given, str) and given.strip() else None


def context_in(meta: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The values that the client's host knows beside a call, by name.

    Raises:
        InvalidArguments: it is no object, or too large.
    """
    given = (meta or {}).get(CONTEXT_META)
    if given is None:
        return None
    try:
        fits = isinstance(given, Mapping) and len(canonical_json(given)) <= CONTEXT_BYTES_MAX
    except NotJson:
        fits = False
    if not fits:
        raise InvalidArguments(f"_meta {CONTEXT_META} is an object of at most {CONTEXT_BYTES_MAX} bytes")
    return dict(given)


def traceparent(meta: Mapping[str, Any] | None) -> str | None:
    """The trace that a call belongs to (W3C); what is badly written is passed over, as the standard says."""
    given = (meta or {}).get("traceparent")
    return given if isinstance(given, str) and _TRACEPARENT.fullmatch(given) else None


def derived_session(transport_session: str | None) -> str | None:
    """The session of PML for one of the transport; never its own id, which lets in whoever knows it."""
    if not transport_session:
        return None
    return f"ses_{blake2b(transport_session.encode(), digest_size=16).hexdigest()}"
