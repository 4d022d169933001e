"""`pml demo --learn`: sessions are recorded, a model is trained on them, and others are played with it.

Three times the same held-out sessions: nothing predicted, by the best baseline, by the model. Both were
trained on the same recorded sessions, each in a process of its own as `pml train` is for everybody; where the
baseline is what serves, they are one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson

from pml.schemas.errors import WaitedTooLong
from pml.schemas.events import PredictionMade, SpeculationStarted, TaskCompleted
from pml.schemas.identifiers import session_key
from pml.streams.client import EventConsumer, IntentProducer, ResultReader, new_id
from pml.streams.demo.learning_report import LearningReport, Way, WayPlayed
from pml.streams.demo.play import until_stored
from pml.streams.demo.player import PRINCIPAL, Player
from pml.streams.demo.sessions import DemoSession, draw_sessions
from pml.streams.demo.stage import Stage
from pml.streams.learning.limited import TrainingFailed
from pml.streams.learning.promotion import promote
from pml.streams.local.leash import leashed
from pml.streams.local.supervisor import supervised
from pml.streams.settings import Settings
from pml.streams.threshold_overrides import chosen_context, publish_override

# An agent thinks before it calls again; real ones for longer.
THINKS_S = 0.5
# Half a minute; a quarter of an hour was too short where all is compiled first on a machine that is busy.
TRAINING_TIMEOUT_S = 3_600
# The first question makes a bridge import and load a model: seconds, where a machine is busy.
ANSWER_TIMEOUT_S = 30
WARM_UPS_MOST = 4
PREDICTED = ("speculation", "joined")
KINDS_COUNTED = (SpeculationStarted.TYPE, TaskCompleted.TYPE, PredictionMade.TYPE)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many sessions are recorded and how many are then played; the rest is told in the report.

    `threshold`: an override of the confidence at which calls begin; `latency_ms`: see `Stage`; `thinks_s`:
    how long the agent that plays thinks before each workflow but the first; `tenant`: whose the sessions are,
    one of their own, so that no earlier demo is trained on and no model of this one serves anybody else.
    """

    recorded: int
    played: int
    seed: int = 1
    threshold: float | None = None
    latency_ms: int = 0
    thinks_s: float = THINKS_S
    tenant: str = field(default_factory=lambda: new_id("demo"))


async def learn(stage: Stage, plan: Plan, say: Say) -> LearningReport:
    """Record, train, play and compare, on a stack of the demo's own.

    Raises:
        TrainingFailed: `pml train` did not make a model.
        PMLError: the stack did not come up, or a run did not end.
    """
    say("building the folder that the sessions read")
    await asyncio.to_thread(stage.set_up)
    sessions = draw_sessions(plan.recorded + plan.played, plan.seed)
    with stage.environment():
        async with (
            supervised(stage.settings, say),
            IntentProducer(stage.settings) as producer,
            ResultReader(stage.settings) as results,
        ):
            player = Player(stage.settings, plan.tenant, producer, results)
            return await _learn(player, plan, sessions, say)


async def _learn(player: Player, plan: Plan, sessions: Sequence[DemoSession], say: Say) -> LearningReport:
    settings = player.settings
    for number, session in enumerate(sessions[: plan.recorded], 1):
        say(f"recording session {number} of {plan.recorded}")
        await player.play(session, f"recorded-{number}", "off", 0)
    await until_stored(settings, player.run_ids)
    say("training on what was recorded")
    model = await _trained(settings, plan)
    baseline = model
    if model["serves"] != model["baseline"]:
        say(f"training the best baseline, {model['baseline']}")
        baseline = await _trained(settings, plan, model["baseline"])
    if plan.threshold is not None:
        everywhere = chosen_context(plan.tenant, None, None, None)
        await publish_override(settings, everywhere, plan.threshold, PRINCIPAL)
    held_out = sessions[plan.recorded :]
    ways: list[WayPlayed] = []
    for way, manifest in (("no prediction", None), ("baseline", baseline), ("model", model)):
        if manifest is not None:
            await promote(settings, manifest["model_id"], PRINCIPAL)
        ways.append(await _played(player, plan, Way(way, manifest), (held_out, sessions[0]), say))
    return LearningReport(asdict(plan), model, tuple(ways))


