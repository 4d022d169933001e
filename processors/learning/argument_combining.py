"""From values of single parameters to whole sets of arguments."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

import numpy as np

# What a value's share counts for at least, so that one that was left out decides nothing by itself.
LEAST_SHARE: Final = 1e-3

Picks = tuple[int, ...]


def combinations(shares: Sequence[Sequence[float]], most: int) -> list[tuple[float, Picks]]:
    """The likeliest picks of one value for each parameter, the best first: log of the product, and places.

    Args:
        shares: for each parameter the probabilities of its values, descending, at least one, above 0.
        most: how many.
    """
    logs = [np.log(np.maximum(each, LEAST_SHARE)).tolist() for each in shares]
    first: Picks = (0,) * len(logs)
    waiting, known = [(-sum(each[0] for each in logs), first)], {first}
    found: list[tuple[float, Picks]] = []
    while waiting and len(found) < most:
        cost, picks = heapq.heappop(waiting)
        found.append((-cost, picks))
        for place, pick in enumerate(picks):
            after = (*picks[:place], pick + 1, *picks[place + 1 :])
            if pick + 1 < len(logs[place]) and after not in known:
                known.add(after)
                heapq.heappush(waiting, (cost + logs[place][pick] - logs[place][pick + 1], after))
    return found
