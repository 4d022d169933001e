"""The newest episodes of one tenant, ready to be asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import orjson

from pml.processors.memory.context import Context, context_of
from pml.processors.memory.embedding import Embedding, cosine
from pml.processors.memory.index import VectorIndex, new_index
from pml.processors.memory.pasts import tool_pasts
from pml.processors.memory.retrieval import Episode, Found, exact, fuzzy, hybrid
from pml.schemas.memory import EpisodeRecord, RecallAnswer, Recalled, RecallRequest

EPISODES_MAX = 10_000
# Points of contexts that are forgotten stay in the index, and are searched past, up to so many.
FORGOTTEN_MAX = 1_000
# So many contexts more are looked at, so that of equally similar ones the newest comes first.
EQUALS_MAX = 32


class ContextIndex:
    """Texts of contexts as points; `similarities` finds those near another one."""

    def __init__(self, embedding: Embedding, index: Callable[[int], VectorIndex]) -> None:
        self._embedding = embedding
        self._index = index(embedding.dimensions)
        self._texts: list[str] = []
        self._known: set[str] = set()

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, texts: Iterable[str]) -> None:
        """Take in what is new among them."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._index.add(self._embedding.embed(new))
        self._texts += new
        self._known.update(new)

    def similarities(self, text: str, k: int) -> dict[str, float]:
        """The k texts nearest to this one, with their cosines."""
        (point,) = self._embedding.embed([text])
        near = [self._texts[number] for number, _ in self._index.nearest(point, k)]
        others = self._embedding.embed(near)
        return {other: cosine(point, place) for other, place in zip(near, others, strict=True)}


class Memory:
    """Keeps at most `episodes_max` episodes, the newest; older ones are forgotten as new ones come."""

    def __init__(
        self,
        embedding: Embedding,
        episodes_max: int = EPISODES_MAX,
        index: Callable[[int], VectorIndex] = new_index,
    ) -> None:
        self._embedding, self._new_index, self._episodes_max = embedding, index, episodes_max
        self._episodes: list[Episode] = []
        self._contexts: ContextIndex | None = None

    def __len__(self) -> int:
        return len(self._episodes)

    @property
    def episodes(self) -> Iterable[Episode]:
        """All that is remembered, the newest first."""
        return reversed(self._episodes)

    def add(self, episodes: Iterable[Episode]) -> None:
        """Take in episodes, each once."""
        new = {episode.moment: episode for episode in episodes}
        if new:
            merged = {episode.moment: episode for episode in self._episodes} | new
            self._episodes = [merged[moment] for moment in sorted(merged)[-self._episodes_max :]]

    def recall(self, request: RecallRequest) -> RecallAnswer:
        """The answer of `pml:recall`."""
        wanted = context_of(request.workflow_type, request.context)
        found = self.find(request, wanted) if request.k else []
        tools = (
            tool_pasts(self.episodes, wanted, request.tools, request.before, request.within_s)
            if request.tools
            else {}
        )
        return RecallAnswer(episodes=tuple(map(recalled, found)), tools=tools)

    def find(self, request: RecallRequest, wanted: Context) -> list[Found]:
        """The k episodes that a request asks for, the best first."""
        k = request.k
        if request.mode == "fuzzy":
            return self._similar(wanted, k)
        exactly = exact(self.episodes, wanted, k)
        if request.mode == "exact" or len(exactly) == k:
            return exactly
        return hybrid(exactly, self._similar(wanted, k + len(exactly)), k)

    def _similar(self, wanted: Context, k: int) -> list[Found]:
        """Each remembered context has an episode, so the nearest of them have the k best episodes."""
        texts = dict.fromkeys(episode.context.text for episode in self.episodes)
        contexts = self._index(texts)
        forgotten = len(contexts) - len(texts)
        near = contexts.similarities(wanted.text, k + EQUALS_MAX + forgotten)
        return fuzzy(self.episodes, wanted, k, near)

    def _index(self, texts: Collection[str]) -> ContextIndex:
        """The points of these texts; made anew when it holds too many that are forgotten."""
        contexts = self._contexts or ContextIndex(self._embedding, self._new_index)
        contexts.add(texts)
        if len(contexts) > len(texts) + FORGOTTEN_MAX:
            contexts = ContextIndex(self._embedding, self._new_index)
            contexts.add(texts)
        self._contexts = contexts
        return contexts


def recalled(found: Found) -> Recalled:
    """What was found, as programs get it."""
    episode = found.episode
    return Recalled(
        episode=EpisodeRecord(
            id=episode.id,
            workflow_id=episode.workflow_id,
            event_type=episode.event_type,
            task_id=episode.task_id,
            timestamp=episode.timestamp,
            tool_id=episode.tool_id,
            success=episode.success,
            confidence=episode.confidence,
            data={**orjson.loads(episode.data), "context_hash": episode.context.hash},
        ),
        keys=found.keys,
        similarity=None if found.similarity is None else round(found.similarity, 4),
    )
