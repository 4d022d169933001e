"""Answers of calls: appended to `pml.tool-outcomes`, acknowledged before the call's offset is committed."""

from __future__ import annotations

from pml.schemas.calls import CallEnded
from pml.schemas.codec import encode
from pml.schemas.identifiers import session_key
from pml.streams.bridge.patience import patiently
from pml.streams.bridge.results import failed
from pml.streams.connection import partition_for
from pml.streams.log.append import Appender, EventsTooLarge, Outgoing
from pml.streams.log.reader import CONTENT_TYPE, TYPE_HEADER

CALL_ID_HEADER = "pml-call-id"


class Outcomes:
    """Sends answers. Sent twice is harmless: the first answer to a call settles it."""

    def __init__(self, topic: str, appender: Appender) -> None:
        self._topic, self._appender = topic, appender

    async def send(self, outcome: CallEnded) -> None:
        """Append an answer, again until it is acknowledged; one too large becomes an error.

        Raises:
            InDoubt, BrokerUnavailable: the broker was away for too long.
        """
        try:
            await self._append(outgoing(outcome))
        except EventsTooLarge as error:
            await self._append(outgoing(_failed(outcome, "RESULT_TOO_LARGE", error.message)))

    async def _append(self, record: Outgoing) -> None:
        partition = partition_for(record.key or b"")
        await patiently(lambda: self._appender.send(self._topic, partition, [record]))


def outgoing(outcome: CallEnded) -> Outgoing:
    """The record of an answer; a value that no record can hold becomes an error."""
    try:
        value = encode(outcome)
    except TypeError as error:
        outcome = _failed(outcome, "RESULT_UNREADABLE", f"the result cannot be kept as JSON: {error}")
        value = encode(outcome)
    headers = [
        (TYPE_HEADER, outcome.type.encode()),
        ("pml-version", str(outcome.version).encode()),
        ("pml-tenant", outcome.tenant.encode()),
        (CALL_ID_HEADER, outcome.call_id.encode()),
        ("content-type", CONTENT_TYPE),
    ]
    if outcome.traceparent is not None:
        headers.append(("traceparent", outcome.traceparent.encode()))
    return Outgoing(session_key(outcome.tenant, outcome.session_id), value, headers)


def _failed(outcome: CallEnded, code: str, message: str) -> CallEnded:
    status, result, error = failed(code, "VALIDATION", message)
    return outcome.model_copy(update={"status": status, "result": result, "error": error})
