"""What the commands keep: each set as soon as it is measured, models for another time on the same commit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.end_to_end import __main__ as command
from benchmarks.end_to_end import live, modelled, sets, stacks
from benchmarks.end_to_end.clock import Account
from benchmarks.end_to_end.measure import Held
from benchmarks.end_to_end.models import SIDES
from benchmarks.end_to_end.play import play_of
from benchmarks.end_to_end.sets import Rehearsal
from benchmarks.kept_rows import kept_rows
from benchmarks.plan import Plan
from benchmarks.report import Result
from pml.processors.learning.judging import FOLDS
from pml.streams.settings import Settings
from tests.benchmarks.end_to_end.test_measure import TOOLS, held_of, sitting
from tests.benchmarks.end_to_end.test_stacks import staged_of, write_sessions
from tests.streams.learning.recorded_sets import row, written

WRITE = Result.write
beside = stacks._beside_the_clock
CAME = {name: Account(100.0) for name in (stacks.NOTHING, *SIDES)}


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
    write_sessions(tmp_path)
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
    first = [sets._fold(tmp_path, "nestful", 1, number, most=9, models=models) for number in (3, 4)]
    again = [sets._fold(tmp_path, "nestful", 1, number, most=9, models=models) for number in (3, 4)]
    assert asked == [3, 4]
    assert again == first
    assert first[0] != first[1]
    sets._fold(tmp_path, "nestful", 2, 3, most=9, models=models)
    sets._fold(tmp_path, "nestful", 1, 3, most=20, models=models)
    assert asked == [3, 4, 3, 3], "another seed, or fewer sessions, is something else"


@pytest.mark.parametrize(
    ("now", "kept"), [("0123456789ab", True), ("0123456789ab+", False), ("unknown", False)]
)
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


def test_folds_are_in_their_order_however_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "nestful", [row(1, TOOLS)], TOOLS)
    written(tmp_path, "n8n", [row(1, TOOLS)], TOOLS)
    foreseen = {number: held_of([sitting(confidence=number / 10)]) for number in range(FOLDS)}
    begun: list[str] = []

    def backwards(tasks: Sequence[sets.Task]) -> Iterator[tuple[str, int, Held]]:
        begun.extend(name for name, _, _ in tasks)
        yield from ((name, number, foreseen[number]) for name, number, _ in reversed(tasks))

    monkeypatch.setattr(sets, "in_processes", backwards)
    told = [*sets.rehearsals(tmp_path, ["nestful", "n8n"], 1, 9, tmp_path / "models")]
    assert begun == ["n8n"] * FOLDS + ["nestful"] * FOLDS
    assert [each.name for each in told] == ["nestful", "n8n"]
    assert [each.folds for each in told] == [[*foreseen.values()]] * 2
    (models,) = {each.models.parent for each in told}
    assert models == tmp_path / "models"


def test_of_other_data_other_models_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sets, "in_processes", lambda tasks: ((name, number, held_of([])) for name, number, _ in tasks)
    )
    folders = []
    for number in (1, 2):
        (place := tmp_path / str(number)).mkdir()
        written(place, "nestful", [row(number, TOOLS)], TOOLS)
        folders += [each.models for each in sets.rehearsals(place, ["nestful"], 1, 9, tmp_path)]
    assert len({*folders}) == len(folders) == 2


def test_where_a_fold_fails_no_other_one_begins(tmp_path: Path) -> None:
    """In processes of their own; what began beside it ends."""
    tasks = [("nestful", number, partial(touched, tmp_path, number)) for number in range(1, 20)]
    found = []
    with pytest.raises(ValueError, match="the third fails"):
        found.extend(sets.in_processes(cast("list[sets.Task]", tasks)))
    begun = {int(each.name) for each in tmp_path.iterdir()}
    assert begun <= set(range(1, 4 + (os.cpu_count() or 1)))


def touched(folder: Path, number: int) -> int:
    (folder / str(number)).touch()
    if number == 3:
        raise ValueError("the third fails")
    return -number


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, True),
        ({"sessions": live.SESSIONS + 5}, True),
        ({"sessions": 5}, False),
        ({"threshold": 0.2}, False),
    ],
)
def test_of_stacks_is_kept_what_is_of_enough_sessions_and_of_chosen_thresholds(
    results: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], kept: bool
) -> None:
    write_sessions(results)
    folds = [play_of(results, "nestful", 1, None, number) for number in range(FOLDS)]
    told = rehearsal("nestful", *(staged_of(play).held for play in folds))
    monkeypatch.setattr(modelled, "rehearsals", lambda *_: iter([told]))
    monkeypatch.setattr(live, "kept_rows", lambda name, seed: kept_rows(name, seed, results))
    monkeypatch.setattr(
        live,
        "_measured",
        lambda plan, name, staged: [stacks._beside_the_clock(each, CAME) for each in staged],
    )
    live.main(sets="nestful", json=True, **options)
    assert ("nestful" in kept_rows(live.NAME, 1, results)) is kept
    assert "nestful" in kept_rows(modelled.NAME, 1, results), "the clock plays all, at its own thresholds"
