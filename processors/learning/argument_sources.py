"""Where the arguments of the next call come from: learned for each parameter, with back-off.

A parameter's value is an argument of an earlier call, a field of an earlier result, a piece of the visible
text, a habit, a default, or it is left out. What named the right value in ended sessions is counted
(`argument_rates`); values that several sources name are weighed (`argument_choice`). Free text is what no
source ever names: its best value is unlikely, so nothing is guessed. The values of a call are chosen
together: what one parameter has, another is less likely to have (`argument_repeats`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from pml.processors.learning import argument_model
from pml.processors.learning.argument_candidates import LEFT_OUT, NOT_GIVEN, Candidate, candidates
from pml.processors.learning.argument_cases import (
    FOLDS,
    Cases,
    Known,
    Schemas,
    cases_of,
    family,
    session_folds,
)
from pml.processors.learning.argument_choice import (
    FEATURES,
    Offered,
    Values,
    learned_weights,
    shares,
    weighed,
)
from pml.processors.learning.argument_combining import LEAST_SHARE, combinations
from pml.processors.learning.argument_confidence import Confidence, said_of
from pml.processors.learning.argument_context import NAMES, described
from pml.processors.learning.argument_picks import NAMEABLE, lead, leads, picked
from pml.processors.learning.argument_rates import (
    ANY_SOURCE,
    Rates,
    circles,
    cross_fitted,
    cross_shares,
    given_looks,
    look_circles,
    shape_circles,
)
from pml.processors.learning.argument_repeats import Repeats
from pml.processors.learning.argument_trees import (
    CASES_LEAST,
    cross_grown,
    grown,
    right_cases,
    surely_more,
    tree_shares,
)
from pml.processors.learning.boosted_trees import BoostedTrees
from pml.processors.learning.grouping import summed
from pml.processors.learning.parameters import Parameter
from pml.processors.learning.scene import HISTORY_MOST, Past, Scene, scene, taken_apart

__all__ = ["ArgumentSources", "Guess", "Past"]

GUESSES_MOST: Final = 10

Column = NDArray[np.float64]
# A value of a parameter: its share, its best source, and a number that equal values of a call share.
Named = tuple[float, Candidate, int]
NONE_NAMED: Final[Named] = (LEAST_SHARE, NOT_GIVEN, -1)


@dataclass(frozen=True, slots=True)
class Guess:
    """Arguments that a call may have.

    Attributes:
        arguments: all required ones, and those optional ones that are likely given.
        confidence: that all of them are right and none is missing, in [0, 1].
        sources: by parameter, what named its value; says no values.
    """

    arguments: Mapping[str, Any]
    confidence: float
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class ArgumentSources:
    """What is known of parameters, and how much each source is to be trusted.

    `trees` choose among values where they surely do that better than `weights`.
    """

    known: Known
    rates: Rates
    weights: Column
    confidence: Confidence
    repeats: Repeats
    trees: BoostedTrees | None = None

    @classmethod
    def fit(
        cls, sessions: Sequence[Sequence[Past]], requests: Sequence[Sequence[str]], schemas: Schemas
    ) -> ArgumentSources:
        """Learn of ended sessions.

        Weights and confidence are learned of rates that were counted in other folds than the call's own.

        Args:
            sessions: elements in the order in which they ended.
            requests: for each session and element the text that was visible before it; empty: none.
            schemas: JSON Schema of the input of each tool, as far as it is known.

        Raises:
            ValueError: there are not as many texts as elements.
        """
        if [len(each) for each in sessions] != [len(each) for each in requests]:
            raise ValueError("each element of a session needs the text that was visible before it")
        fold = session_folds(len(sessions))
        known = Known.of(sessions, fold, schemas)
        cases = cases_of(sessions, requests, known, fold)
        found = _cross_fitted(cases)
        weights = learned_weights(found)
        said, trees = _chosen(found, shares(weights, found), cases.folds[cases.calls][found.owners])
        repeats = _repeats(cases, found, said)
        return cls(known, _rates(cases), weights, _confidence(cases, found, said, repeats), repeats, trees)

    def guesses(self, name: str, past: Sequence[Past], request: str, most: int = 3) -> tuple[Guess, ...]:
        """Arguments that the next call of a tool may have, the likeliest first.

        None where the tool is unknown, or a required argument cannot be named.

        Args:
            name: the tool or capability.
            past: the elements of the session that ended, the latest last.
            request: the text that is visible now; empty: none.
            most: how many, at most `GUESSES_MOST`.
        """
        before = scene([taken_apart(each) for each in past[-HISTORY_MOST:]], request)
        return self.guesses_after(before, name, most)

    def guesses_after(self, before: Scene, name: str, most: int = 3) -> tuple[Guess, ...]:
        """The same of a past that is taken apart already, which pays where several calls are asked about."""
        if name not in self.known.names:
            return ()
        wanted = self.known.parameters(name)
        named, again = self._values(before, wanted)
        if any(not each for each in named):
            return ()
        sets = combinations(
            [[share for share, _, _ in each] for each in named],
            min(most, GUESSES_MOST),
            [[number for _, _, number in each] for each in named],
            again,
        )
        sure = self.confidence(_said(named, sets[0][1]), name)
        told = [[each[pick][1] for each, pick in zip(named, picks, strict=True)] for _, picks in sets]
        odds = np.exp([product - sets[0][0] for product, _ in sets])
        scale = min(sure, 1 / float(odds.sum()))
        return tuple(
            _guess(wanted, values, scale * float(share)) for values, share in zip(told, odds, strict=True)
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays; `known` is JSON as bytes."""
        told = argument_model.to_arrays(self.known, self.rates, self.weights, self.confidence, self.repeats)
        return told | ({} if self.trees is None else self.trees.to_arrays())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ArgumentSources:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        trees = BoostedTrees.from_arrays(arrays, FEATURES + len(NAMES)) if "tree_roots" in arrays else None
        return cls(*argument_model.from_arrays(arrays), trees)

    def _values(
        self, before: Scene, wanted: Sequence[Parameter]
    ) -> tuple[list[list[Named]], Mapping[int, float]]:
        """The values of each parameter, the likeliest first, or none; and what having one again counts for.

        An optional one that cannot be named is left out. All are weighed at once: one by one, the parameters
        of a tool that takes many would cost more in calls of NumPy than in numbers.
        """
        offered = [candidates(before, each) for each in wanted]
        named, again = self._likely(before, wanted, offered) if any(offered) else ([[] for _ in wanted], {})
        return [
            sorted(likely, key=lambda value: (-value[0], value[1].value))
            or ([] if parameter.required else [NONE_NAMED])
            for parameter, likely in zip(wanted, named, strict=True)
        ], again

    def _likely(
        self, before: Scene, wanted: Sequence[Parameter], offered: Sequence[Sequence[Candidate]]
    ) -> tuple[list[list[Named]], Mapping[int, float]]:
        """The values of each parameter that can be named, and what having one again counts for."""
        given = self._offered(before, wanted, offered)
        found = weighed(given)
        said = shares(self.weights, found) if self.trees is None else tree_shares(self.trees, found)
        each = [candidate for own in offered for candidate in own]
        places = np.argsort(given.rates, kind="stable").tolist()
        best = {(int(given.cases[place]), int(given.numbers[place])): place for place in places}
        named: list[list[Named]] = [[] for _ in wanted]
        ranked = zip(found.owners.tolist(), said.tolist(), found.numbers.tolist(), strict=True)
        for owner, share, number in ranked:
            if share >= NAMEABLE:
                named[owner].append((share, each[best[owner, number]], number))
        return named, self.repeats.of(found)

    def _offered(
        self, before: Scene, wanted: Sequence[Parameter], offered: Sequence[Sequence[Candidate]]
    ) -> Offered:
        """The candidates of all parameters, one below the other, with what is known of each."""
        pairs = [(each, own) for each, own in zip(wanted, offered, strict=True) if own]
        told = [(each, parameter) for parameter, own in pairs for each in own]
        owners = np.repeat(np.arange(len(wanted)), [len(own) for own in offered])
        names: dict[bytes, int] = {}
        numbers = [names.setdefault(each.value, len(names)) for each, _ in told]
        any_source = self.rates.of([circles(ANY_SOURCE, each, before.previous) for each in wanted])
        return Offered(
            self.rates.of([circles(each, parameter, before.previous) for each, parameter in told]),
            self.rates.of([shape_circles(each, parameter) for each, parameter in told]),
            self.rates.shares(
                [given_looks(each.value, parameter) for each, parameter in told],
                [look_circles(parameter) for _, parameter in told],
            ),
            any_source[owners],
            owners,
            np.array(numbers, dtype=np.int32),
            np.array([family(each.general) for each, _ in told], dtype=np.int8),
            np.zeros(len(told), dtype=np.bool_),
            np.concatenate([described(before, parameter, own) for parameter, own in pairs]),
        )


