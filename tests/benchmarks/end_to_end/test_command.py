"""What the command keeps: each set as soon as it is measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.end_to_end import __main__ as command
from benchmarks.end_to_end import live
from benchmarks.end_to_end.clock import Rules
from benchmarks.end_to_end.measure import Held, row_of
from benchmarks.end_to_end.models import RANKER
from benchmarks.kept_rows import kept_rows
from benchmarks.report import Result
from pml.processors.learning.judging import FOLDS
from tests.benchmarks.end_to_end.test_measure import sitting

WRITE = Result.write


def measured_row(name: str) -> dict[str, Any]:
    folds = [
        Held("markov_1", RANKER, {"baseline": [sitting(confidence=0.8)], RANKER: [sitting(confidence=0.8)]})
    ]
    told = {"name": name, "visible": "nothing", "sessions": 1, "calls": 2, "may_run_early": 2}
    return {**told, **row_of([*folds, *folds], Rules(1.0))}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results are written and kept."""
    monkeypatch.setenv("PML_DATASETS", str(tmp_path))
    monkeypatch.setattr(Result, "write", lambda result: WRITE(result, tmp_path))
    monkeypatch.setattr(command, "kept_rows", lambda name, seed: kept_rows(name, seed, tmp_path))
    return tmp_path


def measure(monkeypatch: pytest.MonkeyPatch, *names: str, fails: bool = False, **options: Any) -> None:
    def rows(*_: object) -> Iterator[dict[str, Any]]:
        yield from map(measured_row, names)
        if fails:
            raise RuntimeError

    monkeypatch.setattr(command, "rows_of_sets", rows)
    command.main(
        **{"sets": "", "sessions": command.SESSIONS, "quick": False, "seed": 1, "json": True, **options}
    )


def names_kept(results: Path) -> list[str]:
    return list(kept_rows(command.NAME, 1, results))


def test_a_set_is_kept_though_the_next_one_fails_and_stays_while_others_are_measured(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError):
        measure(monkeypatch, "n8n", fails=True)
    assert names_kept(results) == ["n8n"]
    before = kept_rows(command.NAME, 1, results)["n8n"]
    measure(monkeypatch, "nestful", sets="nestful")
    assert names_kept(results) == ["nestful", "n8n"]
    assert kept_rows(command.NAME, 1, results)["n8n"] == before


@pytest.mark.parametrize("options", [{"quick": True}, {"sessions": 3}])
def test_less_than_a_whole_measurement_is_not_kept(
    results: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    measure(monkeypatch, "nestful", **options)
    assert names_kept(results) == []


def test_stacks_begin_at_what_was_chosen_for_each_fold_that_is_played(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "kept_rows", lambda name, seed: kept_rows(name, seed, results))
    half = [{"baseline": 0.5, RANKER: 0.5}] * FOLDS
    assert live._thresholds("nestful", 1, None) == half
    row = measured_row("nestful")
    own = {"baseline": [0.7, 0.9, 0.5, 0.6, 0.8], RANKER: [0.3, 0.1, 0.2, 0.5, 0.4]}
    for side, chosen in own.items():
        row[side] = {**row[side], "thresholds": chosen}
    monkeypatch.setattr(command, "rows_of_sets", lambda *_: iter([row]))
    command.main(sets="nestful", sessions=command.SESSIONS, quick=False, seed=1, json=True)
    of_each_fold = [dict(zip(own, pair, strict=True)) for pair in zip(*own.values(), strict=True)]
    assert live._thresholds("nestful", 1, None) == of_each_fold
    assert live._thresholds("nestful", 2, None) == half
    assert live._thresholds("nestful", 1, 0.1) == [{"baseline": 0.1, RANKER: 0.1}] * FOLDS
