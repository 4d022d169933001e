"""What speaks for a value of a parameter beside its source: where it stands, and what stands around it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from pml.processors.discovery.words import spoken, stem
from pml.processors.learning.argument_candidates import LEFT_OUT, Candidate
from pml.processors.learning.parameters import Parameter
from pml.processors.learning.scene import Scene

FAMILIES: Final = ("left", "default", "constant", "enum", "text", "argument", "result")
RULES: Final = ("only", "first", "last", "next 1", "next 2", "next 3", "all next", "named")
RELATIONS: Final = {"same": 1.0, "alias": 0.8, "owned": 0.7, "part": 0.5, "kin": 0.3, "other": 0.0}
TYPES: Final = ("string", "integer", "number", "boolean", "array", "any")
SPOKEN: Final = (
    *("mentions", "named_before", "named_after", "nearest_name", "behind_reached", "how_far", "clause"),
    *("clause_best", "in_asked", "after_asked", "percent", "money", "length", "digits", "used"),
)
_MENTION: Final = SPOKEN.index("length") - 1
ASKED: Final = ("field_asked", "owner_asked", "field_near", "owner_near", "field_said", "untaken", "again")
NAMES: Final = (
    *(*FAMILIES, *RULES, "relation", "recency", "own", *ASKED),
    *(*SPOKEN, "required", *TYPES, "offered"),
)

# Words around a mention that may name the parameter.
BEFORE, AFTER = 5, 3
MENTIONS_MOST: Final = 4
WORD_CHARACTERS: Final = 200
MONEY: Final = frozenset("$€£")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE = re.compile(r"[.!?;\n]|,\s|\s(?:and|then)\s")

Singles = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Text:
    """Stems of a text's words, where each begins, where its clauses begin, and the words of each."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    clauses: tuple[int, ...]
    clause_words: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class _Around:
    """What a value is looked at with: the words of the parameter and of its tool; for each clause the share
    of the tool's words that it has; which clause asks for the tool, its words, those of it and the next one,
    and all; the values that the parameter had before."""

    scene: Scene
    text: _Text
    own: frozenset[str]
    tool: frozenset[str]
    affinity: tuple[float, ...]
    asks: int | None
    asked: frozenset[str]
    near: frozenset[str]
    said: frozenset[str]
    before: frozenset[bytes]


def described(scene: Scene, wanted: Parameter, offered: Sequence[Candidate]) -> Singles:
    """float32 [candidates, `NAMES`]: what is known of each beside how often its source was right."""
    around = _around(scene, wanted)
    head = _of_parameter(wanted, len(offered))
    known: dict[bytes, tuple[float, ...]] = {}
    rows = np.zeros((len(offered), len(NAMES)), dtype=np.float32)
    for row, each in zip(rows, offered, strict=True):
        if each.value not in known:
            known[each.value] = _of_value(each.value, around)
        row[:] = (*_of_source(each.general), *_of_owner(each, around), *known[each.value], *head)
    return rows


def _around(scene: Scene, wanted: Parameter) -> _Around:
    text, tool = _read(scene.lowered), _stems(wanted.tool.rpartition(":")[2])
    affinity = _affinity(text.clause_words, tool)
    asks = _asks(text, affinity, scene.reached)
    asked = text.clause_words[asks] if asks is not None else frozenset()
    after = text.clause_words[asks + 1] if asks is not None and asks + 1 < len(text.clauses) else frozenset()
    before = frozenset(
        leaf.spelling
        for element in scene.past
        if element.name == wanted.tool
        for leaf in element.arguments
        if leaf.pattern == wanted.name
    )
    return _Around(
        scene,
        text,
        _stems(wanted.name),
        tool,
        affinity,
        asks,
        asked,
        asked | after,
        frozenset(text.words),
        before,
    )


def _asks(text: _Text, affinity: tuple[float, ...], reached: int) -> int | None:
    """The clause that asks for the tool: the best one, of equals the first that was not reached yet."""
    most = max(affinity)
    if not most:
        return None
    best = [number for number, share in enumerate(affinity) if share == most]
    ends = (*text.clauses[1:], inf)
    return next((number for number in best if ends[number] > reached), best[-1])


