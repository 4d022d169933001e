"""`python -m benchmarks.end_to_end.live`: the modelled clock beside a real stack, over the same sessions.

Agents call recorded tools through the proxy, thinking before every call, on two stacks on one broker and one
store, which differ in `speculation.predictions` only. What `pml train` made of other sessions predicts. The
clock is given what the same model answers to the same questions, by the code that serves.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
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
from benchmarks.end_to_end.clock import Account, Guess, Rules, key_of, oracle, played, unpredicted
from benchmarks.end_to_end.foreseen import SERVER
from benchmarks.end_to_end.play import Play, Session, given, play_of
from benchmarks.end_to_end.sets import ANSWER_S, ASKED_S
from benchmarks.end_to_end.times import MEDIAN_S, drawn_s
from benchmarks.figures import Figure
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.proxy import CallFailed, through_pml
from benchmarks.report import WIDTH, Result, show
from benchmarks.stack import beside, with_prefix
from pml.processors.discovery.library import Library
from pml.processors.learning.known_sessions import as_sequences
from pml.schemas.errors import PMLError
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.schemas.prediction import HISTORY_MOST, VALUES_MOST, PastElement, PredictRequest
from pml.schemas.speculation_events import PredictionMade
from pml.schemas.task_events import TaskCompleted
from pml.schemas.workflow import LiteralValue, Task
from pml.streams.catalog_topic import read_catalog
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding
from pml.streams.event_consumer import EventConsumer
from pml.streams.learning.phases import Phases
from pml.streams.learning.promotion import promote
from pml.streams.learning.serving import Served, answered, as_served
from pml.streams.learning.sources import Known, Source, known_from
from pml.streams.learning.training import Trained, Wish, train
from pml.streams.local.supervisor import supervised
from pml.streams.mcp_server.door import REQUEST_META, SESSION_META
from pml.streams.mcp_server.proxy.names import proxied_names
from pml.streams.settings import Settings
from pml.streams.threshold_overrides import chosen_context, publish_override

NAME = "end_to_end_live"
# Sets whose visible text is the same before each call of a session, so that a client passes it once.
SETS = ("nestful", "toollinkos")
THRESHOLD = 0.5
SESSIONS, AT_ONCE, SEED = 40, 6, 1
# Until a question is answered for the first time, until the log has all events.
ANSWERED_S, TOLD_S = 120.0, 60.0
FIRST = "warm-up"
EARLY = ("speculation", "joined")


@dataclass(slots=True)
class Came:
    """What came of playing all sessions: seconds of wall clock, summed over sessions, and of the log's events
    what began early and what was served by it."""

    wall_s: float = 0.0
    begun: int = 0
    served: int = 0


def main(
    name: Annotated[str, typer.Option("--set", help=f"Which data set: {', '.join(SETS)}.")] = SETS[0],
    sessions: Annotated[int, typer.Option(min=1, help="How many are played at most.")] = SESSIONS,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="The confidence at which calls begin.")] = (
        THRESHOLD
    ),
    seed: Annotated[int, typer.Option(min=0, help="Of folds, times and learners.")] = SEED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
) -> None:
    """Play recorded sessions on a real stack and on the modelled clock, with predictions and without.

    Exit code 0 whatever the figures are.

    Examples: python -m benchmarks.end_to_end.live · python -m benchmarks.end_to_end.live --threshold 0.4
    """
    folder = datasets_place()
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    if name not in SETS:
        raise typer.BadParameter(f"there is no set {name!r}; there are {', '.join(SETS)}")
    others = OthersWatch()
    with planned(NAME, 1, seed) as plan:
        play = play_of(folder, name, seed, sessions)
        try:
            figures, facts = uvloop.run(measure(plan, play, threshold))
        except (PMLError, ExceptionGroup) as error:
            raise _told(error) from None
        result = Result.of(NAME, figures, plan, others, {"set": name, "threshold": threshold, **facts})
    result.write()
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    show([result], Console(width=None if sys.stdout.isatty() else WIDTH))
    typer.echo(", ".join(f"{fact} {value}" for fact, value in result.facts.items()))


def _told(error: Exception) -> BaseException:
    """What a person is told of it; task groups of clients wrap what happened inside them."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return SystemExit(f"{error.code}: {error.message}") if isinstance(error, PMLError) else error


