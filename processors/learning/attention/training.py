"""Training: epochs of replayed traces until the validation's MRR no longer grows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.attention.descent import Descent, Graph, adam, step_slopes
from pml.processors.learning.attention.membership import Membership
from pml.processors.learning.attention.model import Attention, basis_of, points_of
from pml.processors.learning.attention.parameters import Floats, Sizes, drawn, views
from pml.processors.learning.attention.samples import FAILED_BELOW, Samples
from pml.processors.learning.candidates import candidates
from pml.processors.learning.evaluation import quality
from pml.processors.learning.grouping import Places, summed
from pml.processors.learning.priorities import WITHOUT_MODEL, Priorities, priorities
from pml.processors.learning.prioritised_replay import PrioritisedReplay, Replay, UniformReplay
from pml.processors.learning.sampling import sampled
from pml.processors.learning.splits import folds
from pml.processors.learning.td_error import td_errors
from pml.processors.learning.traces import NO_TEXT, Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN

# Groups of one in so many parts are for validation.
VALIDATION_PARTS = 10
# Steps that a validation asks for, drawn from all.
VALIDATED_MOST = 2_000
# Traces that one epoch draws, however many there are: with the bound on epochs, what a training may cost.
DRAWN_MOST = 2_048
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Settings:
    """How large a model is and how it is trained.

    `prioritised`: whether traces that surprise are replayed more often. `forgotten`: the share of embeddings
    that each step does without, so that descriptions and membership say what they can. `failures`: negatives
    that failed after the latest item, on top of `negatives`. `patience`: epochs without a better validation.
    """

    width: int = 64
    heads: int = 4
    text: int = 128
    recent: int = 4
    negatives: int = 64
    failures: int = 4
    traces_at_once: int = 8
    rate: float = 3e-3
    shrinkage: float = 1e-2
    forgotten: float = 0.2
    epochs_most: int = 60
    patience: int = 8
    prioritised: bool = False


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The best `model` of all epochs; of each epoch `losses`, the mean, and `mrr` of the validation side."""

    model: Attention
    losses: tuple[float, ...]
    mrr: tuple[float, ...]


def train(
    traces: TraceSet,
    points: Vectors,
    texts: Vectors,
    seed: int,
    *,
    membership: Membership | None = None,
    settings: Settings = DEFAULTS,
    features: Vectors | None = None,
) -> Training:
    """Learn from traces.

    Args:
        traces: what to learn from; their `texts` name rows of `texts`.
        points: float32 [size, dimensions], the description of each item of the vocabulary.
        texts: float32 [rows, dimensions], what was visible.
        seed: of everything that is drawn.
        membership: what contains what; without it nothing is passed, the head alone learns.
        settings: the model's sizes and the training's.
        features: float32 [items, features], what else was known before each item.

    Raises:
        ValueError: the membership has fewer nodes than there are items, or there is no trace.
    """
    contained = Membership.of(len(points), {}) if membership is None else membership
    if contained.nodes < len(points):
        raise ValueError(f"{len(points)} items need as many nodes, the membership has {contained.nodes}")
    if len(traces) == 0:
        raise ValueError("there is no trace to learn from")
    known = np.zeros((len(traces.items), 0), dtype=np.float32) if features is None else features
    learner = Learner(traces, points, texts, seed, contained, settings, known)
    return learner.trained()


