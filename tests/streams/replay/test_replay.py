"""`pml replay --verify` against a real broker and the real embedded ClickHouse."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from typer.testing import CliRunner

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.processors.workflow import Session, evolve
from pml.schemas.errors import BrokerUnavailable
from pml.schemas.events import Event
from pml.schemas.identifiers import session_key
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.cli.app import app
from pml.streams.client import new_id
from pml.streams.connection import client_options, producer_options
from pml.streams.health import Health
from pml.streams.orchestrator.table import Life, life_key, write_session
from pml.streams.replay import sources
from pml.streams.replay.parts import Part, parts_of, replay_part
from pml.streams.replay.play import ReplayReport
from pml.streams.replay.selection import Selection
from pml.streams.replay.sources import OnRead, read_records
from pml.streams.settings import Settings
from pml.streams.sink import Sink
from pml.streams.topics import ensure_topics
from tests.fixtures.patience import PATIENCE_S
from tests.log_writer import LogWriter, run_completed, run_started, task_completed, task_started

pytestmark = [pytest.mark.integration]
# Of each of the two runs: its begin and its end, a task, an episode.
DERIVED_ROWS = 8
RUN = (run_started(), task_started(), task_completed(), run_completed())


@pytest.fixture
def settings(
    kafka: str, clickhouse_url: str, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    prefix = new_id("replay") + "."
    settings = Settings.load(
        data_dir=tmp_path,
        kafka={"bootstrap_servers": kafka, "topic_prefix": prefix, "session_timeout_s": 6, "heartbeat_s": 1},
        clickhouse={"url": clickhouse_url, "database": database},
        sink={"batch_rows": 50, "batch_wait_ms": 50},
    )
    for module in ("replay", "events"):
        monkeypatch.setattr(f"pml.streams.cli.{module}.load_settings", lambda: settings)
    asyncio.run(ensure_topics(settings))
    with Store.connect(clickhouse_url, database, answer_timeout_s=PATIENCE_S) as store:
        migrate(store)
        store.command("ALTER TABLE episodes_raw MODIFY TTL toDateTime(timestamp) + INTERVAL 10000 DAY")
        yield settings
        store.command(f"DROP DATABASE {database} SYNC", use_database=False)


async def leave_behind(settings: Settings) -> tuple[list[Event], dict[str, int]]:
    """Two sessions in the log, in the store and in the orchestrator's changelog."""
    events: list[Event] = []
    places: dict[str, int] = {}
    async with LogWriter(settings) as log:
        for name in ("ses_1", "ses_2"):
            events += await log.write(name, *RUN, run_id=name)
            places[name] = log.partition(name)
    health, stop = Health(settings.data_dir, "sink"), asyncio.Event()
    running = asyncio.create_task(Sink(settings, health).run(stop))
    deadline = time.monotonic() + PATIENCE_S
    while health.record.facts.get("position", 0) < len(events):
        assert time.monotonic() < deadline, "the sink does not get on"
        await asyncio.sleep(0.05)
    stop.set()
    await asyncio.wait_for(running, PATIENCE_S)
    await write_changelog(settings, events, places)
    return events, places


async def write_changelog(settings: Settings, events: list[Event], places: dict[str, int]) -> None:
    topic = f"{settings.group('orchestrator')}-sessions-changelog"
    admin = AIOKafkaAdminClient(**client_options(settings))
    await admin.start()
    await admin.create_topics([NewTopic(topic, SESSION_PARTITIONS, 1)])
    await admin.close()
    for name, partition in places.items():
        state: Session | None = None
        for event in events:
            state = evolve(state, event) if event.session_id == name else state
        assert state is not None
        await put_state(settings, partition, state, write_session(state, 0))


async def put_state(settings: Settings, partition: int, state: Session, value: bytes) -> None:
    life = Life(session_key("local", state.session_id), state.epoch)
    producer = AIOKafkaProducer(**producer_options(settings))
    await producer.start()
    topic = f"{settings.group('orchestrator')}-sessions-changelog"
    await producer.send_and_wait(topic, value=value, key=life_key(partition, life), partition=partition)
    await producer.stop()


