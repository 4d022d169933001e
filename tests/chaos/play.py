"""One seed against real parts: start everything, keep it busy, let faults happen, let it settle, judge."""

from __future__ import annotations

import asyncio
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.faults import Faults
from tests.chaos.installation import installation
from tests.chaos.reading import Reading, everything_written
from tests.chaos.toolbox import write_troubles
from tests.chaos.verdict import Outcome, judge_log, judge_roles, judge_runs, judge_store
from tests.chaos.work import People, Post, Watch, open_work, submit, wanted_runs
from tests.drills.workshop import Workshop
from tests.servers.world_server import HANG_S
from tests.simulation.play import Submission
from tests.simulation.tools import Toolbox, usual_tools

RUNS_A_SECOND = 1.5
WRITTEN = "written.pickle"
# The longest run (80 s), approvals, an unknown call that somebody settles after 20 s, on a busy machine.
SETTLE_S = 240.0
# Longer than a tool that hangs.
SILENCE_S = HANG_S + 2
LOOK_S = 0.5
# Faults are at least this often, so that a short play has some of them.
FAULTS_MIN = 6


async def play(seed: int, seconds: float, folder: Path) -> Outcome:
    """Play a seed in a folder; what it wrote stays there."""
    toolbox = usual_tools(Random(f"{seed}/tools"))
    wanted = wanted_runs(seed, seconds, RUNS_A_SECOND, toolbox)
    async with installation(folder, seed, toolbox) as workshop:
        outcome = Outcome(seed, seconds, workshop.settings.speculation.model_dump())
        scene = Scene.of(workshop, toolbox, outcome)
        async with workshop.tended():
            await scene.act(wanted, seconds)
            await scene.judge(outcome)
    return outcome


@dataclass
class Scene:
    """Who takes part in a play."""

    workshop: Workshop
    toolbox: Toolbox
    watch: Watch
    post: Post
    people: People
    faults: Faults

    @classmethod
    def of(cls, workshop: Workshop, toolbox: Toolbox, outcome: Outcome) -> Scene:
        """Everybody, before anything happens."""
        watch, post = Watch(workshop.settings), Post(workshop.settings)
        people = People(watch, post, workshop.store_folder, outcome.seed)
        faults = Faults(workshop, outcome.seed, outcome.seconds / FAULTS_MIN)
        return cls(workshop, toolbox, watch, post, people, faults)

    async def act(self, wanted: list[Submission], seconds: float) -> None:
        """Runs, faults, and then neither, until everything has settled."""
        background = [self.watch.follow(), self.post.deliver(), self.people.attend()]
        acts = [asyncio.create_task(act) for act in background]
        try:
            submitting = asyncio.create_task(submit(wanted, self.post))
            await _unless_ended(self.faults.happen(seconds), acts)
            await submitting
            write_troubles(self.workshop.store_folder, {})
            await _unless_ended(self._settled(), acts)
            self.people.rest()
            await asyncio.sleep(1.0)
            await _unless_ended(self._settled(), acts)
            await _unless_ended(self._silent(), acts)
        finally:
            for act in acts:
                act.cancel()
            await asyncio.gather(*acts, return_exceptions=True)

    async def _settled(self) -> None:
        """Until every command is answered and every run has ended, or nobody waits any longer."""
        give_up = time.monotonic() + SETTLE_S
        while (not self.post.idle or open_work(self.watch, self.post)) and time.monotonic() < give_up:
            await asyncio.sleep(LOOK_S)

    async def _silent(self) -> None:
        """Until the log stands still: calls that nobody waits for any more end, too, and are events."""
        silent_since_s, events = time.monotonic(), self.watch.events
        while time.monotonic() - silent_since_s < SILENCE_S:
            await asyncio.sleep(LOOK_S)
            if self.watch.events != events:
                silent_since_s, events = time.monotonic(), self.watch.events

    async def judge(self, outcome: Outcome) -> None:
        """Read everything, keep it, and check it."""
        left = open_work(self.watch, self.post)
        written = await everything_written(self.workshop, self.faults.done)
        (self.workshop.store_folder / WRITTEN).write_bytes(pickle.dumps(written))
        reading = Reading(written, self.toolbox)
        findings = reading.findings
        await asyncio.to_thread(judge_log, outcome, reading, written)
        await judge_store(findings, self.workshop, written)
        findings.check("everything settles once faults stop", not left, left[:20])
        judge_runs(findings, [event for _, event in written.events], self.post.asked)
        judge_roles(outcome, findings, self.workshop, self.faults)
        outcome.faults, outcome.commands = self.faults.counts, self.post.counts
        outcome.violations, outcome.checks = findings.found, findings.counts


async def _unless_ended(work: object, acts: list[asyncio.Task[None]]) -> None:
    """Do this; what should go on for ever and ended tells why."""
    doing = asyncio.ensure_future(work)  # type: ignore[arg-type]
    await asyncio.wait({doing, *acts}, return_when=asyncio.FIRST_COMPLETED)
    for act in acts:
        if act.done():
            doing.cancel()
            act.result()
    await doing
