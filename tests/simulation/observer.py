"""A reader of all topics that knows nothing of the owners: it folds what counts, and checks each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pml.processors.speculation.accounts import balanced
from pml.processors.workflow import Session, evolve
from pml.processors.workflow.evolve import joined_calls
from pml.schemas.calls import CallEnded, CallRun
from pml.schemas.canonical import value_hash
from pml.schemas.codec import decode_call, decode_command, decode_event, decode_outcome
from pml.schemas.commands import RunStart
from pml.schemas.errors import LogCorrupted, UndecodableRecord, UnknownMessage
from pml.schemas.events import Event, RunScored
from pml.schemas.identifiers import session_key
from pml.schemas.times import from_rfc3339
from pml.schemas.topics import Topics
from pml.schemas.workflow import Workflow
from tests.simulation.broker import Broker, Record
from tests.simulation.ledger import Ledger
from tests.simulation.words import Words

TaskKey = tuple[bytes, int, str, str]
BEGINNINGS = {
    "task.started",
    "task.verifying",
    "speculation.started",
    "speculation.verifying",
    "internal.started",
}
FINAL = {"task.completed", "task.skipped", "task.unknown"}


@dataclass(slots=True)
class Started:
    """A call that a counted event began."""

    event: Event
    at_s: float
    key: bytes
    speculative: bool

    @property
    def data(self) -> Any:
        """What the event says."""
        return self.event.data


@dataclass(slots=True)
class Life:
    """One session as far as the log says, with what the checks remember of it."""

    session: Session | None = None
    events: list[Event] = field(default_factory=list)
    open: dict[str, Started] = field(default_factory=dict)
    started: int = 0
    ended: int = 0


EventCheck = Callable[["Observer", Life, Session | None, Event, float], None]


class Observer:
    """Folds every topic as records land."""

    def __init__(self, broker: Broker, topics: Topics, ledger: Ledger, hash_key: bytes) -> None:
        self.broker, self.topics, self.ledger, self.hash_key = broker, topics, ledger, hash_key
        self.lives: dict[bytes, Life] = {}
        self.calls: dict[str, Started] = {}
        self.sent: dict[str, float] = {}
        self.finals: dict[TaskKey, Event] = {}
        self.causes: dict[tuple[str, int, int], int] = {}
        self.highest: dict[tuple[str, int], int] = {}
        self.session_ttl_ms = 0
        self.patience_s = 3.0
        self.history: dict[bytes, list[Event]] = {}
        self.unserved: set[str] = set()
        self.outcomes: set[str] = set()
        self.words = Words(ledger)
        self.wanted: dict[str, tuple[int, int]] = {}
        self.wanted_s: dict[str, float] = {}
        self.answered: dict[bytes, set[str | None]] = {}
        self.owners: dict[tuple[int, int], str] = {}
        self.terms: dict[int, int] = {}
        self.landed_s: dict[tuple[int, int], float] = {}
        self.void = 0
        self.counted = 0
        self.commands: dict[bytes, dict[str, RunStart]] = {}
        self.on_event: list[EventCheck] = []
        self.on_call: list[Callable[[CallRun, Started], None]] = []
        broker.on_append = self.landed

    def landed(self, records: Sequence[Record]) -> None:
        """A batch came to lie in the broker."""
        topic = records[0].topic
        if topic == self.topics.events:
            self._events(records)
        elif topic == self.topics.tool_calls:
            for record in records:
                self._call(record)
        elif topic == self.topics.tool_outcomes:
            for record in records:
                self._outcome(record)

    def life(self, key: bytes) -> Life:
        """One session."""
        return self.lives.setdefault(key, Life())

    def live(self) -> list[bytes]:
        """Sessions in which something has not ended; a predicted result may wait until it expires."""
        return [key for key, life in self.lives.items() if life.session is not None and _busy(life.session)]

    def outcome_at(self, address: tuple[str, int, int]) -> CallEnded:
        """The outcome that rests at a coordinate, or what a person said instead of one."""
        record = self.broker.lane((address[0], address[1])).records[address[2]]
        if record.topic == self.topics.tool_outcomes:
            return decode_outcome(record.value)
        command = decode_command(record.value)
        data: Any = command.data
        told = {"tenant": command.tenant, "session_id": command.session_id, "call_id": ""}
        return CallEnded(**told, status="ok", result=data.as_result())

    def _events(self, records: Sequence[Record]) -> None:
        counts = [dict(record.headers).get("pml-offset") == b"%d" % record.offset for record in records]
        check = self.ledger.check
        check("a batch counts whole or not at all", len(set(counts)) == 1, lambda: records[0])
        if not all(counts):
            self.void += len(records)
            self.ledger.note(f"void: {len(records)} records at {records[0].partition}/{records[0].offset}")
            return
        self.counted += len(records)
        fresh: dict[tuple[str, int, int], int] = {}
        touched: set[bytes] = set()
        for record in records:
            event = decode_event(record.value)
            check("an event lies where it says", event.offset == record.offset, lambda e=event: e.id)
            self.landed_s[record.partition, record.offset] = self.ledger.loop.time()
            if record.key is None:
                self.terms[record.partition] = record.offset
                taken: Any = event.data
                self.owners[record.partition, record.offset] = taken.owner
                continue
            self._cause(event, record, fresh)
            self._fold(event, record)
            touched.add(record.key)
        self.causes |= fresh
        for key in touched:
            self._accounts(self.lives[key])
            self._sources(self.lives[key])

    def _cause(self, event: Event, record: Record, fresh: dict[tuple[str, int, int], int]) -> None:
        """Each input is decided once, in order, from the partition and session that it belongs to."""
        cause, check = event.cause, self.ledger.check
        assert cause is not None
        place = (cause.topic, cause.partition, cause.offset)
        check("an input is decided once", place not in self.causes, lambda: f"{event.id} repeats {place}")
        if place not in fresh:
            highest = self.highest.get(place[:2], -1)
            check("inputs are decided in order", cause.offset > highest, lambda: f"{place} after {highest}")
            self.highest[place[:2]] = max(highest, cause.offset)
        fresh[place] = event.offset
        check("an input is decided where it lies", cause.partition == record.partition, lambda: event.id)
        lane = self.broker.lane(place[:2])
        there = cause.offset < lane.end
        check("a cause exists", there, lambda: f"{event.id} names {place}")

    def _fold(self, event: Event, record: Record) -> None:
        key, check = record.key or b"", self.ledger.check
        life = self.life(key)
        before = life.session
        follows = (
            event.seq == before.seq + 1
            if before is not None and before.epoch == event.epoch
            else event.seq == 0 and event.epoch == event.offset
        )
        check("seq has no gap among counted events", follows, lambda: event.id)
        if not follows:
            return
        if before is not None and not before.live and self.session_ttl_ms:
            late = occurred_ms(event) > before.last_event_ms + self.session_ttl_ms
            check("a session that returns too late begins anew", event.seq == 0 or not late, lambda: event.id)
        if event.seq == 0:
            ended = before is None or not before.live
            check("a new life begins after the old one ended", ended, lambda: event.id)
            self.lives[key] = life = Life()
            before = None
        try:
            life.session = evolve(before, event)
        except LogCorrupted as error:
            self.ledger.fail("the log folds", error.message)
            return
        if isinstance(event.data, RunScored):
            self._scored(before, event, event.data)
        life.events.append(event)
        self.history.setdefault(key, []).append(event)
        self.answered.setdefault(key, set()).add(event.command_id)
        self._note(life, event, key)
        for look in self.on_event:
            look(self, life, before, event, self.ledger.loop.time())

    def _scored(self, before: Session | None, event: Event, data: RunScored) -> None:
        """A score is written once a command, also of a run that nobody knows any more; it says which."""
        known = before is not None and event.run_id in before.runs
        self.ledger.check("a score says whether its run is known", data.known == known, lambda: event.id)
        fresh = before is None or event.command_id not in before.scores
        self.ledger.check("a score counts once", fresh, lambda: event.id)

    def _note(self, life: Life, event: Event, key: bytes) -> None:
        data: Any = event.data
        now_s = self.ledger.loop.time()
        self.words.look(event)
        if event.type in BEGINNINGS:
            started = Started(event, now_s, key, event.type == "speculation.started")
            place = (key, event.epoch, event.run_id or "", getattr(data, "task_id", ""))
            again = event.type == "task.started" and place in self.finals
            self.ledger.check("what has ended is not begun again", not again, lambda: event.id)
            if started.speculative or data.call_id not in self.calls:
                self.calls[data.call_id] = started
            if started.speculative:
                life.started += 1
                life.open[data.call_id] = started
        elif event.type == "speculation.ended":
            self.ledger.check(
                "a speculation ends once", life.open.pop(data.call_id, None) is not None, lambda: event.id
            )
            life.ended += 1
            if data.fate != "served":
                self.unserved.add(data.call_id)
        elif event.type in FINAL or (event.type == "task.failed" and data.final):
            place = (key, event.epoch, event.run_id or "", data.task_id)
            first = self.finals.setdefault(place, event)
            self.ledger.check("a task ends once", first is event, lambda: f"{event.id} after {first.id}")
        elif event.type in {"task.resolved", "run.retried"}:
            # What is opened again ends once more.
            for task_id in data.task_ids:
                self.finals.pop((key, event.epoch, event.run_id or "", task_id), None)
        elif event.type == "run.replanned":
            self._replan(key, event)
        elif event.type == "run.expanded":
            self._expand(key, event)
        elif event.type == "run.started":
            self.commands.setdefault(key, {})[event.run_id or ""] = self._start_of(data)

    def _replan(self, key: bytes, event: Event) -> None:
        """The tasks of the plan take their place beside those that stay."""
        cause, runs = event.cause, self.commands[key]
        assert cause is not None
        before = runs[event.run_id or ""]
        command = decode_command(self.broker.lane((cause.topic, cause.partition)).records[cause.offset].value)
        plan: Any = command.data
        workflow = before.workflow
        assert workflow is not None
        new = {task.id for task in plan.tasks}
        tasks = (*(task for task in workflow.tasks if task.id not in new), *plan.tasks)
        runs[event.run_id or ""] = before.model_copy(
            update={"workflow": workflow.model_copy(update={"tasks": tasks})}
        )

    def _expand(self, key: bytes, event: Event) -> None:
        """The tasks of a program are those that its analysis gave, or that it asked for in the sandbox."""
        data: Any = event.data
        ref, runs = data.payload_ref, self.commands[key]
        outcome = self.outcome_at((ref.topic, ref.partition, ref.offset))
        assert outcome.result is not None
        structured: Any = outcome.result.structured
        workflow = Workflow.model_validate(structured["workflow"] or {})
        before = runs[event.run_id or ""]
        if (data.mode == "sandbox" or data.grows) and before.workflow is not None:
            tasks = (*before.workflow.tasks, *workflow.tasks)
            names = [task.id for task in tasks]
            numbers = [int(name[1:]) for name in names if "__" not in name]
            counted = (data.grows or numbers == sorted(numbers)) and len(set(names)) == len(names)
            self.ledger.check("what a program asks for is counted on", counted, lambda: event.id)
            workflow = before.workflow.model_copy(update={"tasks": tasks})
        runs[event.run_id or ""] = before.model_copy(update={"workflow": workflow})

    def _start_of(self, data: Any) -> Any:
        ref = data.payload_ref
        return decode_command(self.broker.lane((ref.topic, ref.partition)).records[ref.offset].value).data

    def _accounts(self, life: Life) -> None:
        assert life.session is not None
        accounts, check = life.session.accounts, self.ledger.check
        check("the accounts add up", balanced(life.session), lambda: accounts)
        own = life.started == accounts.started and len(life.open) == life.started - life.ended
        check("the accounts are those of the log", own, lambda: f"{accounts} but {life.started} started")

    def _sources(self, life: Life) -> None:
        """A deeper speculation goes with the result that its arguments were taken from."""
        session = life.session
        assert session is not None
        waited_for = joined_calls(session)
        for call_id, entry in session.speculations.items():
            lost = [
                s.call_id for s in entry.sources if s.call_id not in life.open and self._unserved(s.call_id)
            ]
            held = entry.served or call_id in waited_for or not lost
            self.ledger.check("deeper calls end with their source", held, lambda c=call_id: c)

    def _unserved(self, call_id: str) -> bool:
        """Whether a speculation ended without having served anybody."""
        return call_id in self.unserved

    def handled(self, number: int, position: int) -> None:
        """A bridge has taken the calls of a partition up to here: it knows what tasks wait for."""
        for call_id, (partition, offset) in list(self.wanted.items()):
            if partition == number and offset < position:
                del self.wanted[call_id]
                self.wanted_s[call_id] = self.ledger.loop.time()

    def _outcome(self, record: Record) -> None:
        """A call that a task waits for neither gives way nor is switched off; answers may be repeated."""
        outcome = _read_outcome(record)
        if outcome is None or outcome.call_id in self.outcomes:
            return
        self.outcomes.add(outcome.call_id)
        if outcome.error is None or outcome.error.code not in {"GAVE_WAY", "SWITCHED_OFF"}:
            return
        wanted_s = self.wanted_s.get(outcome.call_id, self.ledger.loop.time())
        unwanted = self.ledger.loop.time() - wanted_s < self.patience_s
        self.ledger.check("a joined call is never cancelled", unwanted, lambda: outcome.call_id)

    def _call(self, record: Record) -> None:
        """Nothing follows from a void event, nor from one that does not lie there yet."""
        message = decode_call(record.value)
        if not isinstance(message, CallRun):
            return
        started = self.calls.get(message.call_id)
        check = self.ledger.check
        check("a call follows from an event that counts", started is not None, lambda: message.call_id)
        if started is None:
            return
        wanted = getattr(started.data, "arguments_hash", None)
        same = wanted is None or value_hash(message.arguments, self.hash_key) == wanted
        check(
            "a call has the arguments of its event", same, lambda: f"{started.event.id} {message.arguments}"
        )
        at_home = record.key == session_key(message.tenant, message.session_id) == started.key
        check("a call stays in its session", at_home, lambda: message.call_id)
        self.sent.setdefault(message.call_id, self.ledger.loop.time())
        if not message.speculative and message.call_id not in self.wanted_s:
            self.wanted[message.call_id] = (record.partition, record.offset)
        for look in self.on_call:
            look(message, started)


def _busy(session: Session) -> bool:
    known = session.speculations
    awaited = {name: e for name, e in known.items() if e.kind != "prediction" or e.status != "ready"}
    return replace(session, speculations=awaited).live


def _read_outcome(record: Record) -> CallEnded | None:
    try:
        return decode_outcome(record.value)
    except (UndecodableRecord, UnknownMessage):
        return None


def occurred_ms(event: Event) -> int:
    """The log's time of an event."""
    return from_rfc3339(event.occurred_at)
