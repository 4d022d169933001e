"""A score says how good a run was, a late one too; where there is none the run's end goes on to say it."""

from __future__ import annotations

from typing import Any

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.training.outcome_score import OutcomeScore
from pml.clickhouse.training.reading import read_arrays
from pml.clickhouse.training.selection import Selection
from pml.schemas.errors import ConfigurationError
from pml.streams.learning.sources import Known, from_store
from tests.clickhouse import history as h
from tests.clickhouse.history import History

# What each run was scored, all completed; the last one's score comes in a later life of its session.
SCORES: tuple[tuple[dict[str, Any], ...], ...] = (
    (),
    ({"name": "quality", "number": 0.9},),
    ({"name": "quality", "number": 0.7},),
    ({"name": "quality", "boolean": False},),
    ({"name": "quality", "category": "poor"},),
    ({"name": "quality", "number": 0.9}, {"name": "quality", "number": 0.2}, {"name": "other", "number": 1}),
    ({"name": "other", "boolean": True},),
)
LATE = len(SCORES)


def test_an_outcome_is_a_name_with_a_number_or_a_category() -> None:
    assert OutcomeScore.parse("helpful") == OutcomeScore("helpful", 0.5)
    assert OutcomeScore.parse("quality>=0.8") == OutcomeScore("quality", 0.8)
    assert OutcomeScore.parse("tone=very formal") == OutcomeScore("tone", None, "very formal")
    for told in ("", "quality>0.8", "quality>=high", "a b"):
        with pytest.raises(ConfigurationError, match="NAME>=NUMBER"):
            OutcomeScore.parse(told)


@pytest.mark.integration
def test_a_score_is_the_outcome_of_its_run(migrated_store: Store) -> None:
    for number, scores in enumerate((*SCORES, ())):
        session = History(f"ses_{number}", 0, 1_000 * number, 1_000 * number)
        session.add(h.run_started(), f"run_{number}")
        session.add(h.completed("n0"), f"run_{number}")
        session.add(h.run_completed(), f"run_{number}")
        for score in scores:
            session.add(h.run_scored(**score), f"run_{number}")
        session.insert(migrated_store)
    late = History(f"ses_{LATE}", 0, 50_000, 50_000)
    late.add(h.run_scored("quality", number=0.1, known=False), f"run_{LATE}")
    late.insert(migrated_store)

    def scored(told: str) -> list[int]:
        found = read_arrays(migrated_store, Selection(), outcome=OutcomeScore.parse(told))
        by_run = dict(zip(found["run_id"].tolist(), found["scored"].tolist(), strict=True))
        return [by_run[f"run_{number}".encode()] for number in range(LATE + 1)]

    assert scored("quality>=0.8") == [-1, 1, 0, 0, -1, 0, -1, 0]
    assert scored("quality") == [-1, 1, 1, 0, -1, 0, -1, 0]
    assert scored("quality=poor") == [-1, -1, -1, 0, 1, -1, -1, -1]
    assert "scored" not in read_arrays(migrated_store, Selection())

    plain = from_store(migrated_store, Selection(), Known())
    source = from_store(migrated_store, Selection(), Known(), "quality>=0.8")
    assert plain.sessions.traces.outcomes.tolist() == [1.0] * 8
    assert source.sessions.traces.outcomes.tolist() == [1, 1, 0, 0, 1, 0, 1, 0]
    assert source.about["outcome"] == {"score": "quality>=0.8", "scored_runs": 5}
    assert source.about["hash"] != plain.about["hash"]
