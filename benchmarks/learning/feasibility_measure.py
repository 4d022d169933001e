"""Of candidates for the next call, which can be called at all; and whether that says which one comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning.argument_sets import ArgumentSet
from pml.processors.capabilities.provides import ToolSchemas
from pml.processors.learning.argument_sources import ArgumentSources, Past
from pml.processors.learning.candidates import CANDIDATES_MOST, candidates
from pml.processors.learning.feasibility import Feasible, feasibility
from pml.processors.learning.holdings import Holdings
from pml.processors.learning.intervals import paired_interval
from pml.processors.learning.learners import LEARNERS, Given, asked
from pml.processors.learning.model import Candidate
from pml.processors.learning.predict_answer import ASKED_MOST, Question, predict_answer
from pml.processors.learning.requests import read_requests
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.splits import folds
from pml.processors.learning.tool_hypergraph import DeclaredTools, ToolHypergraph
from pml.processors.learning.traces import NO_TEXT, Vectors
from pml.processors.memory.embedding import Embedding
from pml.schemas.prediction import VALUES_MOST, PredictRequest

FOLDS = 5
LEARNER = "boosted"
SERVER = "recorded"
# One question in so many is timed, with and without.
TIMED_EVERY = 10
# What may be made of it: who lacks something comes last, or weighs as much as its way is sure.
WAYS: dict[str, Callable[[Feasible], float]] = {
    "last": lambda found: 1e-6 if found.missing else 1.0,
    "weighed": lambda found: 1e-6 if found.through is None else float(np.exp(-found.cost)),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: its candidates, the best first, what is feasible of them, and what came."""

    named: Sequence[Candidate]
    feasible: dict[str, Feasible]
    came: str
    group: int

    def rank(self, weight: Callable[[Feasible], float]) -> int:
        """The place of what came, from 1, as the weights order candidates."""
        ranked = sorted(self.named, key=lambda each: -each.confidence * weight(self.feasible[each.name]))
        names = [each.name for each in ranked]
        return names.index(self.came) + 1 if self.came in names else CANDIDATES_MOST + 1


@dataclass(slots=True)
class Answered:
    """All questions of a set, and milliseconds of some: with feasibility, and without."""

    asked: list[Asked] = field(default_factory=list)
    with_ms: list[float] = field(default_factory=list)
    without_ms: list[float] = field(default_factory=list)


def without_text(data: ArgumentSet, sessions: Sessions) -> tuple[ArgumentSet, Sessions]:
    """The same where nobody passed what the user wants."""
    silent = tuple(tuple("" for _ in each) for each in data.requests)
    traces = replace(
        sessions.traces,
        texts=np.full_like(sessions.traces.texts, NO_TEXT),
        end_texts=np.full_like(sessions.traces.end_texts, NO_TEXT),
    )
    return replace(data, requests=silent, visible="nothing"), replace(sessions, traces=traces)


def answered(
    data: ArgumentSet, sessions: Sessions, embedding: Embedding, seed: int, done: Callable[[], None]
) -> Answered:
    """Each call but the first of a session is asked for once, of who learned from the other folds.

    `done` is called after each fold.
    """
    fold, found = folds(sessions.traces.groups, FOLDS, seed), Answered()
    for held in range(FOLDS):
        for number, (each, moment) in enumerate(_ask(data, sessions, fold == held, embedding, seed)):
            found.asked.append(each)
            if number % TIMED_EVERY == 0:
                # One after the other, who begins in turns: what comes second finds things at hand.
                sides = (True, False) if number % (2 * TIMED_EVERY) else (False, True)
                for side in sides:
                    (found.with_ms if side else found.without_ms).append(moment.took_ms(side))
        done()
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """Who learned from sessions: sources of arguments, and what tools need and were seen to give."""

    sources: ArgumentSources
    tools: DeclaredTools

    @classmethod
    def of(cls, data: ArgumentSet, rows: Sequence[int]) -> _Known:
        learned, texts = [data.sessions[row] for row in rows], [data.requests[row] for row in rows]
        sources = ArgumentSources.fit(learned, texts, data.schemas)
        schemas = {name: ToolSchemas(schema) for name, schema in data.schemas.items()}
        return cls(sources, DeclaredTools(schemas, sources.known.seen))


