"""Every learner beside every other on the same questions, asked of those who saw nothing like them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Candidates, candidates
from pml.processors.learning.evaluation import Quality, quality
from pml.processors.learning.intervals import interval, paired_interval, resampled_means
from pml.processors.learning.learners import ATTENTIVE, USUAL, Given, Learner, asked
from pml.processors.learning.recall import Recall
from pml.processors.learning.requests import read_requests
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.splits import folds
from pml.processors.learning.vocabulary import UNKNOWN, Ids
from pml.processors.memory.embedding import Embedding

FOLDS = 5

Places = NDArray[np.int64]
Told = Callable[[str], None]
Learners = Mapping[str, Learner]
Recalled = Sequence[Mapping[int, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What a learner said of each question: `quality` of the candidates, and every candidate's score.

    `items` int32 (in the numbers of whoever was asked), `scores` float64 and `right` bool, all [questions,
    places], 0 where nothing is named. `ended_items` and `ended` likewise [sessions, places]: items and scores
    after a session's last item, where nothing that is named comes.
    """

    quality: Quality
    items: Ids
    scores: NDArray[np.float64]
    right: NDArray[np.bool_]
    ended_items: Ids
    ended: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """All learners on the same questions, every item but the first of a session and what came just now.

    `clusters` int64 [questions]: the group of each; `fold` int64: who was not asked what it had seen;
    `unseen` bool: what came had never been called by whom the learners saw. `targets` int32: what came;
    `recalled`: of each question how likely each comes by what recurred in those whom the learners saw, in the
    numbers of `Scored.items`; empty where nobody asked. `ended_…` are of the ends of sessions that are over.
    """

    ways: Mapping[str, Scored]
    clusters: Places
    fold: Places
    unseen: NDArray[np.bool_]
    targets: Ids
    recalled: Recalled
    ended_clusters: Places
    ended_fold: Places
    ended_recalled: Recalled

    def __len__(self) -> int:
        return len(self.clusters)


class Unjudgeable(ValueError):
    """By these sessions no learner can be judged: there are too few, none goes on, or nothing was named."""


def judge(
    sessions: Sessions,
    embedding: Embedding,
    seed: int,
    *,
    learners: Learners = USUAL,
    told: Told = lambda name: None,
) -> Judged:
    """Ask for each item once, of learners that saw no session of its group: five folds over groups.

    Args:
        sessions: to learn from and to ask about.
        embedding: makes the points of texts.
        seed: of folds and learners.
        learners: by name.
        told: called with each learner's name when it has answered in one of the folds.

    Raises:
        Unjudgeable: no session goes on, or there are fewer than two groups: nothing would be unseen.
    """
    if len(sessions.traces.questions()) == 0:
        raise Unjudgeable("no session goes on after its first run: there is nothing to ask")
    count = min(FOLDS, len(np.unique(sessions.traces.groups)))
    if count < 2:
        raise Unjudgeable("there are fewer than two groups of sessions: nothing would be unseen")
    fold = folds(sessions.traces.groups, count, seed)
    parts = []
    for held in range(count):
        training, held_out = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        asking = Asking(sessions, training, held_out, embedding, seed)
        parts.append(asking.judged(learners, told, asking.recalled()))
    ways = {name: _joined([part.ways[name] for part in parts]) for name in learners}
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("clusters", "unseen", "targets", "ended_clusters")
    }
    recalled, ended_recalled = (
        [found for part in parts for found in getattr(part, name)] for name in ("recalled", "ended_recalled")
    )
    return Judged(
        ways,
        fold=np.repeat(np.arange(count), [len(part) for part in parts]),
        recalled=recalled,
        ended_fold=np.repeat(np.arange(count), [len(part.ended_fold) for part in parts]),
        ended_recalled=ended_recalled,
        **columns,
    )


