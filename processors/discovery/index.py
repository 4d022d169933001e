"""The index over tools and capabilities: built, changed piece by piece, and asked (story 10.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pml.processors.discovery.documents import Document, Kind
from pml.processors.discovery.history import PASTS_MOST, Past
from pml.processors.discovery.nearness import Graph
from pml.processors.discovery.prior import Standing
from pml.processors.discovery.question import Question, question
from pml.processors.discovery.ranking import DEFAULT, Weights
from pml.processors.discovery.snapshot import Snapshot
from pml.processors.discovery.tool_graph import Link
from pml.processors.memory.embedding import Embedding, Vectors

# Measured (benchmarks/discovery.py): comparing with all is faster for 16,000 documents, slower for 48,000.
EXACT_MOST = 30_000
LIMIT_MOST = 50
LIMIT = 10


@dataclass(frozen=True, slots=True)
class Filter:
    """What may be found: things of one kind (None: of both), from a score upwards."""

    type: Kind | None = None
    min_score: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """A document and how well it fits, from 0 to 1."""

    document: Document
    score: float


@dataclass(frozen=True, slots=True)
class Page:
    """What was found from `offset` on, the best first and of equal ones by id, and how many there are in all.

    Of more documents than are compared one by one, `total` counts those that were.
    """

    items: tuple[Found, ...]
    total: int
    offset: int


EVERYTHING = Filter()


@dataclass(slots=True)
class _Contents:
    documents: dict[str, Document] = field(default_factory=dict)
    points: dict[str, Vectors] = field(default_factory=dict)
    pasts: tuple[Past, ...] = ()
    past_points: dict[str, Vectors] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    links: tuple[Link, ...] = ()


class DiscoveryIndex:
    """Documents by id, with the points that one model gives them.

    What is found does not depend on the order in which documents came, as long as all of them are compared.
    """

    def __init__(
        self, embedding: Embedding, weights: Weights = DEFAULT, exact_most: int = EXACT_MOST
    ) -> None:
        self.embedding, self.weights, self.exact_most = embedding, weights, exact_most
        self._contents = _Contents()
        self._graph: Graph | None = None
        self._snapshot: Snapshot | None = None

    def __len__(self) -> int:
        return len(self._contents.documents)

    @property
    def documents(self) -> tuple[Document, ...]:
        """All of them, ascending by id."""
        found = self._contents.documents
        return tuple(found[name] for name in sorted(found))

    @property
    def pasts(self) -> tuple[Past, ...]:
        """The past workflows that are remembered, in the order given."""
        return self._contents.pasts

    @property
    def standings(self) -> Mapping[str, Standing]:
        """What is known of documents beside their text."""
        return self._contents.standings

    @property
    def links(self) -> tuple[Link, ...]:
        """The edges of the tool graph."""
        return self._contents.links

    def points_of(self, ids: Sequence[str]) -> Vectors:
        """The points of documents that are there, a row for each."""
        return self._rows([self._contents.points[name] for name in ids])

    def put(self, documents: Iterable[Document], points: Vectors | None = None) -> None:
        """Take documents in, each in place of the one of its id; only what is new is given to the model.

        Args:
            points: where they are known already, from the same model.
        """
        given = list({document.id: document for document in documents}.values())
        if points is None:
            known = self._contents.documents
            given = [document for document in given if known.get(document.id) != document]
            points = self.embedding.embed([document.text for document in given])
        names = [document.id for document in given]
        self._contents.documents.update(zip(names, given, strict=True))
        self._contents.points.update(zip(names, points, strict=True))
        if self._graph is not None and given:
            self._graph.put(names, points)
        self._snapshot = None

    def remove(self, ids: Iterable[str]) -> None:
        """Take documents out; one that is not there is not missed."""
        for name in ids:
            if self._contents.documents.pop(name, None) is not None:
                del self._contents.points[name]
                if self._graph is not None:
                    self._graph.remove(name)
        self._snapshot = None

    def remember(self, pasts: Sequence[Past]) -> None:
        """Past workflows in place of those before; of too many, the last ones count."""
        self._contents.pasts = tuple(pasts[-PASTS_MOST:])
        known = self._contents.past_points
        intents = list(dict.fromkeys(past.intent for past in self._contents.pasts))
        new = [intent for intent in intents if intent not in known]
        known.update(zip(new, self.embedding.embed(new), strict=True))
        self._contents.past_points = {intent: known[intent] for intent in intents}
        self._snapshot = None

    def rate(self, standings: Mapping[str, Standing]) -> None:
        """What is known of documents beside their text, in place of what was known before."""
        self._contents.standings = dict(standings)
        if self._snapshot is not None:
            self._snapshot.rate(standings)

    def link(self, links: Iterable[Link]) -> None:
        """The edges of the tool graph, in place of those before; their ends need not be documents."""
        self._contents.links = tuple(links)
        if self._snapshot is not None:
            self._snapshot.link(self._contents.links)

    def search(
        self, intent: str | Question, wanted: Filter = EVERYTHING, limit: int = LIMIT, offset: int = 0
    ) -> Page:
        """What fits an intent; nothing where the intent has no word and no meaning.

        Raises:
            ValueError: a question of another model, a limit outside 1 to 50, or an offset below 0.
        """
        if not 1 <= limit <= LIMIT_MOST or offset < 0:
            raise ValueError(f"limit is 1 to {LIMIT_MOST} and offset at least 0, not {limit} and {offset}")
        asked = question(intent, self.embedding) if isinstance(intent, str) else intent
        if asked.model != self.embedding.name:
            raise ValueError(f"the question was made by {asked.model}, the index by {self.embedding.name}")
        if asked.blank or not len(self):
            return Page((), 0, offset)
        return self._page(asked, wanted, limit, offset)

    def snapshot(self) -> Snapshot:
        """The documents as they are now, ready to be asked."""
        if self._snapshot is None:
            documents = self.documents
            points = self.points_of([document.id for document in documents])
            pasts = self._contents.pasts
            past_points = self._rows([self._contents.past_points[past.intent] for past in pasts])
            near = self._near().nearest if len(self) > self.exact_most else None
            standings = self._contents.standings
            self._snapshot = Snapshot(
                documents, points, pasts=pasts, past_points=past_points, standings=standings, near=near
            )
            self._snapshot.link(self._contents.links)
        return self._snapshot

    def _page(self, asked: Question, wanted: Filter, limit: int, offset: int) -> Page:
        snapshot = self.snapshot()
        numbers, scores = snapshot.scored(asked, self.weights)
        fits = scores >= wanted.min_score
        if wanted.type is not None:
            fits &= snapshot.is_tool[numbers] == (wanted.type == "tool")
        numbers, scores = numbers[fits], scores[fits]
        order = np.argsort(-scores, kind="stable")[offset : offset + limit]
        items = tuple(Found(snapshot.documents[numbers[place]], float(scores[place])) for place in order)
        return Page(items, len(numbers), offset)

    def _near(self) -> Graph:
        if self._graph is None or self._graph.worn:
            self._graph = Graph(self.embedding.dimensions)
            names = sorted(self._contents.documents)
            self._graph.put(names, self.points_of(names))
        return self._graph

    def _rows(self, rows: Sequence[Vectors]) -> Vectors:
        return np.stack(rows) if rows else np.zeros((0, self.embedding.dimensions), dtype=np.float32)
