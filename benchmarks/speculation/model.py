"""How soon a run could end at best: PML's rules on a machine that costs nothing (DESIGN §4, §5).

A layer is released when everything before it has ended and, where decisions are asked for, after the time of
one. Whenever a call ends, reads of the next layers whose arguments are known start early, the nearest layer
first and each in the order of the definition: at most `concurrent` at a time that nobody waits for, and none
while a write of an earlier layer, or one that runs, is not done with the same service. A release is served by
what is there and joins what runs. There is no broker, no orchestrator and no client in it: what PML loses
against it is its own cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A task: its layer, how long its tool takes, whether it only reads, of which steps it needs results."""

    layer: int
    tool_s: float
    safe: bool = True
    needs: frozenset[int] = frozenset()
    service: str = ""


@dataclass(frozen=True, slots=True)
class Ideal:
    """How long a run takes, and how many of its calls were started early."""

    total_s: float
    early: int


def in_turn_s(steps: Sequence[Step]) -> float:
    """One call after another."""
    return sum(step.tool_s for step in steps)


def by_layer_s(steps: Sequence[Step]) -> float:
    """All calls of a layer at once, one layer after another."""
    return sum(
        max(step.tool_s for step in steps if step.layer == layer) for layer in {s.layer for s in steps}
    )


def ideal(steps: Sequence[Step], depth: int, concurrent: int = 3, decisions_s: Sequence[float] = ()) -> Ideal:
    """A run that speculates on so many layers ahead; with `depth` 0 one that does not.

    Args:
        decisions_s: the time of the decision after each layer but the last; none where it is empty.
    """
    run = _Run(steps, decisions_s)
    run.release()
    while run.ends_s or run.due_s is not None:
        run.go_on()
        run.release()
        run.speculate(depth, concurrent)
    return Ideal(run.now_s, run.started_early)


class _Run:
    """Where a run is: what runs until when, what nobody waits for yet, whose results are there."""

    def __init__(self, steps: Sequence[Step], decisions_s: Sequence[float]) -> None:
        self._steps, self._decisions_s = steps, decisions_s
        self._last = max(step.layer for step in steps)
        self.ends_s: dict[int, float] = {}
        self.due_s: float | None = 0.0
        self.now_s, self.started_early = 0.0, 0
        self._early: set[int] = set()
        self._known: set[int] = set()
        self._layer = -1

    def go_on(self) -> None:
        """To the next thing that happens: calls end, or a decision is there."""
        self.now_s = min([*self.ends_s.values(), *([] if self.due_s is None else [self.due_s])])
        for number in [number for number, end_s in self.ends_s.items() if end_s <= self.now_s]:
            del self.ends_s[number]
            self._early.discard(number)
            self._known.add(number)

    def release(self) -> None:
        """Release what is due; what is served at once may release more."""
        self._look_ahead()
        while self.due_s is not None and self.due_s <= self.now_s:
            self._layer += 1
            self.due_s = None
            for number in self._of_layer(self._layer):
                self._early.discard(number)
                self._start(number)
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Where a layer has ended, the next one is due after a decision."""
        ended = self._known.issuperset(self._of_layer(self._layer))
        if self.due_s is None and ended and self._layer < self._last:
            self.due_s = self.now_s + (self._decisions_s[self._layer] if self._decisions_s else 0.0)

    def speculate(self, depth: int, concurrent: int) -> None:
        """Start early what may, the nearest layer first."""
        for number, step in sorted(enumerate(self._steps), key=lambda item: item[1].layer):
            ahead = self._layer < step.layer <= self._layer + depth
            if ahead and len(self._early) < concurrent and self._may_start(number, step):
                self._early.add(number)
                self.started_early += 1
                self._start(number)

    def _may_start(self, number: int, step: Step) -> bool:
        begun = number in self._known or number in self.ends_s
        return step.safe and not begun and step.needs <= self._known and not self._in_doubt(step)

    def _in_doubt(self, step: Step) -> bool:
        return any(
            not other.safe
            and other.service == step.service
            and number not in self._known
            and (other.layer < step.layer or number in self.ends_s)
            for number, other in enumerate(self._steps)
        )

    def _start(self, number: int) -> None:
        if number not in self._known and number not in self.ends_s:
            self.ends_s[number] = self.now_s + self._steps[number].tool_s

    def _of_layer(self, layer: int) -> list[int]:
        return [number for number, step in enumerate(self._steps) if step.layer == layer]
