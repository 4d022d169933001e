"""Next-tool prediction: every learner on every set, by folds over groups of near-duplicates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning.ways import WAYS
from pml.processors.learning.choosing import choose
from pml.processors.learning.judging import Judged, Told, gain, judge, measured, passing_gain
from pml.processors.learning.learners import ATTENTIVE, BASELINES, LEARNED, LEARNERS, REPLAYED, USUAL
from pml.processors.learning.splits import leaks
from pml.processors.memory.embedding import Embedding
from pml.streams.learning.data_sets import RecordedSet, recorded

# What counts, and reads no text.
COUNTING = tuple(name for name in BASELINES if name != "cosine")
READING = ("cosine", *LEARNED, *ATTENTIVE, *REPLAYED)
# hit@1 and hit@3 of the best counting that throw-away code reached (PREDICTION.md), to compare with.
COUNTED: Mapping[str, tuple[float, float]] = {
    "n8n": (0.182, 0.336),
    "galaxy_iwc": (0.145, 0.216),
    "seal_tools": (0.007, 0.011),
    "toollinkos": (0.537, 0.663),
    "nestful": (0.320, 0.430),
    "tau": (0.645, 0.860),
    "tau_sessions": (0.505, 0.731),
    "bfcl_multi_turn": (0.523, 0.699),
    "api_bank": (0.374, 0.532),
}
# hit@1 and hit@3 that what serves is to have at least, with this much visible.
WANTED: Mapping[str, tuple[float, float]] = {
    "n8n": (0.24, 0.44),
    "galaxy_iwc": (0.22, 0.36),
    "seal_tools": (0.70, 0.88),
    "toollinkos": (0.82, 0.93),
    "nestful": (0.75, 0.95),
    "tau, script": (0.70, 0.90),
    "bfcl_multi_turn": (0.55, 0.73),
    "bfcl_multi_turn, own turn": (0.68, 0.85),
    "api_bank, all turns": (0.70, 0.85),
}


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What all learners reached on one set, read in one of `WAYS`."""

    name: str
    data: RecordedSet
    judged: Judged


def measure(folder: Path, name: str, embedding: Embedding, seed: int, told: Told) -> Measured:
    """Every call but the first of a trace is asked for once, by learners that saw no trace of its group.

    `told` is called with each learner's name after each fold.
    """
    way = WAYS[name]
    data = recorded(folder, way.folder, way.visible)
    judged = judge(data.sessions, embedding, seed, learners=LEARNERS, told=told)
    if len(leaks(judged.clusters, judged.fold)):
        raise RuntimeError(f"{name}: near-duplicates lie in several folds")
    return Measured(name, data, judged)


def row_of(found: Measured, seed: int) -> dict[str, Any]:
    """A set's rows of the table, as JSON-serialisable values."""
    judged, traces = found.judged, found.data.sessions.traces
    ways = {name: measured(each.quality, judged.clusters, seed) for name, each in judged.ways.items()}
    best = max(COUNTING, key=lambda name: (ways[name]["hit_1"]["mean"], ways[name]["hit_3"]["mean"]))
    counted = judged.ways[best].quality
    return {
        "name": found.name,
        "traces": len(traces),
        "groups": len(np.unique(traces.groups)),
        "asked": len(judged),
        "unseen": round(float(judged.unseen.mean()), 4),
        "visible": found.data.visible,
        "ways": ways,
        "best_counting": best,
        "reached_before": _hits(COUNTED, found.data.name),
        # Who learns only where somebody asks for it serves nobody who does not.
        "serves": choose(replace(judged, ways={each: judged.ways[each] for each in USUAL}), seed).serves,
        "wanted": _hits(WANTED, found.name),
        "message_passing": passing_gain(judged, seed),
        "gains": {name: gain(judged.ways[name].quality, counted, judged.clusters, seed) for name in READING},
    }


def _hits(known: Mapping[str, tuple[float, float]], name: str) -> dict[str, float] | None:
    return dict(zip(("hit_1", "hit_3"), known[name], strict=True)) if name in known else None
