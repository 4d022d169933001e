"""What a session is between two inputs: small, immutable, no payloads (DESIGN §3, State)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pml.processors.workflow.graph import Graph, Node
from pml.processors.workflow.inputs import Address
from pml.schemas.calls import Effect
from pml.schemas.events import ServedBy, SpeculationKind
from pml.schemas.permissions import RetryRule
from pml.schemas.structure import Language
from pml.schemas.workflow import OnTimeout

RunStatus = Literal["running", "waiting", "completed", "failed", "aborted"]
TaskStatus = Literal["pending", "running", "completed", "failed", "skipped", "unknown"]
Isolation = Literal["shared", "tenant", "session"]
UNNAMED = "default"
"""The workflow type, domain or user of what names none."""
ENDED: frozenset[TaskStatus] = frozenset({"completed", "failed", "skipped", "unknown"})


@dataclass(frozen=True, slots=True)
class Call:
    """A call as its starting event fixed it.

    `mapped` has the arguments that a field of a result was chosen for, and the field.
    """

    call_id: str
    started_seq: int
    started_ms: int
    arguments_hash: str
    effect: Effect
    touches: tuple[str, ...]
    cacheable: bool
    ttl_ms: int
    timeout_ms: int
    deadline_ms: int
    definition: str
    isolation: Isolation
    mapped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's word that a task waits for, or has: for exactly these arguments and this definition.

    Without a hash it is for whatever arguments the call turns out to have.
    """

    approval_id: str
    arguments_hash: str
    definition: str
    expires_ms: int
    granted: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A person is asked about several calls before any of them begins.

    `calls` has the hash of the arguments, empty where they are not known yet, and the definition of each, by
    task; of a program in the sandbox by tool.
    """

    approval_id: str
    expires_ms: int
    calls: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Pause:
    """A run waits at a checkpoint; `following` is the layer that a decision to go on releases."""

    checkpoint_id: str
    following: int
    deadline_ms: int
    on_timeout: OnTimeout


@dataclass(frozen=True, slots=True)
class Abort:
    """Somebody stopped a run whose unsafe calls are still awaited."""

    code: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Waits:
    """What a run waited for so far; most runs never do.

    `checkpoints` counts those reached, `cleared` is the layer that the last decision released, `errors`
    how many tasks had failed when somebody was asked last, `since_ms` when the run began to wait,
    `replanned` the seq of the newest replan. `asked` holds everything up that has not begun; `consents` is
    what came of it, by task, or by tool.
    """

    checkpoints: int = 0
    cleared: int = -1
    errors: int = 0
    since_ms: int | None = None
    pause: Pause | None = None
    abort: Abort | None = None
    replanned: int = -1
    asked: Asked | None = None
    consents: Mapping[str, Approval] = field(default_factory=dict)


NO_WAITS = Waits()


@dataclass(frozen=True, slots=True)
class TaskState:
    """How far a task is. A task without a record is pending.

    `skip_reason` is set where it was skipped; `retry_ms` where it waits for its next attempt; `barred`
    where its speculation failed or expired and is not begun again; `replaces` where it was speculated with
    other arguments and its own result may take that one's place in the cache; `earlier` counts the attempts
    that are none of its own: before it was opened again, or that it had joined; `crossed` where another write
    of what it changes ran beside it; `held` where shadow mode would have had no budget for it; `eligible`
    where its call may run early, and `speculated` where one was begun for it; `error` has code, type and
    message of a failure that a program may catch.
    """

    status: TaskStatus = "pending"
    attempt: int = 0
    call: Call | None = None
    retry: RetryRule | None = None
    retry_ms: int | None = None
    served_by: ServedBy = "call"
    serves: int | None = None
    speculable: bool = False
    barred: bool = False
    replaces: bool = False
    result: Address | None = None
    skip_reason: str = ""
    earlier: int = 0
    approval: Approval | None = None
    crossed: bool = False
    held: bool = False
    eligible: bool = False
    speculated: bool = False
    error: tuple[str, str, str] | None = None

    @property
    def awaits_approval(self) -> bool:
        """Whether a person has been asked and has not answered."""
        return self.approval is not None and not self.approval.granted

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.status in ENDED


PENDING = TaskState()


@dataclass(frozen=True, slots=True)
class Source:
    """A waiting result that arguments of a deeper speculation were taken from."""

    task_id: str
    call_id: str
    result: Address


@dataclass(frozen=True, slots=True)
class Speculation:
    """A call that began before it was asked for, and later its result in the cache.

    `served` after its first use; `stale` where a write overtook it while a task had joined it, so
    that nobody else may be served by it. A predicted one is of the run after which it was predicted, which
    has no such task: `plan` says where its arguments are written down.
    """

    run_id: str
    task_id: str
    tool: str
    kind: SpeculationKind
    confidence: float
    call: Call
    status: Literal["running", "ready"] = "running"
    served: bool = False
    stale: bool = False
    result: Address | None = None
    result_hash: str = ""
    result_bytes: int = 0
    tool_ms: float = 0.0
    expires_ms: int = 0
    sources: tuple[Source, ...] = ()
    plan: Address | None = None

    def began_for(self, run_id: str) -> bool:
        """Whether it is for a task of this run; a predicted call is for none of the run that it comes after.

        Such a run may be taken up again meanwhile, and have a task of the same name.
        """
        return self.plan is None and self.run_id == run_id


@dataclass(frozen=True, slots=True)
class Verification:
    """A tool that is called again after its early result was served; `sources` are results that it reads."""

    run_id: str
    task_id: str
    tool: str
    kind: SpeculationKind
    confidence: float
    started_seq: int
    result_hash: str
    call: Call
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A tool is asked whether an unsafe call of unknown outcome happened: from `due_ms` on, once.

    `call` is there as soon as it is asked, and with it the `tool`, the `template` of its arguments and what
    must hold of its answer to say that the call was `done`.
    """

    run_id: str
    task_id: str
    due_ms: int
    tool: str = ""
    template: Mapping[str, Any] = field(default_factory=dict)
    done: str = ""
    call: Call | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A call that would have begun early: in shadow mode, or with a little more confidence."""

    seq: int
    planned_ms: int
    shadow: bool
    kind: SpeculationKind
    confidence: float
    threshold: float
    arguments_hash: str
    touches: tuple[str, ...]
    expires_ms: int


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A predicted call that was planned only: for want of a little confidence, or in shadow mode."""

    run_id: str
    task_id: str
    tool: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class Element:
    """A run of a session that completed, as prediction sees it: a capability, or the tool of its one task.

    `payload` is its command, `results` where what its tasks gave rests.
    """

    name: str
    payload: Address
    results: tuple[tuple[str, Address], ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """What speculation did for a run, for its last event."""

    hits: int = 0
    misses: int = 0
    wasted: int = 0
    saved_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One execution; what is learned is learned per type and domain.

    `graph` is absent once it has ended, unless it may be taken up again. `sandbox` is the language of a
    program that is no DAG, whose calls are its layers. Where it `predicts`, its end is an element of the
    session, and it is asked what comes next.
    """

    run_id: str
    status: RunStatus
    payload: Address
    payload_hash: str
    started_ms: int
    deadline_ms: int
    speculation: Literal["on", "shadow", "off"]
    principal: str
    command_id: str
    traceparent: str | None
    graph: Graph | None
    layer: int = -1
    tasks: Mapping[str, TaskState] = field(default_factory=dict)
    decisions: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    counts: Counts = Counts()
    first_failure: str = ""
    workflow_type: str = UNNAMED
    domain: str = UNNAMED
    waits: Waits = NO_WAITS
    plans: Mapping[str, Plan] = field(default_factory=dict)
    replans: tuple[Address, ...] = ()
    capability_id: str | None = None
    sandbox: Language | None = None
    predicts: bool = False

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self.status in {"running", "waiting"}

    @property
    def expansions(self) -> tuple[Address, ...]:
        """Those of the plans that are no command: what a program turned out to do.

        Calls out of a sandbox are given all that they need, so nothing more of those is read.
        """
        if self.sandbox is not None:
            return ()
        return tuple(address for address in self.replans if address[0] != self.payload[0])

    def written_at(self, plan: int) -> Address:
        """Where the command rests that wrote down a plan: the start, or a replan by its number."""
        return self.replans[plan - 1] if plan else self.payload

    @property
    def unknown(self) -> tuple[str, ...]:
        """The tasks of which nobody knows whether they happened."""
        return tuple(name for name, task in self.tasks.items() if task.status == "unknown")

    def unreleased(self, task_id: str) -> bool:
        """Whether nothing was begun for a task yet, not even its question to a person."""
        task = self.task(task_id)
        return task.status == "pending" and task.attempt == task.earlier and task.approval is None

    @property
    def held(self) -> bool:
        """Whether nothing new begins before somebody has decided."""
        return self.waits.pause is not None or self.waits.asked is not None

    def open_approvals(self) -> Iterator[str]:
        """The requests that no person has answered yet."""
        if self.waits.asked is not None:
            yield self.waits.asked.approval_id
        for task in self.tasks.values():
            if task.approval is not None and task.awaits_approval:
                yield task.approval.approval_id

    def task(self, task_id: str) -> TaskState:
        """How far a task is."""
        return self.tasks.get(task_id, PENDING)

    def tolerates(self, task_id: str) -> bool:
        """Whether the failure of a task of a live run does not fail the run."""
        assert self.graph is not None
        return self.graph.tolerates(task_id)

    def node(self, task_id: str) -> Node:
        """The definition of a task of a live run."""
        assert self.graph is not None
        return self.graph.nodes[task_id]


@dataclass(frozen=True, slots=True)
class Accounts:
    """Every speculation ever started in this life, by what became of it (DESIGN §4, Accounts).

    `planned` and what begins with `shadow` are what shadow mode would have begun and wasted.
    """

    started: int = 0
    served: int = 0
    discarded: int = 0
    failed: int = 0
    waste_hour: int = 0
    wasted_ms: float = 0.0
    planned: int = 0
    shadow_hour: int = 0
    shadow_wasted_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Internal:
    """A call of the built-in server `pml` that was not answered yet; the event that began it has it all."""

    call_id: str
    run_id: str
    tool: str
    arguments: Mapping[str, Any]
    timeout_ms: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Session:
    """One agent conversation of a tenant, in one life (epoch).

    `obeyed` holds the hash of each command that settled something, by its id (rule 4); `scores` that of each
    `run.score`, apart, so that who judges takes no room from who decides.
    `internals` are calls of the server `pml` that run, by call id. `influences` is what memory answered to
    live runs: by run and tool, what the past adds to a confidence. `inquiries` are by the unknown call.
    `paces` is how long tools took last of which shadow mode planned a call, in milliseconds. `past` are its
    latest elements, the latest last; `foreseen` what is predicted and was not begun, by run and task.
    """

    tenant: str
    session_id: str
    epoch: int
    seq: int
    last_offset: int
    last_event_ms: int
    runs: Mapping[str, Run] = field(default_factory=dict)
    speculations: Mapping[str, Speculation] = field(default_factory=dict)
    doubtful: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    accounts: Accounts = Accounts()
    obeyed: Mapping[str, str] = field(default_factory=dict)
    internals: Mapping[str, Internal] = field(default_factory=dict)
    influences: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    verifications: Mapping[str, Verification] = field(default_factory=dict)
    inquiries: Mapping[str, Inquiry] = field(default_factory=dict)
    paces: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, str] = field(default_factory=dict)
    past: tuple[Element, ...] = ()
    foreseen: Mapping[str, Foreseen] = field(default_factory=dict)

    def hash_of(self, command_id: str) -> str | None:
        """The content of a command that was obeyed before, hashed; None where none of this id was."""
        return self.obeyed.get(command_id) or self.scores.get(command_id)

    @property
    def live(self) -> bool:
        """Whether a run of it has not ended, an answer is awaited, or a predicted call waits for its use."""
        awaited = bool(self.verifications or self.inquiries or self.internals)
        return awaited or self.predicts or any(run.live for run in self.runs.values())

    @property
    def predicts(self) -> bool:
        """Whether a predicted call is under way, or waits for its first use."""
        return any(entry.kind == "prediction" and not entry.served for entry in self.speculations.values())
