"""Ways that a program may take, and what is true after them (DESIGN §5 and §6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pml.processors.capabilities import folding, merging
from pml.processors.capabilities.draft import End, joined
from pml.processors.capabilities.program import Expression
from pml.processors.capabilities.rendering import code_of, common
from pml.processors.capabilities.situation import Situation
from pml.processors.capabilities.values import Operated, Reference, Value
from pml.schemas.structure import DecisionNode
from pml.schemas.workflow import Condition

Way = tuple[str, Value, Callable[[], Value]]
"""A branch: its outcome, the test that it is taken by, and what happens in it."""


class Branching(Situation):
    """Decisions."""

    def decision(self, test: Value, written: str, line: int) -> str:
        """Draw a decision on a value."""
        code, names = code_of(test, self.language)
        condition = written or code
        return self.draft.add(
            DecisionNode, condition=condition, expression=common(test), code=code, names=names, line=line
        )

    def branch(
        self, test: Value, written: Expression, then: Callable[[], Value], otherwise: Callable[[], Value]
    ) -> Value:
        """One of two values, the calls for which are made only where it is wanted."""
        known = folding.known_truth(test)
        if known is not None:
            return then() if known else otherwise()
        decision = self.decision(test, written.source, written.line)
        found: list[Value] = []

        def kept(way: Callable[[], Value]) -> Callable[[], Value]:
            def run() -> Value:
                found.append(way())
                return merging.FALSE

            return run

        ways = [("true", test, kept(then)), ("false", merging.negated(test), kept(otherwise))]
        self.ways(decision, ways)
        return self.merged(test, (Condition(node=decision, outcome="true"),), *found)

    def ways(self, decision: str, ways: Sequence[Way]) -> Value:
        """Go all ways of a decision, each from the same variables; whether they have returned.

        Afterwards variables are what they became on the ways that did not return, and what follows lies in no
        branch, or in the one way that is left.
        """
        conditions, guard, before = self.draft.conditions, self.guard, self.variables()
        returned: list[Value] = []
        after: list[list[dict[str, Value]]] = []
        ends: list[tuple[End, ...]] = []
        for outcome, test, run in ways:
            self.set_variables(before)
            self.draft.conditions = (*conditions, Condition(node=decision, outcome=outcome))
            self.draft.ends = (End(decision, outcome),)
            self.guard = merging.both(guard, test)
            returned.append(run())
            after.append(self.variables())
            ends.append(self.draft.ends)
        self.draft.conditions, self.guard = conditions, guard
        open_ways = [index for index, value in enumerate(returned) if not merging.is_true(value)]
        if not open_ways:
            return merging.TRUE
        if len(open_ways) == 1 and merging.is_false(returned[open_ways[0]]):
            self._one_way(decision, ways[open_ways[0]], after[open_ways[0]], ends[open_ways[0]])
            return self._whether_returned(ways, returned)
        self.draft.ends = joined(*(ends[index] for index in open_ways), (End(decision),))
        self.set_variables(self._met(decision, [(ways[index], after[index]) for index in open_ways]))
        return self._whether_returned(ways, returned)

    def _one_way(self, decision: str, way: Way, after: list[dict[str, Value]], ends: tuple[End, ...]) -> None:
        """All other ways have returned: what follows lies in this one."""
        outcome, test, _ = way
        self.draft.conditions = (*self.draft.conditions, Condition(node=decision, outcome=outcome))
        self.guard = merging.both(self.guard, test)
        self.draft.ends = ends
        self.set_variables(after)

    def _met(
        self, decision: str, ways: Sequence[tuple[Way, list[dict[str, Value]]]]
    ) -> list[dict[str, Value]]:
        (_, met), *others = reversed(ways)
        for (outcome, test, _), variables in others:
            within = (Condition(node=decision, outcome=outcome),)
            met = [
                {name: self.merged(test, within, one.get(name), other.get(name)) for name in {**one, **other}}
                for one, other in zip(variables, met, strict=False)
            ]
        return met

    def _whether_returned(self, ways: Sequence[Way], returned: Sequence[Value]) -> Value:
        found = returned[-1]
        for (_, test, _), value in reversed(list(zip(ways[:-1], returned[:-1], strict=True))):
            found = merging.choice_of_truths(test, value, found)
        return found

    def merged(
        self, test: Value, within: Sequence[Condition], then: Value | None, otherwise: Value | None
    ) -> Value:
        """What a value is after a branch; where all of the other way lies in it, that way is asked first."""
        value = merging.merged(self.draft, test, within, then, otherwise)
        if isinstance(value, Operated) and value.operator == "choice" and len(within) == 1:
            turned = merging.merged(self.draft, merging.negated(test), _other_way(within[0]), otherwise, then)
            return turned if isinstance(turned, Reference) else value
        return value


def _other_way(condition: Condition) -> tuple[Condition, ...]:
    outcome = "false" if condition.outcome == "true" else "true"
    return (Condition(node=condition.node, outcome=outcome),)
