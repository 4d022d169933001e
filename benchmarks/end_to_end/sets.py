"""The sets that are played, and the models that learn for it: several folds at once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
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

# A set, one of its folds, and how that is foreseen.
Task = tuple[str, int, Callable[[], Held]]


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


def rehearsals(folder: Path, names: Sequence[str], seed: int, most: int, work: Path) -> Iterator[Rehearsal]:
    """Each set once its folds have been foreseen, as they come; a process for each core takes one fold
    after another. Those that take longest begin first.

    Args:
        folder: of the data sets.
        most: so many sessions of each fold are played at most.
        work: where models are kept, and what they foresaw: folds that are there are not foreseen again.
    """
    models = {name: work / f"{name} {_digest(folder, name)}" for name in names}
    ordered = sorted(names, key=lambda name: name not in LONGEST)
    tasks = [
        (name, number, partial(_fold, folder, name, seed, number, most=most, models=models[name]))
        for name in ordered
        for number in range(FOLDS)
    ]
    found: dict[str, dict[int, Held]] = {name: {} for name in names}
    for name, number, held in in_processes(tasks):
        found[name][number] = held
        if len(found[name]) == FOLDS:
            folds = found.pop(name)
            yield Rehearsal(name, [folds[each] for each in range(FOLDS)], models[name])


def in_processes(tasks: Sequence[Task]) -> Iterator[tuple[str, int, Held]]:
    """What comes of each, as it comes, with its name and number; one at a time on each core.

    None waits in the pool, whose queue nobody can empty: where one fails, no other one begins.
    """
    cores, waiting = os.cpu_count() or 1, iter(tasks)
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:

        def begin(most: int) -> dict[Future[Held], tuple[str, int]]:
            return {pool.submit(task): (name, number) for name, number, task in islice(waiting, most)}

        running = begin(cores)
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield *running.pop(done), done.result()
                running |= begin(1)


def _digest(folder: Path, name: str) -> str:
    """Of the files of a set: of other sessions, other models learn."""
    told = blake2b(digest_size=6)
    for file in sorted((folder / WAYS[name].folder).glob("*.jsonl*")):
        told.update(file.read_bytes())
    return told.hexdigest()


def _fold(folder: Path, name: str, seed: int, number: int, *, most: int, models: Path) -> Held:
    kept = models / f"fold {number} of seed {seed}, {most} sessions.pickle"
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
