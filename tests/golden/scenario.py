"""Scenario files: commands for one session, each followed by everything the core answered.

A file begins with a comment that says what it proves. A block is one command, an indented body where
it takes one, the line `----`, and what came out: one line an event with all its data, one line a call.

    start RUN [context=JSON] [command=ID]   body: a workflow as YAML
    program RUN LANGUAGE [context=JSON] [options=JSON]      body: the source of a program
    intent RUN TEXT [context=JSON] [options=JSON]           a run.start with nothing but this intent
    match                                   body: what `pml:match` answers, as YAML
    inline                                  `pml:inline` answers; body: capabilities by name, as YAML
    analyse                                 `pml:analyse` answers as the server pml would
    step RUN                                body: what a program in the sandbox says, as YAML: calls (each
                                            a tool, or a capability, and its arguments), value or error
    unfold RUN                              `pml:step` answers for a program with loops over results
    capability NAME                         body: what programs call so from now on, as YAML
    send TYPE RUN [as=WHO] [command=ID]     body: what the command says, as YAML
    approve TASK | reject TASK [as=WHO]     the newest approval that the task asked for; body: a reason
    record                                  body: any command as YAML, as it would lie in pml.commands
    answer TASK JSON [MS]                   the call of TASK (or RUN/TASK) gives this structured content
    fail TASK CODE [retryable] [unstarted]  it gives this error
    again TASK JSON                         the call that TASK, or a tool, had last is answered once more
    catalog                                 body: permissions, required, schemas, unavailable, policy,
                                            threshold, branches (decision: outcome: count), diverged
    definition TOOL HASH                    the server lists the tool with another definition
    time +MS                                the log's time goes on
    reach [KIND TASK]                       the earliest deadline comes; or one is named that is not due
    lose command RUN | result TASK | speculation TASK    a full value is past its retention
    switch on|shadow|off [SCOPE]            pml speculation on|shadow|off
    state                                   nothing comes in; what is kept of the session is printed, by
                                            position as `record.py` writes it, and the deadline that is next
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from pml.processors.speculation.branches import branch_key
from pml.processors.speculation.thresholds import scope_of
from pml.processors.workflow import Step, Unreadable, deadline, encode_session
from pml.schemas.calls import CallRun
from pml.schemas.catalog import (
    BranchStats,
    Capability,
    CatalogRecord,
    DivergenceRecord,
    ServerTools,
    SpeculationSwitch,
    ThresholdOverride,
    ThresholdRecord,
)
from pml.schemas.codec import decode_command, encode
from pml.schemas.errors import PMLError
from tests.processors.session_world import SessionWorld, catalog

SEPARATOR = "----"


@dataclass
class Block:
    """One command of a scenario file, and what it must answer."""

    command: str
    body: str
    expected: str

    def written(self, answer: str) -> str:
        """The block with this answer in it."""
        body = f"{self.body}\n" if self.body else ""
        return f"{self.command}\n{body}{SEPARATOR}\n{answer}"


def parse(text: str) -> tuple[str, list[Block]]:
    """The comment at the top and the blocks of a scenario file."""
    parts = [part for part in text.strip().split("\n\n") if part]
    comment = "\n\n".join(part for part in parts if part.startswith("#"))
    return comment, [_block(part) for part in parts if not part.startswith("#")]


def _block(part: str) -> Block:
    asked, _, expected = part.partition(f"\n{SEPARATOR}")
    command, _, body = asked.partition("\n")
    return Block(command, body, expected.strip("\n"))


@dataclass
class Scenario:
    """Carries out the commands of one file."""

    world: SessionWorld = field(default_factory=SessionWorld)
    _calls: dict[str, CallRun] = field(default_factory=dict)

    def carry_out(self, block: Block) -> str:
        """What a command answers, printed."""
        name, *words = shlex.split(block.command)
        if name == "state":
            return "\n".join(self._kept())
        body = block.body if name == "program" else yaml.safe_load(block.body) if block.body else None
        step = getattr(self, f"_{name}")(body, *words)
        return "\n".join(self._printed(step)) if step is not None else "ok"

    def _start(self, workflow: Any, run_id: str, *words: str) -> Step:
        options = dict(word.split("=", 1) for word in words)
        context = json.loads(options.get("context", "{}"))
        return self.world.start(
            workflow, run_id, context=context, command_id=options.get("command", f"cmd_{run_id}")
        )

    def _program(self, source: str, run_id: str, language: str, *words: str) -> Step:
        given = {name: json.loads(value) for name, value in (word.split("=", 1) for word in words)}
        return self.world.program(textwrap.dedent(source), language, run_id, **given)

    def _intent(self, _: None, run_id: str, intent: str, *words: str) -> Step:
        given = {name: json.loads(value) for name, value in (word.split("=", 1) for word in words)}
        return self.world.intent(intent, run_id, **given)

    def _match(self, answer: Any) -> Step:
        return self.world.match(answer)

    def _inline(self, capabilities: Any) -> Step:
        return self.world.inline(capabilities or {})

    def _capability(self, record: Any, name: str) -> None:
        given = {"tenant": "local", "name": name, "capability_id": f"cap_{name}", **record}
        self.world.capabilities[name] = Capability.model_validate(given)

    def _analyse(self, _: None) -> Step:
        return self.world.analyse()

    def _step(self, said: Any, run_id: str) -> Step:
        return self.world.step(run_id, **said)

    def _unfold(self, _: None, run_id: str) -> Step:
        return self.world.unfold(run_id)

    def _send(self, data: Any, kind: str, run_id: str, *words: str) -> Step:
        options = dict(word.split("=", 1) for word in words)
        who = options.get("as", "person:ada")
        return self.world.send(kind, run_id, data, who, options.get("command"))

    def _approve(self, data: Any, task_id: str, *words: str) -> Step:
        return self._word(data, "approve", task_id, words)

    def _reject(self, data: Any, task_id: str, *words: str) -> Step:
        return self._word(data, "reject", task_id, words)

    def _word(self, data: Any, decision: str, task_id: str, words: tuple[str, ...]) -> Step:
        asked = [event for event in self.world.of_type("approval.requested") if _is_about(event, task_id)]
        said = {"approval_id": asked[-1].data.approval_id, "decision": decision, **(data or {})}
        return self._send(said, "approval.decide", asked[-1].run_id or "", *words)

    def _definition(self, _: None, tool: str, definition: str) -> None:
        server_name, _, name = tool.partition(":")
        server = self.world.catalog.servers[server_name]
        changed = {"definition": definition}
        tools = tuple(item.model_copy(update=changed if item.name == name else {}) for item in server.tools)
        self._publish("tool", server_name, server.model_copy(update={"tools": tools}))

    def _record(self, fields: dict[str, Any]) -> Step:
        try:
            return self.world.command(decode_command(json.dumps(fields).encode()))
        except PMLError as error:
            found = Unreadable(error.code, error.message, fields.get("command_id"), fields["type"])
            return self.world.unreadable(found)

    def _answer(self, _: None, task: str, value: str, duration_ms: str = "10") -> Step:
        return self.world.answer(self._call(task), json.loads(value), duration_ms=float(duration_ms))

    def _again(self, _: None, task: str, value: str) -> Step:
        return self.world.answer(self._calls[task].call_id, json.loads(value))

    def _fail(self, _: None, task: str, code: str, *flags: str) -> Step:
        status = {"CANCELLED": "cancelled", "REFUSED": "refused"}.get(code, "error")
        return self.world.answer(
            self._call(task),
            code=code,
            retryable="retryable" in flags,
            started="unstarted" not in flags,
            status=status,
        )

    def _catalog(self, body: dict[str, Any]) -> None:
        world = self.world
        world.catalog = catalog(body.get("permissions"), **body.get("policy", {}))
        for tool, required in body.get("required", {}).items():
            self._describe(tool, {"input_schema": {"type": "object", "required": required}})
        for tool, schemas in body.get("schemas", {}).items():
            self._describe(tool, schemas)
        for name in body.get("unavailable", ()):
            data = ServerTools(server=name, status="unavailable", error="it does not start")
            self._publish("tool", name, data)
        self._learned(body.get("threshold"), body.get("branches", {}))
        for tool, times in body.get("diverged", {}).items():
            self._publish("divergence", tool, DivergenceRecord(tool=tool, diverged_at=tuple(times)))
        for key, value in body.get("learned", {}).items():
            self._publish("threshold", key, _threshold(key, value))

    def _describe(self, tool: str, fields: dict[str, Any]) -> None:
        """The server lists one of its tools with these fields; properties may be given as name: type."""
        server_name, _, name = tool.partition(":")
        server = self.world.catalog.servers[server_name]
        update = {
            field: _schema(value) if field.endswith("schema") else value for field, value in fields.items()
        }
        tools = tuple(item.model_copy(update=update if item.name == name else {}) for item in server.tools)
        self._publish("tool", server_name, server.model_copy(update={"tools": tools}))

    def _learned(self, threshold: float | None, branches: dict[str, dict[str, int]]) -> None:
        now = "2023-11-14T22:13:20.000000Z"
        if threshold is not None:
            override = ThresholdOverride(tenant="local", level="default", value=threshold, changed_at=now)
            self._publish("threshold_override", "local/default", override)
        for decision_id, counts in branches.items():
            stats = BranchStats(
                tenant="local", workflow_type="default", decision_id=decision_id, counts=counts
            )
            self._publish("branch_stats", branch_key("local", "default", decision_id), stats)

    def _switch(self, _: None, mode: Any, scope: str = "speculation") -> None:
        self._publish("switch", scope, SpeculationSwitch(mode=mode))

    def _publish(self, kind: str, record_id: str, data: Any) -> None:
        record = CatalogRecord(kind=kind, id=record_id, data=data)
        self.world.catalog = self.world.catalog.with_record(record)

    def _time(self, _: None, more: str) -> None:
        self.world.time_ms += int(more)

    def _reach(self, _: None, kind: str = "", task: str = "") -> Step:
        return self.world.reach(kind, task, self.world.time_ms) if kind else self.world.due()

    def _lose(self, _: None, what: str, name: str) -> None:
        assert self.world.session is not None
        runs = self.world.session.runs
        if what == "command":
            self.world.lose(runs[name].payload)
            return
        entries = self.world.session.speculations.values()
        if what == "speculation":
            address = next(entry.result for entry in entries if entry.task_id == name)
        else:
            address = next(run.tasks[name].result for run in runs.values() if name in run.tasks)
        assert address is not None
        self.world.lose(address)

    def _call(self, task: str) -> str:
        run_id, _, task_id = task.rpartition("/")
        return self.world.call_of(task_id, run_id or None)

    def _kept(self) -> Iterator[str]:
        session = self.world.session
        assert session is not None
        record = json.loads(encode_session(session))
        runs, speculations = record.pop("runs"), record.pop("speculations")
        yield f"  session {json.dumps(record)}"
        for number, tasks, run in ((index, run[11], run) for index, run in enumerate(runs)):
            yield f"  run {json.dumps([*run[:11], len(tasks), *run[12:]])}"
            yield from (f"    task {number}/{name} {json.dumps(row)}" for name, row in tasks.items())
        yield from (f"  speculation {json.dumps(row)}" for row in speculations)
        found = deadline(session)
        if found is not None:
            of = f"{found.run_id} {found.target} {found.attempt}"
            yield f"  deadline {found.kind} {of} at {found.due_at_ms}"

    def _printed(self, step: Step) -> Iterator[str]:
        self._calls |= {name: call for call in step.calls for name in (call.task_id, call.tool)}
        for event in step.events:
            data = json.loads(encode(event.data))
            yield f"{event.seq:>3} {event.type:<19} {event.run_id or '-'} {_json(data)}"
        for call in step.calls:
            yield f"  > call.run {_json(json.loads(encode(call)))}"
        for cancel in step.cancels:
            yield f"  > call.cancel {_json(json.loads(encode(cancel)))}"
        if not step.events:
            yield "nothing"


def _is_about(event: Any, task_id: str) -> bool:
    """A task, or `all` the calls of a run."""
    if task_id == "all":
        return event.data.calls is not None
    return bool(event.data.task_id == task_id and event.data.calls is None)


def _threshold(key: str, value: float) -> ThresholdRecord:
    """What the projection publishes of a context after its first window."""
    window = {"previous": 0.92, "ema": 0.88, "success_rate": 1.0, "windows": 1, "outcomes": 50}
    told = {"state": "converged", "reason": "tuned", "changed_at": "2023-11-14T22:13:20.000000Z"}
    return ThresholdRecord.model_validate({**scope_of(key), "value": value, **window, **told})


def _schema(value: dict[str, Any]) -> dict[str, Any]:
    given = value.get("properties", {})
    properties = {name: kind if isinstance(kind, dict) else {"type": kind} for name, kind in given.items()}
    return {"type": "object", **value} | ({"properties": properties} if given else {})


def _json(value: dict[str, Any]) -> str:
    shown = {name: item for name, item in value.items() if name not in {"type", "version", "tenant"}}
    return json.dumps(shown, ensure_ascii=False)
