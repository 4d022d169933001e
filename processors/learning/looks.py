"""What a call looked like, as numbers: of a tool by its arguments, of a capability by its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from pml.processors.learning.argument_patterns import features_of, pattern_of
from pml.processors.learning.duplicates import key_hash
from pml.processors.learning.known_sessions import KnownSession
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import Vectors
from pml.processors.learning.vocabulary import UNKNOWN
from pml.schemas.sanitiser import sanitise

LOOK: Final = 32
_PLACES_KEPT: Final = 65_536
# What the log has in place of values that are too large.
_CUT: Final = "_truncated"

Name = tuple[str, int]


def look(name: str, arguments: Mapping[str, Any] | None, hash_key: bytes) -> Vectors:
    """float32 [`LOOK`] of length 1: the names of what holds of a call, each hashed to a place with a sign.

    Zeros where nothing is known of the arguments, there are none, or they are too large for the log. They
    are looked at as the log keeps them, without secrets: training sees no others.

    Args:
        name: `server:tool` or `cap_…`; what holds, holds of it alone.
        arguments: those of the call, or the parameters of the run.
        hash_key: what short values are hashed with (`pattern_of`).
    """
    found = np.zeros(LOOK, dtype=np.float32)
    kept = sanitise(dict(arguments or {}))
    if not isinstance(kept, dict) or _CUT in kept or not kept:
        return found
    for each in features_of(name, pattern_of(kept, hash_key)):
        place, sign = _place(each)
        found[place] += sign
    return found / max(np.float32(1), np.linalg.norm(found))


def session_looks(
    sessions: Sessions, names: Sequence[Name], known: Sequence[KnownSession], hash_key: bytes
) -> Vectors:
    """float32 [items, `LOOK`]: what each item was called with; zeros where its values are not known.

    Args:
        sessions: whose items these are.
        names: id and epoch of each of them.
        known: sessions with values, of which the earliest elements may be missing.
        hash_key: as for `look`.
    """
    traces = sessions.traces
    found = np.zeros((len(traces.items), LOOK), dtype=np.float32)
    ended = {(each.name, each.ended_ms): each.elements for each in known}
    for row, (name, ended_ms) in enumerate(zip(names, traces.times_ms.tolist(), strict=True)):
        # One that went on between two readings of the store has another end: its runs cannot be told apart.
        elements = ended.get((name, ended_ms), ())
        start, end = traces.offsets[row : row + 2].tolist()
        numbers = sessions.vocabulary.ids([each.name for each in elements]).tolist()
        for place, at in _pairs(traces.items[start:end].tolist(), numbers):
            element = elements[at]
            found[start + place] = look(element.name, element.arguments, hash_key)
    return found


def _pairs(items: Sequence[int], numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Which place of `items` is which of `numbers`, from the end on, as far as they agree.

    Of a session both end with its last run, but values may be known of the latest runs alone. What has no
    number has no values either: a run of several calls without a capability.
    """
    places = [place for place, item in enumerate(items) if item != UNKNOWN]
    found = []
    for place, at in zip(reversed(places), reversed(range(len(numbers))), strict=False):
        if items[place] != numbers[at]:
            break
        found.append((place, at))
    return found


@lru_cache(_PLACES_KEPT)
def _place(name: str) -> tuple[int, int]:
    """Where a name stands, and whether it adds or takes 1."""
    hashed = key_hash(name)
    return hashed % LOOK, 1 if hashed // LOOK % 2 else -1