def _of_owner(found: Candidate, around: _Around) -> tuple[float, ...]:
    """Whether the text that asks for the tool says what the value is called, and whose it is."""
    again = float(found.value in around.before)
    element = found.element
    if element is None:
        return *(0.0,) * (len(ASKED) - 1), again
    field, owner = _stems(found.field), _stems(element.owner.rpartition(":")[2]) - around.tool
    return (
        _share(field, around.asked),
        _share(owner, around.asked),
        _share(field, around.near),
        _share(owner, around.near),
        _share(field, around.said),
        float(not element.taken),
        again,
    )


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    return len(words & others) / max(1, len(words))


def _of_parameter(wanted: Parameter, offered: int) -> tuple[float, ...]:
    return float(wanted.required), *(float(wanted.type == name) for name in TYPES), log(max(1, offered))


@lru_cache(4096)
def _of_source(general: str) -> tuple[float, ...]:
    """Family, rule, relation, recency and whether it is the tool's own, out of a general source."""
    words = general.split(" ")
    numbers = [int(word) for word in words if word.isdigit()]
    far = words[0] in ("argument", "result")
    return (
        *(float(words[0] == name) for name in FAMILIES),
        *(float(words[0] == "text" and general.endswith(rule)) for rule in RULES),
        max((RELATIONS[word] for word in words[1:] if word in RELATIONS), default=0.0) if far else 0.0,
        1 / numbers[0] if far and numbers and numbers[0] else 0.0,
        float("own" in words),
    )


def _of_value(value: bytes, around: _Around) -> tuple[float, ...]:
    """What the text says of a value, of its best mention, zeros where it says nothing; how it looks."""
    told = orjson.loads(value) if value != LEFT_OUT else ""
    word = told.lower() if isinstance(told, str) else str(told)
    look = log(1 + len(word)), sum(map(str.isdigit, word)) / max(1, len(word))
    used = float(value in around.scene.used)
    read = 0 < len(word) <= WORD_CHARACTERS and type(told) is not bool
    places = _mentions(word, around.scene.lowered) if read else []
    best = max((_mention(place, len(word), around) for place in places), default=(0.0,) * _MENTION)
    return (float(len(places)), *best, *look, used)


def _mention(start: int, length: int, around: _Around) -> tuple[float, ...]:
    """What stands around one mention of a value; of several that whose parameter is named nearest."""
    text, own, lowered = around.text, around.own, around.scene.lowered
    first = bisect_right(text.starts, start - 1)
    last = bisect_right(text.starts, start + length - 1)
    before, after = text.words[max(0, first - BEFORE) : first], text.words[last : last + AFTER]
    near = next((1 / away for away, word in enumerate(reversed(before), 1) if word in own), 0.0)
    number = bisect_right(text.clauses, start) - 1
    clause = around.affinity[number]
    return (
        len(own & set(before)) / max(1, len(own)),
        len(own & set(after)) / max(1, len(own)),
        near,
        float(start >= around.scene.reached),
        (start - around.scene.reached) / max(1, len(lowered)),
        clause,
        clause - max(around.affinity),
        float(number == around.asks),
        float(around.asks is not None and number == around.asks + 1),
        float(lowered[start + length : start + length + 1] == "%"),
        float(lowered[max(0, start - 1) : start] in MONEY),
    )


def _mentions(word: str, lowered: str) -> list[int]:
    """Where the text has it as words of their own, the first ones."""
    found: list[int] = []
    at = lowered.find(word)
    while at >= 0 and len(found) < MENTIONS_MOST:
        end = at + len(word)
        if not (lowered[max(0, at - 1) : at].isalnum() or lowered[end : end + 1].isalnum()):
            found.append(at)
        at = lowered.find(word, at + 1)
    return found


@lru_cache(256)
def _read(lowered: str) -> _Text:
    found = list(_WORD.finditer(lowered))
    clauses = (0, *(match.end() for match in _CLAUSE.finditer(lowered)))
    words, starts = tuple(stem(each.group()) for each in found), tuple(each.start() for each in found)
    of: list[set[str]] = [set() for _ in clauses]
    for word, start in zip(words, starts, strict=True):
        of[bisect_right(clauses, start) - 1].add(word)
    return _Text(words, starts, clauses, tuple(map(frozenset, of)))


@lru_cache(65_536)
def _stems(name: str) -> frozenset[str]:
    return frozenset(stem(word) for word in spoken(name).split())


def _affinity(clauses: tuple[frozenset[str], ...], tool: frozenset[str]) -> tuple[float, ...]:
    """Of each clause: the share of the tool's words that it has."""
    return tuple(_share(tool, words) for words in clauses)
