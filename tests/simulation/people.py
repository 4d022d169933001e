"""Who decides: an agent about runs that wait or failed, a person about calls that need a word.

They answer twice, too late, about the wrong thing, or not at all; a person never says what is not so.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from pml.processors.workflow import Session
from pml.processors.workflow.state import Run
from pml.schemas.codec import encode
from pml.schemas.commands import (
    ApprovalDecide,
    Command,
    CommandData,
    RunAbort,
    RunContinue,
    RunReplan,
    RunRetry,
    RunScore,
    TaskResolve,
)
from pml.schemas.identifiers import session_key
from pml.streams.connection import partition_for
from tests.simulation.broker import Draft
from tests.simulation.stage import Stage
from tests.simulation.tools import PATHS

AGENT, PERSON = "agent:somebody", "person:anna"
# Seconds that somebody thinks; longer than the shortest patience of a run.
THOUGHT_S = (0.1, 2.6)


class Decider:
    """Answers checkpoints. In a calm play it always goes on, so that the same run is the same again."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage, self._random = stage, Random(f"{seed}/people")
        # Of their own, so that who decides decides the same whether somebody judges or not.
        self._judges = Random(f"{seed}/judges")
        self._asked: set[tuple[bytes, str, str]] = set()
        self._numbers = 0
        self._plans = 0
        self._rests = False
        self.sent: dict[bytes, set[str]] = {}

    def rest(self) -> None:
        """Decide nothing more."""
        self._rests = True

    def look(self) -> None:
        """Begin to think about what waits and was not seen before; stop a run now and then."""
        for key, life in list(self._stage.observer.lives.items()):
            if life.session is not None:
                self._look_at(key, life.session)

    def _look_at(self, key: bytes, session: Session) -> None:
        for run in session.runs.values():
            pause = run.waits.pause
            if run.live and pause is not None and (key, run.run_id, pause.checkpoint_id) not in self._asked:
                self._asked.add((key, run.run_id, pause.checkpoint_id))
                self._think(key, run.run_id, pause.checkpoint_id)
            elif run.live and not self._calm and self._random.random() < 0.004:
                self._send(key, run.run_id, "run.abort", RunAbort(reason="enough"))
            if not self._calm:
                self._look_at_failures(key, run, session)
            self._look_at_approvals(key, run)
            if not self._calm:
                self._judge(key, run)

    def _judge(self, key: bytes, run: Run) -> None:
        """One run in eight is scored: at once, later, or when its session may have ended; sometimes twice."""
        if (key, run.run_id, "score") in self._asked:
            return
        self._asked.add((key, run.run_id, "score"))
        judges = self._judges
        if judges.random() < 0.875:
            return
        value: Any = judges.choice([{"number": 0.5}, {"category": "good"}, {"boolean": False}])
        data = RunScore(name="quality", **value)
        own_id = f"cmd_score_{run.run_id}" if judges.random() < 0.5 else None
        who = judges.choice([AGENT, PERSON])
        for _ in range(judges.choice([1, 1, 2])):
            delay_s = judges.choice([0.05, 2.0, 20.0]) * judges.uniform(0.5, 1.5)
            said = partial(self._send, key, run.run_id, "run.score", data, who, command_id=own_id)
            self._stage.loop.outside(delay_s, said)

    def _look_at_approvals(self, key: bytes, run: Run) -> None:
        """A person approves, rejects, or lets it pass; an agent that tries is refused."""
        for approval_id in run.open_approvals() if run.live else ():
            if (key, run.run_id, approval_id) in self._asked:
                continue
            self._asked.add((key, run.run_id, approval_id))
            dice = 0.0 if self._calm else self._random.random()
            if dice < 0.9:
                word: Any = "approve" if dice < 0.7 else "reject"
                data = ApprovalDecide(approval_id=approval_id, decision=word, computed=dice < 0.15)
                who = AGENT if 0.6 < dice < 0.7 else PERSON
                delay_s = 0.2 if self._calm else self._random.uniform(*THOUGHT_S)
                self._stage.loop.outside(delay_s, self._send, key, run.run_id, "approval.decide", data, who)

    def _look_at_failures(self, key: bytes, run: Run, session: Session) -> None:
        """A failed run is retried once; what is unknown is settled as far as it can be known."""
        if run.status == "failed" and (key, run.run_id, "retry") not in self._asked:
            self._asked.add((key, run.run_id, "retry"))
            if self._random.random() < 0.3:
                delay_s = self._random.uniform(0.1, 4.0)
                self._stage.loop.outside(delay_s, self._send, key, run.run_id, "run.retry", RunRetry())
        for task_id in run.unknown:
            call = run.task(task_id).call
            if call is not None and (key, run.run_id, call.call_id) not in self._asked:
                self._asked.add((key, run.run_id, call.call_id))
                if call.call_id in session.inquiries and self._random.random() < 0.7:
                    continue  # they leave it to the tool
                self._stage.loop.outside(20.0, self._settle, key, run.run_id, task_id, call.call_id)

    def _settle(self, key: bytes, run_id: str, task_id: str, call_id: str) -> None:
        """Look at the world: it happened; or it never reached its tool and never will; else say nothing."""
        ran = self._stage.world.executions.get(call_id, [])
        if ran:
            value: Any = ran[-1].value
            data = TaskResolve(task_id=task_id, resolution="done", result=value)
        elif call_id not in self._stage.reached:
            word: Any = self._random.choice(["not_done", "retry"])
            data = TaskResolve(task_id=task_id, resolution=word)
        else:
            return
        self._send(key, run_id, "task.resolve", data, PERSON)

    @property
    def _calm(self) -> bool:
        return self._stage.plot.calm

    def _think(self, key: bytes, run_id: str, checkpoint_id: str) -> None:
        random = self._random
        delay_s = 0.2 if self._calm else random.uniform(*THOUGHT_S)
        later = self._stage.loop.outside
        dice = 1.0 if self._calm else random.random()
        if dice < 0.1:
            return  # nobody answers: its patience ends
        if dice < 0.2:
            later(delay_s, self._send, key, run_id, "run.abort", RunAbort(reason="no"))
            return
        if dice < 0.3:
            later(delay_s, self._send, key, run_id, "run.replan", self._plan(key, run_id))
            return
        named = random.choice([None, checkpoint_id])
        later(delay_s, self._send, key, run_id, "run.continue", RunContinue(checkpoint_id=named))
        if dice < 0.5:
            other = random.choice([checkpoint_id, "k99", None])
            late_s = delay_s + random.uniform(0.0, 1.0)
            later(late_s, self._send, key, run_id, "run.continue", RunContinue(checkpoint_id=other))

    def _plan(self, key: bytes, run_id: str) -> RunReplan:
        """One or two tasks in place of what has not run, the first after something that completed."""
        session = self._stage.observer.lives[key].session
        run = session.runs.get(run_id) if session else None
        done = [name for name, task in run.tasks.items() if task.status == "completed"] if run else []
        self._plans += 1
        names = [f"r{self._plans}_{index}" for index in range(self._random.randint(1, 2))]
        tasks = [
            {
                "id": name,
                "tool": self._random.choice(["files:read", "store:get", "store:put", "counters:bump"]),
                "arguments": {"path": self._random.choice(PATHS)},
                "depends_on": names[:index] or done[:1],
            }
            for index, name in enumerate(names)
        ]
        return RunReplan.model_validate({"tasks": tasks})

    def _send(
        self,
        key: bytes,
        run_id: str,
        kind: str,
        data: CommandData,
        who: str = AGENT,
        *,
        command_id: str | None = None,
    ) -> None:
        if self._rests:
            return
        self._numbers += 1
        tenant, session_id = key.decode().split("/")
        command = Command(
            type=kind,
            command_id=command_id or f"cmd_{kind}_{self._numbers}",
            tenant=tenant,
            session_id=session_id,
            run_id=run_id,
            principal=who,
            data=data,
        )
        self.sent.setdefault(key, set()).add(command.command_id)
        self._stage.counts[f"decision: {kind}"] += 1
        self._append(key, command)

    def _append(self, key: bytes, command: Any) -> None:
        place = (self._stage.topics.commands, partition_for(key))
        assert key == session_key(command.tenant, command.session_id)
        self._stage.broker.append(place, [Draft(key, encode(command))])
