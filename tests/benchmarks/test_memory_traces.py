"""The scores and the replay behind the figures about predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.memory_traces import Choice, drawn_choices, recorded_choices, scores
from benchmarks.memory_traces import replay as replayed

ALL = ("task_complete", "speculation_start")
PREDICTIONS = st.lists(st.tuples(st.sampled_from([0.1, 0.4, 0.5, 0.9]), st.booleans()), min_size=2).filter(
    lambda drawn: len({truth for _, truth in drawn}) == 2
)


@given(PREDICTIONS)
def test_the_area_is_how_often_a_truth_is_ranked_above_a_falsehood(drawn: list[tuple[float, bool]]) -> None:
    confidences, truths = np.array([c for c, _ in drawn]), np.array([t for _, t in drawn])
    pairs = [
        1.0 if yes > no else 0.5 if yes == no else 0.0
        for yes in confidences[truths]
        for no in confidences[~truths]
    ]
    found = scores(confidences, truths)
    assert found.auc == pytest.approx(sum(pairs) / len(pairs))
    assert found.brier == pytest.approx(sum((c - t) ** 2 for c, t in drawn) / len(drawn))


def test_nothing_that_comes_later_is_known_before() -> None:
    """Turning the truths of the last choice around changes no prediction before it."""
    choices = drawn_choices(1, by_domain=True, success=(0.9, 1.0))[:900]
    last: Choice = [replace(branch, taken=not branch.taken) for branch in choices[-1]]
    before, after = replayed(choices, ALL), replayed([*choices[:-1], last], ALL)
    scored = 600
    for plain, other in zip(before, after, strict=True):
        assert abs(plain.brier - other.brier) <= 2 / scored


def test_without_episodes_memory_says_nothing() -> None:
    plain, moved = replayed(drawn_choices(2, by_domain=True, success=(0.9, 1.0))[:600], ())
    assert plain == moved


def test_the_past_helps_where_the_domain_decides_and_not_where_it_does_not() -> None:
    """What the benchmark says must follow from the worlds, or it measures nothing."""
    for by_domain in (True, False):
        plain, moved = replayed(drawn_choices(1, by_domain=by_domain, success=(1.0, 1.0)), ALL)
        assert (moved.brier < plain.brier) is by_domain
        assert (moved.auc > plain.auc) is by_domain


def test_recorded_sessions_are_choices_among_what_came_before(tmp_path: Path) -> None:
    assert recorded_choices(tmp_path) == []
    folder = tmp_path / "tau_sessions"
    folder.mkdir()
    sessions = [
        {"trial": 1, "task_id": 0, "tasks": [{"tool": "a"}, {"tool": "c", "error": True}]},
        {"trial": 0, "task_id": 0, "tasks": [{"tool": "a"}, {"tool": "b"}, {"tool": "a"}]},
    ]
    (folder / "workflows.dev.jsonl").write_bytes(b"\n".join(orjson.dumps(item) for item in sessions))
    told = [
        [(b.decision, b.tool, b.taken, b.succeeded) for b in choice] for choice in recorded_choices(tmp_path)
    ]
    assert told == [
        [("a", "b", True, True)],
        [("b", "a", True, True)],
        [("a", "b", False, False), ("a", "c", True, False)],
    ]
