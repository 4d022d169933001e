"""Sending what must be running: calls and cancels to the bridge, and answers to calls that are gone."""

from __future__ import annotations

from collections.abc import Iterable

from pml.processors.workflow import GoneCall, Session, call_needs, calls
from pml.schemas.calls import CallEnded, CallError, CallRecord, CallRun
from pml.schemas.codec import encode
from pml.schemas.errors import PayloadGone
from pml.schemas.identifiers import session_key
from pml.streams.log.append import Outgoing
from pml.streams.log.reader import TYPE_HEADER
from pml.streams.orchestrator.shell import Shell

# So many sessions' payloads are read and their calls sent at once after a takeover.
SESSIONS_AT_ONCE = 100


def outgoing(message: CallRecord) -> Outgoing:
    """A record about a call, as it goes to its session's partition."""
    headers = [(TYPE_HEADER, message.type.encode())]
    if message.traceparent is not None:
        headers.append(("traceparent", message.traceparent.encode()))
    return Outgoing(session_key(message.tenant, message.session_id), encode(message), headers)


async def send_calls(shell: Shell, partition: int, messages: Iterable[Outgoing]) -> None:
    """Send calls and cancels, acknowledged.

    Raises:
        InDoubt, BrokerUnavailable: not acknowledged after several attempts.
    """
    await shell.send(shell.topics.tool_calls, partition, messages)


async def send_all_calls(shell: Shell, partition: int, sessions: Iterable[Session]) -> None:
    """Send everything that must be running for these sessions; a repeated call carries the same id.

    (1) read payloads in one pass, (2) ask the core, (3) send calls, (4) answer those whose payload is gone.

    Raises:
        InDoubt, BrokerUnavailable: not acknowledged after several attempts.
    """
    waiting = [session for session in sessions if session.live]
    await shell.payloads.warm(address for session in waiting for address in call_needs(session))
    for start in range(0, len(waiting), SESSIONS_AT_ONCE):
        await _send_calls_of(shell, partition, waiting[start : start + SESSIONS_AT_ONCE])


async def _send_calls_of(shell: Shell, partition: int, sessions: list[Session]) -> None:
    needed = set().union(*(call_needs(session) for session in sessions))
    payloads = await shell.payloads.get(needed)
    wanted = [item for session in sessions for item in calls(session, payloads, shell.hash_key)]
    runs = [item for item in wanted if isinstance(item, CallRun)]
    gone = [_gone(item) for item in wanted if isinstance(item, GoneCall)]
    await send_calls(shell, partition, map(outgoing, runs))
    await shell.send(shell.topics.tool_outcomes, partition, map(outgoing, gone))


def _gone(call: GoneCall) -> CallEnded:
    error = CallError(
        code=PayloadGone.code,
        message="the full value of an argument is past its retention or not what was recorded; run it again",
    )
    return CallEnded(
        call_id=call.call_id,
        tenant=call.tenant,
        session_id=call.session_id,
        status="not_started",
        error=error,
    )