def _chosen(found: Values, linear: Column, folds: NDArray[np.int64]) -> tuple[Column, BoostedTrees | None]:
    """What is said of values, and the trees that say it; None: the weights do, who are not surely worse."""
    if len(np.unique(found.owners)) < CASES_LEAST:
        return linear, None
    said = cross_grown(found, folds, FOLDS)
    if not surely_more(right_cases(found, said), right_cases(found, linear)):
        return linear, None
    return said, grown(found)


def _cross_fitted(cases: Cases) -> Values:
    """The values of cases, by rates that were counted in other folds."""
    case_folds = cases.folds[cases.calls]
    names = len(cases.keys)
    any_source = cross_fitted(cases.any_numbers, cases.any_right, case_folds, names, FOLDS)
    rates = cross_fitted(cases.numbers, cases.right, case_folds[cases.cases], names, FOLDS)
    looks = cross_fitted(cases.shapes, cases.right, case_folds[cases.cases], names, FOLDS)
    alike = cross_shares(cases.looks, cases.cases, cases.given, case_folds, FOLDS)
    return weighed(
        Offered(
            rates,
            looks,
            alike,
            any_source[cases.cases],
            cases.cases,
            cases.values,
            cases.families,
            cases.right,
            cases.contexts,
        )
    )


def _rates(cases: Cases) -> Rates:
    return Rates.counted(
        cases.keys,
        (cases.numbers, cases.right),
        (cases.any_numbers, cases.any_right),
        (cases.shapes, cases.right),
        (cases.given.circles, np.ones(len(cases.any_right), dtype=np.bool_)),
        (cases.given.looks, np.ones(len(cases.any_right), dtype=np.bool_)),
    )


