"""Finding episodes: exact, fuzzy, hybrid (the spike, §2.2). Pure functions over rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pml.processors.memory.context import Context, matching
from pml.schemas.memory import EpisodeType

SIMILARITY_MIN = 0.7
"""A context whose cosine is not above this is another one."""
SIMILARITY_DIGITS = 4
"""Contexts whose cosines agree in so many are equally similar: beyond, floating point tells them apart."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One step that was remembered, with the context of its run.

    `timestamp` is RFC 3339 in microseconds, `data` the JSON text of what its type has to say.
    """

    id: str
    partition: int
    log_offset: int
    workflow_id: str
    event_type: EpisodeType
    timestamp: str
    context: Context
    task_id: str | None = None
    tool_id: str | None = None
    success: bool | None = None
    confidence: float | None = None
    data: str = "{}"

    @property
    def moment(self) -> tuple[str, int, int]:
        """When it was; no two episodes have the same."""
        return self.timestamp, self.partition, self.log_offset


@dataclass(frozen=True, slots=True)
class Found:
    """An episode, how many keys of its context match, and how similar that is, where this was asked."""

    episode: Episode
    keys: int
    similarity: float | None = None


def exact(newest_first: Iterable[Episode], wanted: Context, k: int) -> list[Found]:
    """The k episodes with most keys in common, then the newest; one without any is none.

    Args:
        newest_first: episodes in that order, so that the search ends with the k-th that has all keys.
    """
    found: tuple[list[Found], ...] = ([], [], [], [])
    matches: dict[tuple[str, str, str], int] = {}
    for episode in newest_first:
        keys = episode.context.keys
        count = matches.get(keys)
        if count is None:
            count = matches[keys] = matching(wanted.keys, keys)
        if count and len(found[count]) < k:
            found[count].append(Found(episode, count))
            if len(found[-1]) == k:
                break
    return [*found[3], *found[2], *found[1]][:k]


def fuzzy(
    newest_first: Iterable[Episode], wanted: Context, k: int, similarities: Mapping[str, float]
) -> list[Found]:
    """The k episodes of the most similar contexts, of equally similar ones the newest.

    Args:
        newest_first: episodes in that order.
        similarities: cosine by the text of a context; one that is absent is not similar.
    """
    rounded = {text: round(cosine, SIMILARITY_DIGITS) for text, cosine in similarities.items()}
    close = {text: cosine for text, cosine in rounded.items() if cosine > SIMILARITY_MIN}
    found = [
        Found(episode, matching(wanted.keys, episode.context.keys), close[episode.context.text])
        for episode in newest_first
        if episode.context.text in close
    ]
    return sorted(found, key=lambda item: -(item.similarity or 0.0))[:k]


def hybrid(exactly: list[Found], similar: Iterable[Found], k: int) -> list[Found]:
    """Exact ones first; similar ones that are not among them fill up to k."""
    known = {item.episode.id for item in exactly}
    filling = [item for item in similar if item.episode.id not in known]
    return [*exactly, *filling][:k]
