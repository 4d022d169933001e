"""Random sessions: whatever is answered in whatever order, what DESIGN promises holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.capabilities.analysing import analysed
from pml.processors.sandboxing.answers import step_answer
from pml.processors.speculation.guard import can_speculate
from pml.processors.workflow import Catalog, Session, Step, encode_session, evolve
from pml.processors.workflow.folding import address_of
from pml.schemas.analysis import ANALYSE_TOOL, AnalyseRequest
from pml.schemas.calls import CallRun, task_value
from pml.schemas.catalog import Capability, CatalogRecord, SpeculationSwitch, ThresholdOverride
from pml.schemas.events import Event
from pml.schemas.memory import RECALL_TOOL
from pml.schemas.stepping import STEP_TOOL, StepRequest
from pml.schemas.times import from_rfc3339
from pml.schemas.workflow import Reference, Workflow
from tests.processors.file_tools import Files, ToolFailed, random_workflow
from tests.processors.session_world import SessionWorld, catalog

SEEDS = st.integers(min_value=0, max_value=2**32)
Answer = Callable[[], Step]


@dataclass
class Play:
    """A session whose calls are run on files, each at a moment between its start and its answer."""

    random: Random
    world: SessionWorld
    files: Files = field(default_factory=Files)
    ran: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    answered: list[CallRun] = field(default_factory=list)

    def start(self, workflow: dict[str, Any], run_id: str = "run_1") -> None:
        self.take(self.world.start(workflow, run_id))

    def take(self, step: Step) -> None:
        """Look at what came out: guard, and every value that was served early."""
        assert self.world.session is not None
        for event in step.events:
            self._check_event(event)
        for call in step.calls:
            self._check_call(call)

    def answer_one(self) -> None:
        """Answer a random open call."""
        calls = self.world.open_calls
        call = calls[self.random.choice(list(calls))]
        self.answered.append(call)
        result = self.run(call)
        if isinstance(result, ToolFailed):
            self.take(self.world.answer(call.call_id, code="NOT_FOUND"))
        else:
            self.take(self.world.answer(call.call_id, result))

    def run(self, call: CallRun) -> Any:
        """What the tool of a call does, once, and never past its deadline: bridges begin nothing then."""
        if call.call_id not in self.ran:
            try:
                if from_rfc3339(call.deadline_at) <= self.world.time_ms:
                    raise ToolFailed
                tool = self._internals().get(call.tool, self.files.run)
                self.ran[call.call_id] = tool(call.tool, call.arguments)
            except ToolFailed as error:
                self.ran[call.call_id] = error
        return self.ran[call.call_id]

    def _internals(self) -> dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]]:
        return {RECALL_TOOL: self._recall, ANALYSE_TOOL: self._analysed, STEP_TOOL: self._stepped}

    def _analysed(self, _: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return analysed(AnalyseRequest.model_validate(arguments)).model_dump(mode="json")

    def _stepped(self, _: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a program says follows from what it was told, and from nothing else."""
        request = StepRequest.model_validate(arguments)
        resting = self.world.payloads.get(address_of(request.program))
        if resting is None:
            raise ToolFailed
        if resting.structured["program"]["structure"] is not None:
            call = next(item for item in self.world.open_calls.values() if item.arguments == arguments)
            try:
                return self.world.unfolded(call).model_dump(mode="json")
            except KeyError:
                raise ToolFailed from None
        before = sum(len(step.results) for step in request.taken)
        told = Random(f"{request.start.offset}/{request.taken}")
        said = _said(told, len(request.taken))
        return step_answer(said, before, _capability).model_dump(mode="json")

    def start_program(self, run_id: str, options: dict[str, Any] | None = None) -> None:
        """A program that no DAG expresses."""
        self.take(self.world.program("while True:\n    pass", "python", run_id, options=options))

    def _recall(self, _: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the memory says of some of the tools, or that it cannot say anything."""
        if self.random.random() < 0.2:
            raise ToolFailed
        asked = [tool for tool in arguments["tools"] if self.random.random() < 0.8]
        past = {"successes": self.random.randint(0, 8), "failures": self.random.randint(0, 8)}
        return {"tools": dict.fromkeys(asked, past)}

    def drain(self) -> None:
        """Answer everything; then let deadlines come until all runs have ended."""
        for _ in range(500):
            assert self.world.session is not None
            if self.world.open_calls:
                self.answer_one()
            elif self.world.session.live:
                self.take(self.world.due())
            else:
                return
        raise AssertionError("a run does not end")

    def _check_call(self, call: CallRun) -> None:
        """Nothing unsafe runs early; some calls run as soon as they are sent, others when answered."""
        server = self.world.catalog.server_of(call.tool)
        if call.speculative:
            allowed = can_speculate(call.tool, call.arguments, self.world.catalog.permissions, server)
            assert allowed.allowed
            assert call.effect == "read"
        else:
            self.asked.setdefault(call.call_id, len(self.files.history) - 1)
        if self.random.random() < 0.5:
            self.run(call)

    def _check_event(self, event: Event) -> None:
        data: Any = event.data
        if event.type != "task.completed" or data.served_by == "call" or data.arguments is None:
            return
        value = task_value(self.world.payloads[tuple(data.result_ref.model_dump().values())])
        tool, arguments = data.tool, data.arguments
        moments = self.files.history[-1:]
        if data.served_by in {"joined", "repeat"} and data.call_id in self.asked:
            moments = self.files.history[self.asked[data.call_id] :]
        expected = [self._would_answer(tool, arguments, texts) for texts in moments]
        assert value in expected, f"{event.id} was served {value}, not one of {expected}"

    def _would_answer(self, tool: str, arguments: Any, texts: dict[str, str]) -> Any:
        try:
            return {**self.files.run(tool, arguments, texts), "content": []}
        except ToolFailed as error:
            return error

    def check_log(self) -> None:
        """A crash: the state is dropped, and all events are read again."""
        folded: Session | None = None
        for number, event in enumerate(self.world.events):
            assert event.seq == number
            folded = evolve(folded, event)
        assert folded is not None
        assert self.world.session is not None
        assert encode_session(folded) == encode_session(self.world.session)
        assert folded == self.world.session
        self.check_unsafe_calls()
        self.check_verified()
        self.check_decisions()
        self.check_approvals()
        ends = [
            event
            for event in self.world.events
            if event.type in {"run.completed", "run.failed", "run.aborted"}
        ]
        starts = [*self.world.of_type("run.started"), *self.world.of_type("run.retried")]
        assert sorted(event.run_id or "" for event in ends) == sorted(event.run_id or "" for event in starts)

    def check_decisions(self) -> None:
        """Each checkpoint is decided once, and nothing of the next layer starts while it is open."""
        waiting: dict[str, str] = {}
        for event in self.world.events:
            data: Any = event.data
            run_id = event.run_id or ""
            if event.type == "decision.required":
                assert run_id not in waiting
                waiting[run_id] = data.checkpoint_id
            elif event.type == "decision.made":
                assert waiting.pop(run_id, None) == data.checkpoint_id
            elif event.type in {"layer.released", "run.completed", "run.failed", "run.aborted"}:
                assert run_id not in waiting
        assert not waiting

    def decide(self, kind: str, **data: Any) -> None:
        """Send a command about a random run, whether it waits or not; sometimes twice."""
        assert self.world.session is not None
        fitting = {"run.continue": "waiting", "run.retry": "failed"}.get(kind, "running")
        runs = self.world.session.runs.values()
        names = [run.run_id for run in runs if run.status == fitting]
        if not names or self.random.random() < 0.2:
            names = [*self.world.session.runs, "run_9"]
        run_id = self.random.choice(names)
        self.take(self.world.send(kind, run_id, data, command_id=f"cmd_{len(self.world.events)}"))
        if self.random.random() < 0.2 and self.world.session.obeyed:
            again = self.random.choice(list(self.world.session.obeyed))
            self.take(self.world.send(kind, run_id, data, command_id=again))

    def score(self) -> None:
        """Somebody judges a run, known or not; sometimes by an id that was used before."""
        assert self.world.session is not None
        run_id = self.random.choice([*self.world.session.runs, "run_9"])
        value = self.random.choice([{"number": 0.5}, {"category": "good"}, {"boolean": True}])
        used = [*self.world.session.obeyed, *self.world.session.scores]
        again = self.random.choice(used) if used and self.random.random() < 0.3 else None
        step = self.world.send("run.score", run_id, {"name": "quality", **value}, command_id=again)
        self.take(step)
        assert step.events[-1].type in {"run.scored", "command.attached", "command.rejected"}

    def answer_request(self) -> None:
        """A person, or somebody who is none, answers a request that is open, or one that was."""
        asked = self.world.of_type("approval.requested")
        if not asked:
            return
        event = self.random.choice(asked)
        data = {
            "approval_id": event.data.approval_id,
            "decision": self.random.choice(["approve", "approve", "reject"]),
            "computed": self.random.random() < 0.5,
        }
        who = self.random.choice(["person:ada", "person:ada", "agent:planner"])
        step = self.world.send("approval.decide", event.run_id or "", data, who)
        self.take(step)
        assert who == "person:ada" or step.events[-1].type == "command.rejected"

    def replan(self) -> None:
        """Other tasks for a run that waits, one of them built on what completed; or for one that does not."""
        assert self.world.session is not None
        waiting = [run for run in self.world.session.runs.values() if run.status == "waiting"]
        if not waiting:
            return
        run = self.random.choice(waiting)
        done = [name for name, task in run.tasks.items() if task.status == "completed"]
        prefix = f"p{len(self.world.events)}_"
        tasks = random_workflow(self.random)["tasks"][:5]
        names = {task["id"]: prefix + task["id"] for task in tasks}
        for task in tasks:
            _rename(task, names)
        if done:
            tasks[0]["depends_on"] = [self.random.choice(done)]
        hold = self.random.random() < 0.3
        step = self.world.send("run.replan", run.run_id, {"tasks": tasks, "hold": hold})
        self.take(step)
        replanned = [event for event in step.events if event.type == "run.replanned"]
        assert replanned or step.events[-1].type == "command.rejected"

    def resolve(self) -> None:
        """Somebody settles a task of unknown outcome, or one that is not."""
        assert self.world.session is not None
        tasks = [
            (run.run_id, name)
            for run in self.world.session.runs.values()
            for name in (run.unknown or tuple(run.tasks)[:1])
        ]
        if tasks:
            run_id, task_id = self.random.choice(tasks)
            data: dict[str, Any] = {
                "task_id": task_id,
                "resolution": self.random.choice(["done", "not_done", "retry"]),
            }
            if data["resolution"] == "done":
                data["result"] = {"text": "as found", "size": 8, "first": "a.md"}
            self.take(self.world.send("task.resolve", run_id, data))

    def check_unsafe_calls(self) -> None:
        """What completed and is unsafe is not called again; what is unknown only if somebody says so."""
        over: dict[tuple[str, str], str] = {}
        for event in self.world.events:
            data: Any = event.data
            task = (event.run_id or "", getattr(data, "task_id", ""))
            if event.type == "task.started" and data.effect == "write":
                assert over.get(task) not in {"task.completed", "task.unknown"}
            elif event.type in {"task.completed", "task.unknown", "task.failed"}:
                over[task] = event.type
            elif event.type == "task.resolved":
                over[task] = {"done": "task.completed"}.get(data.resolution, "task.failed")

    def check_verified(self) -> None:
        """A tool is asked once at most about a call, and what it says is so: it happened, or did not."""
        asked = [event.data.unknown_call_id for event in self.world.of_type("task.verifying")]
        assert len(asked) == len(set(asked))
        unknown = {event.data.call_id: event.data.arguments for event in self.world.of_type("task.unknown")}
        for event in self.world.of_type("task.resolved"):
            data: Any = event.data
            if data.verified_by is None:
                continue
            text = unknown[data.call_id]["text"]
            same = data.resolution == "done" and data.result["text"] == text
            wrote = not isinstance(self.ran.get(data.call_id, ToolFailed()), ToolFailed)
            assert same or wrote == (data.resolution == "done") or not isinstance(text, str)

    def check_approvals(self) -> None:
        """Each request ends once at most, and only a granted one leads to the call that it was about."""
        open_requests: dict[str, Event] = {}
        granted: dict[str, Event] = {}
        computed: set[str] = set()
        held: dict[str, str] = {}
        for event in self.world.events:
            data: Any = event.data
            if event.type == "approval.requested":
                open_requests[data.approval_id] = event
                if data.calls is not None:
                    held[data.approval_id] = event.run_id or ""
            elif event.type.startswith("approval."):
                asked = open_requests.pop(data.approval_id)
                held.pop(data.approval_id, None)
                if event.type == "approval.granted":
                    granted[data.approval_id] = asked
                    computed |= {data.approval_id} if data.computed else set()
            elif event.type in {"layer.released", "task.started", "speculation.started"}:
                assert event.run_id not in held.values()
            if event.type == "task.started" and data.approval_id:
                about: Any = granted[data.approval_id].data
                shown = about.calls or (about,)
                assert any(_covers(call, data, data.approval_id in computed) for call in shown)
        assert not open_requests
        for call in self.answered:
            found = self.world.catalog.permissions.find(call.tool)
            asks = found is not None and found[1].approval == "hil"
            assert not asks or call.approval_id in granted

    def results(self) -> dict[str, Any]:
        """How each task ended, and with which value."""
        found: dict[str, Any] = {}
        for event in self.world.events:
            data: Any = event.data
            if event.type == "task.completed":
                found[data.task_id] = task_value(
                    self.world.payloads[tuple(data.result_ref.model_dump().values())]
                )
            elif event.type in {"task.skipped", "task.unknown"} or (
                event.type == "task.failed" and data.final
            ):
                found[data.task_id] = event.type
            elif event.type in {"run.completed", "run.failed"}:
                found["run"] = (event.type, sorted(data.executed_path), data.decisions)
        return found


def play(seed: int, workflow: dict[str, Any], mode: str) -> Play:
    random = Random(seed)
    found = Play(random, SessionWorld(catalog=_eager(random, speculation_mode=mode), checked_every=3))
    found.start(workflow)
    found.drain()
    found.check_log()
    return found


@given(seed=SEEDS)
@settings(max_examples=200, deadline=None)
def test_speculation_changes_no_result(seed: int) -> None:
    workflow = random_workflow(Random(seed), conflicts=False)
    plain = play(seed, workflow, "off")
    early = play(seed + 1, workflow, "on")
    assert not plain.world.of_type("speculation.started")
    assert early.results() == plain.results()
    assert early.files.texts == plain.files.texts


@given(seed=SEEDS)
@settings(max_examples=200, deadline=None)
def test_everything_goes_wrong_and_every_promise_holds(seed: int) -> None:
    random = Random(seed)
    found = Play(random, SessionWorld(catalog=_eager(random, _retried(random)), checked_every=2))
    found.start(_pausing(random, random_workflow(random)))
    runs = 1
    for _ in range(random.randint(5, 30)):
        _disturb(found, runs + 1)
        runs = len(found.world.session.runs) if found.world.session else 0
    _switch(found, "on")
    found.drain()
    found.check_log()


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None)
def test_waiting_for_somebody_changes_no_result(seed: int) -> None:
    workflow = random_workflow(Random(seed), conflicts=False)
    plain = play(seed, workflow, "off")
    paused = workflow | {
        "options": {"per_layer_validation": True, "on_timeout": "continue", "timeout_s": 300}
    }
    waited = play(seed + 1, paused, "on")
    assert waited.results() == plain.results()
    assert waited.files.texts == plain.files.texts


def _said(random: Random, steps: int) -> dict[str, Any]:
    """Calls of the tools there are, an end, or an error."""
    if random.random() < 0.15 * steps:
        return random.choice([{"value": steps}, {"error": {"code": "PROGRAM_ERROR", "message": "x"}}])
    tasks = random_workflow(random)["tasks"][: random.randint(1, 4)]
    given = [
        {name: "a.md" if isinstance(value, dict) else value for name, value in task["arguments"].items()}
        for task in tasks
    ]
    made: list[dict[str, Any]] = [
        {"tool": task["tool"], "arguments": each} for task, each in zip(tasks, given, strict=True)
    ]
    if random.random() < 0.3:
        called = {"capability": str(random.randint(1, 1_000)), "arguments": {}}
        made.insert(random.randint(0, len(made)), called)
    return {"calls": made}


def _capability(name: str) -> Capability:
    """What a number always calls, with conditions, and a value that is there or not."""
    random = Random(name)
    workflow = Workflow.model_validate(random_workflow(random) | {"options": {}})
    value = Reference(expression=random.choice(workflow.tasks).id) if random.random() < 0.7 else None
    return Capability(
        tenant="local", name=name, tasks=workflow.tasks, decisions=workflow.decisions, result=value
    )


@given(seed=SEEDS)
@settings(max_examples=150, deadline=None)
def test_programs_in_the_sandbox_among_everything_that_goes_wrong(seed: int) -> None:
    random = Random(seed)
    found = Play(random, SessionWorld(catalog=_eager(random, _retried(random)), checked_every=2))
    per_layer = {"per_layer_validation": random.random() < 0.3, "on_timeout": "continue"}
    found.start_program("run_1", per_layer)
    runs = 1
    for _ in range(random.randint(5, 40)):
        _disturb(found, runs + 1)
        runs = len(found.world.session.runs) if found.world.session else 0
    _switch(found, "on")
    found.drain()
    found.check_log()
    grown = [event for event in found.world.of_type("run.expanded") if event.run_id == "run_1"]
    counted = [task["id"] for event in grown for task in _new_tasks(event)]
    assert len(set(counted)) == len(counted)
    asked = [int(name[1:]) for name in counted if "__" not in name]
    assert asked == sorted(asked)


LOOPS = """
found = await mcp.files.read_file(path="a.md")
for name in names:
    page = await mcp.files.read_file(path=name)
    if page.size > 5:
        await mcp.files.write_file(path=name, text=page.text)
again = await asyncio.gather(*[mcp.files.parse(text=name) for name in names])
await mcp.files.list_dir(path=found.first)
return again
"""


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_programs_with_loops_among_everything_that_goes_wrong(seed: int) -> None:
    random = Random(seed)
    found = Play(random, SessionWorld(catalog=_eager(random, _retried(random)), checked_every=2))
    names = random.choices(["a.md", "b.md", "docs/c.md"], k=random.randint(0, 6))
    found.take(found.world.program(LOOPS, "python", "run_1", context={"names": names}))
    for _ in range(random.randint(0, 30)):
        _disturb(found, 1)
    _switch(found, "on")
    found.drain()
    found.check_log()
    ended = [event.type for event in found.world.events if event.run_id == "run_1"][-1]
    begun = {event.data.task_id for event in found.world.of_type("task.started") if event.run_id == "run_1"}
    if ended == "run.completed":
        assert len([name for name in begun if name.startswith("n2__")]) == len(names)


def _new_tasks(event: Event) -> list[dict[str, Any]]:
    data: Any = event.data
    tasks: list[dict[str, Any]] = data.definition["tasks"]
    return tasks


def _rename(task: dict[str, Any], names: dict[str, str]) -> None:
    """The same task under another name, without conditions or tasks that are not there."""
    task.pop("condition", None)
    task["id"] = names[task["id"]]
    task["depends_on"] = [names[name] for name in task.get("depends_on", []) if name in names]
    for name, value in task["arguments"].items():
        if isinstance(value, dict):
            source, _, path = value["expression"].partition(".")
            known = {"type": "reference", "expression": f"{names.get(source)}.{path}"}
            task["arguments"][name] = known if source in names else "text"


def _pausing(random: Random, workflow: dict[str, Any]) -> dict[str, Any]:
    """The workflow with decision points."""
    names = [task["id"] for task in workflow["tasks"]]
    points = random.choice([[], "per_layer", "on_error", [random.choice(names)], ["on_error", "per_layer"]])
    more = {"decision_points": points, "on_timeout": random.choice(["abort", "continue"])}
    return workflow | {"options": workflow["options"] | more}


def _covers(call: Any, started: Any, computed: bool) -> bool:
    """Whether what was shown is what began."""
    same = call.arguments_hash == started.arguments_hash or (computed and call.arguments_hash is None)
    return same and (call.task_id or started.task_id, call.tool) == (started.task_id, started.tool)


def _eager(random: Random, permissions: dict[str, Any] | None = None, **policy: Any) -> Catalog:
    """A catalog under which much runs early: deep layers, branches as likely as not; and a small cache."""
    found = catalog(
        permissions,
        budget_name=random.choice(["low", "normal", "high"]),
        speculation_depth=random.choice([1, 2, 3]),
        cache_bytes=random.choice([150, 16_777_216]),
        verified_share=random.choice([0.0, 0.5, 1.0]),
        memory_influence=random.choice(["on", "off"]),
        approve=random.choice(["before", "each"]),
        **policy,
    )
    value = random.choice([0.4, 0.54, 0.92])
    fields = {"tenant": "local", "level": "default", "value": value, "changed_at": "2023-11-14T22:13:20Z"}
    override = ThresholdOverride.model_validate(fields)
    return found.with_record(CatalogRecord(kind=override.KIND, id="local/default", data=override))


def _retried(random: Random) -> dict[str, Any]:
    """Entries that make calls repeat, expire soon, or depend on their arguments."""
    read = {"scope": "readonly", "approval": "auto", "touches": ["files:{path}"]}
    write = {"scope": "filesystem", "approval": "auto", "touches": ["files:{path}"]}
    again = {"attempts": 2, "backoff_ms": 100}
    return {
        "files:read_file": read | {"retryable": again, "ttl_s": random.choice([1, 300])},
        "files:list_dir": read | {"cacheable": random.random() < 0.8},
        "files:write_file": write
        | random.choice([{}, {"approval": "hil"}, {"idempotent": True, "retryable": again}])
        | random.choice([{}, {"approval": "hil"}])
        | random.choice([{}, {"verify": _asked | random.choice([{}, {"after_s": 0}, {"after_s": 2}])}]),
    }


_asked = {
    "tool": "files:read_file",
    "arguments": {"path": "{path}"},
    "done": "result.text == arguments.text",
}


_TASK_ENDS = {"task.completed", "task.failed", "task.unknown"}
_DISTURBANCES = {
    "answer": 10,
    "fail": 3,
    "late": 2,
    "time": 2,
    "due": 1,
    "start": 1,
    "switch": 1,
    "lose": 1,
    "run.continue": 4,
    "run.abort": 1,
    "run.retry": 2,
    "run.replan": 2,
    "task.resolve": 2,
    "approval.decide": 5,
    "run.score": 1,
}


def _disturb(found: Play, next_run: int) -> None:
    """One random thing happens."""
    random, world = found.random, found.world
    kind = random.choices(list(_DISTURBANCES), list(_DISTURBANCES.values()))[0]
    if kind == "answer" and world.open_calls:
        found.answer_one()
    elif kind == "fail" and world.open_calls:
        code = random.choice(["TIMEOUT", "NETWORK", "NOT_FOUND", "CANCELLED", "CONNECTION_LOST"])
        fails: dict[str, Any] = {
            "code": code,
            "retryable": random.random() < 0.5,
            "started": random.random() < 0.8,
        }
        call = world.open_calls[random.choice(list(world.open_calls))]
        found.answered.append(call)
        found.take(world.answer(call.call_id, **fails))
    elif kind == "late" and found.answered:
        call_id = random.choice(found.answered).call_id
        step = world.answer(call_id, {"late": True})
        found.take(step)
        ended = [event for event in step.events if event.type in _TASK_ENDS]
        assert all(getattr(event.data, "call_id", "") != call_id for event in ended)
    elif kind == "time":
        world.time_ms += random.choice([10, 500, 1_500, 30_000])
    elif kind == "due" and world.session is not None and world.session.live:
        found.take(world.due())
    elif kind == "start" and next_run <= 3:
        found.start(_pausing(random, random_workflow(random)), f"run_{next_run}")
    elif kind in {"run.continue", "run.abort", "run.retry"}:
        found.decide(kind)
    elif kind == "run.replan":
        found.replan()
    elif kind == "task.resolve":
        found.resolve()
    elif kind == "approval.decide":
        found.answer_request()
    elif kind == "run.score" and world.session is not None:
        found.score()
    elif kind == "switch":
        _switch(found, random.choice(["on", "shadow", "off"]))
    elif kind == "lose" and world.payloads and random.random() < 0.2:
        world.lose(random.choice(list(world.payloads)))


def _switch(found: Play, mode: Any) -> None:
    record = CatalogRecord(kind="switch", id="global", data=SpeculationSwitch(mode=mode))
    found.world.catalog = found.world.catalog.with_record(record)
