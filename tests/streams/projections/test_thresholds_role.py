"""The role over a real broker: from outcomes in the log to the snapshot that decisions are taken with."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pml.processors.capabilities.edge_weights import TELL_FROM, KnownEdge
from pml.processors.speculation.adaptation import WINDOW, Learning, learn
from pml.processors.workflow import Catalog, Policy
from pml.schemas.catalog import Capability, CatalogRecord, Edge, ModelLive, ModelRecord
from pml.schemas.events import EventData, InternalEnded, PredictionMade
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.catalog_topic import publish, read_catalog
from pml.streams.client import new_id
from pml.streams.connection import client_options
from pml.streams.crash_points import VARIABLE
from pml.streams.health import Health
from pml.streams.orchestrator.catalog import CatalogFollower
from pml.streams.projections.thresholds.reader import (
    ContextThreshold,
    read_branches,
    read_rows,
    read_thresholds,
)
from pml.streams.projections.thresholds.role import Thresholds
from pml.streams.replay.lessons import LessonsReplay
from pml.streams.replay.parts import lessons_compared, read_lessons
from pml.streams.replay.play import Folds, ReplayReport, merged, replay
from pml.streams.replay.sessions import SessionsReplay
from pml.streams.replay.sources import read_log, topic_spans
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from pml.streams.worker import ensure_table
from tests.fixtures.commands import Command, start_role
from tests.fixtures.patience import PATIENCE_S
from tests.log_writer import LogWriter, run_completed, speculation_ended
from tests.streams.learning.kept_models import FIRST, SECOND, keep, serving

pytestmark = [pytest.mark.integration]
CONTEXT = {"user": "ann", "domain": "web", "workflow_type": "audit"}
PATH = {"type": "literal", "value": "a.md"}
RUN: list[EventData] = [
    speculation_ended(confidence=0.93, context=CONTEXT, kind="branch"),
    speculation_ended("discarded", "invalidated", confidence=0.93, context=CONTEXT, kind="branch"),
    speculation_ended(),
    run_completed(workflow_type="audit", decisions={"d1": "true"}),
]

EDGE = "edge/local/contains/cap_0123456789ab/files%3Aread_file"
ANALYSIS = {
    "capability_id": "cap_0123456789ab",
    "intent": "Read my notes",
    "source": "await mcp.files.read_file(path='a.md')",
    "structure": {
        "language": "python",
        "nodes": [{"id": "n1", "type": "task", "tool": "files:read_file", "arguments": {"path": PATH}}],
    },
}


@pytest.fixture
async def settings(kafka: str, tmp_path: Path) -> Settings:
    settings = Settings.load(
        data_dir=tmp_path,
        kafka={
            "bootstrap_servers": kafka,
            "topic_prefix": new_id("thresholds") + ".",
            "session_timeout_s": 6,
            "heartbeat_s": 1,
            "group_instance_id": "the-thresholds",
        },
    )
    await ensure_topics(settings)
    await ensure_table(settings, "thresholds")
    return settings


@asynccontextmanager
async def projecting(settings: Settings) -> AsyncIterator[Health]:
    """The role while it runs; its error, if it ends with one, is raised here."""
    health, stop = Health(settings.data_dir, "thresholds"), asyncio.Event()
    running = asyncio.create_task(Thresholds(settings, health).run(stop))
    try:
        yield health
    finally:
        stop.set()
        await asyncio.wait_for(running, PATIENCE_S)


async def write_runs(log: LogWriter, count: int) -> None:
    """Runs in sessions of their own: they lie in all partitions of the log."""
    for _ in range(count):
        session = new_id("ses")
        await log.write(session, *RUN, run_id=session)


async def until_learned(settings: Settings, outcomes: int) -> dict[str, ContextThreshold]:
    """What is known once each context has had so many outcomes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = {item.key: item for item in await read_thresholds(settings)}
        told = min((item.outcomes for item in found.values()), default=0) if len(found) == 4 else 0
        if told >= outcomes:
            return found
        assert time.monotonic() < deadline, f"{told} of {outcomes} outcomes were learned from"
        await asyncio.sleep(0.2)