async def measure(plan: Plan, play: Play, threshold: float) -> tuple[list[Figure], dict[str, Any]]:
    """Both stacks, then the clock.

    Raises:
        CallFailed: tools are not offered, a call fails, or nothing is ever predicted.
    """
    settings = _settings(plan.folder, play)
    silent = {"predictions": "off"}
    offered = set(_offered(play).values())
    async with supervised(settings, plan.say):
        off = beside(settings, plan.folder / "silent", "pml_silent")
        off = off.model_copy(update={"speculation": off.speculation.model_copy(update=silent)})
        async with (
            supervised(off, plan.say),
            through_pml(settings, offered) as client,
            through_pml(off, offered) as other,
        ):
            plan.say("training")
            known = known_from(await read_catalog(settings), DEFAULT_TENANT)
            trained = await asyncio.to_thread(_trained, settings, play, known)
            await promote(settings, trained.manifest["model_id"], NAME)
            await publish_override(settings, chosen_context(DEFAULT_TENANT, "", "", ""), threshold, NAME)
            plan.say("warming up")
            await _warm(settings, client, play)
            plan.say(f"playing {len(play.sessions)} sessions, with predictions")
            with_them = await _played(settings, client, play)
            plan.say("the same without")
            without = await _played(off, other, play)
            guesses = await _foreseen(settings, play, trained)
    return _figures(play, threshold, (with_them, without), guesses)


def _settings(folder: Path, play: Play) -> Settings:
    """One server with the recorded tools; what it reads any write may change."""
    (folder / "recorded.json").write_bytes(server_file(play))
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
        )
    )


def server_file(play: Play) -> bytes:
    """What `benchmarks.servers.recorded` is started with."""
    tools = [
        {
            "name": tool,
            "description": play.descriptions.get(tool, ""),
            "reads": reads,
            "input_schema": play.schemas[tool],
        }
        for tool, reads in play.reads.items()
    ]
    results = {
        key_of(each.name, each.arguments).decode(): given(each)
        for session in play.sessions
        for each in session.made
    }
    return orjson.dumps({"seed": play.seed, "median_s": MEDIAN_S, "tools": tools, "results": results})


def _trained(settings: Settings, play: Play, known: Known) -> Trained:
    """What `pml train` makes of sessions and the catalog; nearly none are kept aside: others are played."""
    source = Source(
        replace(as_sequences(play.learned_of, known.texts), listed=known.listed),
        {"from": "benchmark"},
        play.learned_of,
        known.schemas,
        names=[each.name for each in play.learned_of],
    )
    wish = Wish(seed=play.seed, test_share=0.05)
    return train(source, WordLlamaEmbedding(), settings.models_folder, wish, Phases())


def _offered(play: Play) -> dict[str, str]:
    """The name under which the proxy offers each tool."""
    return proxied_names(f"{SERVER}:{tool}" for tool in play.reads)


async def _warm(settings: Settings, client: Client, play: Play) -> None:
    """Until the promoted model answers."""
    session = replace(play.sessions[0], thoughts_s=(0.0,) * len(play.sessions[0].made))
    names, number = _offered(play), count()
    async with EventConsumer(settings, start="end", types=["prediction.made"]) as made:
        answered_by_model = asyncio.ensure_future(_by_a_model(made))
        try:
            async with asyncio.timeout(ANSWERED_S):
                while not answered_by_model.done():
                    await _alone(client, names, replace(session, name=f"{FIRST}-{next(number)}"))
                await answered_by_model
        except TimeoutError:
            answered_by_model.cancel()
            raise CallFailed(f"the model answered nothing within {ANSWERED_S:g} s") from None


async def _by_a_model(made: EventConsumer) -> None:
    async for event in made:
        if isinstance(event.data, PredictionMade) and event.data.model:
            return


async def _played(settings: Settings, client: Client, play: Play) -> Came:
    """All sessions, a few at a time, and what the log says of them."""
    names, waiting, found = _offered(play), iter(play.sessions), Came()

    async def agent() -> None:
        for session in waiting:
            took_s = await _alone(client, names, session)
            found.wall_s += took_s

    async with EventConsumer(settings, start="end", types=("run.completed", "internal.ended")) as events:
        await asyncio.gather(*(agent() for _ in range(AT_ONCE)))
        await _settled(events, play, asked=settings.speculation.predictions == "on")
    played_by = {session.name for session in play.sessions}
    types = ("speculation.started", "task.completed")
    async with EventConsumer(settings, until_end=True, types=types) as events:
        async for event in events:
            if event.session_id in played_by:
                found.begun += event.type == "speculation.started"
                found.served += isinstance(event.data, TaskCompleted) and event.data.served_by in EARLY
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


