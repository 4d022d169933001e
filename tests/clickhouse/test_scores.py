"""The view `scores`: the newest of each name of a run, also where it came in a later life of the session."""

from __future__ import annotations

from typing import Any

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.query import run_query
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration


@pytest.fixture
def store(migrated_store: Store) -> Store:
    return migrated_store


def _scores(store: Store, where: str = "1") -> list[dict[str, Any]]:
    return store.query(f"SELECT * FROM scores WHERE {where} ORDER BY run_epoch, run_id, name").as_dicts()


def _life(epoch: int) -> History:
    return History(epoch=epoch, offset=epoch)


def test_the_last_score_of_a_name_counts_whatever_it_was_before(store: Store) -> None:
    session = _life(100)
    session.add(h.run_started())
    session.add(h.run_scored("quality", number=4, comment="early"))
    session.add(h.run_completed(tasks=1, completed=1))
    session.add(h.run_scored("quality", category="poor", source="evaluator"))
    session.add(h.run_scored("helpful", boolean=False))
    session.insert(store)
    told = [
        (
            row["name"],
            row["number"],
            row["category"],
            row["boolean"],
            row["source"],
            row["comment"],
            row["times"],
        )
        for row in _scores(store)
    ]
    assert told == [
        ("helpful", None, None, False, "human", "", 1),
        ("quality", None, "poor", None, "evaluator", "", 2),
    ]
    (quality,) = _scores(store, "name = 'quality'")
    assert (quality["epoch"], quality["run_epoch"], quality["seq"], quality["log_offset"]) == (
        100,
        100,
        3,
        103,
    )
    assert (quality["principal"], quality["scored_at"]) == ("ada", session.events[3]["occurred_at"])


def test_a_batch_stored_twice_shows_once(store: Store) -> None:
    session = _life(100)
    session.add(h.run_started())
    session.add(h.run_scored("quality", number=1))
    session.add(h.run_scored("quality", number=2))
    session.add(h.run_completed())
    session.insert(store, "3-100-103")
    once = (_scores(store), store.query("SELECT scores FROM traces").rows)
    session.insert(store, "3-100-199")
    assert store.query("SELECT count() FROM scores_raw").rows[0][0] == 4
    assert (_scores(store), store.query("SELECT scores FROM traces").rows) == once
    assert [row["times"] for row in once[0]] == [2]


def test_a_late_score_belongs_to_the_newest_earlier_life_of_its_run(store: Store) -> None:
    for epoch in (100, 200):
        session = _life(epoch)
        session.add(h.run_started())
        session.add(h.run_completed())
        session.insert(store)
    late = _life(300)
    late.add(h.run_scored("quality", number=3, known=False))
    late.insert(store)
    again = _life(400)
    again.add(h.run_scored("quality", number=5, known=False))
    again.add(h.run_started())
    again.add(h.run_scored("quality", number=1))
    again.add(h.run_completed())
    again.insert(store)
    told = [(row["run_epoch"], row["number"], row["epoch"], row["times"]) for row in _scores(store)]
    assert told == [(200, 5.0, 400, 2), (400, 1.0, 400, 1)]
    rows = store.query("SELECT epoch, scores FROM traces ORDER BY epoch").rows
    assert [(epoch, [tuple(score)[:2] for score in _tuples(scores)]) for epoch, scores in rows] == [
        (100, []),
        (200, [("quality", 5.0)]),
        (400, [("quality", 1.0)]),
    ]


def _tuples(scores: Any) -> list[tuple[Any, ...]]:
    return [tuple(score.values()) if isinstance(score, dict) else tuple(score) for score in scores]


def test_a_score_of_a_run_that_nobody_knows_is_kept_and_is_in_no_trace(store: Store) -> None:
    session = _life(100)
    session.add(h.run_scored("quality", number=1, known=False), run_id="run_nobody")
    session.insert(store)
    (row,) = _scores(store)
    assert (row["run_id"], row["run_epoch"], row["number"]) == ("run_nobody", None, 1.0)
    assert store.query("SELECT count() FROM traces").rows[0][0] == 0


def test_the_named_query_tells_how_workflows_were_judged(store: Store) -> None:
    for index, (number, boolean) in enumerate([(1.0, True), (4.0, False), (None, True)]):
        session = History(session_id=f"ses_{index}", epoch=100 + 10 * index, offset=100 + 10 * index)
        session.add(h.run_started())
        session.add(h.run_completed())
        session.add(h.run_scored("helpful", boolean=boolean))
        if number is not None:
            session.add(h.run_scored("quality", number=number, source="evaluator"))
        session.insert(store)
    rows = run_query(store, "scores").as_dicts()
    told = [tuple(row[name] for name in ("workflow", "score", "runs", "mean", "true_share")) for row in rows]
    assert told == [("notes", "helpful", 3, None, 0.667), ("notes", "quality", 2, 2.5, None)]
