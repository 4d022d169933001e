"""`python -m benchmarks.end_to_end.live`: the modelled clock beside real stacks, over the same sessions.

Agents call recorded tools through the proxy, thinking before every call, on three stacks on one broker and
one store: one predicts nothing, one predicts by the best baseline, and one by the model that `pml train` made
of other sessions. The clock is given what the same models answer to the same questions, by the code that
serves. Sessions of each fold are played so, on stacks of their own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import uvloop
from mcp import Client
from rich.console import Console

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.end_to_end.clock import Account, Rules, oracle, played, unpredicted
from benchmarks.end_to_end.foreseen import SERVER
from benchmarks.end_to_end.live_answers import answers
from benchmarks.end_to_end.live_log import TYPES, EarlyCalls
from benchmarks.end_to_end.live_table import Fold, row_of, show
from benchmarks.end_to_end.measure import SIDES
from benchmarks.end_to_end.models import RANKER
from benchmarks.end_to_end.play import Play, Session, given, play_of, server_file
from benchmarks.end_to_end.sets import ANSWER_S, ASKED_S, SETS
from benchmarks.end_to_end.thresholds import HALF
from benchmarks.figures import Figure
from benchmarks.kept_rows import Row, in_order, kept_rows, measured_now
from benchmarks.learning.ways import WAYS, ways_named
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.proxy import CallFailed, through_pml
from benchmarks.report import Result
from benchmarks.stack import beside, with_prefix
from pml.processors.learning.judging import FOLDS
from pml.processors.learning.known_sessions import as_sequences
from pml.processors.learning.learners import BASELINES
from pml.schemas.errors import PMLError
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.schemas.speculation_events import PredictionMade
from pml.streams.catalog_topic import read_catalog
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding
from pml.streams.event_consumer import EventConsumer
from pml.streams.learning.phases import Phases
from pml.streams.learning.promotion import promote
from pml.streams.learning.sources import Known, Source, known_from
from pml.streams.learning.training import Trained, Wish, train
from pml.streams.local.supervisor import supervised
from pml.streams.logs import silence_libraries
from pml.streams.mcp_server.door import CONTEXT_META, REQUEST_META, SESSION_META
from pml.streams.mcp_server.proxy.names import proxied_names
from pml.streams.settings import Settings
from pml.streams.threshold_overrides import chosen_context, publish_override

NAME = "end_to_end_live"
MODELLED = "end_to_end"
WIDE = 150
BASELINE = SIDES[0]
NOTHING = "nothing"
SESSIONS, AT_ONCE, SEED = 120, 6, 1
# Until a question is answered for the first time, until the log has all events.
ANSWERED_S, TOLD_S = 120.0, 60.0
POLL_S = 0.2
FIRST = "warm-up"


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A stack that is played on, by a client; what was `trained` predicts, None where nothing does."""

    settings: Settings
    client: Client
    trained: Trained | None = None