async def committed_offsets(settings: Settings) -> dict[str, dict[TopicPartition, int]]:
    """What each group of the broker has committed in the topics of this installation."""
    admin = AIOKafkaAdminClient(**client_options(settings))
    await admin.start()
    found = {}
    for name, *_ in await admin.list_consumer_groups():
        told = await admin.list_consumer_group_offsets(name)
        own = {pair: told[pair].offset for pair in told if pair.topic.startswith(settings.topics.prefix)}
        found |= {name: own} if own else {}
    await admin.close()
    return found


def verified(*options: str, code: int) -> dict[str, dict[str, object]]:
    """The projections that the command reports."""
    answer = CliRunner().invoke(app, ["replay", "--verify", "--json", *options])
    assert answer.exit_code == code, answer.output
    return {item["projection"]: item for item in orjson.loads(answer.stdout)["projections"]}


def first(projection: dict[str, object]) -> dict[str, object]:
    found = projection["first"]
    assert isinstance(found, dict)
    return found


async def written_at(settings: Settings, partition: int, offset: int) -> int:
    """When the broker wrote a record, milliseconds since 1970."""
    async for records in read_records(settings, settings.topics.events, partition, range(offset, offset + 1)):
        return int(records[0].timestamp)
    raise AssertionError("it is not there")


async def test_what_was_written_before_is_not_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LogWriter(settings) as log:
        partition = log.partition("ses_1")
        before = await log.write("ses_1", *RUN, run_id="ses_1")
        first_ms = await written_at(settings, partition, before[0].offset)
        while time.time() * 1_000 <= first_ms + 1:
            await asyncio.sleep(0.001)
        late = await log.write("ses_1", *RUN, run_id="ses_2")
    since_ms = await written_at(settings, partition, late[0].offset)

    async def spans(since_ms: int) -> dict[int, range]:
        parts = await parts_of(settings, Selection("kafka", since_ms=since_ms))
        return {part.partition: part.offsets for part in parts}

    # Clocks may be that far apart.
    whole = range(before[0].offset, late[-1].offset + 1)
    assert (await spans(since_ms))[partition] == (await spans(0))[partition] == whole
    monkeypatch.setattr(sources, "CLOCKS_APART_MS", 0)
    assert (await spans(since_ms))[partition] == range(late[0].offset, whole.stop)
    nothing = await spans(since_ms + 86_400_000)
    assert not any(len(offsets) for offsets in nothing.values())


def test_what_is_altered_is_named(settings: Settings, tmp_path: Path) -> None:
    events, places = asyncio.run(leave_behind(settings))
    committed = asyncio.run(committed_offsets(settings))
    assert committed, "the sink's"
    whole = verified(code=0)
    assert asyncio.run(committed_offsets(settings)) == committed, "nothing is committed"
    assert [whole[name]["compared"] for name in ("sessions", "clickhouse")] == [2, len(events)]
    assert (whole["derived"]["verdict"], whole["derived"]["compared"]) == ("same", DERIVED_ROWS)

    copy = tmp_path / "log.jsonl"
    dumped = CliRunner().invoke(app, ["events", "dump", "--json"])
    assert dumped.exit_code == 0, dumped.output
    copy.write_text(dumped.stdout)
    assert verified("--from", str(copy), code=0)["clickhouse"]["verdict"] == "same"

    from_store = verified("--from", "clickhouse", code=0)
    assert (from_store["sessions"]["compared"], from_store["sessions"]["verdict"]) == (2, "same")
    assert (from_store["derived"]["compared"], from_store["derived"]["verdict"]) == (DERIVED_ROWS, "same")
    assert verified("--workers", "2", code=0) == verified("--workers", "1", code=0) == whole
    late = verified("--since", "2100-01-01", code=1)
    assert {item["folded"] for item in late.values()} == {0}
    typo = CliRunner().invoke(app, ["replay", "--verify", "--session", "ses_l", "--json"])
    assert (typo.exit_code, "no event of session ses_l of tenant local" in typo.stderr) == (1, True)
    assert orjson.loads(typo.stdout)["same"] is False
    assert CliRunner().invoke(app, ["replay", "--session", "ses_l"]).exit_code == 0, "it compares nothing"

    lines = [event.model_dump(exclude_none=True) for event in events]
    lines[2]["data"]["duration_ms"] = 77_777.0
    copy.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    named = first(verified("--from", str(copy), code=1)["clickhouse"])
    assert (named["key"], named["offset"], named["field"]) == (
        *(events[2].id, events[2].offset),
        "data.duration_ms",
    )

    lines[2]["data"]["duration_ms"] = "long"
    lines[6] = {"id": "nobody"}
    copy.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    found = verified("--from", str(copy), code=1)
    assert (found["log"]["differences"], found["log"]["compared"]) == (2, len(events) - 2)
    assert first(found["log"])["key"] == "line 7: nobody"
    alone = first(verified("--from", str(copy), "--session", "ses_1", "--until", "2100-01-01", code=1)["log"])
    assert alone["key"] == "line 7: nobody"
    gone = ((places["ses_1"], events[2].offset), (places["ses_2"], events[6].offset))
    named = first(found["clickhouse"])
    assert (named["partition"], named["offset"]) == min(gone)
    copy.write_text("no events\n{}\n")
    assert CliRunner().invoke(app, ["replay", "--from", str(copy)]).exit_code == 2

    state: Session | None = None
    for event in events[:4]:
        state = evolve(state, event)
    assert state is not None
    broken = write_session(state, 0).replace(b'"doubtful":', b'"doubtfuL":')
    asyncio.run(put_state(settings, places["ses_1"], state, broken))
    url = settings.clickhouse.url
    assert url is not None
    with Store.connect(
        url.get_secret_value(), settings.clickhouse.database, answer_timeout_s=PATIENCE_S
    ) as store:
        store.command(
            f"DELETE FROM events_raw WHERE session_id = 'ses_2' AND log_offset = {events[5].offset}"
        )
    found = verified(code=1)
    assert first(found["sessions"])["key"] == events[3].id
    assert (first(found["clickhouse"])["key"], first(found["clickhouse"])["field"]) == (events[5].id, "row")
    assert verified("--session", "ses_1", code=1)["clickhouse"]["verdict"] == "same"


