"""What a capability is asked for: a few intents that say it in words as different as possible."""

from __future__ import annotations

from collections.abc import Sequence

from pml.processors.discovery.words import words
from pml.schemas.sanitiser.markers import REDACTED

# With the first one eight: each is compared with every request, and is in the catalog that everybody reads.
INTENTS_MAX = 7
# A longer one is a document, not a request.
INTENT_CHARACTERS_MAX = 1_000


def with_intent(first: str | None, others: Sequence[str], new: str) -> tuple[str, ...]:
    """The other intents of a capability after one more that it was good for.

    One in the same words, a very long one, and one from which a secret was taken add nothing. Of too many,
    the one goes that is nearest to another one by its words, of equal ones the later.
    """
    known = [intent for intent in (first, *others) if intent is not None]
    told = _said(new)
    if not told or told in map(_said, known) or len(new) > INTENT_CHARACTERS_MAX or REDACTED in new:
        return tuple(others)
    found = [*others, new]
    if len(found) > INTENTS_MAX:
        del found[_most_like_another([*known, new], len(known) - len(others))]
    return tuple(found)


def _most_like_another(intents: Sequence[str], fixed: int) -> int:
    """Its place behind the fixed ones."""
    said = [frozenset(_said(intent)) for intent in intents]

    def crowded(place: int) -> tuple[float, int]:
        likeness = (_shared(said[place], of) for other, of in enumerate(said) if other != place)
        return max(likeness), place

    return max(range(fixed, len(intents)), key=crowded) - fixed


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """The words of both out of those of either (Jaccard)."""
    return len(one & other) / (len(one | other) or 1)


def _said(intent: str) -> tuple[str, ...]:
    return tuple(words(intent))
