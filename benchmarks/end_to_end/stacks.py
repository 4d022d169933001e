"""Stacks beside each other on which agents play recorded sessions, and what the clock says of the same.

One predicts nothing, one by the best baseline, one by the model. A fold is played once both stacks answer by
the model that learned of the other folds, at its threshold.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import orjson
from mcp import Client

from benchmarks.end_to_end.clock import Account, oracle, unpredicted
from benchmarks.end_to_end.live_log import TYPES, EarlyCalls
from benchmarks.end_to_end.live_table import Fold
from benchmarks.end_to_end.measure import Held
from benchmarks.end_to_end.models import BASELINE, RANKER, SIDES, catalog_of
from benchmarks.end_to_end.play import SERVER, Play, Session, given, server_file
from benchmarks.end_to_end.sets import RULES
from benchmarks.plan import Plan
from benchmarks.proxy import CallFailed, through_pml
from benchmarks.stack import beside, with_prefix
from pml.processors.speculation.budget import BUDGETS
from pml.schemas.events import Event
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.schemas.speculation_events import PredictionMade
from pml.streams.catalog_topic import read_catalog
from pml.streams.event_consumer import EventConsumer
from pml.streams.learning.promotion import promote
from pml.streams.learning.sources import known_from
from pml.streams.local.supervisor import supervised
from pml.streams.mcp_server.door import CONTEXT_META, REQUEST_META, SESSION_META
from pml.streams.mcp_server.proxy.names import proxied_names
from pml.streams.settings import Settings
from pml.streams.threshold_overrides import chosen_context, publish_override

NOTHING = "nothing"
AT_ONCE = 6
# Until a question is answered for the first time, until the log has all events.
ANSWERED_S, TOLD_S = 120.0, 60.0
POLL_S = 0.2
FIRST, WARM_CALLS = "warm-up", 2
SPAN_ID = "0123456789abcdef"
# Who sets thresholds and promotes models.
PRINCIPAL = "benchmark"


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A stack that is played on, by a client."""

    settings: Settings
    client: Client


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """A fold that is to be played on stacks.

    The first of its sessions, what was foreseen of all of them, the threshold of each side, and the folder of
    the models that learned of the other folds.
    """

    play: Play
    held: Held
    thresholds: Mapping[str, float]
    models: Path


async def measure(plan: Plan, name: str, staged: Sequence[Staged]) -> list[Fold]:
    """All stacks beside each other, so that whatever others take is taken from each; and the clock.

    Raises:
        CallFailed: other sessions were foreseen, a tool is missing, a call fails, or nothing is predicted.
    """
    for fold in staged:
        _same_sessions(fold)
    async with _sides(plan, staged) as sides:
        return [
            await _fold(plan, f"{name}, fold {number}", sides, fold) for number, fold in enumerate(staged, 1)
        ]


def _same_sessions(fold: Staged) -> None:
    calls = [fold.play.calls(session) for session in fold.play.sessions]
    if any([each.calls for each in fold.held.sittings[side][: len(calls)]] != calls for side in SIDES):
        raise CallFailed("other sessions were foreseen than are to be played: empty the folder of models")


async def _fold(plan: Plan, name: str, sides: Mapping[str, Side], fold: Staged) -> Fold:
    """One fold on stacks that predict as it was learned on the others."""
    await asyncio.gather(*(_warm(sides[side], fold, side) for side in SIDES))
    plan.say(f"{name}: playing {len(fold.play.sessions)} sessions on {len(sides)} stacks")
    return _beside_the_clock(fold, await _came(fold.play, sides))


def _beside_the_clock(fold: Staged, came: Mapping[str, Account]) -> Fold:
    held, most = fold.held, len(fold.play.sessions)
    calls = [each.calls for each in held.sittings[RANKER][:most]]
    clock = {}
    for side in SIDES:
        rules = replace(RULES, threshold=fold.thresholds[side])
        account = Account.total(each.played(rules) for each in held.sittings[side][:most])
        clock[side] = (held.learners[side], account)
    off, best = Account.total(map(unpredicted, calls)), Account.total(map(oracle, calls))
    return Fold(fold.play, fold.thresholds, came, clock, off, best)


