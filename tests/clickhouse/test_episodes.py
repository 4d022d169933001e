"""Episodes in the store: derived from events, dropped after their days, read once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from pml.clickhouse import retention
from pml.clickhouse.client import Store
from pml.clickhouse.episodes import EpisodeReader
from pml.clickhouse.migrate import migrate
from pml.clickhouse.retention import EpisodeRetention, keep_episodes, remember_events
from pml.schemas.errors import StoreUnavailable
from pml.schemas.events import SpeculationDiverged
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration


@pytest.fixture
def store(migrated_store: Store) -> Store:
    return migrated_store


@pytest.fixture
def own_store(empty_store: Store) -> Store:
    """Whose tables a test may change."""
    migrate(empty_store)
    return empty_store


def a_run(**fields: Any) -> History:
    session = History(**fields)
    session.add(h.run_started(context={"domain": "docs", "complexity": "low", "repo": "."}))
    session.add(h.completed("n1", preview="three tags", tool="git:tags"))
    session.add(h.speculation("n2", "served", "hit", confidence=0.9))
    session.add(h.failed("n3", attempt=1, final=False, retry_at=h.time_of(h.START)))
    session.add(h.failed("n3", attempt=2))
    session.add(h.speculation("n4", "discarded", "branch_not_taken", confidence=0.6))
    session.add(h.speculation("n5", "discarded", "invalidated"))
    session.add(h.unknown("n6"))
    session.add(h.skipped("n7"))
    session.add(h.run_completed(completed=2))
    return session


def told(store: Store) -> list[list[Any]]:
    return store.query("SELECT task_id, event_type, success FROM episodes ORDER BY log_offset").rows


ALL = [
    ["n1", "task_complete", True],
    ["n2", "speculation_start", True],
    ["n3", "task_complete", False],
    ["n4", "speculation_start", False],
    ["n5", "speculation_start", None],
    ["n6", "task_complete", None],
]


def test_ends_of_speculations_and_tasks_are_episodes_with_their_truth(store: Store) -> None:
    session = a_run()
    session.insert(store)
    assert told(store) == ALL
    rows = store.query("SELECT * FROM episodes ORDER BY log_offset").as_dicts()
    first, guessed = rows[0], rows[3]
    assert (first["id"], first["workflow_id"], first["tool_id"]) == ("local/ses_1:100:1", "run_1", "git:tags")
    assert first["timestamp"] == session.events[1]["occurred_at"]
    assert (first["workflow_type"], orjson.loads(first["context"])["domain"]) == ("release", "docs")
    assert orjson.loads(first["data"])["result"]["output"] == "three tags"
    assert (first["confidence"], guessed["confidence"]) == (None, 0.6)
    prediction = orjson.loads(guessed["data"])["prediction"]
    assert prediction == {"reasoning": "branch_not_taken", "was_correct": False}


def test_a_result_that_was_served_and_then_differed_is_a_failure_beside_the_hit(store: Store) -> None:
    session = History()
    session.add(h.run_started())
    session.add(h.speculation("n2", "served", "hit", confidence=0.9))
    fields = {
        "call_id": "call_n2",
        "started_seq": 1,
        "task_id": "n2",
        "tool": "git:git_log",
        "kind": "branch",
    }
    hashes = {"served_hash": "a", "result_hash": "b"}
    session.add(SpeculationDiverged.model_validate(fields | hashes | {"confidence": 0.9}))
    session.insert(store)
    rows = store.query("SELECT event_type, success, data FROM episodes ORDER BY log_offset").rows
    assert [(kind, success) for kind, success, _ in rows] == [
        ("speculation_start", True),
        ("speculation_start", False),
    ]
    assert orjson.loads(rows[1][2])["prediction"] == {"reasoning": "diverged", "was_correct": False}


DECIDED = [
    ("decision.made", {"choice": "continue", "decided_by": "agent:claude"}, "ail", "continue", None),
    ("decision.made", {"choice": "abort", "decided_by": "person:ada"}, "hil", "abort", None),
    ("run.replanned", {"decided_by": "agent:claude"}, "ail", "replanned", None),
    ("run.retried", {"decided_by": "person:ada"}, "hil", "retried", None),
    ("approval.granted", {"decided_by": "person:ada", "tool": "git:push"}, "hil", "granted", None),
    ("approval.rejected", {"decided_by": "person:ada", "tool": "git:push"}, "hil", "rejected", None),
    ("approval.expired", {"decided_by": "", "tool": "git:push"}, "hil", "expired", None),
    ("task.resolved", {"decided_by": "person:ada", "resolution": "done"}, "hil", "done", True),
    ("task.resolved", {"decided_by": "person:ada", "resolution": "not_done"}, "hil", "not_done", False),
    ("task.resolved", {"decided_by": "person:ada", "resolution": "retry"}, "hil", "retry", None),
]


@pytest.mark.parametrize("case", DECIDED, ids=lambda case: f"{case[0]}-{case[3]}")
def test_decisions_are_episodes_with_who_and_why(store: Store, case: Any) -> None:
    kind, said, who, action, success = case
    session = a_run()
    session.events[-1] |= {"type": kind, "data": said | {"reason": "it looks right"}}
    session.insert(store)
    ((event_type, truth, data),) = store.query(
        "SELECT event_type, success, data FROM episodes WHERE endsWith(event_type, 'decision')"
    ).rows
    assert (event_type, truth) == (f"{who}_decision", success)
    assert orjson.loads(data)["decision"] == {"type": who, "action": action, "reasoning": "it looks right"}


def test_a_late_answer_is_the_end_of_its_task(store: Store) -> None:
    session = a_run()
    late = {"task_id": "n6", "tool": "git:push", "resolution": "done", "late": True, "preview": "pushed"}
    session.events[-1] |= {"type": "task.resolved", "data": late}
    session.insert(store)
    assert told(store) == [*ALL, ["n6", "task_complete", True]]


def test_a_reader_gives_each_episode_once_with_its_context(store: Store) -> None:
    reader = EpisodeReader(store, "local", 100)
    assert reader.read() == []
    a_run().insert(store, "first")
    a_run().insert(store, "the same under another token")
    episodes = reader.read()
    assert sorted(episode.task_id or "" for episode in episodes) == ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert {episode.context.keys for episode in episodes} == {("release", "docs", "low")}
    assert reader.read() == []
    a_run(session_id="ses_2", offset=500, epoch=500).insert(store)
    a_run(session_id="ses_3", offset=50, epoch=50, partition=4).insert(store)
    assert {episode.id.split(":")[0] for episode in reader.read()} == {"local/ses_2", "local/ses_3"}


def test_tenants_do_not_see_each_other(store: Store) -> None:
    a_run(tenant="other").insert(store)
    assert EpisodeReader(store, "local", 100).read() == []
    assert len(EpisodeReader(store, "other", 100).read()) == 6


def test_a_reader_takes_the_newest_of_what_there_is(store: Store) -> None:
    a_run().insert(store)
    newest = EpisodeReader(store, "local", 2).read()
    assert [episode.task_id for episode in newest] == ["n6", "n5"]


def test_the_view_shows_the_newest_of_each_tenant(own_store: Store) -> None:
    a_run().insert(own_store)
    a_run(tenant="other").insert(own_store)
    keep_episodes(own_store, EpisodeRetention(days=30, most=2))
    assert told(own_store) == sorted(2 * ALL[-2:])
    migrate(own_store, EpisodeRetention(most=4))
    assert own_store.query("SELECT tenant, count() FROM episodes GROUP BY 1 ORDER BY 1").rows == [
        ["local", 4],
        ["other", 4],
    ]


def test_days_that_are_over_are_dropped(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    a_run().insert(own_store)
    monkeypatch.setattr(h, "START", datetime.now(UTC) - timedelta(days=20))
    a_run(session_id="ses_old").insert(own_store)
    assert len(told(own_store)) == 12
    keep_episodes(own_store, EpisodeRetention(days=10))
    own_store.command("OPTIMIZE TABLE episodes_raw FINAL")
    assert told(own_store) == ALL


def test_days_that_are_kept_again_are_filled_again(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h, "START", datetime.now(UTC) - timedelta(days=20))
    a_run().insert(own_store)
    for _ in range(2):
        migrate(own_store, EpisodeRetention(days=7))
        own_store.command("OPTIMIZE TABLE episodes_raw FINAL")
        assert told(own_store) == []
        migrate(own_store, EpisodeRetention(days=30))
        assert told(own_store) == ALL


def test_filling_that_was_interrupted_is_done_again(
    own_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(h, "START", datetime.now(UTC) - timedelta(days=20))
    a_run().insert(own_store)
    migrate(own_store, EpisodeRetention(days=7))
    own_store.command("OPTIMIZE TABLE episodes_raw FINAL")

    def fail(_: Store) -> None:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(retention, "remember_events", fail)
        with pytest.raises(StoreUnavailable):
            migrate(own_store, EpisodeRetention(days=30))
    migrate(own_store, EpisodeRetention(days=30))
    assert told(own_store) == ALL


def test_an_old_log_that_is_read_again_is_taken_whatever_its_age(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch of events of 150 days: more partitions than one insert may have, were they all kept."""
    now = datetime.now(UTC)
    rows: list[tuple[Any, ...]] = []
    for day in range(150):
        monkeypatch.setattr(h, "START", now - timedelta(days=day))
        rows += a_run(session_id=f"ses_{day}").rows()
    store.insert(h.EVENTS_TABLE, h.EVENT_COLUMNS, rows)
    assert store.query("SELECT count() FROM events_raw").rows == [[1_500]]
    days = store.query("SELECT count() FROM (SELECT DISTINCT toDate(timestamp) FROM episodes_raw)").rows[0][0]
    assert 28 <= days <= 91


def test_events_that_were_there_before_are_remembered(store: Store) -> None:
    a_run().insert(store)
    store.command("TRUNCATE TABLE episodes_raw")
    assert told(store) == []
    for _ in range(2):
        remember_events(store)
        assert told(store) == ALL


def test_the_migration_remembers_what_an_earlier_release_stored(own_store: Store) -> None:
    a_run().insert(own_store)
    for statement in (
        "DROP TABLE episodes_raw",
        "DROP VIEW episodes",
        "DROP TABLE episodes_from_events",
        "ALTER TABLE migrations DELETE WHERE name = 'episodes' SETTINGS mutations_sync = 1",
    ):
        own_store.command(statement)
    assert [name.split()[1] for name in migrate(own_store)] == ["episodes"]
    assert told(own_store) == ALL
