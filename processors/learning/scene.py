"""What is known before a call, taken apart: the elements that ended, and the visible text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from pml.processors.discovery.words import spoken
from pml.processors.learning.argument_spans import TEXT_CHARACTERS, spans
from pml.processors.learning.argument_values import Leaf, is_redacted, leaves
from pml.processors.learning.span import Span
from pml.schemas.sanitiser import sanitise

HISTORY_MOST: Final = 16
FIRST: Final = "^"
# What a client told beside a call is an element of its own, and as old as can be.
CONTEXT: Final = "context"
# Secrets are looked for in so much, which is more than anything that is asked about has.
LOOKED_AT_BYTES: Final = 2**20


@dataclass(frozen=True, slots=True)
class Past:
    """An element of a session that ended: a tool call or a run of a capability.

    Attributes:
        name: `server:tool` or `cap_…`.
        arguments: those of the call, or the parameters of the run.
        result: the JSON value that it gave; None where it is unknown.
        context: values that its client told beside a call, by name; of a capability they are its parameters.
    """

    name: str
    arguments: Mapping[str, Any]
    result: Any
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Taken:
    """An element taken apart, once for a session: `owner` is its name as words."""

    name: str
    owner: str
    arguments: tuple[Leaf, ...]
    results: Mapping[str, tuple[Leaf, ...]]
    context: tuple[Leaf, ...] = ()

    def holders(self) -> dict[bytes, set[str]]:
        """The paths to each value, by `loose` spelling."""
        found: dict[bytes, set[str]] = {}
        for leaf in self.arguments:
            found.setdefault(loose(leaf.spelling), set()).add(f"argument {self.name} {leaf.pattern}")
        for pattern, items in self.results.items():
            for leaf in items:
                found.setdefault(loose(leaf.spelling), set()).add(f"result {self.name} {pattern}")
        return found

    def told(self) -> dict[bytes, set[str]]:
        """Likewise, of what was told beside it."""
        found: dict[bytes, set[str]] = {}
        for leaf in self.context:
            found.setdefault(loose(leaf.spelling), set()).add(f"argument {CONTEXT} {leaf.pattern}")
        return found


def loose(spelling: bytes) -> bytes:
    """A spelling that text, number and a list of one share: `"7"`, `7` and `["7"]`."""
    return spelling.strip(b'[]"')


@dataclass(frozen=True, slots=True)
class Element:
    """An element as it is seen from a call: `back` is 1 for the latest.

    `taken`: an argument of an earlier call had a value of its results.
    """

    back: int
    name: str
    owner: str
    arguments: tuple[Leaf, ...]
    results: Mapping[str, tuple[Leaf, ...]]
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """What is known before a call.

    Attributes:
        past: at most `HISTORY_MOST` elements, the latest first; then what was told beside the latest, if
            anything was.
        spans: pieces of the visible text by kind.
        lowered: that text in lower case.
        used: spellings of values that earlier arguments had.
        reached: the place in the text behind the last piece that an earlier argument used.
    """

    past: tuple[Element, ...]
    spans: Mapping[str, Sequence[Span]]
    lowered: str
    used: frozenset[bytes]
    reached: int

    @property
    def previous(self) -> str:
        """The name of the latest element."""
        return self.past[0].name if self.past else FIRST

    def named_at(self, parameter: str) -> int | None:
        """Behind the last place where the text says the name of a parameter; None where it does not."""
        wanted = spoken(parameter)
        at = self.lowered.rfind(wanted) if wanted else -1
        return at + len(wanted) if at >= 0 else None


def taken_apart(element: Past) -> Taken:
    """The arguments and results of an element as the values in them."""
    by_pattern: dict[str, list[Leaf]] = {}
    for leaf in _leaves(element.result):
        by_pattern.setdefault(leaf.pattern, []).append(leaf)
    return Taken(
        element.name,
        spoken(element.name),
        tuple(_leaves(element.arguments)),
        {pattern: tuple(found) for pattern, found in by_pattern.items()},
        tuple(_leaves(element.context)),
    )


def _leaves(value: Any) -> list[Leaf]:
    """The values in a value; secret is what the log would have otherwise, or has with something taken out."""
    found, logged = leaves(value), sanitise(value, LOOKED_AT_BYTES)
    # Most values have no secret: they are not taken apart twice.
    told = leaves(logged) if logged != value else found
    clear = {(each.pattern, each.spelling) for each in told if not is_redacted(each.spelling)}
    return [each if (each.pattern, each.spelling) in clear else replace(each, secret=True) for each in found]


def scene(past: Sequence[Taken], text: str) -> Scene:
    """What is known after these elements, the latest last, with this text visible."""
    kept = past[-HISTORY_MOST:][::-1]
    used = frozenset(leaf.spelling for each in kept for leaf in each.arguments if leaf.spelling)
    elements = tuple(
        Element(back, each.name, each.owner, each.arguments, each.results, _taken(each, used))
        for back, each in enumerate(kept, start=1)
    )
    told = tuple(_context(each) for each in kept[:1] if each.context)
    read = text[-TEXT_CHARACTERS:]
    pieces = spans(read)
    words = {word.lower() for word in map(_word, used) if word is not None}
    ends = [piece.end for each in pieces.values() for piece in each if piece.text.lower() in words]
    return Scene((*elements, *told), pieces, read.lower(), used, max(ends, default=0))


def _context(latest: Taken) -> Element:
    return Element(HISTORY_MOST + 1, CONTEXT, spoken(CONTEXT), latest.context, {})


def _taken(element: Taken, used: frozenset[bytes]) -> bool:
    return any(leaf.spelling in used for items in element.results.values() for leaf in items)


def _word(value: bytes) -> str | None:
    told = orjson.loads(value)
    if isinstance(told, str):
        return told
    return str(told) if type(told) in (int, float) else None
