"""The sets that are played, and the models that learn for it: several folds at once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.end_to_end.clock import Rules
from benchmarks.end_to_end.measure import Held, chosen_of_each, rehearsed, row_of
from benchmarks.end_to_end.models import SIDES
from benchmarks.end_to_end.play import play_of
from benchmarks.learning.ways import WAYS
from pml.processors.learning.judging import FOLDS
from pml.streams.settings import Settings

# Of `WAYS`: the two that are read twice also with as much visible as in the figures that are aimed at.
SETS = (
    *("toollinkos", "bfcl_multi_turn", "bfcl_multi_turn, own turn", "nestful"),
    *("api_bank", "api_bank, all turns", "n8n"),
)
LONGEST = ("n8n", "toollinkos")
# `python -m benchmarks prediction` on two cores: what a question costs a call, rounded up. Its answer is
# there before the shortest thought is over; 20 ms are a guess on the safe side of an unloaded machine.
ASKED_S, ANSWER_S = 0.010, 0.020
RULES = Rules(1.0, ASKED_S, ANSWER_S)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A set whose folds were foreseen, in their order, and where the models are that did."""

    name: str
    folds: Sequence[Held]
    models: Path

    @property
    def thresholds(self) -> dict[str, list[float]]:
        """Of each side, for each fold what is chosen on the others."""
        return {side: chosen_of_each([each.sittings[side] for each in self.folds], RULES) for side in SIDES}

    def row(self) -> dict[str, Any]:
        """What came of it on the clock, as JSON-serialisable values."""
        about = {"name": self.name, "visible": WAYS[self.name].visible.told}
        return {**about, **row_of(self.folds, RULES)}


def rehearsals(
    folder: Path, names: Sequence[str], seed: int, most: int | None, work: Path
) -> Iterator[Rehearsal]:
    """Each set once its folds have been foreseen, as they come; a process for each core takes one fold
    after another. Those that take longest begin first.

    Args:
        folder: of the data sets.
        most: so many sessions of each fold are played at most; None: all.
        work: where models are kept, and what they foresaw: folds that are there are not foreseen again.
    """
    found: dict[str, dict[int, Held]] = {name: {} for name in names}
    with _processes() as pool:
        waiting = {
            pool.submit(_fold, folder, name, seed, number, most=most, models=_models(work, name)): (
                name,
                number,
            )
            for name in sorted(names, key=lambda name: name not in LONGEST)
            for number in range(FOLDS)
        }
        for done in as_completed(waiting):
            name, number = waiting[done]
            found[name][number] = done.result()
            if len(found[name]) == FOLDS:
                folds = found.pop(name)
                yield Rehearsal(name, [folds[number] for number in range(FOLDS)], _models(work, name))


@contextmanager
def _processes() -> Iterator[Executor]:
    """What was not begun is not, once nobody waits for it any more."""
    pool = ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _models(work: Path, name: str) -> Path:
    return work / name


def _fold(folder: Path, name: str, seed: int, number: int, *, most: int | None, models: Path) -> Held:
    kept = models / f"fold {number} of seed {seed}, {most or 'all'} sessions.pickle"
    if kept.exists():
        found: Held = pickle.loads(kept.read_bytes())
        return found
    settings = Settings.load(data_dir=models / "pml", learning={"models_folder": models})
    held = rehearsed(play_of(folder, name, seed, most, number), settings)
    # As a whole or not at all: whoever is ended while writing leaves nothing that is taken for it.
    written = kept.with_suffix(".next")
    written.write_bytes(pickle.dumps(held))
    written.replace(kept)
    return held
