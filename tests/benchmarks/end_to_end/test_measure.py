"""Recorded sessions that repeat are foreseen, by models that did not see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.end_to_end.clock import Call, Guess, Rules
from benchmarks.end_to_end.foreseen import Foreseen
from benchmarks.end_to_end.measure import (
    AT_HALF,
    END_KNOWN,
    Held,
    Sitting,
    lost,
    rehearsed,
    row_of,
)
from benchmarks.end_to_end.models import BASELINE, RANKER, SIDES
from benchmarks.end_to_end.play import play_of
from benchmarks.end_to_end.table import held
from pml.streams.learning.manifests import read_sound
from pml.streams.settings import Settings
from tests.streams.learning.recorded_sets import row, written

TOOLS = ["a", "b", "c"]


def sitting(*, confidence: float, right: bool = True) -> Sitting:
    calls = (Call("a", b"a", True, 1.0, 2.0), Call("b", b"b", True, 1.0, 2.0))
    named = Guess("b", b"b" if right else b"b with others", confidence, True, 1.0)
    return Sitting(calls, (Foreseen((named,), ("b",)), Foreseen((), ())))


def held_of(sittings: list[Sitting]) -> Held:
    """A fold that both sides foresee alike."""
    learners = {BASELINE: "markov_1", RANKER: "boosted"}
    models = {side: f"model_{side}" for side in SIDES}
    return Held(models, learners, dict.fromkeys(SIDES, sittings))


def test_it_is_told_what_was_lost() -> None:
    found = lost(
        [sitting(confidence=0.9), sitting(confidence=0.2), sitting(confidence=0.9, right=False)], 0.5
    )
    assert found == {"served": 1, "not sure enough": 1, "arguments wrong": 1}


def test_folds_are_played_with_thresholds_of_the_others() -> None:
    sittings = [sitting(confidence=0.8)] * 2
    folds = [held_of(sittings)] * 2
    found = row_of(folds, Rules(1.0))
    assert found[RANKER]["thresholds"] == [0.5, 0.5]
    assert found[RANKER]["share_of_oracle"] == pytest.approx(1.0)
    assert held({"name": "nestful", **found})


def test_one_threshold_for_all_folds_is_what_nobody_chose() -> None:
    good, bad = [sitting(confidence=0.6)] * 2, [sitting(confidence=0.6, right=False)] * 2
    folds = [held_of(each) for each in (good, bad)]
    found = row_of(folds, Rules(1.0))
    assert found[RANKER]["thresholds"] == [1.01, 0.5]
    assert found[RANKER]["begun"] == 2, "where all others waste nothing begins, and the other way round"
    assert (found[AT_HALF]["thresholds"], found[AT_HALF]["begun"], found[AT_HALF]["hits"]) == (
        [0.5, 0.5],
        4,
        2,
    )
    assert not held({"name": "nestful", **found, RANKER: found[AT_HALF]}), "it wastes as much as it serves"


def test_sessions_that_always_go_the_same_way_are_foreseen(tmp_path: Path) -> None:
    rows = [row(number, TOOLS, intent=f"plan {number}") for number in range(20)]
    for number, each in enumerate(rows):
        each["tasks"][0]["arguments"] = {"x": {"type": "literal", "value": number}}
    written(tmp_path, "nestful", rows, TOOLS)
    settings = Settings.load(data_dir=tmp_path / "data")
    plays = [play_of(tmp_path, "nestful", 1, None, number) for number in range(2)]
    folds = [rehearsed(play, settings) for play in plays]
    found = row_of(folds, Rules(1.0))
    sessions = sum(len(play.sessions) for play in plays)
    assert (found["sessions"], found["calls"]) == (sessions, 3 * sessions)
    assert found["oracle"]["wall_s"] < found["unpredicted_s"]
    assert found[END_KNOWN]["hits"] == found["may_run_early"]
    for play, fold in zip(plays, folds, strict=True):
        for side in SIDES:
            assert [each.calls for each in fold.sittings[side]] == [*map(play.calls, play.sessions)]
            assert read_sound(settings.models_folder, fold.models[side])["serves"] == fold.learners[side]
