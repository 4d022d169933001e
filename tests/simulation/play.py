"""One seed from its first command to its last check."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from pml.processors.workflow import decode_session, definition_record, encode_session, evolve
from pml.processors.workflow.record import definition_name
from pml.schemas.calls import task_value
from pml.schemas.codec import encode
from pml.schemas.commands import Code, Command, RunStart
from pml.schemas.workflow import Workflow
from pml.streams.connection import partition_for
from tests.simulation import faults
from tests.simulation.broker import Draft
from tests.simulation.datasets import real_workflow
from tests.simulation.diary import log_of
from tests.simulation.learning import look_at_lessons
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.loop import SimulatedLoop, Stuck
from tests.simulation.loop import play as play_loop
from tests.simulation.observer import Life, Observer
from tests.simulation.people import Decider
from tests.simulation.plays import Plot, plot_of
from tests.simulation.programs import SHARES, as_call, as_intent, as_program
from tests.simulation.settings import NUMBERS, session_names
from tests.simulation.stage import Stage, key_of
from tests.simulation.tools import Toolbox, usual_tools
from tests.simulation.workload import random_call, random_workflow
from tests.simulation.world import World

STEPS_MAX = 400_000
FAULTS_S = 22.0
LOOK_S = 0.4
REAL_SHARE = 0.2
CALL_SHARE, AGAIN_SHARE = 0.8, 0.5
# The longest run, the time of an unknown call, a clock that was ahead, and a broker that was away.
SETTLE_S = 170.0


@dataclass
class Result:
    """What one seed came to."""

    seed: int
    plot: str
    violation: Violation | None
    diary: list[tuple[float, str]]
    checks: Counter[str]
    faults: Counter[str]
    points: Counter[str]
    eligible: Counter[str]
    steps: int = 0
    events: int = 0
    void: int = 0
    virtual_s: float = 0.0
    seconds: float = 0.0
    results: dict[str, Any] = field(default_factory=dict)
    world: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """A run that somebody wants: of a workflow, a program, or what an intent means.

    `after` is the run that has to end before, `pause_s` how long ago.
    """

    at_s: float
    tenant: str
    session_id: str
    run_id: str
    workflow: dict[str, Any]
    after: str | None = None
    source: str = "drawn"
    pause_s: float = 0.0
    program: str | None = None
    intent: str | None = None

    @property
    def command(self) -> Command:
        """The command that asks for the run."""
        return Command(
            type="run.start",
            command_id=f"cmd_{self.run_id}",
            tenant=self.tenant,
            session_id=self.session_id,
            run_id=self.run_id,
            data=self._data,
        )

    @property
    def _data(self) -> RunStart:
        if self.program is None and self.intent is None:
            return RunStart(workflow=Workflow.model_validate(self.workflow))
        options, context = self.workflow["options"], self.workflow["context"]
        if self.intent is not None:
            asked: dict[str, Any] = {"intent": self.intent, "options": options}
        else:
            code = Code(source=self.program or "", language="python")
            asked = {"code": code, "options": options | {"decision_points": []}}
        return RunStart.model_validate({**asked, "context": context})


def play(seed: int, mode: str = "on", plot: Plot | None = None) -> Result:
    """Play one seed. A calm one is played again without speculation, and both are compared."""
    chosen = plot or plot_of(Random(f"{seed}/plot"))
    began = time.perf_counter()
    result = _played(seed, chosen, mode)
    if chosen.calm and mode == "on" and result.violation is None:
        _compare(result, _played(seed, chosen, "off"))
    result.seconds = time.perf_counter() - began
    return result


def _played(seed: int, plot: Plot, mode: str) -> Result:
    gc.collect()
    gc.freeze()  # what is kept from play to play would be walked through for a third of a play's time
    gc.disable()
    try:
        toolbox = usual_tools(Random(f"{seed}/tools"))
        loop = SimulatedLoop(Random(f"{seed}/loop"), STEPS_MAX)
        stage = Stage(str(seed), plot, mode, loop, toolbox)
        director = Director(stage, submissions(seed, plot, toolbox), seed)
        try:
            play_loop(loop, director.run())
        except Stuck as stuck:
            stage.ledger.fail("nothing spins or starves", str(stuck))
        return director.result(seed)
    finally:
        gc.enable()


def submissions(seed: int, plot: Plot, toolbox: Toolbox) -> list[Submission]:
    """The runs of a seed, by when they are wanted."""
    random = Random(f"{seed}/work")
    names = [item for number in NUMBERS for item in random.sample(session_names()[number], 4)]
    random.shuffle(names)
    found: list[Submission] = []
    for tenant, session_id in names[: random.randint(*plot.sessions)]:
        before: Submission | None = None
        for number in range(1, random.randint(*plot.runs) + 1):
            source, workflow = workflow_of(f"{seed}/workflow/{len(found)}", plot, toolbox)
            run_id = f"run_{session_id}_{number}"
            at_s = random.uniform(0.0, 6.0) if random.random() < 0.9 else random.uniform(10.0, 18.0)
            wanted = Submission(at_s, tenant, session_id, run_id, workflow, None, source)
            if plot.turns:
                wanted = in_turn(wanted, before, f"{seed}/turn/{len(found)}")
            else:
                wanted = through_a_door(wanted, f"{seed}/program/{len(found)}")
            if before is not None:
                wanted = replace(wanted, after=before.run_id)
            found.append(wanted)
            before = wanted if plot.calm or plot.turns else None
    return sorted(found, key=lambda item: item.at_s)


def in_turn(wanted: Submission, before: Submission | None, seed: str) -> Submission:
    """A while after the one before, and often the same once more."""
    random = Random(seed)
    again = before is not None and random.random() < AGAIN_SHARE
    workflow = before.workflow if before is not None and again else wanted.workflow
    return replace(wanted, at_s=0.0, workflow=workflow, pause_s=random.uniform(0.0, 0.8))


def through_a_door(wanted: Submission, seed: str) -> Submission:
    """The same calls asked for otherwise, now and then: by a program, an intent, a call of a capability."""
    random = Random(seed)
    chance = random.random()
    if wanted.source != "drawn":
        return wanted
    if chance < SHARES["program"]:
        return replace(wanted, source="program", program=as_program(wanted.workflow, random))
    if chance < SHARES["program"] + SHARES["intent"]:
        intent = as_intent(wanted.workflow)
        return replace(wanted, source="intent", intent=intent) if intent else wanted
    if chance < sum(SHARES.values()):
        return replace(wanted, source="call", workflow=as_call(wanted.workflow, f"{seed}/{wanted.run_id}"))
    return wanted


def workflow_of(seed: str, plot: Plot, toolbox: Toolbox) -> tuple[str, dict[str, Any]]:
    """A recorded workflow now and then, else a drawn one. In recorded ones chance decides what tasks see."""
    random = Random(seed)
    if plot.turns and random.random() < CALL_SHARE:
        return "drawn", random_call(random, toolbox, not plot.calm)
    if not (plot.calm or plot.narrow) and random.random() < REAL_SHARE:
        real = real_workflow(random, toolbox)
        if real is not None:
            return "recorded", real
    return "drawn", random_workflow(random, toolbox, not plot.calm, plot.narrow)


class Director:
    """Sends the commands, lets faults happen, waits for the end, and looks at everything once more."""

    def __init__(self, stage: Stage, wanted: list[Submission], seed: int) -> None:
        self.stage, self.wanted = stage, wanted
        self.people = Decider(stage, seed)
        self.sent = self.people.sent
        self.asked = 0
        self._ended_s: dict[str, float] = {}

    async def run(self) -> None:
        """The whole play."""
        stage = self.stage
        stage.open()
        acts = [asyncio.ensure_future(self._submit()), asyncio.ensure_future(self._trouble())]
        broken = asyncio.ensure_future(stage.ledger.broken.wait())
        ended = asyncio.ensure_future(self._until_settled())
        await asyncio.wait({broken, ended}, return_when=asyncio.FIRST_COMPLETED)
        for act in [*acts, broken, ended]:
            act.cancel()
        if stage.ledger.first is None:
            self._last_look()

    async def _submit(self) -> None:
        waiting = list(self.wanted)
        while waiting:
            now_s = self.stage.loop.time()
            ready = [item for item in waiting if item.at_s <= now_s and self._may_begin(item)]
            for item in ready:
                waiting.remove(item)
                self._send(item)
            await asyncio.sleep(0.05)

    def _may_begin(self, item: Submission) -> bool:
        if item.after is None:
            return True
        life = self.stage.observer.lives.get(key_of(item.tenant, item.session_id))
        run = life.session.runs.get(item.after) if life and life.session else None
        if run is None or run.live:
            return False
        now_s = self.stage.loop.time()
        return self._ended_s.setdefault(item.after, now_s) + item.pause_s <= now_s

    def _send(self, item: Submission) -> None:
        key = key_of(item.tenant, item.session_id)
        command = item.command
        self.sent.setdefault(key, set()).add(command.command_id)
        self.asked += 1
        self.stage.counts[f"workflow: {item.source}"] += 1
        place = (self.stage.topics.commands, partition_for(key))
        self.stage.broker.append(place, [Draft(key, encode(command))])

    async def _trouble(self) -> None:
        stage = self.stage
        while stage.plot.rate and not stage.quiet:
            await asyncio.sleep(stage.random.expovariate(stage.plot.rate))
            if not stage.quiet:
                faults.happen(stage)

    async def _until_settled(self) -> None:
        """Until every command is answered and every run has ended; then once more, when nobody acts."""
        await self._wait()
        self.stage.be_quiet()
        self.people.rest()
        await asyncio.sleep(1.0)
        await self._wait()

    async def _wait(self) -> None:
        stage = self.stage
        while not self._settled() or (stage.plot.rate and stage.loop.time() < 4.0):
            await asyncio.sleep(LOOK_S)
            stage.look_around()
            self.people.look()
            if not stage.quiet and stage.loop.time() > FAULTS_S:
                stage.be_quiet()
            if stage.loop.time() > FAULTS_S + SETTLE_S:
                stage.ledger.fail("nothing is stuck once faults stop", str(self._open()))
                return

    def _settled(self) -> bool:
        return not self._open()

    def _open(self) -> list[Any]:
        """Commands without an answer, and sessions with a run that has not ended."""
        observer = self.stage.observer
        answered = observer.answered
        asked = [(k, c) for k, ids in self.sent.items() for c in ids if c not in answered.get(k, set())]
        begun = self.asked >= len(self.wanted)
        return [*asked, *observer.live(), *([] if begun else ["not all commands were sent"])]

    def _last_look(self) -> None:
        stage = self.stage
        stage.ledger.check("nothing is stuck once faults stop", not self._open(), self._open)
        for process in stage.living("orchestrator"):
            stage.compare(process, everything=True)
        for life in stage.observer.lives.values():
            replay(stage.ledger, stage.random, life)
        effects_once(stage.ledger, stage.world)
        stage.promises.look_at_end()
        log, history = stage.broker.records(stage.topics.events), stage.observer.history
        look_at_lessons(stage.ledger, stage.random, log, history.values())
        letters = stage.broker.records(stage.topics.dead_letters)
        defects = [r for r in letters if dict(r.headers).get("pml-dlq-stage") == b"decide"]
        stage.ledger.check("no input is undecidable", not defects, lambda: defects[0])

    def result(self, seed: int) -> Result:
        """What came of it."""
        stage = self.stage
        return Result(
            seed=seed,
            plot=stage.plot.name,
            violation=stage.ledger.first,
            diary=self._diary(),
            checks=stage.ledger.counts,
            faults=stage.counts,
            points=stage.points,
            eligible=stage.promises.eligible,
            steps=stage.loop.steps,
            events=stage.observer.counted,
            void=stage.observer.void,
            virtual_s=stage.loop.time(),
            results=results_of(stage.observer),
            world=dict(stage.world.values),
        )

    def _diary(self) -> list[tuple[float, str]]:
        stage = self.stage
        lines = log_of(stage) + stage.ledger.diary if stage.ledger.first else stage.ledger.diary
        return sorted(lines, key=lambda line: line[0])


def replay(ledger: Ledger, random: Random, life: Life) -> None:
    """The log gives the same state, byte for byte, from its beginning and from any prefix."""
    if life.session is None:
        return
    wanted = encode_session(life.session)
    states: list[Any] = []
    definitions: dict[str, bytes] = {}
    folded = None
    for event in life.events:
        folded = evolve(folded, event)
        states.append(folded)
        name = definition_name(event)
        if name is not None:
            definitions[name] = definition_record(event)
    check = ledger.check
    check("a replay gives the same state", encode_session(states[-1]) == wanted, life.events[-1].id)
    for cut in {random.randrange(len(states)) for _ in range(4)}:
        state: Any = decode_session(encode_session(states[cut]), definitions.get)
        for event in life.events[cut + 1 :]:
            state = evolve(state, event)
        check(
            "a replay from any prefix gives the same state",
            encode_session(state) == wanted,
            life.events[cut].id,
        )


def effects_once(ledger: Ledger, world: World) -> None:
    """No call changed the world twice."""
    for call_id, ran in world.executions.items():
        writes = [execution for execution in ran if execution.wrote]
        ledger.check("an unsafe call has its effect at most once", len(writes) <= 1, call_id)


def results_of(observer: Observer) -> dict[str, Any]:
    """How each task and run ended, with the full value."""
    found: dict[str, Any] = {}
    for key, events in observer.history.items():
        for event in events:
            data: Any = event.data
            name = f"{key.decode()} {event.run_id} {getattr(data, 'task_id', '')}"
            if event.type == "task.completed":
                ref = data.result_ref
                outcome = observer.outcome_at((ref.topic, ref.partition, ref.offset))
                found[name] = task_value(outcome.result) if outcome.result else None
            elif event.type in {"task.skipped", "task.unknown"} or (
                event.type == "task.failed" and data.final
            ):
                found[name] = event.type
            elif event.type in {"run.completed", "run.failed", "run.aborted"}:
                found[name] = (event.type, sorted(data.executed_path), data.decisions)
    return found


def _compare(early: Result, plain: Result) -> None:
    """A run with speculation ends as one without it, and leaves the same world."""
    early.steps += plain.steps
    if plain.violation is not None:
        early.violation, early.diary = plain.violation, plain.diary
        return
    for name, one, other in (
        ("the same results as without speculation", early.results, plain.results),
        ("the same world as without speculation", early.world, plain.world),
    ):
        early.checks[name] += 1
        if one != other:
            differs = [k for k in one.keys() | other.keys() if one.get(k) != other.get(k)]
            told = "; ".join(f"{k}: {one.get(k)} but {other.get(k)}" for k in sorted(differs)[:3])
            early.violation = Violation(name, early.virtual_s, told)
