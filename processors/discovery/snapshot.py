"""Documents as they are at one moment, ready to be compared with a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.documents import Document
from pml.processors.discovery.history import History, Past
from pml.processors.discovery.lexical import Lexical, Scores, counted
from pml.processors.discovery.nearness import Nearness, Numbers
from pml.processors.discovery.prior import Standing, prior
from pml.processors.discovery.providing import Provides
from pml.processors.discovery.question import Question
from pml.processors.discovery.ranking import Signals, Weights, evidence, probability
from pml.processors.discovery.tool_graph import Link, ToolGraph
from pml.processors.discovery.words import words
from pml.processors.memory.embedding import Vectors

# Tools whose company comes with them.
SEEDS = 8
# Candidates of each kind where not all documents are looked at.
CANDIDATES = 200
# What comes with the tools that fit best is looked at too from this share on.
LEAST_SHARE = 1e-3
# What a provider that gives all inputs alone is worth, where no past says it (DESIGN §6: weight 0.7).
PROVIDES_SHARE = 0.7

Near = Callable[[Vectors, int], Sequence[str]]


class Snapshot:
    """`documents` ascending by id, `points` their rows; `near` where not all of them are to be compared."""

    def __init__(
        self,
        documents: Sequence[Document],
        points: Vectors,
        *,
        pasts: Sequence[Past],
        past_points: Vectors,
        standings: Mapping[str, Standing],
        near: Near | None,
    ) -> None:
        self.documents = documents
        self.numbers = {document.id: number for number, document in enumerate(documents)}
        self.is_tool = np.array([document.kind == "tool" for document in documents], dtype=bool)
        self._whole = Lexical([counted(words(document.text)) for document in documents])
        self._names = Lexical([counted(words(document.name)) for document in documents])
        self._nearness, self._near = Nearness(points), near
        tools = {name: number for name, number in self.numbers.items() if self.is_tool[number]}
        own = {name: number for name, number in self.numbers.items() if not self.is_tool[number]}
        self._history = History(pasts, tools, points, past_points, own)
        self._provides = Provides(documents)
        self.rate(standings)
        self.link(())

    def rate(self, standings: Mapping[str, Standing]) -> None:
        """What is known of the documents beside their text, in place of what was known before."""
        self.priors = np.array([prior(standings.get(document.id)) for document in self.documents])

    def link(self, links: Iterable[Link]) -> None:
        """The edges of the tool graph, in place of those before."""
        self._graph = ToolGraph(links, self.numbers)

    def scored(self, asked: Question, weights: Weights) -> tuple[Numbers, Scores]:
        """Numbers of the documents that were looked at, and their scores, ascending by number."""
        numbers, signals = self.signals(asked, weights)
        return numbers, probability(evidence(signals, weights) + self.priors[numbers], weights)

    def signals(self, asked: Question, weights: Weights) -> tuple[Numbers, Signals]:
        """A row of signals for each document looked at; the weights of the text say what to expand."""
        numbers = self._candidates(asked)
        text = self._text(asked, numbers)
        seeds = self._seeds(numbers, evidence(text, weights))
        together, alike = self._together(seeds), self._history.alike(asked.points[0])
        if len(numbers) < len(self.documents):
            numbers = np.union1d(numbers, np.flatnonzero(together > LEAST_SHARE))
            text = self._text(asked, numbers)
        columns = (self._as_expected(shares, seeds)[numbers] for shares in (together, alike))
        return numbers, np.column_stack((text, *columns))

    def _candidates(self, asked: Question) -> Numbers:
        count = len(self.documents)
        if self._near is None or count <= CANDIDATES:
            return np.arange(count)
        names = {name for point in asked.points for name in self._near(point, CANDIDATES)}
        scores = self._whole.scores(asked.words[0])
        lexical = np.argpartition(-scores, CANDIDATES)[:CANDIDATES]
        lexical = lexical[scores[lexical] > 0]
        return np.union1d(lexical, np.array([self.numbers[name] for name in names], dtype=np.int64))

    def _text(self, asked: Question, numbers: Numbers) -> Signals:
        """The signals of the text: whole intent, names, and the clause that fits best."""
        whole = np.stack([_standardised(self._whole.scores(found))[numbers] for found in asked.words])
        names = _standardised(self._names.scores(asked.words[0]))[numbers]
        meaning = self._nearness.standardised(asked.points, numbers)
        first = min(1, len(asked.words) - 1)
        columns = (whole[0], meaning[0], names, whole[first:].max(axis=0), meaning[first:].max(axis=0))
        return np.column_stack(columns)

    def _seeds(self, numbers: Numbers, log_odds: NDArray[np.float64]) -> dict[int, float]:
        """The tools whose text fits best, and how likely each is the one meant."""
        tools = np.flatnonzero(self.is_tool[numbers])
        best = tools[np.argsort(-log_odds[tools], kind="stable")[:SEEDS]]
        odds = np.exp(log_odds[best] - log_odds[best].max(initial=-np.inf))
        return dict(zip(numbers[best].tolist(), (odds / odds.sum()).tolist(), strict=True))

    def _together(self, seeds: Mapping[int, float]) -> Scores:
        """For every document, how likely it comes with the seeds: by past workflows, runs, and schemas."""
        found = np.zeros(len(self.documents))
        for seed, share in seeds.items():
            row = dict(self._history.together(seed))
            for provider, part in self._provides.providers(seed).items():
                row[provider] = max(row.get(provider, 0.0), PROVIDES_SHARE * part)
            for other, part in self._graph.company(seed).items():
                row[other] = max(row.get(other, 0.0), part)
            found[list(row)] += share * np.array(list(row.values()))
        return found

    def _as_expected(self, shares: Scores, seeds: Mapping[int, float]) -> Scores:
        """Shares; for capabilities at least what is expected of the tools that fit."""
        expected = sum(share * shares[seed] for seed, share in seeds.items())
        return np.where(self.is_tool, shares, np.maximum(shares, expected))


def _standardised(scores: Scores) -> Scores:
    """In standard deviations above the mean; zeros where all are alike."""
    deviation = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / deviation if deviation > 0 else np.zeros_like(scores)
