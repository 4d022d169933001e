"""Every call of a set is asked for, by learners that saw no trace of its group."""

from __future__ import annotations

from pathlib import Path

from benchmarks.learning.measure import measure, row_of
from pml.processors.learning.judging import FOLDS
from pml.processors.learning.learners import LEARNERS
from pml.processors.memory.embedding import HashedNgrams
from tests.streams.learning.recorded_sets import row, written


def test_every_call_but_the_first_is_asked_for_once(tmp_path: Path) -> None:
    rows = [row(number, ["a", "b", "c"], intent=f"plan {number}") for number in range(20)]
    for number, each in enumerate(rows):
        each["tasks"][0]["arguments"] = {"x": number}
    written(tmp_path, "nestful", rows, ["a", "b", "c", "d"])
    done: list[str] = []
    found = measure(tmp_path, "nestful", HashedNgrams(), 1, done.append)
    told = row_of(found, 1)
    assert len(done) == FOLDS * len(LEARNERS)
    assert (told["asked"], told["groups"], told["unseen"]) == (40, 20, 0)
    assert told["ways"]["markov_1"]["hit_1"] == {"mean": 1, "interval": (1, 1)}
    assert told["best_counting"] == told["serves"] == "markov_1"
    assert told["wanted"] == {"hit_1": 0.75, "hit_3": 0.95}
    assert told["gains"]["ranker"] == {"hit_1": 0, "interval": (0, 0)}
    assert told["ways"]["popularity"]["hit_3"]["mean"] == 1