def _guess(wanted: Sequence[Parameter], values: Sequence[Candidate], confidence: float) -> Guess:
    given = {each.name: value for each, value in zip(wanted, values, strict=True) if value.value != LEFT_OUT}
    return Guess(
        {name: orjson.loads(value.value) for name, value in sorted(given.items())},
        confidence,
        {name: _told(value) for name, value in sorted(given.items())},
    )


def _told(found: Candidate) -> str:
    """A source without values: constants are named by what they are."""
    return found.general if found.general.startswith(("constant", "enum")) else found.specific


def _said(named: Sequence[Sequence[Named]], picks: Sequence[int]) -> Column:
    """float64 [SAID]: what is said of the values that were picked."""
    shares = np.array([own[pick][0] for own, pick in zip(named, picks, strict=True)])
    others = np.array(
        [own[int(pick == 0)][0] if len(own) > 1 else 0.0 for own, pick in zip(named, picks, strict=True)]
    )
    said = said_of(shares, lead(shares, others), np.zeros(len(shares), dtype=np.int64), 1)
    return np.asarray(said[0])


def _asked(cases: Cases) -> NDArray[np.bool_]:
    """bool [calls]: those that others came before, for nobody asks about the first of a session. Of all
    calls, where there are no others."""
    return cases.later if cases.later.any() else ~cases.later


def _repeats(cases: Cases, found: Values, said: Column) -> Repeats:
    calls = cases.calls[found.owners]
    asked = _asked(cases)[calls]
    return Repeats.fit(found.of(asked), said[asked], calls[asked])


def _confidence(cases: Cases, found: Values, probabilities: Column, repeats: Repeats) -> Confidence:
    """How often the values that would be chosen for a call were right. Calls of one fold alone confirm
    nothing."""
    calls, asked = len(cases.tools), _asked(cases)
    best, ahead = np.zeros((2, len(cases.calls)))
    right = np.zeros(len(cases.calls), dtype=np.bool_)
    rows = picked(found, probabilities, cases.calls[found.owners], repeats)
    chosen = found.owners[rows]
    best[chosen], ahead[chosen] = probabilities[rows], leads(found, probabilities, rows)
    right[chosen] = found.right[rows]
    said, wrong = said_of(best, ahead, cases.calls, calls), summed(~right, cases.calls, calls)
    named = (wrong == 0) & cases.known & (len(np.unique(cases.folds)) > 1)
    tools = [tool for tool, one in zip(cases.tools, asked.tolist(), strict=True) if one]
    return Confidence.fit(said[asked], tools, named[asked], cases.folds[asked])
