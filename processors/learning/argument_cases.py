"""Calls of ended sessions as cases to learn argument sources from: what might have been meant, what was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.argument_candidates import LEFT_OUT, candidates
from pml.processors.learning.argument_context import FAMILIES, NAMES, described
from pml.processors.learning.argument_rates import (
    ANY_SOURCE,
    CIRCLES,
    SHAPE_CIRCLES,
    Given,
    Keys,
    circles,
    given_looks,
    key_of,
    look_circles,
    shape_circles,
)
from pml.processors.learning.argument_values import spelled
from pml.processors.learning.parameters import PARAMETERS_MOST, Parameter, Seen, declared, parameter, seen
from pml.processors.learning.scene import HISTORY_MOST, Past, loose, scene, taken_apart
from pml.processors.learning.splits import folds

FOLDS: Final = 5
# The latest calls are learned from, so many.
CALLS_MOST: Final = 20_000

Schemas = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of parameters: those declared, by tool, and what was seen, by tool and name."""

    declared: Mapping[str, Mapping[str, Parameter]]
    seen: Mapping[tuple[str, str], Seen]
    names: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, sessions: Sequence[Sequence[Past]], fold: NDArray[np.int64], schemas: Schemas) -> Known:
        """Learn it of sessions, each of a fold, and schemas of inputs by tool."""
        found = seen([[(each.name, each.arguments) for each in past] for past in sessions], fold.tolist())
        for past, own in zip(sessions, fold.tolist(), strict=True):
            _trace(past, own, found)
        told = {name: declared(name, schema) for name, schema in sorted(schemas.items())}
        called = {each.name for past in sessions for each in past}
        names = {tool: list(told.get(tool, {})) for tool in sorted(called | told.keys())}
        for tool, name in sorted(found):
            if name not in names[tool] and len(names[tool]) < PARAMETERS_MOST:
                names[tool].append(name)
        return cls(told, found, {tool: tuple(given) for tool, given in names.items()})

    def parameters(self, tool: str, without: int | None = None) -> list[Parameter]:
        """Those of a tool, without what only sessions of one fold show."""
        told = self.declared.get(tool, {})
        return [
            parameter(told.get(name), tool, name, self.seen.get((tool, name)), without)
            for name in self.names.get(tool, ())
            if without is None or name in told or self.seen[tool, name].elsewhere(without)
        ]


def _trace(past: Sequence[Past], fold: int, found: Mapping[tuple[str, str], Seen]) -> None:
    """Note the paths to where the values of a session's arguments stood before."""
    apart = [taken_apart(each) for each in past]
    holders, told = [each.holders() for each in apart], [each.told() for each in apart]
    for place, call in enumerate(past):
        for name, value in call.arguments.items():
            of = found.get((call.name, name))
            wanted = loose(spelled(value) or b"")
            if of is None or not wanted:
                continue
            for held in (*holders[max(0, place - HISTORY_MOST) : place], *told[max(0, place - 1) : place]):
                for path in held.get(wanted, ()):
                    of.paths.setdefault(path, Counter())[fold] += 1


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """A case is one parameter of one call.

    Attributes:
        keys: int64 [names], of the circles that candidates are counted in.
        numbers: int32 [candidates, CIRCLES], names.
        shapes: int32 [candidates, SHAPE_CIRCLES], names, of how the value looks.
        looks: int32 [candidates, SHAPE_CIRCLES], names, of what was given and looks like it.
        right: bool [candidates], whether the value was given.
        values: int32 [candidates], the number of the value within its call.
        families: int8 [candidates], the first word of the source.
        cases: int64 [candidates], the case of each, ascending.
        contexts: float32 [candidates, NAMES], what else speaks for it (`argument_context`).
        any_numbers: int32 [cases, CIRCLES], the names of all sources together.
        any_right: bool [cases], whether any source named the value.
        given: what was given in each case, or that nothing was.
        calls: int64 [cases], the call of each, ascending.
        tools: the tool of each call.
        folds: int64 [calls].
        later: bool [calls], whether anything of its session stood before a call.
        known: bool [calls], whether all that a call was given are parameters that were known without it.
    """

    keys: Keys
    numbers: NDArray[np.int32]
    shapes: NDArray[np.int32]
    looks: NDArray[np.int32]
    right: NDArray[np.bool_]
    values: NDArray[np.int32]
    families: NDArray[np.int8]
    cases: NDArray[np.int64]
    contexts: NDArray[np.float32]
    any_numbers: NDArray[np.int32]
    any_right: NDArray[np.bool_]
    given: Given
    calls: NDArray[np.int64]
    tools: tuple[str, ...]
    folds: NDArray[np.int64]
    later: NDArray[np.bool_]
    known: NDArray[np.bool_]


def family(general: str) -> int:
    """The number of the family that a source belongs to."""
    return FAMILIES.index(general.split(" ", 1)[0])


