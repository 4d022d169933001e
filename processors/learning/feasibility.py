"""What can be called with what a session has, and what only after other calls (DESIGN §7, Hyperpaths).

A call needs all of its required inputs. Those that the session has are sources; from the inputs of a tool a
hyperedge leads to each input that its result may fill. A shortest hyperpath to all inputs of a candidate is
the surest way to make it callable. Only what can be on such a way is looked at: who gives what is missing,
who gives what those miss, and so on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pml.processors.learning.hyperedge_weights import hyperedge_weights
from pml.processors.learning.hypergraph import Hyperedge, Hypergraph
from pml.processors.learning.hyperpaths import Hyperpath, shortest_hyperpaths
from pml.processors.learning.parameters import Parameter
from pml.processors.learning.tool_hypergraph import Giver, Record, Slot

# Tools on the way to all candidates together, those that are needed first; of each the inputs are bounded.
TOOLS_MOST = 64
# A longer way is none: who would go it does so call by call, and is asked again after each.
STEPS_MOST = 8

Has = Callable[[Parameter], bool]


class Tools(Protocol):
    """What tools and capabilities need and give."""

    def needs(self, name: str) -> Sequence[Parameter]:
        """The inputs that it requires."""

    def givers(self, wanted: Parameter) -> Sequence[Giver]:
        """Who may give an input."""

    def record(self, name: str) -> Record:
        """How it did."""


@dataclass(frozen=True, slots=True)
class Feasible:
    """Whether something can be called.

    Attributes:
        missing: required inputs that nothing in the session names.
        through: the calls that would give them, in an order in which they can be made; none where nothing is
            missing, None where no way is known.
        cost: of these calls: e^−cost is the probability that all go well and give what is needed, were they
            independent and none needed twice.
    """

    missing: tuple[str, ...] = ()
    through: tuple[str, ...] | None = ()
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class _Step:
    """A call of `giver` gives the input `gives`; the session lacks `needs` for it."""

    giver: Giver
    gives: Slot
    needs: tuple[Slot, ...]


def feasibility(names: Sequence[str], tools: Tools, has: Has) -> dict[str, Feasible]:
    """For each tool or capability whether it can be called now, or through which calls.

    Args:
        names: the candidates.
        tools: what they need, and who gives it.
        has: whether the session names a value for an input.
    """
    lacking = {name: _lacking(tools.needs(name), has) for name in names}
    missing = {name: lacks for name, lacks in lacking.items() if lacks}
    found = dict.fromkeys(names, Feasible())
    return found | _ways(missing, _steps(missing, tools, has), tools) if missing else found


def _lacking(needed: Sequence[Parameter], has: Has) -> tuple[Parameter, ...]:
    return tuple(each for each in needed if not has(each))


def _slots(inputs: Sequence[Parameter]) -> tuple[Slot, ...]:
    return tuple((each.tool, each.name) for each in inputs)


def _steps(missing: Mapping[str, Sequence[Parameter]], tools: Tools, has: Has) -> list[_Step]:
    """Who gives what is missing, and what those miss, breadth first."""
    waiting = deque(each for lacks in missing.values() for each in lacks)
    queued, lacking, steps = set(_slots(tuple(waiting))), dict[str, tuple[Parameter, ...]](), list[_Step]()
    while waiting:
        wanted = waiting.popleft()
        for giver in tools.givers(wanted):
            if giver.name not in lacking:
                if len(lacking) == TOOLS_MOST:
                    continue
                lacking[giver.name] = _lacking(tools.needs(giver.name), has)
            lacks = lacking[giver.name]
            steps.append(_Step(giver, (wanted.tool, wanted.name), _slots(lacks)))
            waiting.extend(each for each in lacks if (each.tool, each.name) not in queued)
            queued.update(_slots(lacks))
    return steps


def _ways(
    missing: Mapping[str, Sequence[Parameter]], steps: Sequence[_Step], tools: Tools
) -> dict[str, Feasible]:
    """The shortest way to all that each candidate misses: what is at hand costs nothing, and is left out."""
    lacks = {name: _slots(inputs) for name, inputs in missing.items()}
    slots = dict.fromkeys(slot for of in (*lacks.values(), *(step.needs for step in steps)) for slot in of)
    numbers = {slot: number for number, slot in enumerate(slots)}
    goals = {name: number for number, name in enumerate(lacks, start=len(numbers))}
    calls = [
        Hyperedge(tuple(numbers[slot] for slot in step.needs), (numbers[step.gives],), weight)
        for step, weight in zip(steps, _weights(steps, tools), strict=True)
    ]
    ends = [Hyperedge(tuple(numbers[slot] for slot in lacks[name]), (goals[name],), 0.0) for name in lacks]
    tree = shortest_hyperpaths(Hypergraph(len(numbers) + len(goals), [*calls, *ends]), ())
    return {name: _feasible(lacks[name], tree.path(goals[name]), steps) for name in lacks}


def _weights(steps: Sequence[_Step], tools: Tools) -> list[float]:
    records = [tools.record(step.giver.name) for step in steps]
    successes, runs = [each.successes for each in records], [each.runs for each in records]
    return list(hyperedge_weights(successes, runs, [step.giver.share for step in steps]).tolist())


def _feasible(lacks: Sequence[Slot], path: Hyperpath | None, steps: Sequence[_Step]) -> Feasible:
    """The last hyperedge of a path is the candidate's own: it takes what the others gave."""
    missing = tuple(name for _, name in lacks)
    if path is None:
        return Feasible(missing, None)
    through = tuple(dict.fromkeys(steps[number].giver.name for number in path.hyperedges[:-1]))
    return Feasible(missing, through, path.cost) if len(through) <= STEPS_MOST else Feasible(missing, None)
