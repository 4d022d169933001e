"""Who decides about runs that wait: an agent that goes on, stops, asks twice, names the wrong checkpoint."""

from __future__ import annotations

from random import Random
from typing import Any

from pml.processors.workflow import Session
from pml.schemas.codec import encode
from pml.schemas.commands import Command, CommandData, RunAbort, RunContinue
from pml.schemas.identifiers import session_key
from pml.streams.connection import partition_for
from tests.simulation.broker import Draft
from tests.simulation.stage import Stage

LOOK_S = 0.3
# Seconds that somebody thinks; longer than the shortest patience of a run.
THOUGHT_S = (0.1, 2.6)


class Decider:
    """Answers checkpoints. In a calm play it always goes on, so that the same run is the same again."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage, self._random = stage, Random(f"{seed}/people")
        self._asked: set[tuple[bytes, str, str]] = set()
        self._numbers = 0
        self.sent: dict[bytes, set[str]] = {}

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
        named = random.choice([None, checkpoint_id])
        later(delay_s, self._send, key, run_id, "run.continue", RunContinue(checkpoint_id=named))
        if dice < 0.4:
            other = random.choice([checkpoint_id, "k99", None])
            late_s = delay_s + random.uniform(0.0, 1.0)
            later(late_s, self._send, key, run_id, "run.continue", RunContinue(checkpoint_id=other))

    def _send(self, key: bytes, run_id: str, kind: str, data: CommandData) -> None:
        self._numbers += 1
        tenant, session_id = key.decode().split("/")
        command = Command(
            type=kind,
            command_id=f"cmd_{kind}_{self._numbers}",
            tenant=tenant,
            session_id=session_id,
            run_id=run_id,
            principal="agent:somebody",
            data=data,
        )
        self.sent.setdefault(key, set()).add(command.command_id)
        self._stage.counts[f"decision: {kind}"] += 1
        self._append(key, command)

    def _append(self, key: bytes, command: Any) -> None:
        place = (self._stage.topics.commands, partition_for(key))
        assert key == session_key(command.tenant, command.session_id)
        self._stage.broker.append(place, [Draft(key, encode(command))])
