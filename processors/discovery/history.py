"""What was used together before: the tools that came with a tool, and with an intent like this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml.processors.memory.embedding import Vectors

Shares = NDArray[np.float64]

# Past workflows that are looked at, the last given ones.
PASTS_MOST = 10_000
TOOLS_OF_A_PAST = 100
# A tool seen n times counts n times as much as what tools like it came with.
PRIOR_STRENGTH = 1.0
NEIGHBOURS = 5
ALIKE = 10
# Similarities to this power: a near one outweighs many far ones.
SHARPNESS = 4
# As if one more workflow with none of the tools were that near: faint likeness is no evidence, however alone.
DOUBT = 0.03


@dataclass(frozen=True, slots=True)
class Past:
    """A workflow that ran: what it was for, the tools that it called, and which capability it was, if one."""

    intent: str
    tools: tuple[str, ...]
    capability: str | None = None


class History:
    """Pasts over tools by number; `points` are the tools', `intents` those of the pasts.

    `capabilities` are numbers, too, of those that pasts were.
    """

    def __init__(
        self,
        pasts: Sequence[Past],
        numbers: Mapping[str, int],
        points: Vectors,
        intents: Vectors,
        capabilities: Mapping[str, int] | None = None,
    ) -> None:
        known = [_numbers(past, numbers) for past in pasts]
        kept = [row for row, found in enumerate(known) if len(found)]
        self._pasts = [known[row] for row in kept]
        own = capabilities or {}
        self._was = [own.get(pasts[row].capability or "") for row in kept]
        self._intents = intents[kept] if kept else intents[:0]
        self._points, self._count = points, len(points)
        self._of_tool = self._uses()
        self._used = np.array(sorted(self._of_tool), dtype=np.int64)
        self._rows: dict[int, dict[int, float]] = {}

    def together(self, number: int) -> Mapping[int, float]:
        """For other tools, the share of the workflows with this tool that had them too (none: left out).

        Workflows with tools like this one stand in where it was used rarely or never.
        """
        if number not in self._rows:
            own, times = self._counts(number), len(self._of_tool.get(number, ()))
            row = (own + PRIOR_STRENGTH * self._of_neighbours(number)) / (times + PRIOR_STRENGTH)
            row[number] = 0
            self._rows[number] = {int(other): float(row[other]) for other in np.flatnonzero(row)}
        return self._rows[number]

    def alike(self, point: Vectors) -> Shares:
        """For each tool, the share of the workflows with the nearest intents that had it.

        For a capability, the share of those that were it.
        """
        near = np.maximum(self._intents @ point, 0).astype(np.float64)
        nearest = np.argsort(-near, kind="stable")[:ALIKE]
        return self._mixed({int(row): near[row] ** SHARPNESS for row in nearest})

    def _mixed(self, weights: Mapping[int, float]) -> Shares:
        found, total = np.zeros(self._count), DOUBT + sum(weights.values())
        for row, weight in weights.items():
            if weight > 0:
                found[self._pasts[row]] += weight / total
                if (was := self._was[row]) is not None:
                    found[was] += weight / total
        return found

    def _of_neighbours(self, number: int) -> Shares:
        used = self._used[self._used != number]
        near = np.maximum(self._points[used] @ self._points[number], 0).astype(np.float64) ** SHARPNESS
        nearest = np.argsort(-near, kind="stable")[:NEIGHBOURS]
        total = near[nearest].sum()
        found = np.zeros(self._count)
        for place in nearest if total > 0 else ():
            other = int(used[place])
            found += near[place] / total * self._counts(other) / (len(self._of_tool[other]) + PRIOR_STRENGTH)
        return found

    def _counts(self, number: int) -> Shares:
        """How many workflows had this tool and each other."""
        rows = self._of_tool.get(number, ())
        if not rows:
            return np.zeros(self._count)
        return np.bincount(np.concatenate([self._pasts[row] for row in rows]), minlength=self._count).astype(
            float
        )

    def _uses(self) -> dict[int, list[int]]:
        """The workflows of each tool; one with a single tool says nothing of what comes together."""
        found: dict[int, list[int]] = {}
        for row, tools in enumerate(self._pasts):
            for number in tools if len(tools) > 1 else ():
                found.setdefault(int(number), []).append(row)
        return found


def _numbers(past: Past, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    tools = dict.fromkeys(past.tools[:TOOLS_OF_A_PAST])
    return np.array(sorted(numbers[tool] for tool in tools if tool in numbers), dtype=np.int64)