async def _came(play: Play, sides: Mapping[str, Side]) -> dict[str, Account]:
    """What came of each side."""
    took_s = await asyncio.gather(
        *(_played(side, play, asked=name != NOTHING) for name, side in sides.items())
    )
    return {
        name: (await _ended(side.settings, play)).account(wall_s)
        for (name, side), wall_s in zip(sides.items(), took_s, strict=True)
    }


@asynccontextmanager
async def _sides(plan: Plan, staged: Sequence[Staged]) -> AsyncIterator[dict[str, Side]]:
    """The stacks while the block runs; their server gives the results of all folds."""
    first = staged[0]
    play = replace(first.play, sessions=[session for fold in staged for session in fold.play.sessions])
    settings = _settings(plan.folder, play, first.models)
    offered = set(_offered(play).values())
    async with AsyncExitStack() as stacks:
        await stacks.enter_async_context(supervised(settings, plan.say))
        plain, baseline = (
            beside(settings, plan.folder / name, f"pml_{name}") for name in (NOTHING, BASELINE)
        )
        silent = plain.speculation.model_copy(update={"predictions": "off"})
        plain = plain.model_copy(update={"speculation": silent})
        for others in (plain, baseline):
            await stacks.enter_async_context(supervised(others, plan.say))
        sides = {
            name: Side(each, await stacks.enter_async_context(through_pml(each, offered)))
            for name, each in ((NOTHING, plain), (BASELINE, baseline), (RANKER, settings))
        }
        for name in SIDES:
            await _as_learned(sides[name].settings, play)
        # Nobody waits for its first call in the middle of what is measured.
        await _alone(sides[NOTHING].client, _offered(play), _first_calls(play, NOTHING))
        yield sides


async def _as_learned(settings: Settings, play: Play) -> None:
    """Models learned of a catalog before there was one: it is as it was thought to be.

    Raises:
        CallFailed: it is not.
    """
    found, thought = (
        known_from(records, DEFAULT_TENANT) for records in (await read_catalog(settings), catalog_of(play))
    )
    if found != thought:
        raise CallFailed("the catalog says something else of the recorded tools than models learned of")


def _settings(folder: Path, play: Play, models: Path) -> Settings:
    """One server with the recorded tools; what it reads any write may change."""
    recorded = folder / "recorded.json"
    recorded.write_bytes(server_file(play))
    server = {
        "command": sys.executable,
        "args": ["-m", "benchmarks.servers.recorded", str(recorded)],
        # What sessions may begin early waits for nothing, as on the clock.
        "concurrency": AT_ONCE * (BUDGETS["normal"].concurrent + 1),
    }
    read = {"scope": "readonly", "approval": "auto", "touches": [SERVER]}
    write = {"scope": "filesystem", "approval": "auto", "effect": "write", "touches": [SERVER]}
    allowed = {f"{SERVER}:{tool}": read if reads else write for tool, reads in play.reads.items()}
    servers, permissions = folder / "mcp-servers.yaml", folder / "mcp-permissions.yaml"
    servers.write_bytes(orjson.dumps({"mcpServers": {SERVER: server}}))
    permissions.write_bytes(orjson.dumps({"version": 1, "tools": allowed}))
    return with_prefix(
        Settings.load(
            data_dir=folder / "pml",
            mcp_servers=servers,
            mcp_permissions=permissions,
            speculation={"predictions": "on"},
            # What is played is of groups that nobody was trained on, so each side does worse than it was
            # judged to: a baseline would be taken for one that has fallen, and another would answer.
            learning={"drift": "off", "models_folder": models},
        )
    )


def _offered(play: Play) -> dict[str, str]:
    """The name under which the proxy offers each tool."""
    return proxied_names(f"{SERVER}:{tool}" for tool in play.reads)


