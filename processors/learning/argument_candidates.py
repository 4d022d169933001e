"""Every value that one parameter of the next call may have, each with the source that names it.

A source has two spellings: a general one, which means the same for every tool ("the field of the last result
that is called like the parameter"), and a specific one ("`flights[].id` of `airline:search`"). Success of a
specific one is counted where there is enough of it, else that of the general one (`argument_rates`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from pml.processors.capabilities.aliases import same_name
from pml.processors.discovery.words import spoken
from pml.processors.learning.argument_spans import mentioned
from pml.processors.learning.argument_values import Leaf, is_redacted, spelled
from pml.processors.learning.parameters import ANY, Parameter
from pml.processors.learning.scene import CONTEXT, Element, Scene
from pml.processors.learning.span import Span

CANDIDATES_MOST: Final = 512
# Elements that have a field are numbered from the latest; beyond this they are "earlier".
RECENT: Final = 3
# Of what is called otherwise than the parameter, only where it was seen to be meant, or where so few are.
UNRELATED: Final = frozenset({"kin", "other"})
FEW: Final = 4
# How the value of an argument that is not given is written.
LEFT_OUT: Final = b""
# Words that begin with as many equal letters are akin: nausea, nauseous.
AKIN_LETTERS: Final = 5
_CAPABILITY: Final = "cap_"
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?$")
# Longer whole numbers do not all fit into 64 bits, and one that was cut would name another record.
DIGITS_MOST: Final = 18


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value, spelled, and the source that names it.

    Attributes:
        field: the name of the argument or field of a result that has it; empty elsewhere.
        element: whose that is.
    """

    value: bytes
    general: str
    specific: str
    field: str = ""
    element: Element | None = None


NOT_GIVEN: Final = Candidate(LEFT_OUT, "left out", "left out")
# Where nothing is said to be required, some of it is.
NONE_REQUIRED: Final = Candidate(LEFT_OUT, "left out, none required", "left out")


def candidates(scene: Scene, wanted: Parameter) -> list[Candidate]:
    """The bounded set of what may be meant, in a fixed order; a value may come from several sources."""
    found: list[Candidate] = []
    for each in _sources(scene, wanted):
        found.append(each)
        if len(found) == CANDIDATES_MOST:
            break
    return found


def _sources(scene: Scene, wanted: Parameter) -> Iterator[Candidate]:
    if not wanted.required:
        yield NOT_GIVEN if wanted.others_required else NONE_REQUIRED
    if wanted.default is not None:
        yield Candidate(wanted.default, "default", "default")
    yield from _constants(scene, wanted)
    yield from _text(scene, wanted)
    yield from _arguments(scene, wanted)
    yield from _results(scene, wanted)


def _constants(scene: Scene, wanted: Parameter) -> Iterator[Candidate]:
    """Habits of the parameter and what its schema allows; whether the text names them, or has words that are
    akin to theirs, counts apart."""
    known = dict.fromkeys(wanted.constants, "constant")
    for value in (*known, *(value for value in wanted.enum if value not in known)):
        told = orjson.loads(value)
        word = told if isinstance(told, str) else str(told)
        named = len(word) > 1 and type(told) is not bool and mentioned(word, scene.lowered)
        said = " in the text" if named else " akin to the text" if akin(word, scene.lowered) else ""
        general = f"{known.get(value, 'enum')}{said}"
        yield Candidate(value, general, f"{general} {value.decode()}")


def akin(words: str, lowered: str) -> bool:
    """Whether a text, in lower case, has a word akin to each long one of these, of which there is one."""
    wanted = [each for each in _WORD.findall(words.lower()) if len(each) >= AKIN_LETTERS]
    return bool(wanted) and all(each[:AKIN_LETTERS] in _beginnings(lowered) for each in wanted)


@lru_cache(256)
def _beginnings(lowered: str) -> frozenset[str]:
    return frozenset(each[:AKIN_LETTERS] for each in _WORD.findall(lowered))


def _text(scene: Scene, wanted: Parameter) -> Iterator[Candidate]:
    if wanted.type in ("boolean", "object"):
        return
    for kind, pieces in scene.spans.items():
        for rule, chosen in _chosen_spans(pieces, scene, wanted.name):
            value = _cast(chosen, wanted.type)
            if value is not None and not is_redacted(value):
                source = f"text {kind} {rule}"
                yield Candidate(value, source, source)
                if wanted.type == "number" and value.isdigit():
                    yield Candidate(value + b".0", f"{source} decimal", f"{source} decimal")


def _chosen_spans(pieces: Sequence[Span], scene: Scene, name: str) -> Iterator[tuple[str, list[Span]]]:
    """Which of the pieces of one kind: the only, the first and the last, the next ones that no earlier
    argument used, and the one behind where the text names the parameter."""
    if len(pieces) == 1:
        yield "only", [pieces[0]]
    elif pieces:
        yield "first", [pieces[0]]
        yield "last", [pieces[-1]]
    ahead = [piece for piece in pieces if piece.start >= scene.reached]
    for place, piece in enumerate(ahead[:RECENT], start=1):
        yield f"next {place}", [piece]
    if len(ahead) > 1:
        yield "all next", ahead
    behind = scene.named_at(name)
    after = [piece for piece in pieces if piece.start >= behind] if behind is not None else []
    if after:
        yield "named", [after[0]]


