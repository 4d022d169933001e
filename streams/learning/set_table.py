"""Every learner on every data set: what would serve there, and how much better it is than counting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pml.processors.learning.judging import gain
from pml.processors.memory.embedding import Embedding
from pml.schemas.errors import ConfigurationError
from pml.streams.learning.data_sets import RecordedSet, named_sets, recorded
from pml.streams.learning.phases import Phases
from pml.streams.learning.training import Wish, judge_all, told


def judge_sets(folder: Path, embedding: Embedding, wish: Wish, phases: Phases) -> list[dict[str, Any]]:
    """A row for each set of a folder, as JSON-serialisable values; by folds over groups of its open part.

    Of what is wished the seed and the learners count.

    Raises:
        ConfigurationError: the folder has none of the known sets, or one of them cannot be read.
        NothingToLearn: a set is too small.
    """
    names = named_sets(folder)
    if not names:
        raise ConfigurationError(
            f"{folder} has none of the data sets that are known; see the guide on training"
        )
    # All are read before one is judged: what cannot be read is said at once, not after an hour.
    sets = {name: _read(folder, name) for name in names}
    return [_row(name, data, embedding, wish, phases) for name, data in sets.items()]


def _read(folder: Path, name: str) -> RecordedSet:
    try:
        return recorded(folder, name)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(f"{folder / name} cannot be read: {error}") from None


def _row(name: str, data: RecordedSet, embedding: Embedding, wish: Wish, phases: Phases) -> dict[str, Any]:
    verdict = judge_all(data.sessions, embedding, wish, phases)
    judged, choice, traces = verdict.judged, verdict.choice, data.sessions.traces
    one, other = judged.ways[choice.serves], judged.ways[choice.baseline]
    return {
        "set": name,
        "visible": data.visible,
        "sessions": len(traces),
        "groups": len(np.unique(traces.groups)),
        "questions": len(judged),
        "unseen": round(float(judged.unseen.mean()), 4),
        "gain": gain(one.quality, other.quality, judged.clusters, wish.seed),
        **told(verdict, wish.seed),
    }
