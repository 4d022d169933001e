"""`memory`: what episodes cost, how fast 10,000 of them are asked, and whether the past helps.

The store is a real one, filled with the events of sessions that the core decided. A question is asked as the
bridge asks it, and each reads first what is new (the bridge does so once a second). The last figures are
about predictions and not about time: see `memory_traces.py`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import orjson

from benchmarks.datasets import datasets_place
from benchmarks.figures import Bound, Figure
from benchmarks.history import catalog, history
from benchmarks.memory_traces import Choice, drawn_choices, recorded_choices, replay
from benchmarks.plan import Plan
from benchmarks.stack import bench_settings, store
from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE, event_row
from pml.processors.memory.context import context_of
from pml.processors.memory.embedding import HashedNgrams
from pml.processors.memory.index import ExactIndex, HnswIndex, VectorIndex
from pml.processors.workflow import Catalog, Input, decide
from pml.schemas.calls import CallRun
from pml.schemas.codec import encode
from pml.schemas.commands import Command, RunStart
from pml.schemas.memory import EpisodeType, RecallMode, RecallRequest
from pml.schemas.times import to_rfc3339
from pml.schemas.workflow import Workflow
from pml.streams.bridge.recall import Recall
from pml.streams.connection import store_url
from pml.streams.settings import Settings

EPISODES = 10_000
# Of the events of drawn sessions, about one in three is an episode.
EVENTS = 36_000
QUESTIONS = 40
STARTS = 400
BATCH_ROWS = 2_000
# The limits, in milliseconds.
CAPTURE_MS, EXACT_MS, FUZZY_MS = 1.0, 20.0, 100.0
WITHIN = Bound("at most", 1.0)
KINDS: dict[str, tuple[EpisodeType, ...]] = {
    "tasks and speculations": ("task_complete", "speculation_start"),
    "tasks": ("task_complete",),
    "speculations": ("speculation_start",),
}
WORDS = [
    f"{first}{second}" for first in ("re", "in", "pro", "con", "de") for second in ("port", "duct", "form")
]


@dataclass(slots=True)
class Measured:
    """One value a round, in milliseconds."""

    exact_ms: list[float] = field(default_factory=list)
    fuzzy_ms: list[float] = field(default_factory=list)
    ask_ms: list[float] = field(default_factory=list)
    insert_ms: list[float] = field(default_factory=list)
    plain_ms: list[float] = field(default_factory=list)
    graph_ms: list[float] = field(default_factory=list)
    compared_ms: list[float] = field(default_factory=list)


async def measure(plan: Plan) -> Sequence[Figure]:
    """Fill a store, ask it, and replay traces, in every round."""
    drawn, measured = random.Random(plan.seed), Measured()
    plan.say(f"deciding {EVENTS:,} events")
    rows = await asyncio.to_thread(_rows, plan.seed)
    async with store(bench_settings(plan.folder)) as settings:
        await asyncio.to_thread(_fill, settings, rows)
        recall = Recall(settings, fresh_s=0)
        await _asked_ms(recall, drawn, "fuzzy", 1)  # reads all and builds the index
        indexes = _indexes(drawn)
        for number in range(plan.rounds):
            plan.say(f"round {number + 1} of {plan.rounds}")
            measured.exact_ms.append(await _asked_ms(recall, drawn, "exact", QUESTIONS))
            measured.fuzzy_ms.append(await _asked_ms(recall, drawn, "fuzzy", QUESTIONS))
            measured.ask_ms.append(_start_ms("on") - _start_ms("off"))
            plain, whole = await asyncio.to_thread(_insert_ms, settings, rows[:BATCH_ROWS], number)
            measured.plain_ms.append(plain)
            measured.insert_ms.append(whole)
            graph, compared = _search_ms(indexes, drawn)
            measured.graph_ms.append(graph)
            measured.compared_ms.append(compared)
        recall.close()
    plan.say("replaying traces")
    return [*_times(measured), *await asyncio.to_thread(_predictions, plan)]


def _rows(seed: int) -> list[tuple[Any, ...]]:
    """Rows of events that began yesterday; each run in a context of its own."""
    drawn = random.Random(seed)
    log = history(EVENTS, seed, time.time_ns() // 1_000_000 - 86_400_000)
    rows: list[tuple[Any, ...]] = []
    for partition, events in log.items():
        for event in events:
            fields = orjson.loads(encode(event))
            if event.type == "run.started":
                fields["data"] |= {"workflow_type": f"type{drawn.randrange(20)}", "context": _context(drawn)}
            rows.append(event_row(partition, fields))
    return rows


def _context(drawn: random.Random) -> dict[str, Any]:
    request = " ".join(drawn.choices(WORDS, k=12)) + f" {drawn.getrandbits(32)}"
    return {"domain": f"domain{drawn.randrange(7)}", "request": request}


def _fill(settings: Settings, rows: list[tuple[Any, ...]]) -> None:
    with Store.connect(store_url(settings), settings.clickhouse.database) as opened:
        migrate(opened)
        opened.insert(EVENTS_TABLE, EVENT_COLUMNS, rows)
        ((count,),) = opened.query("SELECT count() FROM episodes_raw").rows
    if count < EPISODES:
        raise ValueError(f"only {count} episodes of {EVENTS} events: raise EVENTS")


async def _asked_ms(recall: Recall, drawn: random.Random, mode: RecallMode, times: int) -> float:
    """The median of so many questions, each in a context of its own."""
    found: list[float] = []
    for _ in range(times):
        kind = f"type{drawn.randrange(20)}"
        request = RecallRequest(workflow_type=kind, context=_context(drawn), mode=mode)
        began = time.perf_counter()
        await recall(_question(request))
        found.append((time.perf_counter() - began) * 1_000)
    return median(found)


def _question(request: RecallRequest) -> CallRun:
    return CallRun(
        call_id="call_1",
        tenant="local",
        session_id="ses_1",
        run_id="run_1",
        task_id="",
        tool="pml:recall",
        arguments=request.model_dump(mode="json"),
        speculative=False,
        effect="read",
        timeout_ms=60_000,
        deadline_at=to_rfc3339(time.time_ns() // 1_000_000 + 60_000),
    )


def _start_ms(influence: str) -> float:
    """The median time to decide about a run with a branch."""
    snapshot = catalog(memory_influence=influence)
    tasks = [
        {"id": "n1", "tool": "files:list"},
        {
            "id": "n2",
            "tool": "files:read",
            "depends_on": ["n1"],
            "condition": {"node": "d1", "outcome": "true"},
        },
    ]
    decisions = [{"id": "d1", "expression": "n1.count > 0"}]
    workflow = Workflow.model_validate({"name": "branch", "tasks": tasks, "decisions": decisions})
    return median(_decided_ms(snapshot, workflow, number) for number in range(STARTS))


def _decided_ms(snapshot: Catalog, workflow: Workflow, number: int) -> float:
    command = Command(
        type=RunStart.TYPE, command_id=f"cmd_{number}", session_id="ses_1", data=RunStart(workflow=workflow)
    )
    given = Input("pml.commands", 0, number, 1_700_000_000_000, "local", "ses_1", command)
    began = time.perf_counter()
    decide(None, given, {}, snapshot, 0)
    return (time.perf_counter() - began) * 1_000


def _insert_ms(settings: Settings, rows: list[tuple[Any, ...]], number: int) -> tuple[float, float]:
    """One insert of a batch into tables without the view of episodes, and with it."""
    taken: list[float] = []
    for name, statement in (("plain", "DROP TABLE episodes_from_events"), ("whole", "SELECT 1")):
        with Store.connect(store_url(settings), f"memory_{name}_{number}") as opened:
            migrate(opened)
            opened.command(statement)
            opened.insert(EVENTS_TABLE, EVENT_COLUMNS, rows[:1])
            began = time.perf_counter()
            opened.insert(EVENTS_TABLE, EVENT_COLUMNS, rows)
            taken.append((time.perf_counter() - began) * 1_000)
    return taken[0], taken[1]


def _indexes(drawn: random.Random) -> tuple[VectorIndex, VectorIndex]:
    """The graph and its twin, with as many points as there may be contexts."""
    embedding = HashedNgrams()
    points = embedding.embed([context_of("type", _context(drawn)).text for _ in range(EPISODES)])
    graph, twin = HnswIndex(embedding.dimensions), ExactIndex(embedding.dimensions)
    graph.add(points)
    twin.add(points)
    return graph, twin


def _search_ms(indexes: tuple[VectorIndex, VectorIndex], drawn: random.Random) -> tuple[float, float]:
    points = HashedNgrams().embed([context_of("type", _context(drawn)).text for _ in range(QUESTIONS)])
    taken: list[float] = []
    for index in indexes:
        began = time.perf_counter()
        for point in points:
            index.nearest(point, 5)
        taken.append((time.perf_counter() - began) * 1_000 / QUESTIONS)
    return taken[0], taken[1]


def _times(measured: Measured) -> list[Figure]:
    rounds = len(measured.exact_ms)

    def against(name: str, values: list[float], limit_ms: float, note: str) -> Figure:
        return Figure(name, "ms", tuple(values), (limit_ms,) * rounds, WITHIN, note)

    return [
        against(
            "exact", measured.exact_ms, EXACT_MS, "a question to pml:recall ÷ the 20 ms that it may take"
        ),
        against(
            "fuzzy", measured.fuzzy_ms, FUZZY_MS, "a question to pml:recall ÷ the 100 ms that it may take"
        ),
        against(
            "capture",
            measured.ask_ms,
            CAPTURE_MS,
            "deciding about a run with memory.influence on − off ÷ 1 ms; episodes themselves cost it nothing",
        ),
        Figure(
            "insert",
            "ms",
            tuple(measured.insert_ms),
            tuple(measured.plain_ms),
            note=f"the sink's insert of {BATCH_ROWS:,} events with the view of episodes ÷ without",
        ),
        Figure(
            "index",
            "ms",
            tuple(measured.graph_ms),
            tuple(measured.compared_ms),
            note=f"the five nearest of {EPISODES:,} contexts by HNSW ÷ by comparing with all",
        ),
    ]


def _predictions(plan: Plan) -> list[Figure]:
    """With memory ÷ without: a Brier score is better below 1, an AUC above."""
    worlds: dict[str, Callable[[int], list[Choice]]] = {
        "branches by type": lambda seed: drawn_choices(seed, by_domain=False, success=(0.95, 1.0)),
        "branches by domain": lambda seed: drawn_choices(seed, by_domain=True, success=(0.95, 1.0)),
        "failing tools": lambda seed: drawn_choices(seed, by_domain=True, success=(0.4, 1.0)),
    }
    folder = datasets_place()
    recorded = recorded_choices(folder) if folder else []
    if recorded:
        worlds["recorded sessions"] = lambda _: recorded
    seeds = [plan.seed_of(number) for number in range(plan.rounds)]
    return [
        figure for name, draw in worlds.items() for figure in _scored(name, [draw(seed) for seed in seeds])
    ]


def _scored(name: str, rounds: list[list[Choice]]) -> list[Figure]:
    kinds = {label: [replay(choices, kinds) for choices in rounds] for label, kinds in KINDS.items()}
    told = ", ".join(
        f"{label} {median(moved.brier / plain.brier for plain, moved in pairs):.3f}"
        for label, pairs in kinds.items()
    )
    (pairs, *_) = kinds.values()
    return [
        Figure(
            f"{name}, Brier",
            "score",
            tuple(moved.brier for _, moved in pairs),
            tuple(plain.brier for plain, _ in pairs),
            note=f"confidence of branches with memory ÷ without, below 1 helps; by what is counted: {told}",
        ),
        Figure(
            f"{name}, AUC",
            "area",
            tuple(moved.auc for _, moved in pairs),
            tuple(plain.auc for plain, _ in pairs),
        ),
    ]