async def until(condition: Callable[[], bool], failed: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, failed
        await asyncio.sleep(0.05)


def after(successes: int) -> Learning:
    learning = Learning()
    for _ in range(successes):
        learning, _ = learn(learning, True)
    return learning


def check(found: dict[str, ContextThreshold], outcomes: int) -> None:
    """Each of the four contexts has learned from each outcome once."""
    expected = after(outcomes)
    assert set(found) == {
        "local/user=ann/type=audit",
        "local/domain=web/type=audit",
        "local/type=audit",
        "local/default",
    }
    for item in found.values():
        assert (item.outcomes, item.windows, item.window) == (outcomes, outcomes // WINDOW, outcomes % WINDOW)
        assert item.value == (expected.value if expected.windows else None)
        assert item.state == expected.state


@asynccontextmanager
async def following(settings: Settings) -> AsyncIterator[CatalogFollower]:
    """The catalog as the orchestrator follows it."""

    async def report(record: object, error: Exception) -> None:
        raise AssertionError(error)

    options = {**client_options(settings), "client_id": "follower"}
    follower = CatalogFollower(options, settings.topics.catalog, Catalog(Policy(hash_key=b"k")), report)
    await follower.start()
    running = asyncio.create_task(follower.follow())
    try:
        yield follower
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await follower.stop()


async def test_what_the_log_teaches_is_in_the_snapshot_of_the_orchestrator(settings: Settings) -> None:
    async with LogWriter(settings) as log, projecting(settings) as health, following(settings) as follower:
        assert follower.snapshot().threshold("local", "ann", "web", "audit").value == 0.92
        await write_runs(log, 110)
        check(await until_learned(settings, 110), 110)
        await follower.catch_up()
        snapshot = follower.snapshot()
        found = snapshot.threshold("local", "ann", "web", "audit")
        assert (found.value, found.context_key) == (after(110).value, "local/user=ann/type=audit")
        assert found.value < 0.92
        assert snapshot.threshold("local", "bob", "web", "audit").context_key == "local/domain=web/type=audit"
        assert snapshot.threshold("local", "bob", "shop", "audit").context_key == "local/type=audit"
        assert snapshot.threshold("local", "bob", "shop", "other").context_key == "local/default"
        assert snapshot.threshold("acme", "ann", "web", "audit").value == 0.92
        told = snapshot.branch_probability("local", "audit", "d1", "true")
        assert abs(told - 111 / 112) < 0.01
        await until(lambda: health.record.facts.get("lag") == 0, "the role says that it lags")
        assert health.record.state == "ready"


async def test_a_restart_and_crashes_between_all_steps_count_nothing_twice(settings: Settings) -> None:
    async with LogWriter(settings) as log:
        total = 0
        for place in (
            None,
            "thresholds.after_lessons",
            "thresholds.after_records",
            "thresholds.after_lessons:3",
        ):
            await write_runs(log, 40)
            total += 40
            if place is not None:
                child = start_child(settings, place)
                assert await asyncio.to_thread(child.wait, PATIENCE_S) == -signal.SIGKILL, place
            async with projecting(settings):
                check(await until_learned(settings, total), total)
        (branch,) = await read_branches(settings)
    assert await again(settings) == {"lessons": "same", "learned": "same"}
    assert (branch.decision_id, branch.outcome, branch.runs, branch.of) == ("d1", "true", total, total)
    assert branch.probability == (total + 1) / (total + 2)


def start_child(settings: Settings, crash_at: str) -> Command:
    environment = {**os.environ, **settings.environment(), VARIABLE: crash_at}
    return start_role("thresholds", environment, settings.data_dir / "child.log", settings.data_dir)


async def test_two_share_the_partitions_and_nothing_is_lost_or_doubled(settings: Settings) -> None:
    kafka = settings.kafka.model_copy(update={"group_instance_id": None})
    settings = settings.model_copy(update={"kafka": kafka})
    other = settings.model_copy(update={"data_dir": settings.data_dir / "other"})
    async with LogWriter(settings) as log, projecting(settings) as first:
        await write_runs(log, 30)
        async with projecting(other) as second:
            await write_runs(log, 30)
            await until(lambda: second.record.facts.get("partitions") == 6, "the partitions were not shared")
            await write_runs(log, 30)
            check(await until_learned(settings, 90), 90)
        await write_runs(log, 30)
        check(await until_learned(settings, 120), 120)
        await until(lambda: first.record.facts.get("partitions") == 12, "the partitions did not come back")
    records = await read_catalog(settings)
    assert records[b"threshold/local/default"].data.outcomes == 100  # type: ignore[attr-defined]


async def test_a_program_that_succeeds_is_a_learned_capability_of_the_catalog(settings: Settings) -> None:
    went_well = run_completed(capability_id="cap_0123456789ab")
    analysed = InternalEnded(call_id="call_1", tool="pml:analyse", answer=ANALYSIS, duration_ms=1)
    async with LogWriter(settings) as log, projecting(settings):
        for _ in range(3):
            session = new_id("ses")
            await log.write(session, analysed, went_well, run_id=session)
        record = await until_told(settings, runs=3)
    assert (record.status, record.name, record.successes) == ("learned", "read-my-notes", 3)
    assert [(item.name, item.default) for item in record.parameters] == [("path", "a.md")]


async def test_edges_learn_of_each_run_once_through_crashes(settings: Settings) -> None:
    analysed = InternalEnded(call_id="call_1", tool="pml:analyse", answer=ANALYSIS, duration_ms=1)
    went_well = run_completed(capability_id="cap_0123456789ab")
    async with LogWriter(settings) as log:
        for total, place in ((10, None), (20, "thresholds.after_lessons"), (30, "thresholds.after_records")):
            for _ in range(10):
                session = new_id("ses")
                await log.write(session, analysed, went_well, run_id=session)
            if place is not None:
                child = start_child(settings, place)
                assert await asyncio.to_thread(child.wait, PATIENCE_S) == -signal.SIGKILL, place
            async with projecting(settings):
                edge = await until_walked(settings, total)
    assert await again(settings) == {"lessons": "same", "learned": "same"}
    told = (await read_catalog(settings))[EDGE.encode()].data
    assert edge.weight == pytest.approx(1 - 0.2 * 0.9**30)
    assert isinstance(told, Edge)
    assert abs(told.weight - edge.weight) < TELL_FROM


async def again(settings: Settings) -> dict[str, str]:
    """What a replay says of all lessons, and of what was learned from them."""
    live = await read_lessons(settings)
    spans = await topic_spans(settings, settings.topics.events, range(SESSION_PARTITIONS))
    reports: list[ReplayReport] = []
    for number, offsets in spans.items():
        taught = LessonsReplay(settings.topics.events, number, live.taught.get(number, 0))
        folds = Folds(SessionsReplay({}), lessons=taught)
        reports.append(await replay(read_log(settings, number, offsets), folds))
        reports[-1].comparisons += await lessons_compared(settings, number, live, taught)
    told = {item.projection: item for item in merged(reports).comparisons}
    assert all(told[name].compared for name in ("lessons", "learned"))
    assert all(not told[name].notes for name in ("lessons", "learned"))
    return {name: told[name].verdict for name in ("lessons", "learned")}


async def until_walked(settings: Settings, runs: int) -> KnownEdge:
    """The row of the edge, once it knows of so many runs; of more it never may."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        row = (await read_rows(settings)).get(EDGE)
        edge = row.learned if row is not None else None
        if isinstance(edge, KnownEdge) and edge.runs >= runs:
            assert edge.runs == runs
            return edge
        assert time.monotonic() < deadline, f"the table has {edge}"
        await asyncio.sleep(0.2)


async def until_told(settings: Settings, runs: int) -> Capability:
    """The record of the only capability, once it tells so many runs."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        data = (await read_catalog(settings)).get(b"capability/local/cap_0123456789ab")
        record = data.data if data is not None else None
        if isinstance(record, Capability) and record.runs >= runs:
            return record
        assert time.monotonic() < deadline, f"the catalog has {record}"
        await asyncio.sleep(0.2)


async def test_a_model_that_is_wrong_live_is_rolled_back_once_through_a_crash(settings: Settings) -> None:
    keep(settings.models_folder, FIRST, SECOND)
    record = serving(FIRST, SECOND)
    await publish(settings, CatalogRecord(kind=record.KIND, id="local", data=record))

    def predicted(*history: str) -> PredictionMade:
        return PredictionMade(
            call_id="call_1", model=FIRST, learner="ranker", history=history, threshold=0.9, first="a:x"
        )

    async with LogWriter(settings) as log:
        for _ in range(60):
            session = new_id("ses")
            await log.write(session, predicted("a:x"), predicted("a:x", "b:y"), run_id=session)
        child = start_child(settings, "thresholds.after_records")
        assert await asyncio.to_thread(child.wait, PATIENCE_S) == -signal.SIGKILL
        async with projecting(settings) as health:
            await until_model(settings, SECOND)
            await until(lambda: health.record.facts.get("lag") == 0, "the role says that it lags")
    found = await read_catalog(settings)
    model, told = found[b"model/local"].data, found[b"model_live/local"].data
    assert isinstance(model, ModelRecord)
    assert isinstance(told, ModelLive)
    assert [item.model_id for item in model.fallen or ()] == [FIRST]
    assert (model.reason, model.previous, told.hits, told.outcomes) == ("rolled_back", (), 0, 50)


async def until_model(settings: Settings, model_id: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        data = (await read_catalog(settings))[b"model/local"].data
        if isinstance(data, ModelRecord) and data.model_id == model_id:
            return
        assert time.monotonic() < deadline, f"{data} serves still"
        await asyncio.sleep(0.2)
