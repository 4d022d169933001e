"""The tool graph as discovery uses it: what comes with a tool, and what everything leads to (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pml.schemas.catalog import EdgeType

# PageRank (Brin & Page 1998) with the usual damping; it has settled long before so many steps.
DAMPING = 0.85
STEPS_MAX = 100
SETTLED = 1e-9


@dataclass(frozen=True, slots=True)
class Link:
    """An edge of the tool graph: what it leads from and to, its weight, and how many runs had it."""

    type: EdgeType
    source: str
    target: str
    weight: float
    runs: int


class ToolGraph:
    """Links between documents by number; an end that is no document leads nowhere."""

    def __init__(self, links: Iterable[Link], numbers: Mapping[str, int]) -> None:
        self._times: dict[int, int] = {}
        self._into: dict[int, list[tuple[int, Link]]] = {}
        for link in links:
            source, target = numbers.get(link.source), numbers.get(link.target)
            if target is None:
                continue
            if link.type == "contains":
                self._times[target] = self._times.get(target, 0) + link.runs
            elif source is not None and link.type in ("provides", "co_occurrence"):
                self._into.setdefault(target, []).append((source, link))
                if link.type == "co_occurrence":
                    self._into.setdefault(source, []).append((target, link))

    def company(self, number: int) -> dict[int, float]:
        """What comes with a tool: what gave it something, and what ran in the same runs.

        Of each the share of the runs with this tool that had it, times the weight that these runs taught.
        """
        found: dict[int, float] = {}
        for other, link in self._into.get(number, ()):
            share = link.weight * link.runs / max(self._times.get(number, 0), link.runs, 1)
            found[other] = max(found.get(other, 0.0), share)
        return found


def page_ranks(links: Sequence[Link]) -> dict[str, float]:
    """How much leads to each end, as a share of the one that most leads to (PageRank by weight).

    What ran together leads both ways; an end from which nothing leads on leads everywhere.
    """
    names = sorted({name for link in links for name in (link.source, link.target)})
    if not names:
        return {}
    place = {name: number for number, name in enumerate(names)}
    ways = [(place[link.source], place[link.target], link.weight) for link in links]
    ways += [
        (target, source, weight)
        for (source, target, weight), link in zip(ways, links, strict=True)
        if link.type == "co_occurrence"
    ]
    sources, targets = (np.array([way[end] for way in ways], dtype=np.int64) for end in (0, 1))
    weights = np.array([way[2] for way in ways])
    leaving = np.bincount(sources, weights, minlength=len(names))
    shares = weights / np.where(leaving[sources] > 0, leaving[sources], 1.0)
    ranks = np.full(len(names), 1 / len(names))
    for _ in range(STEPS_MAX):
        given = np.bincount(targets, shares * ranks[sources], minlength=len(names))
        after = (1 - DAMPING * (1 - ranks[leaving <= 0].sum())) / len(names) + DAMPING * given
        moved, ranks = float(np.abs(after - ranks).sum()), after
        if moved < SETTLED:
            break
    return dict(zip(names, (ranks / ranks.max()).tolist(), strict=True))
