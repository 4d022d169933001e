"""Deciding a chunk of inputs in memory, in slices of one record batch (DESIGN §2, rule 3, step 1)."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from pml.processors.speculation.accounts import balanced
from pml.processors.workflow import Catalog, Input, Session, Step, decide, fail_too_large, needs
from pml.schemas.codec import encode
from pml.schemas.errors import LogCorrupted, PMLError
from pml.schemas.events import Event
from pml.schemas.identifiers import session_key
from pml.schemas.topics import LOG_BYTES_MAX
from pml.streams.log.append import BATCH_BYTES, BATCH_OVERHEAD_BYTES, EventsTooLarge, Outgoing
from pml.streams.log.reader import event_headers
from pml.streams.orchestrator.calls import outgoing
from pml.streams.orchestrator.payloads import PayloadCache
from pml.streams.orchestrator.states import States
from pml.streams.telemetry import ACCOUNT_BREACHES

TOO_LARGE = "not even the failure that this record leads to fits one batch of the log"

log = structlog.get_logger("pml.orchestrator")


class DecisionFailed(PMLError):
    """The core could not decide an input: a defect of PML, which must not stop the sessions beside it."""

    code = "DECISION_FAILED"


@dataclass(frozen=True, slots=True)
class Decided:
    """What follows from one input, encoded, with the records about calls; `failure` where nothing can.

    Nothing is written whose calls could not be sent: the next owner of the partition would fail with them.
    """

    step: Step
    records: list[Outgoing]
    size: int
    messages: Sequence[Outgoing] = ()
    failure: PMLError | None = None

    @property
    def fits(self) -> bool:
        """Whether it fits one batch of the log."""
        return BATCH_OVERHEAD_BYTES + self.size <= LOG_BYTES_MAX


@dataclass
class Slice:
    """What one batch will hold, and what becomes true when it counts."""

    base: int
    records: list[Outgoing] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    sessions: dict[bytes, Session] = field(default_factory=dict)
    causes: dict[str, int] = field(default_factory=dict)
    handled: dict[str, int] = field(default_factory=dict)
    messages: list[Outgoing] = field(default_factory=list)
    failures: list[tuple[Input, PMLError]] = field(default_factory=list)
    inputs: int = 0
    size: int = BATCH_OVERHEAD_BYTES

    @property
    def end(self) -> int:
        """The offset after its last record."""
        return self.base + len(self.records)

    def pass_over(self, source: Input) -> None:
        """The input needs no event."""
        self.handled[source.topic] = source.offset
        self.inputs += 1

    def add(self, source: Input, decided: Decided) -> None:
        """Take in what follows from an input."""
        self.pass_over(source)
        step = decided.step
        if decided.failure is not None:
            self.failures.append((source, decided.failure))
        if not step.events or step.session is None:
            return
        self.records += decided.records
        self.events += step.events
        self.size += decided.size
        self.sessions[session_key(source.tenant, source.session_id)] = step.session
        self.causes[source.topic] = source.offset
        self.messages += decided.messages


@dataclass(frozen=True, slots=True)
class Decider:
    """Decides inputs of one partition against its states."""

    states: States
    payloads: PayloadCache

    async def slice(
        self, inputs: Sequence[Input], base: int, handled: Mapping[str, int], catalog: Catalog
    ) -> Slice:
        """As many of the inputs, from the first, as fit one batch of 1 MiB; at least one.

        An input at or below the highest handled offset of its topic is passed over.

        Raises:
            BrokerUnavailable: payloads cannot be read.
            LogCorrupted: the states do not follow the log.
        """
        found = Slice(base)
        for source in inputs:
            if source.offset <= handled.get(source.topic, -1):
                found.pass_over(source)
                continue
            decided = await self._decided(found, source, catalog)
            if found.records and found.size + decided.size > BATCH_BYTES:
                break
            found.add(source, decided)
        return found

    async def _decided(self, found: Slice, source: Input, catalog: Catalog) -> Decided:
        """The step that fits: the input's own, else the one that fails its run, else none and why."""
        key = session_key(source.tenant, source.session_id)
        session = found.sessions.get(key) or self.states.get(key)
        payloads = await self.payloads.get(needs(session, source))
        try:
            own = _encoded(audited(decide(session, source, payloads, catalog, found.end)))
            if own.fits:
                return own
            failed = _encoded(fail_too_large(session, source, catalog, found.end))
            if failed.fits:
                return failed
            failure: PMLError = EventsTooLarge(TOO_LARGE)
        except LogCorrupted:
            raise
        except Exception as error:
            # Where it failed and not with what: a message may quote a value.
            trace = "".join(traceback.format_tb(error.__traceback__))
            log.error("decision failed", topic=source.topic, offset=source.offset, trace=trace)
            failure = DecisionFailed(f"{type(error).__name__}: a defect of PML, please report it")
        return Decided(Step((), session, (), ()), [], 0, failure=failure)


def audited(step: Step) -> Step:
    """The step; where speculation's accounts do not add up after it (DESIGN §4), that is counted and told."""
    if step.session is not None and not balanced(step.session):
        ACCOUNT_BREACHES.inc()
        event = step.events[-1].id if step.events else ""
        log.error("speculation accounts do not add up", accounts=str(step.session.accounts), event_id=event)
    return step


def _encoded(step: Step) -> Decided:
    records = [
        Outgoing(session_key(event.tenant, event.session_id), encode(event), event_headers(event))
        for event in step.events
    ]
    messages = [outgoing(message) for message in (*step.calls, *step.cancels)]
    return Decided(step, records, sum(record.size for record in records), messages)
