"""Sessions that ended, with their values, as what is learned of them: sequences, and sources of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.duplicates import key_hash
from pml.processors.learning.pauses import settled
from pml.processors.learning.scene import Past
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, TraceSet
from pml.processors.learning.vocabulary import Vocabulary

Schemas = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class KnownSession:
    """Runs of a session, in the order in which they ended.

    `texts` has for each element what was visible of the request before it, `end_text` is what was visible
    after the last; `ended_ms` is Unix time; `name` is id and epoch. `ends_ms` has when each element ended, by
    which a session may go on (`pauses.settled`); None: nobody knows, so all are over.
    """

    elements: tuple[Past, ...]
    texts: tuple[str, ...]
    ended_ms: int
    name: tuple[str, int] = ("", 0)
    end_text: str = ""
    ends_ms: tuple[int, ...] | None = None


def as_sequences(known: Sequence[KnownSession], descriptions: Mapping[str, str]) -> Sessions:
    """What followed what; sessions with the same calls and arguments are of one group."""
    names = [[element.name for element in session.elements] for session in known]
    vocabulary = Vocabulary.of(name for each in names for name in each)
    rows = {text: row for row, text in enumerate(dict.fromkeys(_visible(known)))}
    groups = [key_hash([[each.name, each.arguments] for each in session.elements]) for session in known]
    places = [rows.get(text, NO_TEXT) for session in known for text in session.texts]
    items = vocabulary.ids([name for each in names for name in each])
    traces = TraceSet(
        items=items,
        success=np.ones(len(items), dtype=np.float32),
        offsets=np.cumsum([0, *map(len, names)], dtype=np.int64),
        outcomes=np.ones(len(known), dtype=np.float32),
        weights=np.ones(len(known), dtype=np.float32),
        groups=np.array(groups, dtype=np.int64),
        times_ms=np.array([session.ended_ms for session in known], dtype=np.int64),
        texts=np.array(places, dtype=np.int64),
        end_texts=np.array([rows.get(each.end_text, NO_TEXT) for each in known], dtype=np.int64),
        settled=_settled(known),
    )
    return Sessions(vocabulary, traces, tuple(rows), descriptions)


def learned_sources(known: Sequence[KnownSession], schemas: Schemas) -> ArgumentSources:
    """Where arguments came from; `schemas` are those of inputs, as far as they are known."""
    return ArgumentSources.fit(
        [session.elements for session in known], [session.texts for session in known], schemas
    )


def _settled(known: Sequence[KnownSession]) -> NDArray[np.bool_] | None:
    """A session ends with its last run, also where that is no element."""
    times_ms: list[int] = []
    for session in known:
        if session.ends_ms is None:
            return None
        times_ms += (*session.ends_ms[:-1], session.ended_ms)[: len(session.ends_ms)]
    lengths = [len(session.elements) for session in known]
    return settled(np.array(times_ms, dtype=np.int64), np.cumsum([0, *lengths], dtype=np.int64))


def _visible(known: Sequence[KnownSession]) -> list[str]:
    return [text for session in known for text in (*session.texts, session.end_text) if text]