@dataclass(frozen=True, slots=True)
class _Moment:
    """What is known before a call, and its likeliest tools; it is asked as what serves asks."""

    likely: Sequence[Candidate]
    past: Sequence[Past]
    text: str
    known: _Known
    learner: str = LEARNER

    def feasible(self, names: Sequence[str]) -> dict[str, Feasible]:
        tools = ToolHypergraph(self.known.tools, lambda name: None, tuple)
        return feasibility(names, tools, Holdings(self.past, self.text).has)

    def candidates(
        self, history: Sequence[str], request: str, most: int, look: Vectors | None = None
    ) -> Sequence[Candidate]:
        return [Candidate(f"{SERVER}:{each.name}", each.confidence) for each in self.likely[:most]]

    def took_ms(self, with_feasibility: bool) -> float:
        """From candidates to an answer."""
        question = Question(
            PredictRequest(history=(), request=self.text),
            lambda name: self.known.sources.guesses(name.partition(":")[2], self.past, self.text, 1),
            lambda name: None,
        )
        if with_feasibility:
            question = replace(question, feasible=self._of_server)
        began = time.perf_counter()
        predict_answer(question, self, "")
        return (time.perf_counter() - began) * 1_000

    def _of_server(self, names: Sequence[str]) -> dict[str, Feasible]:
        found = self.feasible([name.partition(":")[2] for name in names])
        return {f"{SERVER}:{name}": each for name, each in found.items()}


def _ask(
    data: ArgumentSet, sessions: Sessions, held_out: NDArray[np.bool_], embedding: Embedding, seed: int
) -> Iterator[tuple[Asked, _Moment]]:
    training, rows = np.flatnonzero(~held_out), np.flatnonzero(held_out).tolist()
    known = sessions.known_from(training)
    descriptions = known.described()
    requests = read_requests(known.texts, descriptions, embedding)
    given = Given(
        known.traces.selected(training), embedding.embed(descriptions), requests, seed, known.members()
    )
    others = known.traces.selected(np.flatnonzero(held_out))
    places = others.positions()
    named = candidates(
        asked(LEARNERS[LEARNER].fit(given), requests), others.prefixes(places, requests.points)
    )
    learned = _Known.of(data, training.tolist())
    for number, place in enumerate(places.tolist()):
        owner = int(others.owners[place])
        session = data.sessions[rows[owner]]
        at = place - int(others.offsets[owner])
        likely = [
            Candidate(name, float(share))
            for item, share in zip(named.items[number].tolist(), named.probabilities[number], strict=True)
            if (name := known.vocabulary.name(item)) is not None
        ]
        moment = _Moment(likely, session[:at][-VALUES_MOST:], data.requests[rows[owner]][at], learned)
        told = moment.feasible([each.name for each in likely])
        yield Asked(likely, told, session[at].name, int(data.groups[rows[owner]])), moment


def row_of(name: str, visible: str, found: Answered, seed: int) -> dict[str, Any]:
    """A set's row of the table, as JSON-serialisable values."""
    told = [each for asked in found.asked for each in asked.feasible.values()]
    first = [asked.feasible[each.name].missing for asked in found.asked for each in asked.named[:ASKED_MOST]]
    came = [asked.feasible[asked.came] for asked in found.asked if asked.came in asked.feasible]
    ranks = np.array([asked.rank(lambda found: 1.0) for asked in found.asked])
    groups = np.array([asked.group for asked in found.asked], dtype=np.int64)
    return {
        "name": name,
        "visible": visible,
        "asked": len(found.asked),
        "lacking": _share(bool(each.missing) for each in told),
        "lacking_of_first": _share(map(bool, first)),
        "infeasible": _share(each.through is None for each in told),
        "lacking_of_what_came": _share(bool(each.missing) for each in came),
        "hit_1": round(float(np.mean(ranks <= 1)), 4),
        "hit_3": round(float(np.mean(ranks <= 3)), 4),
        "gains": {
            way: _gains(np.array([asked.rank(weight) for asked in found.asked]), ranks, groups, seed)
            for way, weight in WAYS.items()
        },
        "without_ms": round(median(found.without_ms), 2),
        "with_ms": round(median(found.with_ms), 2),
    }


def _share(flags: Iterable[bool]) -> float:
    found = list(flags)
    return round(sum(found) / max(1, len(found)), 4)


def _gains(
    after: NDArray[np.int64], before: NDArray[np.int64], groups: NDArray[np.int64], seed: int
) -> dict[str, Any]:
    gains = {}
    for most in (1, 3):
        one, other = (after <= most).astype(np.float64), (before <= most).astype(np.float64)
        low, high = paired_interval(one, other, groups, seed)
        mean = round(float((one - other).mean()), 4)
        gains[f"hit_{most}"] = {"mean": mean, "interval": (round(low, 4), round(high, 4))}
    return gains