@dataclass(eq=False)
class Learner:
    """The state of a training."""

    traces: TraceSet
    points: Vectors
    texts: Vectors
    seed: int
    membership: Membership
    settings: Settings
    features: Vectors
    flat: Floats = field(init=False)
    steps: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        settings, count = self.settings, self.membership.nodes
        # What nobody who is learned from has asked may be of a trace that will be asked about.
        used = np.unique(self.traces.texts[self.traces.texts != NO_TEXT])
        self.basis = basis_of(self.points, self.texts[used], settings.text)
        self.node_points = points_of(self.points @ self.basis, self.membership)
        self.sizes = Sizes(
            count,
            self.basis.shape[1],
            settings.width,
            settings.heads,
            settings.recent,
            self.features.shape[1],
        )
        self.learned, self.validated = self._sides()
        self._asked = self._prefixes(self.validated)
        of_learned = self.learned[self.traces.owners]
        self.samples = Samples(
            self.traces.selected(np.flatnonzero(self.learned)),
            self.texts @ self.basis,
            np.ascontiguousarray(self.features[of_learned]),
            settings.recent,
            settings.negatives,
            settings.failures,
            len(self.points),
        )
        self.own = _own(self.samples, self.membership)
        self.graph = Graph(self.node_points, self.membership.upward(), self.membership.downward())
        self.flat = drawn(self.sizes, self.seed)
        self._descent = Descent(self.flat, *(np.zeros_like(self.flat) for _ in range(3)))
        # Views of arrays that stay in place: made once, they cost nothing in the steps.
        self._parameters = views(self.flat, self.sizes)
        self._slopes = views(self._descent.slopes, self.sizes)
        self.replay = self._replay()

    def trained(self, wanted_mrr: float = np.inf) -> Training:
        """All epochs, fewer where the validation no longer gets better or has reached `wanted_mrr`."""
        best, since, best_flat, losses, mrr = 0.0, 0, self.flat.copy(), [], []
        for epoch in range(self.settings.epochs_most):
            losses.append(self.epoch(epoch / self.settings.epochs_most))
            mrr.append(self.validation())
            # Of equal ones the later: where the order is right already, its probabilities are better.
            if mrr[-1] >= best:
                best, best_flat, since = mrr[-1], self.flat.copy(), 0
            else:
                since += 1
            if since >= self.settings.patience or best >= wanted_mrr:
                break
        self.flat[:] = best_flat
        return Training(self.model(), tuple(losses), tuple(mrr))

    def epoch(self, progress: float) -> float:
        """As many draws of traces as there are, but for the bound; the mean loss.

        `progress` is the share that is done.
        """
        count = min(len(self.replay), DRAWN_MOST)
        at_once = min(self.settings.traces_at_once, count)
        losses = [self._step(at_once, progress) for _ in range(-(-count // at_once))]
        return float(np.mean(losses))

    def validation(self) -> float:
        """MRR on the validation side; 0 where there is none."""
        named = candidates(self.model(), self._asked)
        return quality(named, self.traces.items[self.validated]).means()["mrr"]

    def model(self) -> Attention:
        """As far as it was trained."""
        return Attention(
            len(self.points),
            self.sizes,
            self.basis,
            self.node_points,
            self.membership,
            self.own,
            self.flat.copy(),
        )

    def _step(self, count: int, progress: float) -> float:
        self.steps += 1
        seed = [self.seed, self.steps]
        drawn_traces = self.replay.sample(count, seed, progress)
        places, of = self.samples.steps_of(drawn_traces.items, [*seed, 3])
        if len(places) == 0:
            return 0.0
        kept = np.random.default_rng([*seed, 1]).random(len(self.own)) >= self.settings.forgotten
        kept[UNKNOWN] = True
        kept[self.membership.levels > 0] = True
        batch = self.samples.batch(places, drawn_traces.weights[of], self.own * kept, [*seed, 2])
        loss, chances = step_slopes(self._parameters, self.graph, batch, self._slopes)
        # That nobody called it in training says nothing against an item: only what it is like may.
        self._slopes.item_bias[self.own == 0] = 0
        adam(self._descent, self.steps, self.settings.rate, self.settings.shrinkage)
        # Where all are drawn alike nobody asks how much they surprise.
        if self.settings.prioritised:
            outcomes = self.samples.traces.outcomes[drawn_traces.items]
            self.replay.update(drawn_traces.items, surprises(outcomes, chances, of))
        return float(loss)

    def _replay(self) -> Replay:
        count = len(self.samples.traces)
        if not self.settings.prioritised:
            return UniformReplay(count)
        return PrioritisedReplay(np.full(count, WITHOUT_MODEL))

    def _sides(self) -> tuple[NDArray[np.bool_], Places]:
        """bool [traces]: what is learned from; int64: steps that validation asks for, none that failed."""
        learned = learned_from(self.traces, self.seed)
        asked = self.traces.positions()
        failed = self.traces.success < FAILED_BELOW
        asked = asked[~learned[self.traces.owners[asked]] & ~failed[asked]]
        return learned, asked[sampled(len(asked), VALIDATED_MOST, self.seed)]

    def _prefixes(self, places: Places) -> Prefixes:
        found = self.traces.prefixes(places, self.texts)
        return Prefixes(found.items, found.starts, found.ends, found.texts, features=self.features[places])


def learned_from(traces: TraceSet, seed: int) -> NDArray[np.bool_]:
    """bool [traces]: those that a training learns from; the others validate. All, where groups are few."""
    if len(np.unique(traces.groups)) < VALIDATION_PARTS:
        return np.ones(len(traces), dtype=np.bool_)
    return np.asarray(folds(traces.groups, VALIDATION_PARTS, seed) != 0)


def surprises(outcomes: Floats, chances: Floats, of: Places) -> Priorities:
    """float64 [traces]: priorities from outcomes [traces] and the chances [steps] of what came in each."""
    counts = summed(np.ones(len(of)), of, len(outcomes))
    means = summed(chances, of, len(outcomes)) / np.maximum(counts, 1)
    errors = td_errors(outcomes, np.where(counts > 0, np.clip(means, 0, 1), np.nan))
    return priorities(errors, np.ones(len(outcomes), dtype=bool), trained=True)


def _own(samples: Samples, membership: Membership) -> Floats:
    """float32 [nodes]: 1 for what was called, for every hyperedge, and for no item before the first."""
    own = (membership.levels > 0).astype(np.float32)
    own[samples.called] = 1
    own[UNKNOWN] = 1
    return own