class Collecting:
    """Cases as they are gathered, one call after another."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._numbers: list[tuple[int, ...]] = []
        self._shapes: list[tuple[int, ...]] = []
        self._looks: list[tuple[int, ...]] = []
        self._right: list[bool] = []
        self._values: list[int] = []
        self._families: list[int] = []
        self._cases: list[int] = []
        self._contexts: list[NDArray[np.float32]] = []
        self._any_numbers: list[tuple[int, ...]] = []
        self._any_right: list[bool] = []
        self._given: list[tuple[int, ...]] = []
        self._given_looks: list[tuple[int, ...]] = []
        self._calls: list[int] = []
        self._tools: list[str] = []
        self._folds: list[int] = []
        self._later: list[bool] = []
        self._known: list[bool] = []

    def add(self, call: Past, before: Any, known: Sequence[Parameter], fold: int) -> None:
        """One call, with the scene before it and the parameters of its tool."""
        number = len(self._tools)
        self._tools.append(call.name)
        self._folds.append(fold)
        self._later.append(bool(before.past))
        self._known.append(call.arguments.keys() <= {each.name for each in known})
        values = dict[bytes, int]()
        for wanted in known:
            given = spelled(call.arguments[wanted.name]) if wanted.name in call.arguments else LEFT_OUT
            case = len(self._calls)
            self._calls.append(number)
            offered = candidates(before, wanted)
            self._any_numbers.append(self._numbered(circles(ANY_SOURCE, wanted, before.previous)))
            self._any_right.append(any(each.value == given for each in offered))
            self._given.append(self._numbered(look_circles(wanted)))
            self._given_looks.append(self._numbered(given_looks(given or LEFT_OUT, wanted)))
            self._contexts.append(described(before, wanted, offered))
            for each in offered:
                self._numbers.append(self._numbered(circles(each, wanted, before.previous)))
                self._shapes.append(self._numbered(shape_circles(each, wanted)))
                self._looks.append(self._numbered(given_looks(each.value, wanted)))
                self._right.append(each.value == given)
                self._values.append(values.setdefault(each.value, len(values)))
                self._families.append(family(each.general))
                self._cases.append(case)

    def _numbered(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self._names.setdefault(name, len(self._names)) for name in names)

    def done(self) -> Cases:
        """All of them as columns."""
        return Cases(
            keys=np.array([key_of(name) for name in self._names], dtype=np.int64),
            numbers=_names(self._numbers, CIRCLES),
            shapes=_names(self._shapes, SHAPE_CIRCLES),
            looks=_names(self._looks, SHAPE_CIRCLES),
            right=np.array(self._right, dtype=np.bool_),
            values=np.array(self._values, dtype=np.int32),
            families=np.array(self._families, dtype=np.int8),
            cases=np.array(self._cases, dtype=np.int64),
            contexts=np.concatenate([np.zeros((0, len(NAMES)), np.float32), *self._contexts]),
            any_numbers=_names(self._any_numbers, CIRCLES),
            any_right=np.array(self._any_right, dtype=np.bool_),
            given=Given(_names(self._given, SHAPE_CIRCLES), _names(self._given_looks, SHAPE_CIRCLES)),
            calls=np.array(self._calls, dtype=np.int64),
            tools=tuple(self._tools),
            folds=np.array(self._folds, dtype=np.int64),
            later=np.array(self._later, dtype=np.bool_),
            known=np.array(self._known, dtype=np.bool_),
        )


def _names(rows: Sequence[tuple[int, ...]], circles: int) -> NDArray[np.int32]:
    return np.array(rows, dtype=np.int32).reshape(-1, circles)


def session_folds(sessions: int) -> NDArray[np.int64]:
    """int64 [sessions]: a fold for each.

    Sessions that are alike word for word may be in several folds: what is done again and again is what is
    asked next, and its repetitions confirm what names its arguments.
    """
    return folds(np.arange(sessions, dtype=np.int64), FOLDS, 0)


def cases_of(
    sessions: Sequence[Sequence[Past]],
    requests: Sequence[Sequence[str]],
    known: Known,
    fold: NDArray[np.int64],
) -> Cases:
    """The cases of the latest calls; what a parameter's constants are is asked of other folds alone."""
    found, left = Collecting(), sum(map(len, sessions)) - CALLS_MOST
    parameters: dict[tuple[str, int], list[Parameter]] = {}
    for past, texts, own in zip(sessions, requests, fold.tolist(), strict=True):
        apart = [taken_apart(each) for each in past]
        for place, call in enumerate(past):
            left -= 1
            if left >= 0:
                continue
            key = call.name, own
            if key not in parameters:
                parameters[key] = known.parameters(call.name, own)
            found.add(call, scene(apart[:place], texts[place]), parameters[key], own)
    return found.done()