def main(
    sets: Annotated[str, typer.Option(help="Only these sets, by name, with commas.")] = "",
    sessions: Annotated[
        int,
        typer.Option(min=FOLDS, help="How many of a set are played at most; fewer than usual are not kept."),
    ] = SESSIONS,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="The confidence at which calls begin; else what `benchmarks.end_to_end` chose on others.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, times and learners.")] = SEED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
) -> None:
    """Play recorded sessions on real stacks and on the modelled clock, with predictions and without.

    Each set is kept as soon as it is measured; sets that are left out stay as they were.
    Exit code 0 whatever the figures are.

    Examples: python -m benchmarks.end_to_end.live · python -m benchmarks.end_to_end.live --sets nestful
    """
    silence_libraries()
    folder, names = datasets_place(), ways_named(sets, SETS)
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    others, found = OthersWatch(), dict[str, Row]()
    with planned(NAME, 1, seed) as plan:
        for number, name in enumerate(names):
            own = replace(plan, folder=plan.folder / str(number))
            chosen = _thresholds(name, seed, threshold)
            row = row_of(_folds(own, folder, name, sessions // FOLDS, chosen))
            found[name] = measured_now({**_about(name), **row})
            if sessions >= SESSIONS:
                kept = {**kept_rows(NAME, seed), **found}
                _result(in_order(kept, SETS), plan, others).write()
        result = _result(in_order(found, names), plan, others)
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    show(result.facts["sets"], Console(width=None if sys.stdout.isatty() else WIDE))


def _about(name: str) -> dict[str, Any]:
    return {"name": name, "visible": WAYS[name].visible.told}


def _thresholds(name: str, seed: int, given_one: float | None) -> list[dict[str, float]]:
    """For each fold and side the one that is given, or what was chosen for that fold on the others."""
    row = kept_rows(MODELLED, seed).get(name)
    if given_one is not None or row is None:
        return [dict.fromkeys(SIDES, HALF if given_one is None else given_one)] * FOLDS
    return [{side: row[side]["thresholds"][number] for side in SIDES} for number in range(FOLDS)]


def _folds(
    plan: Plan, data: Path, name: str, most: int, thresholds: Sequence[Mapping[str, float]]
) -> Iterator[Fold]:
    """What came of sessions of each fold, with what was learned of the other folds."""
    for number, chosen in enumerate(thresholds):
        own = replace(plan, folder=plan.folder / str(number))
        own.folder.mkdir(parents=True)
        plan.say(f"{name}: fold {number + 1} of {FOLDS}")
        yield _measured(own, play_of(data, name, plan.seed, most, number), chosen)


def _result(rows: Sequence[Row], plan: Plan, others: OthersWatch) -> Result:
    figures = [
        Figure(f"{row['name']}: {side}, {where}", "s", (row[side][where]["wall_s"],), (row[NOTHING][where],))
        for row in rows
        for side in SIDES
        for where in ("stack", "clock")
    ]
    return Result.of(NAME, figures, plan, others, {"at_once": AT_ONCE, "sets": rows})


def _measured(plan: Plan, play: Play, thresholds: Mapping[str, float]) -> Fold:
    """One fold of a set.

    Raises:
        SystemExit: it cannot be measured; what a person is told of it.
    """
    try:
        found: Fold = uvloop.run(measure(plan, play, thresholds))
    except (PMLError, ExceptionGroup) as error:
        raise _told(error) from None
    return found


def _told(error: Exception) -> BaseException:
    """Task groups of clients wrap what happened inside them."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return SystemExit(f"{error.code}: {error.message}") if isinstance(error, PMLError) else error


async def measure(plan: Plan, play: Play, thresholds: Mapping[str, float]) -> Fold:
    """All stacks beside each other, so that whatever others take is taken from each; then the clock.

    Raises:
        CallFailed: tools are not offered, a call fails, or nothing is ever predicted.
    """
    clock: dict[str, tuple[str, Account]] = {}
    calls = [play.calls(session) for session in play.sessions]
    async with _sides(plan, play, thresholds) as sides:
        came = await _came(plan, play, sides)
        for name in SIDES:
            trained = sides[name].trained
            assert trained is not None
            foreseen = await answers(sides[name].settings, play, trained)
            rules = Rules(thresholds[name], ASKED_S, ANSWER_S)
            told = [played(each, after, rules) for each, after in zip(calls, foreseen, strict=True)]
            clock[name] = (trained.manifest["serves"], Account.total(told))
    off, best = Account.total(map(unpredicted, calls)), Account.total(map(oracle, calls))
    return Fold(play, thresholds, came, clock, off, best)


async def _came(plan: Plan, play: Play, sides: Mapping[str, Side]) -> dict[str, Account]:
    """What came of each side; sessions whose same calls give different results are played in turn."""
    walls_s = dict.fromkeys(sides, 0.0)
    for number, part in enumerate(parts := play.parts, 1):
        sessions = f"{len(part.sessions)} of {len(play.sessions)} sessions"
        plan.say(f"playing {sessions} on {len(sides)} stacks, part {number} of {len(parts)}")
        _record(plan.folder, part)
        took_s = await asyncio.gather(*(_played(side, part) for side in sides.values()))
        walls_s = {name: walls_s[name] + new for name, new in zip(sides, took_s, strict=True)}
    return {name: (await _ended(side.settings, play)).account(walls_s[name]) for name, side in sides.items()}


@asynccontextmanager
async def _sides(plan: Plan, play: Play, thresholds: Mapping[str, float]) -> AsyncIterator[dict[str, Side]]:
    """The stacks while the block runs, each of them warm."""
    settings = _settings(plan.folder, play)
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
        clients = [
            await stacks.enter_async_context(through_pml(each, offered))
            for each in (plain, baseline, settings)
        ]
        plan.say("training")
        known = known_from(await read_catalog(settings), DEFAULT_TENANT)
        ranker = await asyncio.to_thread(_trained, settings, play, known)
        counted = await asyncio.to_thread(_trained, baseline, play, known, ranker.manifest["baseline"])
        sides = {
            NOTHING: Side(plain, clients[0]),
            BASELINE: Side(baseline, clients[1], counted),
            RANKER: Side(settings, clients[2], ranker),
        }
        plan.say("warming up")
        for name in SIDES:
            await _warm(sides[name], play, thresholds[name])
        yield sides


def _settings(folder: Path, play: Play) -> Settings:
    """One server with the recorded tools; what it reads any write may change."""
    _record(folder, play.parts[0])
    server = {
        "command": sys.executable,
        "args": ["-m", "benchmarks.servers.recorded", str(folder / "recorded.json")],
        "concurrency": 32,
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
            learning={"drift": "off"},
        )
    )


def _record(folder: Path, part: Play) -> None:
    """Let the servers give the results of these sessions from now on."""
    written = folder / "recorded.next.json"
    written.write_bytes(server_file(part))
    written.replace(folder / "recorded.json")


def _trained(settings: Settings, play: Play, known: Known, learner: str | None = None) -> Trained:
    """What `pml train` makes of sessions and the catalog; nearly none are kept aside: others are played.

    It judges by the groups of the data set, as `pml train --data` does: what is played is of others.
    `learner`: the baseline that serves, None: the best of all learners.
    """
    sessions = as_sequences(play.learned_of, known.texts)
    source = Source(
        replace(sessions, traces=replace(sessions.traces, groups=play.groups), listed=known.listed),
        {"from": "benchmark"},
        play.learned_of,
        known.schemas,
        names=[each.name for each in play.learned_of],
    )
    wish = Wish(seed=play.seed, test_share=0.05, learner=learner)
    if learner is not None:
        # Who learns was compared before, and need not learn again for it.
        wish = replace(wish, usual=BASELINES)
    return train(source, WordLlamaEmbedding(), settings.models_folder, wish, Phases())


def _offered(play: Play) -> dict[str, str]:
    """The name under which the proxy offers each tool."""
    return proxied_names(f"{SERVER}:{tool}" for tool in play.reads)


async def _warm(side: Side, play: Play, threshold: float) -> None:
    """Until the model that was trained answers."""
    assert side.trained is not None
    await promote(side.settings, side.trained.manifest["model_id"], NAME)
    context = chosen_context(DEFAULT_TENANT, "", "", "")
    await publish_override(side.settings, context, threshold, NAME)
    session = replace(play.sessions[0], thoughts_s=(0.0,) * len(play.sessions[0].made))
    names, number = _offered(play), count()
    async with EventConsumer(side.settings, start="end", types=["prediction.made"]) as made:
        answered_by_model = asyncio.ensure_future(_by_a_model(made))
        try:
            async with asyncio.timeout(ANSWERED_S):
                while not answered_by_model.done():
                    await _alone(side.client, names, replace(session, name=f"{FIRST}-{next(number)}"))
                await answered_by_model
        except TimeoutError:
            answered_by_model.cancel()
            raise CallFailed(f"the model answered nothing within {ANSWERED_S:g} s") from None


async def _by_a_model(made: EventConsumer) -> None:
    async for event in made:
        if isinstance(event.data, PredictionMade) and event.data.model:
            return


async def _played(side: Side, play: Play) -> float:
    """Seconds of all sessions together; they are played a few at a time."""
    names, waiting, walls_s = _offered(play), iter(play.sessions), []

    async def agent() -> None:
        walls_s.extend([await _alone(side.client, names, session) for session in waiting])

    async with EventConsumer(side.settings, start="end", types=("run.completed", "internal.ended")) as events:
        await asyncio.gather(*(agent() for _ in range(AT_ONCE)))
        await _settled(events, play, asked=side.trained is not None)
    return sum(walls_s)


async def _ended(settings: Settings, play: Play) -> EarlyCalls:
    """What the log says of these sessions, once all that began early has come to an end."""
    async with asyncio.timeout(TOLD_S):
        while (found := await _logged(settings, play)).run:
            await asyncio.sleep(POLL_S)
    return found


async def _logged(settings: Settings, play: Play) -> EarlyCalls:
    played_by, found = {session.name for session in play.sessions}, EarlyCalls()
    async with EventConsumer(settings, until_end=True, types=TYPES) as events:
        async for event in events:
            if event.session_id in played_by:
                found.take(event)
    return found


async def _settled(events: EventConsumer, play: Play, *, asked: bool) -> None:
    """Until every run ended, and what was asked after each was answered or given up."""
    runs = sum(len(each.made) for each in play.sessions)
    found: Counter[str] = Counter()
    async with asyncio.timeout(TOLD_S):
        async for event in events:
            found[event.type] += not event.session_id.startswith(FIRST)
            if found["run.completed"] == runs and found["internal.ended"] >= runs * asked:
                return


async def _alone(client: Client, names: Mapping[str, str], session: Session) -> float:
    """Seconds of one session, from its first thought to its last result."""
    began = time.perf_counter()
    told = zip(session.made, session.thoughts_s, session.requests, strict=True)
    for call, thought_s, request in told:
        meta: Any = {SESSION_META: session.name, REQUEST_META: request, CONTEXT_META: dict(call.context)}
        await asyncio.sleep(thought_s)
        answer = await client.call_tool(names[f"{SERVER}:{call.name}"], dict(call.arguments), meta=meta)
        if answer.is_error or answer.structured_content != given(call):
            raise CallFailed(f"{call.name} answered {answer.content!r:.300}")
    return time.perf_counter() - began


if __name__ == "__main__":
    typer.run(main)