def _cast(pieces: Sequence[Span], kind: str) -> bytes | None:
    """Pieces of text as a value of a type; None where they cannot be one."""
    if kind == "array":
        return spelled([piece.text for piece in pieces])
    if len(pieces) != 1:
        return None
    text = pieces[0].text
    plain = text.replace(",", "")
    if kind == "string" or (kind == ANY and not _NUMBER.match(plain)):
        return spelled(text)
    return _number(plain) if _NUMBER.match(plain) else None


def _number(text: str) -> bytes | None:
    """Text that spells a number as that number; None where it has too many digits."""
    if "." in text:
        return spelled(float(text))
    return spelled(int(text)) if len(text.removeprefix("-")) <= DIGITS_MOST else None


def _arguments(scene: Scene, wanted: Parameter) -> Iterator[Candidate]:
    counted: Counter[str] = Counter()
    for element in scene.past:
        own = "own " if element.name == wanted.tool else ""
        for leaf in element.arguments:
            source = f"argument {element.name} {leaf.pattern}"
            counted[source] += 1
            relation = related(wanted.name, leaf.name, element.owner)
            if counted[source] > RECENT or not _meant(relation, source, wanted, len(element.arguments)):
                continue
            value = fitting_value(leaf, wanted.type)
            if value and not _is_kept_from(wanted, leaf, element):
                general = f"argument {own}{relation} {min(element.back, RECENT + 1)}"
                yield Candidate(value, general, f"{source} {counted[source]}", leaf.name, element)


def _results(scene: Scene, wanted: Parameter) -> Iterator[Candidate]:
    counted: Counter[str] = Counter()
    for element in scene.past:
        for pattern, items in element.results.items():
            source = f"result {element.name} {pattern}"
            counted[source] += 1
            if counted[source] > RECENT:
                continue
            relation = related(wanted.name, items[0].name, element.owner)
            if not _meant(relation, source, wanted, len(element.results)):
                continue
            for rule, leaf in _chosen_items(items, scene):
                value = fitting_value(leaf, wanted.type)
                if value and not _is_kept_from(wanted, leaf, element):
                    general = f"result {relation} {min(element.back, RECENT + 1)} {rule}"
                    specific = f"{source} {rule} {counted[source]}"
                    yield Candidate(value, general, specific, leaf.name, element)


def _is_kept_from(wanted: Parameter, leaf: Leaf, element: Element) -> bool:
    """Whether a value is a secret that a parameter must not be given: another server's, or called otherwise.

    The log has `[REDACTED]` for all of them, so there any two are equal; who asks has them as they are.
    """
    if not leaf.secret:
        return False
    elsewhere = element.name == CONTEXT or _owner(element.name) != _owner(wanted.tool)
    return elsewhere or leaf.name != wanted.name


def _owner(name: str) -> str:
    """The server of a tool; a capability, whose tools may be of several, is its own."""
    return name if name.startswith(_CAPABILITY) else name.rpartition(":")[0]


def _meant(relation: str, source: str, wanted: Parameter, leaves: int) -> bool:
    """Whether a value is worth a look: called alike, or it was the one before, or there are few beside it."""
    return relation not in UNRELATED or source in wanted.paths or leaves <= FEW


def _chosen_items(items: Sequence[Leaf], scene: Scene) -> Iterator[tuple[str, Leaf]]:
    """Which of the items that lie under one path: as with pieces of a text."""
    if len(items) == 1:
        yield ("only used" if items[0].spelling in scene.used else "only"), items[0]
        return
    yield "first", items[0]
    yield "last", items[-1]
    ahead = [leaf for leaf in items if leaf.spelling not in scene.used]
    if ahead:
        yield "next", ahead[0]
    named = [leaf for leaf in items if isinstance(leaf.value, str) and mentioned(leaf.value, scene.lowered)]
    if named:
        yield "in the text", named[-1]


def fitting_value(leaf: Leaf, kind: str) -> bytes | None:
    """A value as one of the wanted type; numbers and texts that spell them are turned into each other."""
    value = leaf.value
    if kind in (ANY, "null") or _is(value, kind):
        return leaf.spelling
    if kind == "string" and type(value) in (int, float):
        return spelled(str(value))
    if kind in ("integer", "number") and isinstance(value, str) and _NUMBER.match(value):
        return _number(value) if kind == "number" or "." not in value else None
    if kind == "array" and type(value) in (str, int, float):
        return spelled([value])
    return None


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return type(value) is int
        case "number":
            return type(value) in (int, float)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


@lru_cache(65_536)
def related(parameter: str, field: str, owner: str) -> str:
    """How a field is called, beside what a parameter is: `same`, `alias`, `owned` (`id` of a user for
    `user_id`), `part` (`geo_id` for `id`), `kin` (a word in common) or `other`."""
    if not field:
        return "other"
    wanted, given = spoken(parameter), spoken(field)
    if wanted == given:
        return "same"
    if same_name(parameter, field):
        return "alias"
    words, others = set(wanted.split()), set(given.split())
    if words & others and not words <= others and words <= others | set(owner.split()):
        return "owned"
    if words <= others or others <= words:
        return "part"
    return "kin" if words & others else "other"