class Asking:
    """Some sessions to learn from, others to be asked about, int64 rows both, as who learns knows them."""

    def __init__(
        self, sessions: Sessions, training: Places, held_out: Places, embedding: Embedding, seed: int
    ) -> None:
        known = sessions.asked_about(held_out, training)
        descriptions = known.described()
        self._requests = read_requests(known.texts, descriptions, embedding)
        self._learned = replace(known, traces=known.traces.selected(training))
        points, contained = embedding.embed(descriptions), known.members()
        self._given = Given(self._learned.traces, points, self._requests, seed, contained)
        self._others = known.traces.selected(held_out)
        self._told = replace(sessions, traces=sessions.traces.selected(held_out))

    def recalled(self) -> tuple[Recalled, Recalled]:
        """What recurred says of each question, and of the end of each session; nothing is fitted for it.

        The others are asked about by the names that they really called, as in serving.
        """
        recall, traces = Recall.fit(self._learned), self._told.traces
        questions = traces.prefixes(traces.questions())
        ends = traces.whole(traces.ended)
        if recall is None:
            return [{}] * len(questions), [{}] * len(ends)
        return recall.after_each(questions, self._told), recall.after_each(ends, self._told)

    def judged(
        self,
        learners: Learners,
        told: Told = lambda name: None,
        recalled: tuple[Recalled, Recalled] = ((), ()),
    ) -> Judged:
        """Fit each and ask it; `told` is called with each name. `recalled` is kept beside what they say."""
        others, requests = self._others, self._requests
        places = others.questions()
        prefixes, targets = others.prefixes(places, requests.points), others.items[places]
        whole, ways = others.whole(others.ended, requests.points), {}
        for name, learner in learners.items():
            predictor = asked(learner.fit(self._given), requests)
            ways[name] = scored(candidates(predictor, prefixes), targets, candidates(predictor, whole))
            told(name)
        seen = np.isin(targets, self._given.traces.items) & (targets != UNKNOWN)
        return Judged(
            ways,
            clusters=others.groups[others.owners[places]],
            fold=np.zeros(len(places), dtype=np.int64),
            unseen=~seen,
            targets=targets,
            recalled=recalled[0],
            ended_clusters=others.groups[others.ended],
            ended_fold=np.zeros(len(whole), dtype=np.int64),
            ended_recalled=recalled[1],
        )


def ask(
    sessions: Sessions,
    training: Places,
    held_out: Places,
    embedding: Embedding,
    *,
    seed: int,
    learners: Learners = USUAL,
    told: Told = lambda name: None,
) -> Judged:
    """Fit on some sessions, int64 rows, and ask about others."""
    return Asking(sessions, training, held_out, embedding, seed).judged(learners, told)


def scored(named: Candidates, targets: Ids, ended: Candidates) -> Scored:
    """Candidates beside what came, int32 [questions], and those after the ends."""
    right = (named.items == targets[:, None]) & (targets != UNKNOWN)[:, None]
    found = quality(named, targets)
    return Scored(found, named.items, named.probabilities, right, ended.items, ended.probabilities)


def measured(found: Quality, clusters: Places, seed: int) -> dict[str, Any]:
    """hit@1, hit@3, MRR and Brier, each a mean with its 95 % interval, as JSON-serialisable values.

    Raises:
        ValueError: there are no questions.
    """
    columns = (found.hit_1, found.hit_3, found.reciprocal_rank, found.brier)
    return {
        name: {
            "mean": round(mean, 4),
            "interval": rounded(interval(resampled_means(column, clusters, seed))),
        }
        for (name, mean), column in zip(found.means().items(), columns, strict=True)
    }


def gain(one: Quality, other: Quality, clusters: Places, seed: int, together: int = 1) -> dict[str, Any]:
    """How much more often the first candidate of one is right, with the paired 95 % interval.

    `together`: comparisons whose intervals are all to hold, this one among them.
    """
    return {
        "hit_1": round(float(one.hit_1.mean() - other.hit_1.mean()), 4),
        "interval": rounded(paired_interval(one.hit_1, other.hit_1, clusters, seed, together)),
    }


def passing_gain(judged: Judged, seed: int) -> dict[str, Any] | None:
    """What messages along the hypergraph give the attention model; None where it was not judged."""
    if not ATTENTIVE.keys() <= judged.ways.keys():
        return None
    passing, head = (judged.ways[name].quality for name in ATTENTIVE)
    return gain(passing, head, judged.clusters, seed)


def rounded(ends: tuple[float, float]) -> tuple[float, float]:
    """To four digits."""
    return round(ends[0], 4), round(ends[1], 4)


def _joined(parts: list[Scored]) -> Scored:
    qualities = [part.quality for part in parts]
    joined = Quality(
        *(np.concatenate([getattr(each, column.name) for each in qualities]) for column in fields(Quality))
    )
    columns = ("items", "scores", "right", "ended_items", "ended")
    return Scored(joined, *(np.concatenate([getattr(part, name) for part in parts]) for name in columns))
