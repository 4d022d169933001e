"""One session with the real core and nothing else: inputs go in, events, calls and state come out.

After each input it checks what must hold always, so every test of the core is a test of that too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pml.processors.capabilities.analysing import analysed
from pml.processors.capabilities.inlining import inlined
from pml.processors.capabilities.unfolding import done_after, next_part
from pml.processors.sandboxing.answers import step_answer
from pml.processors.speculation.accounts import balanced
from pml.processors.workflow import (
    Address,
    Catalog,
    GoneCall,
    Input,
    Policy,
    Session,
    Step,
    Unreadable,
    call_needs,
    calls,
    deadline,
    deadline_command,
    decide,
    decode_session,
    definition_name,
    definition_record,
    encode_session,
    evolve,
    needs,
)
from pml.processors.workflow.draft import full_context
from pml.processors.workflow.evolve import joined_calls
from pml.processors.workflow.folding import address_of
from pml.processors.workflow.graph import Graph
from pml.processors.workflow.inputs import payload_value
from pml.processors.workflow.state import Run
from pml.schemas.analysis import ANALYSE_TOOL, AnalyseRequest
from pml.schemas.base import Coordinate
from pml.schemas.calls import CallEnded, CallError, CallRun, ToolResult
from pml.schemas.catalog import Capability, CatalogRecord, PermissionRecord, ServerTools, Tool, ToolHints
from pml.schemas.codec import decode_event, encode
from pml.schemas.commands import COMMANDS as COMMAND_MODELS
from pml.schemas.commands import Code, Command, DeadlineReach, RunStart
from pml.schemas.errors import PMLError
from pml.schemas.events import Event
from pml.schemas.inlining import INLINE_TOOL, InlineAnswer, InlineRequest
from pml.schemas.matching import MATCH_TOOL
from pml.schemas.permissions import PermissionFile
from pml.schemas.stepping import STEP_TOOL, SandboxProgram, StepAnswer, StepRequest
from pml.schemas.workflow import Options, Workflow

COMMANDS, OUTCOMES = "pml.commands", "pml.tool-outcomes"
KEY = b"installation key for tests only!"

READS = ("read_file", "list_dir", "search", "parse")
WRITES = ("write_file", "delete_file")


def data_of(step: Step, kind: str) -> Any:
    """What the first event of a type says."""
    return next(event.data for event in step.events if event.type == kind)


def catalog(permissions: dict[str, Any] | None = None, **policy: Any) -> Catalog:
    """A files server, a clock and a web server, with the permissions an operator would give them."""
    entries = {
        "files:read_file": {"scope": "readonly", "approval": "auto", "touches": ["files:{path}"]},
        "files:list_dir": {"scope": "readonly", "approval": "auto", "touches": ["files:{path}"]},
        "files:search": {"scope": "readonly", "approval": "auto"},
        "files:parse": {"scope": "minimal", "approval": "auto", "touches": []},
        "files:write_file": {"scope": "filesystem", "approval": "auto", "touches": ["files:{path}"]},
        "files:delete_file": {"scope": "filesystem", "approval": "hil"},
        "time:now": {"scope": "minimal", "approval": "auto", "cacheable": False},
        "web:get": {"scope": "network-api", "approval": "auto", "effect": "read"},
    } | (permissions or {})
    file = PermissionFile.model_validate({"tools": entries})
    found = Catalog(Policy(hash_key=KEY, **policy))
    for name, tools in {"files": (*READS, *WRITES), "time": ("now",), "web": ("get", "secret")}.items():
        listed = tuple(Tool(name=tool, hints=ToolHints(), definition=f"{tool}-1") for tool in tools)
        data = ServerTools(server=name, status="listed", tools=listed)
        found = found.with_record(CatalogRecord(kind="tool", id=name, data=data))
    record = PermissionRecord(file=file, hash="h")
    return found.with_record(CatalogRecord(kind="permission", id="file", data=record))


@dataclass
class SessionWorld:
    """The session `local/s1`; its time moves only when a test moves it.

    Every input is checked, or, for speed, one of so many.
    """

    catalog: Catalog = field(default_factory=catalog)
    session: Session | None = None
    time_ms: int = 1_700_000_000_000
    events: list[Event] = field(default_factory=list)
    payloads: dict[Address, Any] = field(default_factory=dict)
    open_calls: dict[str, CallRun] = field(default_factory=dict)
    definitions: dict[str, bytes] = field(default_factory=dict)
    gone: set[Address] = field(default_factory=set)
    capabilities: dict[str, Capability] = field(default_factory=dict)
    checked_every: int = 1
    _offsets: dict[str, int] = field(default_factory=lambda: {COMMANDS: 0, OUTCOMES: 0})
    log_end: int = 100

    def start(self, workflow: dict[str, Any] | None, run_id: str | None = "run_1", **fields: Any) -> Step:
        """Send `run.start`."""
        context = fields.pop("context", {})
        data = RunStart(workflow=Workflow.model_validate(workflow) if workflow else None, context=context)
        command = Command(
            type="run.start",
            command_id=fields.pop("command_id", f"cmd_{run_id}"),
            session_id="s1",
            run_id=run_id,
            data=data,
            **fields,
        )
        return self.command(command)

    def program(
        self,
        source: str,
        language: Any = None,
        run_id: str = "run_1",
        context: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> Step:
        """Send `run.start` with a program."""
        code = Code(source=source, language=language)
        chosen = Options.model_validate(options) if options else None
        data = RunStart(code=code, context=context or {}, options=chosen)
        ids = {"command_id": f"cmd_{run_id}", "session_id": "s1", "run_id": run_id}
        return self.command(Command(type="run.start", data=data, **ids))

    def intent(
        self,
        intent: str,
        run_id: str = "run_1",
        context: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> Step:
        """Send `run.start` with nothing but an intent."""
        chosen = Options.model_validate(options) if options else None
        data = RunStart(intent=intent, context=context or {}, options=chosen)
        ids = {"command_id": f"cmd_{run_id}", "session_id": "s1", "run_id": run_id}
        return self.command(Command(type="run.start", data=data, **ids))

    def match(self, answer: dict[str, Any]) -> Step:
        """Answer `pml:match` with this."""
        return self.answer(self.call_of(MATCH_TOOL), {"threshold": 0.7, **answer})

    def inline(self, capabilities: dict[str, dict[str, Any]]) -> Step:
        """Answer `pml:inline` as the server `pml` would, by these capabilities."""
        found = {
            name: Capability.model_validate(
                {"tenant": "local", "name": name, "capability_id": name, **fields}
            )
            for name, fields in capabilities.items()
        }
        call = self.open_calls[self.call_of(INLINE_TOOL)]
        try:
            workflow = inlined(InlineRequest.model_validate(call.arguments).workflow, found.get)
        except PMLError as error:
            return self.answer(call.call_id, code=error.code, message=error.message)
        return self.answer(call.call_id, InlineAnswer(workflow=workflow).model_dump(mode="json"))

    def analyse(self) -> Step:
        """Answer `pml:analyse` as the server `pml` would."""
        call = self.open_calls[self.call_of(ANALYSE_TOOL)]
        try:
            answer = analysed(AnalyseRequest.model_validate(call.arguments))
        except PMLError as error:
            return self.answer(call.call_id, code=error.code, message=error.message)
        return self.answer(call.call_id, answer.model_dump(mode="json"))

    def step(self, run_id: str = "run_1", **said: Any) -> Step:
        """Answer `pml:step` for a program that says `calls`, a `value` or an `error`.

        A call is a tool and its arguments, or one of `capabilities` by its name.
        """
        if "calls" in said:
            said["calls"] = [
                {"tool" if ":" in name else "capability": name, "arguments": given}
                for name, given in said["calls"]
            ]
        answer = step_answer(said, len(self._graph(run_id).nodes), self.capabilities.get)
        return self.answer(self.call_of(STEP_TOOL, run_id), answer.model_dump(mode="json"))

    def unfold(self, run_id: str = "run_1") -> Step:
        """Answer `pml:step` as the server `pml` would, for a program with loops over results."""
        call = self.open_calls[self.call_of(STEP_TOOL, run_id)]
        return self.answer(call.call_id, self.unfolded(call).model_dump(mode="json"))

    def unfolded(self, call: CallRun) -> StepAnswer:
        """What such a program says to a call of `pml:step`."""
        asked = StepRequest.model_validate(call.arguments)
        program = SandboxProgram.model_validate(self._resting(asked.program).structured["program"])
        assert program.structure is not None
        steps = (
            (StepAnswer.model_validate(self._resting(step.answer).structured), step) for step in asked.taken
        )
        done = done_after(steps, lambda place: payload_value(self._resting(place)))
        return next_part(program.structure, full_context(self._resting(asked.start)), done)

    def _resting(self, place: Coordinate) -> Any:
        return self.payloads[address_of(place)]

    def _graph(self, run_id: str) -> Graph:
        graph = self.session_run(run_id).graph
        assert graph is not None
        return graph

    def send(
        self,
        kind: str,
        run_id: str = "run_1",
        data: dict[str, Any] | None = None,
        principal: str = "person:ada",
        command_id: str | None = None,
    ) -> Step:
        """Send a command about a run; ids are made up by counting."""
        command_id = command_id or f"cmd_{self._offsets[COMMANDS] + 1}"
        model = COMMAND_MODELS[kind].model_validate(data or {})
        ids = {"command_id": command_id, "session_id": "s1", "run_id": run_id}
        return self.command(Command(type=kind, principal=principal, data=model, **ids))

    def command(self, command: Command) -> Step:
        """Send any command."""
        return self._input(COMMANDS, command, command.data)

    def unreadable(self, message: Unreadable) -> Step:
        """Send a command that nobody can decode."""
        return self._input(COMMANDS, message, None)

    def due(self) -> Step:
        """Let the time of the earliest deadline come, and say so."""
        assert self.session is not None
        found = deadline(self.session)
        assert found is not None, "the session waits for nothing"
        self.time_ms = max(self.time_ms, found.due_at_ms)
        step = self.command(deadline_command(self.session, found))
        assert step.events, f"{found} would be sent again and again"
        return step

    def lose(self, address: Address) -> None:
        """A full value is past its retention."""
        self.gone.add(address)
        self.payloads.pop(address, None)

    def reach(self, kind: Any, target: str, due_at_ms: int, attempt: int = 1, run_id: str = "run_1") -> Step:
        """Say that a deadline is due."""
        data = DeadlineReach(kind=kind, target=target, attempt=attempt, due_at_ms=due_at_ms)
        return self.command(
            Command(type="deadline.reach", command_id="due", session_id="s1", run_id=run_id, data=data)
        )

    def answer(
        self, call_id: str, value: dict[str, Any] | None = None, duration_ms: float = 10.0, **error: Any
    ) -> Step:
        """Answer a call: with structured content, or with an error."""
        outcome = CallEnded(
            call_id=call_id,
            tenant="local",
            session_id="s1",
            status=error.pop("status", "error" if error else "ok"),
            result=None if error else ToolResult(structured=value or {}),
            error=CallError(**{"message": "it failed", **error}) if error else None,
            started_at="2023-11-14T22:13:20.000000Z" if error.pop("started", True) else None,
            duration_ms=duration_ms,
        )
        return self.outcome(outcome)

    def outcome(self, outcome: CallEnded) -> Step:
        """Send any answer of the bridge."""
        self.open_calls.pop(outcome.call_id, None)
        return self._input(OUTCOMES, outcome, outcome.result)

    def call_of(self, task_id: str, run_id: str | None = None) -> str:
        """The open call of a task, or of a tool."""
        return next(
            call.call_id
            for call in self.open_calls.values()
            if task_id in {call.task_id, call.tool} and run_id in {None, call.run_id}
        )

    def session_run(self, run_id: str = "run_1") -> Run:
        """A run as it is now."""
        assert self.session is not None
        return self.session.runs[run_id]

    def types(self) -> list[str]:
        """All event types so far."""
        return [event.type for event in self.events]

    def of_type(self, kind: str) -> list[Event]:
        """All events of one type so far."""
        return [event for event in self.events if event.type == kind]

    def _input(self, topic: str, message: Any, payload: Any) -> Step:
        self._offsets[topic] += 1
        source = Input(topic, 3, self._offsets[topic], self.time_ms, "local", "s1", message)
        if payload is not None:
            self.payloads[source.address] = payload
        wanted = needs(self.session, source)
        assert all(wanted), "needs names a value that is nowhere"
        given = {address: self.payloads[address] for address in wanted if address in self.payloads}
        step = decide(self.session, source, given, self.catalog, self.log_end)
        if sum(self._offsets.values()) % self.checked_every == 0:
            self._check(source, step)
        self.take(step)
        return step

    def take(self, step: Step) -> None:
        """Its events count."""
        self.session = step.session
        self.events.extend(step.events)
        for event in step.events:
            name = definition_name(event)
            if name is not None:
                self.definitions[name] = definition_record(event)
        self.log_end += len(step.events)
        self.open_calls |= {call.call_id: call for call in step.calls}
        for cancel in step.cancels:
            self.open_calls.pop(cancel.call_id, None)

    def _check(self, source: Input, step: Step) -> None:
        self.check_fold(step)
        again = decide(self.session, source, dict(self.payloads), self.catalog, self.log_end)
        assert again == step, "needs asked for too little, or deciding is not deterministic"
        if step.session is not None:
            self.check_state(step, step.session)

    def check_fold(self, step: Step) -> None:
        """The state of an answer is what its events fold to, also after a way through bytes."""
        folded = self.session
        for number, event in enumerate(step.events):
            assert event.offset == self.log_end + number
            stored = decode_event(encode(event))
            assert stored == event
            folded = evolve(folded, stored)
            self._check_status(folded, event)
        assert folded == step.session, "the answer's state is not what its events fold to"

    def _check_status(self, folded: Session, event: Event) -> None:
        """The status that an event tells of its run is the one it folds to, unless the run is to stop."""
        told = getattr(event.data, "run_status", None)
        if told is not None and getattr(event.data, "choice", "") != "abort":
            assert folded.runs[event.run_id or ""].status == told

    def check_state(self, step: Step, session: Session) -> None:
        """The accounts add up, the record reads back, and calls sent are the calls that must run."""
        assert balanced(session), f"accounts do not add up: {session.accounts}"
        joined = joined_calls(session)
        for call_id, entry in session.speculations.items():
            live = session.runs[entry.run_id].live
            predicted = entry.kind == "prediction"
            assert predicted or entry.served or live or call_id in joined, "a speculation outlived its run"
        for run in session.runs.values():
            self.check_tasks(run)
        began_now = {
            name: definition_record(event)
            for event in step.events
            if (name := definition_name(event)) is not None
        }
        stored = decode_session(encode_session(session), (self.definitions | began_now).get)
        assert stored == session, "the state record does not read back as the state"
        assert encode_session(session) == encode_session(stored)
        before = self.derived(self.session) if self.session else set()
        began = {encode(call) for call in step.calls}
        assert began >= self.derived(session) - before, "a call that must run was not sent"
        if not self.gone:
            assert began <= self.derived(session), "a call was sent that must not run"

    def check_tasks(self, run: Run) -> None:
        """Nothing of a run that has ended runs, and what has ended keeps its result and no more."""
        for name, task in run.tasks.items():
            assert run.live or task.status != "running", f"{name} runs, and its run has ended"
            if task.ended and task.status != "unknown":
                assert (task.call, task.approval) == (None, None), f"{name} has ended, and takes room"

    def derived(self, session: Session) -> set[bytes]:
        """All calls that must be running in a state, as bytes, but those whose arguments are gone."""
        wanted = {address for address in call_needs(session) if address in self.payloads}
        found = calls(session, {address: self.payloads[address] for address in wanted}, KEY)
        assert self.gone or not any(isinstance(call, GoneCall) for call in found)
        return {encode(call) for call in found if isinstance(call, CallRun)}
