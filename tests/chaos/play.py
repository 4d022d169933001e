"""One seed against real parts: start everything, keep it busy, let faults happen, let it settle, judge."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random

from tests.chaos.faults import Faults
from tests.chaos.installation import installation
from tests.chaos.toolbox import write_troubles
from tests.chaos.verdict import Outcome, verdict
from tests.chaos.work import People, Post, Watch, open_work, submit, wanted_runs
from tests.drills.workshop import Workshop
from tests.simulation.play import Submission
from tests.simulation.tools import Toolbox, usual_tools

RUNS_A_SECOND = 1.5
# The longest run (80 s), approvals, an unknown call that somebody settles after 20 s, on a busy machine.
SETTLE_S = 240.0
LOOK_S = 0.5
# Faults are at least this often, so that a short play has some of them.
FAULTS_MIN = 6


async def play(seed: int, seconds: float, folder: Path) -> Outcome:
    """Play a seed in a folder; what it wrote stays there."""
    toolbox = usual_tools(Random(f"{seed}/tools"))
    wanted = wanted_runs(seed, seconds, RUNS_A_SECOND, toolbox)
    async with installation(folder, seed, toolbox) as workshop:
        chosen = workshop.settings.speculation.model_dump()
        outcome = Outcome(seed, seconds, chosen)
        await _played(outcome, workshop, toolbox, wanted)
    return outcome


async def _played(outcome: Outcome, workshop: Workshop, toolbox: Toolbox, wanted: list[Submission]) -> None:
    folder = Path(workshop.store_folder)
    watch, post = Watch(workshop.settings), Post(workshop.settings)
    people = People(watch, post, folder, outcome.seed)
    faults = Faults(workshop, outcome.seed, outcome.seconds / FAULTS_MIN)
    acts = [asyncio.create_task(act) for act in (watch.follow(), post.deliver(), people.attend())]
    try:
        async with workshop.tended():
            submitting = asyncio.create_task(submit(wanted, post))
            await _unless_ended(faults.happen(outcome.seconds), acts)
            await submitting
            write_troubles(folder, {})
            await _unless_ended(_settled(watch, post), acts)
            people.rest()
            await asyncio.sleep(1.0)
            await _unless_ended(_settled(watch, post), acts)
            for act in acts:
                act.cancel()
            await verdict(outcome, workshop, toolbox, faults, watch, post)
    finally:
        for act in acts:
            act.cancel()
        await asyncio.gather(*acts, return_exceptions=True)


async def _unless_ended(work: object, acts: list[asyncio.Task[None]]) -> None:
    """Do this; what should go on for ever and ended tells why."""
    doing = asyncio.ensure_future(work)  # type: ignore[arg-type]
    await asyncio.wait({doing, *acts}, return_when=asyncio.FIRST_COMPLETED)
    for act in acts:
        if act.done():
            doing.cancel()
            act.result()
    await doing


async def _settled(watch: Watch, post: Post) -> None:
    """Until every command is answered and every run has ended, or nobody waits any longer."""
    give_up = time.monotonic() + SETTLE_S
    while (not post.idle or open_work(watch, post)) and time.monotonic() < give_up:
        await asyncio.sleep(LOOK_S)
