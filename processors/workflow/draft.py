"""An answer while it is being written: events so far, and the state they fold to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pml.processors.workflow.arguments import Values
from pml.processors.workflow.catalog import Catalog
from pml.processors.workflow.evolve import evolve
from pml.processors.workflow.inputs import Address, Input, Payloads, Step, payload_value
from pml.processors.workflow.state import Run, Session, Speculation
from pml.schemas.calls import CallCancel, CallEnded, CallRun, ToolResult
from pml.schemas.commands import Command, RunReplan, RunStart
from pml.schemas.errors import PayloadGone
from pml.schemas.events import Cause, Event, EventData, SpeculationReady, TaskCompleted
from pml.schemas.identifiers import event_id
from pml.schemas.times import to_rfc3339
from pml.schemas.workflow import Argument, Decision, Task, Workflow

if TYPE_CHECKING:
    from pml.processors.workflow.verification import Hit

Plan = RunStart | RunReplan | ToolResult
"""Where tasks are written down: the command that began a run, a replan, an answer of `pml:analyse`."""
_MODELS: dict[str, type[Task | Decision]] = {"tasks": Task, "decisions": Decision}
NO_SOURCES: Mapping[str, Address] = MappingProxyType({})


class Draft:
    """Collects the events of one input; each is folded at once, so that what follows sees it."""

    def __init__(
        self, session: Session | None, source: Input, payloads: Payloads, catalog: Catalog, next_offset: int
    ) -> None:
        self.source = source
        self.catalog = catalog
        self.calls: list[CallRun] = []
        self.cancels: list[CallCancel] = []
        self.hits: list[Hit] = []
        self._session = session
        self._payloads: Payloads = {**payloads, **_own_payload(source)}
        self._next_offset = next_offset
        self._events: list[Event] = []
        self.now_ms = max(source.time_ms, session.last_event_ms if session else 0)
        self._occurred_at = to_rfc3339(self.now_ms)

    @property
    def session(self) -> Session:
        """The state so far; there is one as soon as there is an event."""
        assert self._session is not None
        return self._session

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs the session remembers; none where it is new."""
        return tuple(self._session.runs.values()) if self._session else ()

    def run(self, run_id: str) -> Run:
        """A run as it is now."""
        return self.session.runs[run_id]

    @property
    def completed(self) -> bool:
        """Whether a task has come to its result: then the layer after it may be run early."""
        return any(isinstance(event.data, TaskCompleted) for event in self._events)

    @property
    def ready(self) -> tuple[Speculation, ...]:
        """The predicted calls whose results have come with this input, as they are now."""
        calls = [event.data.call_id for event in self._events if isinstance(event.data, SpeculationReady)]
        known = self._session.speculations if self._session else {}
        return tuple(known[name] for name in calls if name in known and known[name].plan is not None)

    @property
    def wrote(self) -> bool:
        """Whether there is an event."""
        return bool(self._events)

    @property
    def next_seq(self) -> int:
        """The seq of the next event."""
        return self._session.seq + 1 if self._session else 0

    @property
    def next_event_id(self) -> str:
        """The id of the next event; a call that it begins is named after it."""
        return event_id(self.source.tenant, self.source.session_id, self._epoch, self.next_seq)

    @property
    def _epoch(self) -> int:
        return self._session.epoch if self._session else self._next_offset

    def emit(self, data: EventData, run: Run | None = None, run_id: str | None = None) -> None:
        """Write one event and fold it."""
        message = self.source.message
        event = Event(
            id=self.next_event_id,
            type=data.TYPE,
            version=data.VERSION,
            tenant=self.source.tenant,
            principal=run.principal if run else getattr(message, "principal", ""),
            session_id=self.source.session_id,
            epoch=self._epoch,
            run_id=run.run_id if run else run_id,
            seq=self.next_seq,
            offset=self._next_offset,
            occurred_at=self._occurred_at,
            cause=self._cause,
            command_id=None if isinstance(message, CallEnded) else message.command_id,
            traceparent=run.traceparent if run else getattr(message, "traceparent", None),
            data=data,
        )
        self._session = evolve(self._session, event)
        self._events.append(event)
        self._next_offset += 1

    def cancel(self, run: Run, call_id: str, reason: str) -> None:
        """Tell the bridge that nobody needs a call any more."""
        self.cancels.append(
            CallCancel(
                call_id=call_id,
                tenant=self.session.tenant,
                session_id=self.session.session_id,
                traceparent=run.traceparent,
                reason=reason,
            )
        )

    @cached_property
    def _cause(self) -> Cause:
        return Cause(topic=self.source.topic, partition=self.source.partition, offset=self.source.offset)

    def step(self) -> Step:
        """The finished answer."""
        return Step(tuple(self._events), self._session, tuple(self.calls), tuple(self.cancels))

    @property
    def payloads(self) -> Payloads:
        """All full values that can be had."""
        return self._payloads

    def payload(self, address: Address) -> Any:
        """A full value.

        Raises:
            PayloadGone: it is past its retention.
        """
        try:
            return self._payloads[address]
        except KeyError:
            raise PayloadGone(f"the value at {address[0]}/{address[1]}/{address[2]} is gone") from None

    def has(self, address: Address) -> bool:
        """Whether a full value can still be had."""
        return address in self._payloads

    def arguments_of(self, run: Run, task_id: str) -> Mapping[str, Argument]:
        """The arguments of a task as its producer wrote them, secrets and all."""
        return full_arguments(self.payload(run.written_at(run.node(task_id).plan)), task_id)

    def result_of(self, run: Run) -> Argument | None:
        """What a run comes to, secrets and all."""
        return full_result(run, self._payloads)

    def values(self, run: Run, sources: Mapping[str, Address] = NO_SOURCES) -> Values:
        """What arguments are taken from; `sources` are waiting results of tasks that have none yet.

        Raises:
            PayloadGone: a command, or what a program turned out to do, is past its retention.
        """
        expansions = [self.payload(address) for address in run.expansions]
        context = context_of(self.payload(run.payload), expansions)
        return Values(context, Results(run, self._payloads, sources))


