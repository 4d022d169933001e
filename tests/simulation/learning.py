"""The projection of lessons over the log of a play: the real fold, taught and learned by roles that die.

Whatever order chunks come in, however often a lesson is sent and wherever a crash lies between the writes of
rows, the edges of the tool graph are those of a twin that reads each lesson once; and how often each
capability called each of its tools is what the log says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from pml.processors.capabilities import edge_weights
from pml.processors.capabilities.records import ANALYSED, drafted
from pml.schemas.catalog import Edge
from pml.schemas.codec import decode_lesson, encode
from pml.schemas.events import Event
from pml.schemas.lessons import Lesson
from pml.streams.connection import partition_for
from pml.streams.projections.thresholds import learning, teaching
from pml.streams.projections.thresholds.table import decode_row, encode_row
from tests.lesson_records import Held
from tests.simulation.broker import Record
from tests.simulation.ledger import Ledger
from tests.streams.projections.graph_twin import Figures, Twin, edges_in

DIES = 0.2
CHUNKS = (1, 2, 7, 100)
ENDS = {"run.completed": True, "run.failed": False}
Called = Counter[tuple[str, str, str]]
"""How often a capability of a tenant called a tool."""


def look_at_lessons(
    ledger: Ledger, random: Random, log: Sequence[Record], history: Iterable[Sequence[Event]]
) -> None:
    """What is learned from a log is what it says, and the catalog is told of it."""
    lanes = _taught(random, log)
    edges: dict[str, Figures] = {}
    for lane in lanes.values():
        rows, told = _learned(random, lane)
        twin = Twin()
        for lesson in lane:
            twin.take(lesson)
        differs = sorted(rows.items() ^ twin.edges.items())[:3]
        ledger.check("edges are those of a twin of the lessons", not differs, lambda d=differs: d)
        far = [name for name, (weight, _, _) in rows.items() if _is_far(told.get(name), weight)]
        ledger.check("the catalog is told of every edge", not far, lambda f=far: f)
        edges |= rows
    found = _calls_in(edges)
    ledger.check("tools are called as often as the log says", found == _calls_of(history), lambda: found)


def _taught(random: Random, log: Sequence[Record]) -> Mapping[int, list[Any]]:
    """The partitions of lessons. A teacher that dies has sent some; the chunk is taught again."""
    waiting: dict[int, list[Record]] = defaultdict(list)
    for record in log:
        waiting[record.partition].append(record)
    lanes: dict[int, list[Any]] = defaultdict(list)
    while waiting:
        number = random.choice(sorted(waiting))
        chunk = waiting[number][: random.choice(CHUNKS)]
        lessons: list[Lesson] = teaching.teach(chunk).lessons
        dies = random.random() < DIES
        for lesson in lessons[: random.randrange(len(lessons) + 1)] if dies else lessons:
            lanes[partition_for(lesson.key)].append(decode_lesson(encode(lesson)))
        if not dies:
            waiting[number] = waiting[number][len(chunk) :]
            if not waiting[number]:
                del waiting[number]
    return lanes


def _learned(random: Random, lane: Sequence[Lesson]) -> tuple[dict[str, Figures], dict[str, Edge]]:
    """The edges of a partition, and what was told. A learner that dies has written some rows of a chunk."""
    records = [Held(offset, encode(lesson)) for offset, lesson in enumerate(lane)]
    stored: dict[str, bytes] = {}
    told: dict[str, Edge] = {}
    state, position = learning.PartitionLearning(), 0
    while position < len(records):
        chunk = records[position : position + random.choice(CHUNKS)]
        learned = state.fold(chunk)
        told |= {name: record for name, record in learned.records if isinstance(record, Edge)}
        rows = [(name, encode_row(row)) for name, row in learned.rows.items() if row is not None]
        if random.random() < DIES:
            stored.update(rows[: random.randrange(len(rows) + 1)])
            state = learning.PartitionLearning(_read(stored), position - 1)
            continue
        stored.update(rows)
        state.keep(learned)
        position += len(chunk)
    return edges_in(_read(stored)), told


def _read(stored: Mapping[str, bytes]) -> dict[str, Any]:
    return {name: decode_row(row) for name, row in stored.items()}


def _is_far(told: Edge | None, weight: float) -> bool:
    return told is None or abs(told.weight - weight) > edge_weights.TELL_FROM + 1e-6


def _calls_in(edges: Mapping[str, Figures]) -> tuple[Called, Called]:
    runs, successes = Called(), Called()
    for subject, (_, count, good) in edges.items():
        tenant, key = edge_weights.edge_parts(subject)
        if key.type == "contains":
            runs[tenant, key.source, key.target] += count
            successes[tenant, key.source, key.target] += good
    return +runs, +successes


def _calls_of(history: Iterable[Sequence[Event]]) -> tuple[Called, Called]:
    """Straight from the events of each session: the tasks of what was analysed, and the path of each run.

    Of a program that comes in parts those that it asked for since the run began, or was tried again.
    """
    runs, successes = Called(), Called()
    for events in history:
        stepping: dict[str | None, str | None] = {}
        tools: dict[tuple[str | None, str], dict[str, str]] = {}
        for event in events:
            data = event.data.model_dump(mode="json", exclude_none=True)
            record = drafted(event.type, event.tenant, data, "") if event.type in ANALYSED else None
            if record is not None:
                named = {task.id: task.tool or task.capability or "" for task in record.tasks}
                tools[event.run_id, record.capability_id] = named
            if event.type == "run.expanded" and (data.get("mode") == "sandbox" or data.get("grows")):
                asked = {task["id"]: task["tool"] for task in data["definition"].get("tasks", ())}
                stepping[event.run_id] = data.get("capability_id")
                tools.setdefault((event.run_id, data.get("capability_id")), {}).update(asked)
            known = tools.get((event.run_id, data.get("capability_id", "")), {})
            if event.type in ENDS:
                path = data.get("executed_path", ())
                ran = {tool for task, tool in known.items() if _ran(task, path)}
                for tool in ran:
                    called = event.tenant, data["capability_id"], tool
                    runs[called] += 1
                    successes[called] += ENDS[event.type]
                if stepping.get(event.run_id) == data.get("capability_id"):
                    known.clear()
    return +runs, +successes


def _ran(task: str, path: Iterable[str]) -> bool:
    return any(step == task or step.startswith((f"{task}__", f"{task}#")) for step in path)