async def _warm(side: Side, fold: Staged, name: str) -> None:
    """Until the model that learned for this side answers, and its threshold holds."""
    model, threshold = fold.held.models[name], fold.thresholds[name]
    await publish_override(side.settings, chosen_context(DEFAULT_TENANT, "", "", ""), threshold, PRINCIPAL)
    await promote(side.settings, model, PRINCIPAL)
    play, number = fold.play, count()
    async with EventConsumer(side.settings, start="end", types=["prediction.made"]) as made:
        answered_by_model = asyncio.ensure_future(_by(made, model, threshold))
        try:
            async with asyncio.timeout(ANSWERED_S):
                while not answered_by_model.done():
                    again = _first_calls(play, f"{play.sessions[0].name}-{next(number)}")
                    await _alone(side.client, _offered(play), again)
                await answered_by_model
        except TimeoutError:
            raise CallFailed(f"{model} answered nothing within {ANSWERED_S:g} s") from None
        finally:
            answered_by_model.cancel()


def _first_calls(play: Play, name: str) -> Session:
    """Calls that warm a stack up, without a thought: they are of a session that nobody measures."""
    session = play.sessions[0]
    made, requests = session.made[:WARM_CALLS], session.requests[:WARM_CALLS]
    none_s = (0.0,) * len(made)
    return replace(session, name=f"{FIRST}-{name}", made=made, thoughts_s=none_s, requests=requests)


async def _by(made: EventConsumer, model: str, threshold: float) -> None:
    """Until somebody was answered by this model, with this threshold."""
    async for event in made:
        data = event.data
        if isinstance(data, PredictionMade) and (data.model, data.threshold) == (model, threshold):
            return


async def _played(side: Side, play: Play, *, asked: bool) -> float:
    """Seconds of all sessions together; they are played a few at a time."""
    names, waiting, walls_s = _offered(play), iter(play.sessions), []

    async def agent() -> None:
        walls_s.extend([await _alone(side.client, names, session) for session in waiting])

    async with EventConsumer(side.settings, start="end", types=("run.completed", "internal.ended")) as events:
        await asyncio.gather(*(agent() for _ in range(AT_ONCE)))
        await _settled(events, play, asked=asked)
    return sum(walls_s)


async def _ended(settings: Settings, play: Play) -> EarlyCalls:
    """What the log says of these sessions, once all that began early has come to an end.

    Raises:
        CallFailed: it does not.
    """
    try:
        async with asyncio.timeout(TOLD_S):
            while (found := await _logged(settings, play)).run:
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise CallFailed(f"calls that began early have not ended within {TOLD_S:g} s") from None
    return found


async def _logged(settings: Settings, play: Play) -> EarlyCalls:
    played_by, found = {session.name for session in play.sessions}, EarlyCalls()
    async with EventConsumer(settings, until_end=True, types=TYPES) as events:
        async for event in events:
            if event.session_id in played_by:
                found.take(event)
    return found


async def _settled(events: AsyncIterable[Event], play: Play, *, asked: bool) -> None:
    """Until every run ended, and what was asked after each was answered or given up.

    Raises:
        CallFailed: that does not come.
    """
    names, runs = {session.name for session in play.sessions}, sum(len(each.made) for each in play.sessions)
    found: Counter[str] = Counter()
    try:
        async with asyncio.timeout(TOLD_S):
            async for event in events:
                found[event.type] += event.session_id in names
                if found["run.completed"] >= runs and found["internal.ended"] >= runs * asked:
                    return
    except TimeoutError:
        raise CallFailed(f"of {runs} runs the log tells after {TOLD_S:g} s: {dict(found)}") from None


async def _alone(client: Client, names: Mapping[str, str], session: Session) -> float:
    """Seconds of one session, from its first thought to its last result."""
    began = time.perf_counter()
    told = zip(session.made, session.thoughts_s, session.requests, strict=True)
    for call, thought_s, request in told:
        meta: Any = {
            SESSION_META: session.name,
            REQUEST_META: request,
            CONTEXT_META: dict(call.context),
            **traced(session),
        }
        await asyncio.sleep(thought_s)
        answer = await client.call_tool(names[f"{SERVER}:{call.name}"], dict(call.arguments), meta=meta)
        if answer.is_error or answer.structured_content != given(call):
            raise CallFailed(f"{call.name} answered {answer.content!r:.300}")
    return time.perf_counter() - began


def traced(session: Session) -> dict[str, str]:
    """What says to a server, through PML, which session a call is of (W3C Trace Context)."""
    return {"traceparent": f"00-{session.trace_id}-{SPAN_ID}-00"}