async def _trained(settings: Settings, plan: Plan, learner: str | None = None) -> dict[str, Any]:
    """The manifest of a model that `pml train` made.

    Raises:
        TrainingFailed: it made none, or not in time.
    """
    wanted = ("--learner", learner) if learner else ()
    command = [sys.executable, "-m", "pml.streams.cli", "train", "--no-promote", "--json"]
    process = await asyncio.create_subprocess_exec(
        *leashed([*command, "--tenant", plan.tenant, "--seed", str(plan.seed), *wanted]),
        env={**os.environ, **settings.environment()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TRAINING_TIMEOUT_S):
            output, errors = await process.communicate()
    except TimeoutError:
        raise TrainingFailed(
            f"pml train did not end within {TRAINING_TIMEOUT_S} s: is the machine busy? Try again"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise TrainingFailed(f"pml train: {errors.decode(errors='replace').strip()[-500:]}")
    manifest: dict[str, Any] = orjson.loads(output)
    return manifest


async def _played(
    player: Player, plan: Plan, way: Way, sessions: tuple[Sequence[DemoSession], DemoSession], say: Say
) -> WayPlayed:
    held_out, known = sessions
    speculation: Literal["on", "off"] = "off" if way.manifest is None else "on"
    say(f"{way.name}: warming up with a session that was recorded")
    await _warm_up(player, way, known)
    waited_ms, outcomes = [], []
    for number, session in enumerate(held_out, 1):
        say(f"{way.name}: session {number} of {len(held_out)}")
        took_ms, came_to = await player.play(session, f"{way.key}-{number}", speculation, plan.thinks_s)
        waited_ms.append(took_ms)
        outcomes.append(came_to)
    # What is begun after the last workflow counts as waste, as after any other.
    await asyncio.sleep(plan.thinks_s)
    keys = {session_key(plan.tenant, f"{way.key}-{number}") for number in range(1, len(held_out) + 1)}
    counted = await _counted(player.settings, keys)
    return WayPlayed(way, tuple(waited_ms), tuple(outcomes), *counted)


async def _warm_up(player: Player, way: Way, known: DemoSession) -> None:
    """Play a known session, again until it is the promoted model that says what comes after it.

    Raises:
        WaitedTooLong: it never was.
    """
    if way.manifest is None:
        await player.play(known, f"{way.key}-warm-up", "off", 0)
        return
    for number in range(1, WARM_UPS_MOST + 1):
        name = f"{way.key}-warm-up-{number}"
        await player.play(known, name, "on", 0)
        if await _model_asked(player, name) == way.manifest["model_id"]:
            return
    model_id = way.manifest["model_id"]
    raise WaitedTooLong(f"{model_id} was promoted and does not predict; the bridge's log says why")


async def _model_asked(player: Player, session_id: str) -> str | None:
    """The model that said what comes after the latest run, of this session; None where nobody answered."""
    with suppress(TimeoutError):
        async with (
            asyncio.timeout(ANSWER_TIMEOUT_S),
            EventConsumer(
                player.settings, session_id=session_id, tenant=player.tenant, types=(PredictionMade.TYPE,)
            ) as events,
        ):
            async for event in events:
                if event.run_id == player.run_ids[-1] and isinstance(event.data, PredictionMade):
                    return event.data.model
    return None


async def _counted(settings: Settings, keys: set[bytes]) -> tuple[int, int, int, tuple[float, ...]]:
    """Calls of these sessions, those begun because they were predicted, those served so, and thresholds."""
    calls = begun = hits = 0
    thresholds: list[float] = []
    async with EventConsumer(settings, until_end=True, types=KINDS_COUNTED) as events:
        async for event in events:
            if session_key(event.tenant, event.session_id) not in keys:
                continue
            if isinstance(event.data, SpeculationStarted):
                begun += event.data.kind == "prediction"
            elif isinstance(event.data, PredictionMade):
                thresholds.append(event.data.threshold)
            else:
                calls += 1
                hits += getattr(event.data, "served_by", "") in PREDICTED
    return calls, begun, hits, tuple(thresholds)