async def _alone(client: Client, names: dict[str, str], session: Session) -> float:
    """Seconds of one session, from its first thought to its last result."""
    meta: Any = {SESSION_META: session.name, REQUEST_META: session.request}
    began = time.perf_counter()
    for call, thought_s in zip(session.made, session.thoughts_s, strict=True):
        await asyncio.sleep(thought_s)
        answer = await client.call_tool(names[f"{SERVER}:{call.name}"], dict(call.arguments), meta=meta)
        if answer.is_error or answer.structured_content != given(call):
            raise CallFailed(f"{call.name} answered {answer.content!r:.300}")
    return time.perf_counter() - began


async def _foreseen(settings: Settings, play: Play, trained: Trained) -> list[list[list[Guess]]]:
    """For each session and call what the model answers after it, by the code that serves."""
    library = Library()
    for record in (await read_catalog(settings)).values():
        library.take(record)
    served = as_served(settings, trained.model, trained.manifest)
    return [
        [_guesses(library, served, play, session, place) for place in range(1, len(session.made) + 1)]
        for session in play.sessions
    ]


def _guesses(library: Library, served: Served, play: Play, session: Session, place: int) -> list[Guess]:
    names = [f"{SERVER}:{each.name}" for each in session.made[:place]]
    past = tuple(
        PastElement(name=name, arguments=dict(each.arguments), result=given(each))
        for name, each in zip(names[-VALUES_MOST:], session.made[:place][-VALUES_MOST:], strict=True)
    )
    request = PredictRequest(history=tuple(names[-HISTORY_MOST:]), request=session.request, past=past)
    answer = answered(library, DEFAULT_TENANT, request, served)
    tasks = {task.id: task for task in answer.workflow.tasks} if answer.workflow else {}
    return [
        _guess(play, tasks[name], candidate.confidence)
        for candidate in answer.candidates
        for name in candidate.tasks
    ]


def _guess(play: Play, task: Task, confidence: float) -> Guess:
    tool = (task.tool or "").partition(":")[2]
    arguments = {
        name: value.value for name, value in task.arguments.items() if isinstance(value, LiteralValue)
    }
    key = key_of(tool, arguments)
    return Guess(tool, key, confidence, play.reads.get(tool, False), drawn_s(play.seed, key))


def _figures(
    play: Play, threshold: float, sides: Sequence[Came], guesses: Sequence[Sequence[Sequence[Guess]]]
) -> tuple[list[Figure], dict[str, Any]]:
    calls = [play.calls(session) for session in play.sessions]
    rules = Rules(threshold, ASKED_S, ANSWER_S)
    on = Account.total(played(each, after, rules) for each, after in zip(calls, guesses, strict=True))
    off, best = Account.total(map(unpredicted, calls)), Account.total(map(oracle, calls))
    with_them, without = sides
    figures = [
        Figure("a session with predictions ÷ without, stack", "s", (with_them.wall_s,), (without.wall_s,)),
        Figure("a session with predictions ÷ without, clock", "s", (on.wall_s,), (off.wall_s,)),
        Figure("stack ÷ clock, without predictions", "s", (without.wall_s,), (off.wall_s,)),
        Figure("stack ÷ clock, with predictions", "s", (with_them.wall_s,), (on.wall_s,)),
    ]
    gain = off.wall_s - best.wall_s
    return figures, {
        "sessions": len(calls),
        "calls": sum(map(len, calls)),
        "begun, stack": with_them.begun,
        "begun, clock": on.begun,
        "served, stack": with_them.served,
        "hits, clock": on.hits,
        "share of the oracle, stack": round((without.wall_s - with_them.wall_s) / gain, 3) if gain else None,
        "share of the oracle, clock": round((off.wall_s - on.wall_s) / gain, 3) if gain else None,
    }


if __name__ == "__main__":
    typer.run(main)