def test_a_live_record_behind_the_end_of_the_log_proves_that_events_were_lost(
    settings: Settings, tmp_path: Path
) -> None:
    events, places = asyncio.run(leave_behind(settings))
    state: Session | None = None
    for event in events[: len(RUN)]:
        state = evolve(state, event)
    assert state is not None
    partition, end = places["ses_1"], len(events)
    value = write_session(replace(state, last_offset=end), 0)
    asyncio.run(put_state(settings, partition, state, value))

    named = first(verified(code=1)["sessions"])
    assert (named["partition"], named["offset"], named["key"]) == (partition, end, "local/ses_1")
    assert verified("--session", "ses_1", code=0)["sessions"]["differences"] == 0
    copy = tmp_path / "log.jsonl"
    copy.write_text(CliRunner().invoke(app, ["events", "dump", "--json"]).stdout)
    told = verified("--from", str(copy), code=0)["sessions"]["notes"]
    assert told == ["1 live records end with events that the source does not have"]


def test_a_replay_that_was_stopped_is_resumed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(leave_behind(settings))
    whole = verified(code=0)
    done: list[int] = []

    async def stops(settings: Settings, selection: Selection, part: Part, on_read: OnRead) -> ReplayReport:
        if len(done) == 5:
            raise BrokerUnavailable("the broker went away")
        done.append(part.partition)
        return await replay_part(settings, selection, part, on_read)

    with monkeypatch.context() as patched:
        patched.setattr("pml.streams.replay.workers.replay_part", stops)
        stopped = CliRunner().invoke(app, ["replay", "--verify", "--json"])
    assert stopped.exit_code == 4
    assert "5 of 12 partitions are done; --resume goes on there" in stopped.stderr

    answer = CliRunner().invoke(app, ["replay", "--verify", "--json", "--resume"])
    assert answer.exit_code == 0, answer.output
    report = orjson.loads(answer.stdout)
    assert report["partitions_done_before"] == 5
    assert {item["projection"]: item for item in report["projections"]} == whole
    assert [*(tmp_path / "replay").iterdir()] == []

    again = CliRunner().invoke(app, ["replay", "--verify", "--json", "--resume"])
    assert orjson.loads(again.stdout)["partitions_done_before"] == 0
    refused = CliRunner().invoke(app, ["replay", "--from", "log.jsonl", "--resume"])
    assert refused.exit_code == 2