class Results(Mapping[str, Any]):
    """The values of a run's completed tasks, each looked up when it is asked for; `sources` come first.

    Of a prediction there is no run, and `sources` are all that it knows.
    """

    def __init__(
        self, run: Run | None, payloads: Payloads, sources: Mapping[str, Address] = NO_SOURCES
    ) -> None:
        self._run = run
        self._payloads = payloads
        self._sources = sources

    def _address(self, task_id: str) -> Address | None:
        return self._sources.get(task_id) or (self._run.task(task_id).result if self._run else None)

    def __getitem__(self, task_id: str) -> Any:
        address = self._address(task_id)
        if address is None:
            raise KeyError(task_id)
        return payload_value(self._payloads[address])

    def __contains__(self, task_id: object) -> bool:
        return isinstance(task_id, str) and self._address(task_id) in self._payloads

    def __iter__(self) -> Iterator[str]:
        own = self._run.tasks if self._run else {}
        return (task_id for task_id in {**own, **self._sources} if task_id in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def full_context(start: RunStart) -> dict[str, Any]:
    """The initial context: the workflow's own, overridden by the command's."""
    return {**(start.workflow.context if start.workflow else {}), **start.context}


def context_of(start: RunStart, expansions: Iterable[ToolResult]) -> dict[str, Any]:
    """The context of a run: what its command gives, over what its program has where nothing is given."""
    written = (_analysed(plan).get("context", {}) for plan in expansions)
    defaults = {name: value for context in written for name, value in context.items()}
    return {**defaults, **full_context(start)}


def full_arguments(plan: Plan, task_id: str) -> Mapping[str, Argument]:
    """The arguments of one task of a workflow, of a plan, or of what a program turned out to do."""
    task = _written(plan, "tasks", task_id)
    return task.arguments if task else {}


def has_task(plan: Plan, task_id: str) -> bool:
    """Whether a task of this id is written down here."""
    return _written(plan, "tasks", task_id) is not None


def full_expression(plan: Plan, decision_id: str) -> str:
    """The expression of a decision as its producer wrote it."""
    decision = _written(plan, "decisions", decision_id)
    return decision.expression if decision else ""


def full_result(run: Run, payloads: Payloads) -> Argument | None:
    """What a run comes to, as its producer wrote it; None where nobody did, or it is gone."""
    plans = (payloads.get(address) for address in (run.payload, *run.replans))
    return next((result for plan in plans if (result := _result_in(plan)) is not None), None)


def _result_in(plan: Any) -> Argument | None:
    if isinstance(plan, ToolResult):
        return Workflow.model_validate({"result": _analysed(plan).get("result")}).result
    workflow = plan.workflow if isinstance(plan, RunStart) else None
    # What calls capabilities says what it comes to in the answer of `pml:inline`.
    return workflow.result if workflow and not workflow.calls_capabilities else None


def _written(plan: Plan, what: Literal["tasks", "decisions"], name: str) -> Any:
    """A task or decision where it is written down; in an analysis, which is JSON, only this one is read."""
    if isinstance(plan, ToolResult):
        found = next((item for item in _analysed(plan).get(what, ()) if item["id"] == name), None)
        return None if found is None else _MODELS[what].model_validate(found)
    workflow = plan.workflow if isinstance(plan, RunStart) else plan
    return next((item for item in getattr(workflow, what, ()) if item.id == name), None)


def _analysed(plan: ToolResult) -> dict[str, Any]:
    """The workflow in an answer of `pml:analyse`."""
    return (plan.structured or {}).get("workflow") or {}


def _own_payload(source: Input) -> dict[Address, Any]:
    """The input itself holds a value that its own decision may read."""
    message = source.message
    if isinstance(message, CallEnded):
        return {source.address: message.result} if message.result else {}
    return {source.address: message.data} if isinstance(message, Command) else {}
