"""One installation on one loop: broker, network, groups, processes that die and come back, tools, readers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import product
from random import Random
from typing import Any

from aiokafka.errors import KafkaError

from pml.processors.speculation.branches import branch_key
from pml.processors.workflow import Catalog, encode_session
from pml.schemas.calls import CallRun
from pml.schemas.catalog import BranchStats, CatalogRecord, SpeculationSwitch
from pml.schemas.codec import decode_call, decode_claim, encode
from pml.schemas.errors import BrokerUnavailable, UndecodableRecord, UnknownMessage
from pml.schemas.identifiers import session_key
from pml.streams.bridge.role import first_error
from pml.streams.connection import partition_for
from pml.streams.crash_points import passing
from pml.streams.log.append import InDoubt
from tests.simulation import bridge, orchestrator
from tests.simulation.arrivals import Arrivals
from tests.simulation.bridge import BridgeProcess
from tests.simulation.broker import Broker, Draft
from tests.simulation.faust_double import CHANGELOG
from tests.simulation.groups import Group
from tests.simulation.ledger import Ledger
from tests.simulation.loop import OUTSIDE, PROCESS, Killed, Process, SimulatedLoop
from tests.simulation.network import Network
from tests.simulation.observer import Observer
from tests.simulation.orchestrator import OrchestratorProcess
from tests.simulation.plays import Plot
from tests.simulation.promises import Promises
from tests.simulation.servers import Hands
from tests.simulation.settings import BEGAN_MS, NUMBERS, TENANTS, policy, settings
from tests.simulation.tools import Toolbox, ToolSpec
from tests.simulation.world import World

EXPECTED_ENDS = (InDoubt, BrokerUnavailable, KafkaError)
RESTART_S = (0.2, 4.0)
PAUSE_S = (0.3, 14.0)
# Two seconds, and what a look of the bridge and a slow way to the broker may take.
SWITCH_S = 3.2
# How old a catalog may be when its decision counts: without faults of processes, and with them.
QUICK_S, SLOW_S = 3.0, 40.0


class Stage:
    """Everything of one seed. `quiet` ends all faults.

    Attributes:
        jump_ms, stands_ms: how far the broker's clock is ahead, and where it stands if it does.
        orchestrators, bridges: what runs, by process.
    """

    def __init__(self, seed: str, plot: Plot, mode: str, loop: SimulatedLoop, toolbox: Toolbox) -> None:
        self.plot, self.loop, self.toolbox = plot, loop, toolbox
        self.random = Random(f"{seed}/stage")
        self.settings = settings()
        self.topics = self.settings.topics
        self.policy = policy(Random(f"{seed}/policy"), mode, deep=plot.narrow)
        self.ledger = Ledger(loop)
        self.counts: Counter[str] = Counter()
        self.points: Counter[str] = Counter()
        self.jump_ms = 0
        self.stands_ms: int | None = None
        self.quiet = False
        self.world = World()
        self.broker = Broker(self.log_ms)
        losses = {CHANGELOG if n == "changelog" else f"pml.{n}": share for n, share in plot.losses.items()}
        self.network = Network(
            loop, self.broker, Random(f"{seed}/network"), faulty=losses, counts=self.counts
        )
        self.hands = Hands(
            loop, Random(f"{seed}/tools"), self.world, toolbox, plot.troubles, counts=self.counts
        )
        self.observer = Observer(self.broker, self.topics, self.ledger, self.policy.hash_key)
        self.observer.patience_s = 2.0 if plot.patience_s == QUICK_S else SLOW_S
        self.observer.session_ttl_ms = self.policy.session_ttl_ms
        snapshots_s = QUICK_S if plot.patience_s == QUICK_S else SLOW_S
        self.promises = Promises(
            self.observer, self.ledger, self.world, toolbox, self.policy, snapshots_s=snapshots_s
        )
        self.groups = {
            name: Group(name, loop, NUMBERS, self.failed, counts=self.counts)
            for name in ("orchestrator", "bridge")
        }
        self.orchestrators: dict[Process, OrchestratorProcess] = {}
        self.bridges: dict[Process, BridgeProcess] = {}
        self.arrivals = Arrivals(self.promises, self.claimed)
        self.reached = self.arrivals.reached
        self.woken_s: dict[Process, float] = {}
        self.taken_away: dict[str, dict[str, Any]] = {}
        self.switched, self.switched_s = "on", 0.0
        self._looked: dict[int, int] = {}
        self._published: dict[bytes, bytes] = {}
        self.hands.on_run = self._reached_tool

    # ---- time

    def now_ms(self) -> int:
        """The wall clock of every process."""
        return BEGAN_MS + round(self.loop.time() * 1000)

    def log_ms(self) -> int:
        """The broker's clock."""
        return self.now_ms() + self.jump_ms if self.stands_ms is None else self.stands_ms

    # ---- processes

    def open(self) -> None:
        """Start what the plot names."""
        self.publish()
        self.publish_experience()
        for group in self.groups.values():
            self.loop.spawn(self.loop.process("broker"), group.watch())
        for _ in range(self.plot.orchestrators):
            self.start_orchestrator()
        for _ in range(self.plot.bridges):
            self.start_bridge()

    def start_orchestrator(self) -> None:
        """A new worker with the role."""
        process = self._new("orchestrator")
        place = orchestrator.Place(
            settings=self.settings,
            network=self.network,
            group=self.groups["orchestrator"],
            random=self.random,
            empty=Catalog(self.policy),
            now_ms=self.now_ms,
            fail=lambda error: self.failed(process, error),
        )
        worker = OrchestratorProcess(place, self.promises.snapshots)
        self.orchestrators[process] = worker
        self._spawn(process, worker.run())

    def start_bridge(self) -> None:
        """A new worker with the role."""
        process = self._new("bridge")
        place = bridge.Place(
            settings=self.settings,
            network=self.network,
            group=self.groups["bridge"],
            hands=self.hands,
            mode=self.policy.speculation_mode,
            now_ms=self.now_ms,
            fail=lambda error: self.failed(process, error),
        )
        worker = BridgeProcess(place)
        self.bridges[process] = worker
        self._spawn(process, worker.run())

    def kill(self, process: Process) -> None:
        """The process is gone; another one comes in its place, soon or after the group's time-out."""
        if not process.alive:
            return
        self.ledger.note(f"{process.name} killed")
        self.loop.kill(process)
        again = self.start_orchestrator if process in self.orchestrators else self.start_bridge
        delay_s = 0.5 if self.quiet else self.random.uniform(*RESTART_S)
        self.loop.outside(delay_s, again)

    def pause(self, process: Process) -> None:
        """The process stands still for a while, often longer than its group waits for it."""
        if process.paused or not process.alive:
            return
        self.ledger.note(f"{process.name} paused")
        self.loop.pause(process)
        self.loop.outside(self.random.uniform(*PAUSE_S), self.wake, process)

    def wake(self, process: Process) -> None:
        """It goes on."""
        if process.paused:
            self.ledger.note(f"{process.name} wakes")
            self.woken_s[process] = self.loop.time()
            self.loop.resume(process)

    def failed(self, process: Process, error: BaseException) -> None:
        """A role ended by itself: a broker that is away may do that, anything else is a defect."""
        error = first_error(error) if isinstance(error, BaseExceptionGroup) else error
        if not process.alive or isinstance(error, (Killed, asyncio.CancelledError)):
            return
        if isinstance(error, EXPECTED_ENDS):
            self.counts["role ended itself, broker away"] += 1
            self.kill(process)
        else:
            self.ledger.fail("no role ends by a defect", f"{process.name}: {error!r}")

    def living(self, kind: str) -> list[Process]:
        """Processes of a kind that live and do not stand still."""
        known: Any = self.orchestrators if kind == "orchestrator" else self.bridges
        return [process for process in known if process.alive and not process.paused]

    def be_quiet(self) -> None:
        """Nothing goes wrong any more."""
        self.quiet = self.network.quiet = self.hands.quiet = True
        self.jump_ms, self.stands_ms = 0, None
        self.ledger.note("faults stop")
        for process in [*self.orchestrators, *self.bridges]:
            self.wake(process)

    def _new(self, kind: str) -> Process:
        known: Any = self.orchestrators if kind == "orchestrator" else self.bridges
        process = self.loop.process(f"{kind}-{len(known) + 1}")
        self.ledger.note(f"{process.name} starts")
        return process

    def _spawn(self, process: Process, work: Any) -> None:
        before = passing.set(lambda name: self._passed(process, name))
        running = self.loop.spawn(process, work)
        running.add_done_callback(partial(self._ended, process), context=OUTSIDE.copy())
        passing.reset(before)

    def _ended(self, process: Process, running: asyncio.Task[Any]) -> None:
        """A worker that cannot even start ends, and whatever started it starts it again."""
        if not running.cancelled() and (error := running.exception()) is not None:
            self.failed(process, error)

    def _passed(self, process: Process, point: str) -> None:
        """A named kill point."""
        self.points[point] += 1
        if point == "orchestrator.after_calls":
            self.compare(process)
        dice = 1.0 if self.quiet else self.random.random()
        if dice < self.plot.kills:
            self.counts[f"killed at {point}"] += 1
            self.kill(process)
            raise Killed
        if dice < self.plot.kills + self.plot.pauses:
            self.counts[f"paused at {point}"] += 1
            self.pause(process)

    # ---- the catalog

    def publish(self) -> None:
        """What the bridge that owns partition 0 would publish now."""
        for record in self.toolbox.records():
            self.publish_record(record)

    def publish_experience(self) -> None:
        """What was learned before: how often branches were taken, and thresholds that somebody set."""
        random = self.random
        for tenant, kind, number in product(TENANTS, ("notes", "report", "build"), range(1, 4)):
            counts = {random.choice(["true", "false", "case:even"]): random.choice([0, 3, 9, 10, 11, 200])}
            name = f"d{number}"
            data = BranchStats(tenant=tenant, workflow_type=kind, decision_id=name, counts=counts)
            key = branch_key(tenant, kind, name)
            self.publish_record(CatalogRecord(kind=data.KIND, id=key, data=data))

    def publish_record(self, record: CatalogRecord) -> None:
        """One record, if it says something new."""
        value = encode(record)
        if self._published.get(record.key) != value:
            self._published[record.key] = value
            self.broker.append((self.topics.catalog, 0), [Draft(record.key, value)])

    def switch(self, mode: Any, scope: str = "speculation") -> None:
        """`pml speculation on|off|shadow`, for all or for a scope."""
        data = SpeculationSwitch(mode=mode)
        self.publish_record(CatalogRecord(kind="switch", id=scope, data=data))

    def newest_term(self, number: int) -> int:
        """The newest counted `partition.taken` of a partition."""
        return self.observer.terms.get(number, -1)

    # ---- looking at what runs

    def _reached_tool(
        self, spec: ToolSpec, arguments: Mapping[str, Any], call_id: str, early: bool, session: str
    ) -> None:
        """A call has come to its tool."""
        check = self.ledger.check
        self.arrivals.look(spec, arguments, call_id, early)
        check("a call does not run twice at once in one bridge", not self.hands.is_running(call_id), call_id)
        process = PROCESS.get()
        if early and process is not None and self.switched == "off":
            since_s = self.loop.time() - max(self.switched_s, self.woken_s.get(process, 0.0))
            check("a switch holds within two seconds", since_s <= SWITCH_S, f"{call_id} {since_s:.1f} s")
        again = self.hands.has_run(call_id) and self.plot.patience_s == QUICK_S
        check("a bridge runs no call that it answered", not again, call_id)
        self.look_at_slots(process)

    def claimed(self) -> set[str]:
        """Calls with a claim that counts."""
        records = self.broker.records(self.topics.call_claims)
        counted = [r for r in records if dict(r.headers).get("pml-offset") == b"%d" % r.offset]
        return {decode_claim(record.value).call_id for record in counted}

    def look_at_slots(self, process: Process | None) -> None:
        """Slots are bounded, and no real call waits behind a speculative one."""
        worker = self.bridges.get(process) if process else None
        if worker is None or worker.admission is None:
            return
        admission, check = worker.admission, self.ledger.check
        check("bounds: slots of a bridge", admission.running <= self.settings.bridge.concurrency, "")
        for name, lane in admission._lanes.items():
            check("bounds: slots of a server", lane.running <= lane.limit, name)
            early = [t for t in admission._running if t.speculative and t.server == name]
            check("bounds: speculative slots", len(early) <= max(1, lane.limit - 1), name)

    def look_around(self) -> None:
        """What must hold at any moment, looked at now and then."""
        for process in self.living("bridge"):
            self._look_at_bridge(process)
        for process in self.living("orchestrator"):
            self._look_at_orchestrator(process)
        for number in NUMBERS:
            self._look_at_commits(number)
        patience_s = self.plot.patience_s
        for key in self.observer.live():
            self._look_at_calls(key, patience_s)

    def _look_at_bridge(self, process: Process) -> None:
        worker, check = self.bridges[process], self.ledger.check
        self.look_at_slots(process)
        if worker.admission is None or worker.partitions is None:
            return
        admission = worker.admission
        for name, lane in admission._lanes.items():
            early = any(
                t.speculative and t.server == name and t not in admission._leaving for t in admission._running
            )
            may_start = sum(admission._session_free(ticket.session) > 0 for ticket in lane.real)
            leaving = sum(ticket.server == name for ticket in admission._leaving)
            blocked = early and may_start > leaving and lane.running >= lane.limit
            check("a real call never waits behind a speculative one", not blocked, process.name)
        for part in worker.partitions.all():
            self.observer.handled(part.number, part.watermark.position)
            most = self.settings.bridge.partition_in_flight_max
            check("bounds: calls of a partition in flight", len(part.watermark) <= most + 1, process.name)

    def _look_at_commits(self, number: int) -> None:
        """Whatever lies below the low watermark of the calls is answered, or claimed."""
        topic = self.topics.tool_calls
        committed = self.broker.committed.get(("bridge", topic, number), 0)
        done = self._looked.get(number, 0)
        claimed = self.claimed() if committed > done else set()
        for record in self.broker.lane((topic, number)).records[done:committed]:
            call_id = call_of(record.value)
            settled = call_id is None or call_id in self.observer.outcomes or call_id in claimed
            self.ledger.check("what is committed is answered", settled, lambda c=call_id: c)
        self._looked[number] = max(done, committed)

    def _look_at_orchestrator(self, process: Process) -> None:
        worker, check = self.orchestrators[process], self.ledger.check
        for part in worker.ownership.all if worker.ownership else []:
            ours = self.observer.owners.get((part.number, part.term)) == process.name
            check("a term is where its owner took the partition", ours or not part.ready, process.name)
            limit = self.settings.orchestrator.queue_bytes + self.settings.orchestrator.chunk_bytes
            check("bounds: bytes of a queue", part.inbox.size <= limit, process.name)
            limit = self.settings.orchestrator.payload_cache_bytes
            check("bounds: bytes of payloads", part.shell.payloads.size <= limit, process.name)

    def _look_at_calls(self, key: bytes, patience_s: float) -> None:
        """Whatever must be running was sent to the bridge (rule 5)."""
        life = self.observer.lives[key]
        assert life.session is not None
        for run in life.session.runs.values():
            for task in run.tasks.values() if run.live else ():
                if task.status != "running" or task.call is None:
                    continue
                call_id = task.call.call_id
                young = self.loop.time() - self.observer.calls[call_id].at_s < patience_s
                check = self.ledger.check
                check("what must be running was sent", young or call_id in self.observer.sent, call_id)

    def compare(self, process: Process, everything: bool = False) -> None:
        """The states that an owner has in memory are what any reader folds, byte for byte."""
        worker = self.orchestrators[process]
        if worker.ownership is None:
            return
        for part in worker.ownership.all:
            lane = self.broker.lane((self.topics.events, part.number))
            if not part.ready or part.end != lane.end:
                continue
            for key, life in self.observer.lives.items():
                if life.session is None or partition_for(key) != part.number:
                    continue
                if everything or life.session.last_offset >= part.end - 8:
                    own = part.states.get(key)
                    same = own is not None and encode_session(own) == encode_session(life.session)
                    self.ledger.check(
                        "an owner's state is what the log folds to",
                        same,
                        lambda k=key: f"{process.name} {k!r}",
                    )


def call_of(value: bytes | None) -> str | None:
    """The call that a record asks to run; None for a cancel and for what cannot be read."""
    try:
        message = decode_call(value)
    except (UndecodableRecord, UnknownMessage):
        return None
    return message.call_id if isinstance(message, CallRun) else None


def key_of(tenant: str, session_id: str) -> bytes:
    """The key of a session."""
    return session_key(tenant, session_id)
