"""What speaks for a value of a parameter beside its source: where it stands, and what stands around it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
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
    *("clause_best", "percent", "money", "length", "digits", "used"),
)
_MENTION: Final = SPOKEN.index("length") - 1
NAMES: Final = (*FAMILIES, *RULES, "relation", "recency", "own", *SPOKEN, "required", *TYPES, "offered")

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
    """Stems of a text's words, where each begins, and where its clauses begin."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    clauses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Around:
    """What a mention is looked at with: the words of the parameter, and for each clause the share of the
    tool's words that it has."""

    scene: Scene
    text: _Text
    own: frozenset[str]
    affinity: tuple[float, ...]


def described(scene: Scene, wanted: Parameter, offered: Sequence[Candidate]) -> Singles:
    """float32 [candidates, `NAMES`]: what is known of each beside how often its source was right."""
    text = _read(scene.lowered)
    affinity = _affinity(text, _stems(wanted.tool.rpartition(":")[2]))
    around = _Around(scene, text, _stems(wanted.name), affinity)
    head = _of_parameter(wanted, len(offered))
    known: dict[bytes, tuple[float, ...]] = {}
    rows = np.zeros((len(offered), len(NAMES)), dtype=np.float32)
    for row, each in zip(rows, offered, strict=True):
        if each.value not in known:
            known[each.value] = _of_value(each.value, around)
        row[:] = (*_of_source(each.general), *known[each.value], *head)
    return rows


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
    clause = around.affinity[bisect_right(text.clauses, start) - 1]
    return (
        len(own & set(before)) / max(1, len(own)),
        len(own & set(after)) / max(1, len(own)),
        near,
        float(start >= around.scene.reached),
        (start - around.scene.reached) / max(1, len(lowered)),
        clause,
        clause - max(around.affinity),
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
    return _Text(tuple(stem(each.group()) for each in found), tuple(each.start() for each in found), clauses)


@lru_cache(65_536)
def _stems(name: str) -> frozenset[str]:
    return frozenset(stem(word) for word in spoken(name).split())


def _affinity(text: _Text, tool: frozenset[str]) -> tuple[float, ...]:
    """Of each clause: the share of the tool's words that it has."""
    found = [set[str]() for _ in text.clauses]
    for word, start in zip(text.words, text.starts, strict=True):
        found[bisect_right(text.clauses, start) - 1].add(word)
    return tuple(len(tool & words) / max(1, len(tool)) for words in found)
