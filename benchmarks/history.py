"""A log as real sessions leave it: workflows drawn with a seed, decided by the core itself."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from pml.processors.workflow import Address, Catalog, Input, Policy, Session, decide, needs
from pml.schemas.calls import CallEnded, CallError, CallRun, ToolResult
from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, Tool, ToolHints
from pml.schemas.codec import encode
from pml.schemas.commands import Command, RunStart
from pml.schemas.events import Event
from pml.schemas.identifiers import session_key
from pml.schemas.permissions import PermissionFile
from pml.schemas.times import to_rfc3339
from pml.schemas.topics import SESSION_PARTITIONS, Topics
from pml.schemas.workflow import Workflow
from pml.streams.connection import partition_for

START_MS = 1_700_000_000_000
HASH_KEY = b"the key of measured histories ..."
SERVERS = ("files", "git", "search", "tickets")
READS, WRITES = ("read", "list", "find", "show", "parse"), ("write", "close")
FAILURE_SHARE = 0.03
WRITE_SHARE = 0.1
RUNS_PER_SESSION = 3
LAYERS = (2, 5)
LAYER_TASKS = (1, 4)
TEXT_BYTES = (40, 1_200)
TOOL_MS = (2, 400)
TOPICS = Topics()


def catalog(**policy: Any) -> Catalog:
    """Four servers of seven tools each, all approved."""
    found = Catalog(Policy(hash_key=HASH_KEY, **policy))
    entries: dict[str, Any] = {}
    for server in SERVERS:
        tools = tuple(Tool(name=name, hints=ToolHints(), definition=name) for name in (*READS, *WRITES))
        data = ServerTools(server=server, status="listed", tools=tools)
        found = found.with_record(CatalogRecord(kind="tool", id=server, data=data))
        touches = [f"{server}:{{path}}"]
        entries |= {f"{server}:{name}": {"scope": "readonly", "touches": touches} for name in READS}
        entries |= {f"{server}:{name}": {"scope": "filesystem", "touches": touches} for name in WRITES}
    file = PermissionFile.model_validate(
        {"tools": {name: {**entry, "approval": "auto"} for name, entry in entries.items()}}
    )
    record = PermissionRecord(file=file, hash="measured")
    return found.with_record(CatalogRecord(kind="permission", id="file", data=record))


def history(events: int, seed: int, start_ms: int = START_MS) -> dict[int, list[Event]]:
    """At least so many events by partition, each at the offset that it was decided for."""
    drawn, snapshot = random.Random(seed), catalog()
    log: dict[int, list[Event]] = {number: [] for number in range(SESSION_PARTITIONS)}
    written = 0
    while written < events:
        session = LiveSession(f"ses_{drawn.getrandbits(64):016x}", snapshot, drawn, time_ms=start_ms)
        partition = log[session.partition]
        while not session.ended:
            decided = session.step(len(partition))
            partition.extend(decided)
            written += len(decided)
    return log


@dataclass
class Inputs:
    """The inputs of one partition of an installation: key and value of each, at its offset."""

    topics: Topics
    partition: int
    records: dict[str, list[tuple[bytes, bytes]]] = field(default_factory=lambda: defaultdict(list))

    def put(self, topic: str, key: bytes, message: Command | CallEnded) -> int:
        """Keep an input; its offset."""
        self.records[topic].append((key, encode(message)))
        return len(self.records[topic]) - 1


@dataclass
class LiveSession:
    """One session: its runs one after another, its calls answered in the order they were made."""

    session_id: str
    catalog: Catalog
    drawn: random.Random
    state: Session | None = None
    time_ms: int = START_MS
    payloads: dict[Address, Any] = field(default_factory=dict)
    calls: deque[CallRun] = field(default_factory=deque)
    runs: int = 0
    inputs: Inputs | None = None
    _decided_inputs: int = 0

    @property
    def key(self) -> bytes:
        """The key of its records."""
        return session_key("local", self.session_id)

    @property
    def partition(self) -> int:
        """Where its records lie."""
        return partition_for(self.key)

    @property
    def ended(self) -> bool:
        """Whether all its runs have ended."""
        return not self.calls and self.runs == RUNS_PER_SESSION

    def step(self, log_end: int) -> tuple[Event, ...]:
        """Decide its next input: the events, the first one at this offset."""
        topics = self.inputs.topics if self.inputs else TOPICS
        if self.calls:
            return self._decided(topics.tool_outcomes, self._answer(self.calls.popleft()), log_end)
        self.runs += 1
        return self._decided(topics.commands, self._start(self.runs - 1), log_end)

    def _decided(self, topic: str, message: Command | CallEnded, log_end: int) -> tuple[Event, ...]:
        self._decided_inputs += 1
        self.time_ms += self.drawn.randint(1, 50)
        place = (0, self._decided_inputs)
        if self.inputs is not None:
            place = self.inputs.partition, self.inputs.put(topic, self.key, message)
        given = Input(topic, *place, self.time_ms, "local", self.session_id, message)
        self.payloads[given.address] = message.data if isinstance(message, Command) else message.result
        wanted = {address: self.payloads[address] for address in needs(self.state, given)}
        step = decide(self.state, given, wanted, self.catalog, log_end)
        self.state = step.session
        self.calls.extend(step.calls)
        return step.events

    def _start(self, number: int) -> Command:
        run_id = f"run_{self.session_id}_{number}"
        return Command(
            type=RunStart.TYPE,
            command_id=f"cmd_{run_id}",
            session_id=self.session_id,
            run_id=run_id,
            data=RunStart(workflow=Workflow.model_validate(drawn_workflow(self.drawn))),
        )

    def _answer(self, call: CallRun) -> CallEnded:
        failed = self.drawn.random() < FAILURE_SHARE
        text = "".join(self.drawn.choices("abcdefgh \n", k=self.drawn.randint(*TEXT_BYTES)))
        return CallEnded(
            call_id=call.call_id,
            tenant="local",
            session_id=self.session_id,
            status="error" if failed else "ok",
            result=None if failed else ToolResult(structured={"text": text, "path": f"p{len(text) % 7}"}),
            error=CallError(code="TOOL_FAILED", message="it failed") if failed else None,
            started_at=to_rfc3339(self.time_ms),
            duration_ms=float(self.drawn.randint(*TOOL_MS)),
        )


def drawn_workflow(drawn: random.Random) -> dict[str, Any]:
    """A few layers of a few calls; half of them take an argument from the layer before."""
    tasks: list[dict[str, Any]] = []
    before: list[str] = []
    for _ in range(drawn.randint(*LAYERS)):
        layer = [
            _task(f"n{len(tasks) + number}", before, drawn) for number in range(drawn.randint(*LAYER_TASKS))
        ]
        tasks += layer
        before = [task["id"] for task in layer]
    return {"name": f"workflow {len(tasks)}", "tasks": tasks}


def _task(name: str, before: list[str], drawn: random.Random) -> dict[str, Any]:
    tool = drawn.choice(WRITES if drawn.random() < WRITE_SHARE else READS)
    arguments: dict[str, Any] = {"path": f"folder/{drawn.randint(0, 50)}.md"}
    if before and drawn.random() < 0.5:
        reference = f"{drawn.choice(before)}.path"
        arguments["path"] = {"type": "reference", "expression": reference}
    return {
        "id": name,
        "tool": f"{drawn.choice(SERVERS)}:{tool}",
        "arguments": arguments,
        "depends_on": before,
        "safe_to_fail": True,
    }
