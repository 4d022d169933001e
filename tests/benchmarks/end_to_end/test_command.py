"""What the commands keep: each set as soon as it is measured, models for another time on the same commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.end_to_end import __main__ as command
from benchmarks.end_to_end import live, modelled, sets
from benchmarks.end_to_end.measure import Held
from benchmarks.end_to_end.models import SIDES
from benchmarks.end_to_end.play import play_of
from benchmarks.end_to_end.sets import Rehearsal
from benchmarks.kept_rows import kept_rows
from benchmarks.plan import Plan
from benchmarks.report import Result
from pml.streams.settings import Settings
from tests.benchmarks.end_to_end.test_measure import TOOLS, held_of, sitting
from tests.streams.learning.recorded_sets import row, written

WRITE = Result.write


def rehearsal(name: str, *folds: Held, models: Path = Path()) -> Rehearsal:
    return Rehearsal(name, folds or [held_of([sitting(confidence=0.8)])] * 2, models)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results are written and kept."""
    monkeypatch.setenv("PML_DATASETS", str(tmp_path))
    monkeypatch.setattr(Result, "write", lambda result: WRITE(result, tmp_path))
    monkeypatch.setattr(modelled, "kept_rows", lambda name, seed: kept_rows(name, seed, tmp_path))
    return tmp_path


def measure(monkeypatch: pytest.MonkeyPatch, *names: str, fails: bool = False, **options: Any) -> None:
    def rehearsals(*_: object) -> Iterator[Rehearsal]:
        yield from map(rehearsal, names)
        if fails:
            raise RuntimeError

    monkeypatch.setattr(modelled, "rehearsals", rehearsals)
    command.main(**{"json": True, **options})


def names_kept(results: Path) -> list[str]:
    return list(kept_rows(modelled.NAME, 1, results))


def test_a_set_is_kept_though_the_next_one_fails_and_stays_while_others_are_measured(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError):
        measure(monkeypatch, "n8n", fails=True)
    assert names_kept(results) == ["n8n"]
    before = kept_rows(modelled.NAME, 1, results)["n8n"]
    measure(monkeypatch, "nestful", sets="nestful")
    assert names_kept(results) == ["nestful", "n8n"]
    assert kept_rows(modelled.NAME, 1, results)["n8n"] == before


@pytest.mark.parametrize("options", [{"quick": True}, {"sessions": 3}])
def test_less_than_a_whole_measurement_is_not_kept(
    results: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    measure(monkeypatch, "nestful", **options)
    assert names_kept(results) == []


def test_stacks_begin_at_what_was_chosen_for_each_fold_that_is_played(tmp_path: Path) -> None:
    rows = [row(number, TOOLS, intent=f"plan {number}") for number in range(20)]
    for number, each in enumerate(rows):
        each["tasks"][0]["arguments"] = {"x": {"type": "literal", "value": number}}
    written(tmp_path, "nestful", rows, TOOLS)
    good, bad = ([sitting(confidence=0.6, right=right)] * 2 for right in (True, False))
    told = rehearsal("nestful", held_of(good), held_of(bad), models=tmp_path / "models")
    staged = live._staged(tmp_path, told, 1, 3, None)
    assert [fold.thresholds for fold in staged] == [dict.fromkeys(SIDES, each) for each in (1.0, 0.5)]
    plays = [play_of(tmp_path, "nestful", 1, 3, number) for number in range(2)]
    assert [fold.play.sessions for fold in staged] == [play.sessions for play in plays]
    assert [fold.held for fold in staged] == [*told.folds]
    assert {fold.models for fold in staged} == {tmp_path / "models"}
    given = live._staged(tmp_path, told, 1, 3, 0.1)
    assert [fold.thresholds for fold in given] == [dict.fromkeys(SIDES, 0.1)] * 2


def test_folds_that_are_there_are_not_foreseen_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def rehearsed(play: int, settings: Settings) -> Held:
        settings.models_folder.mkdir(parents=True, exist_ok=True)
        asked.append(play)
        return held_of([sitting(confidence=play / 10)])

    monkeypatch.setattr(sets, "play_of", lambda folder, name, seed, most, number: number)
    monkeypatch.setattr(sets, "rehearsed", rehearsed)
    models = tmp_path / "models"
    first = [sets._fold(tmp_path, "nestful", 1, number, most=None, models=models) for number in (3, 4)]
    again = [sets._fold(tmp_path, "nestful", 1, number, most=None, models=models) for number in (3, 4)]
    assert asked == [3, 4]
    assert again == first
    assert first[0] != first[1]
    sets._fold(tmp_path, "nestful", 2, 3, most=None, models=models)
    sets._fold(tmp_path, "nestful", 1, 3, most=20, models=models)
    assert asked == [3, 4, 3, 3], "another seed, or fewer sessions, is something else"


@pytest.mark.parametrize(("now", "kept"), [("0123456789ab", True), ("0123456789ab+", False)])
def test_models_stay_for_the_commit_that_they_are_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: str, kept: bool
) -> None:
    monkeypatch.setattr(modelled, "commit", lambda: now)
    said: list[str] = []
    plan = Plan(1, 1, tmp_path / "thrown away", said.append)
    stays = tmp_path / "models"
    expected = stays / now if kept else plan.folder / "models"
    assert modelled._work(plan, stays) == expected
    assert bool(said) is not kept
    assert modelled._work(plan, None) == plan.folder / "models"
