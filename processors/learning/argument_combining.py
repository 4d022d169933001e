"""From values of single parameters to whole sets of arguments."""

from __future__ import annotations

import heapq
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np

# What a value's share counts for at least, so that one that was left out decides nothing by itself.
LEAST_SHARE: Final = 1e-3
# Sets that are looked at where the likeliest ones have a value twice.
SETS_MOST: Final = 256

Picks = tuple[int, ...]


def combinations(
    shares: Sequence[Sequence[float]],
    most: int,
    names: Sequence[Sequence[int]] = (),
    again: Mapping[int, float] | None = None,
) -> list[tuple[float, Picks]]:
    """The likeliest picks of one value for each parameter, the best first: log of the product, and places.

    Two parameters that have the same value are one thing, each having it alone is another: for each such pair
    `again` is added. Of more than `SETS_MOST` sets those with the largest products are looked at.

    Args:
        shares: for each parameter the probabilities of its values, descending, at least one, above 0.
        most: how many.
        names: numbers of the values, equal where they are; none: all are different.
        again: at most 0, by number: log of how much less likely a second parameter has it; else 0.
    """
    found: list[tuple[float, Picks]] = []
    for score, picks in islice(_falling(shares), SETS_MOST):
        # What follows has a smaller product, and nothing makes a set likelier than its product.
        if len(found) >= most and found[most - 1][0] >= score:
            break
        less = _less([own[pick] for own, pick in zip(names, picks, strict=True)], again) if again else 0.0
        insort(found, (score + less, picks), key=lambda each: -each[0])
    return found[:most]


def _less(names: Sequence[int], again: Mapping[int, float]) -> float:
    counted = Counter(names)
    return sum(again.get(name, 0.0) * many * (many - 1) / 2 for name, many in counted.items() if many > 1)


def _falling(shares: Sequence[Sequence[float]]) -> Iterator[tuple[float, Picks]]:
    """All sets by the log of their product, the largest first."""
    logs = [np.log(np.maximum(each, LEAST_SHARE)).tolist() for each in shares]
    first: Picks = (0,) * len(logs)
    waiting, known = [(-sum(each[0] for each in logs), first)], {first}
    while waiting:
        cost, picks = heapq.heappop(waiting)
        yield -cost, picks
        for place, pick in enumerate(picks):
            after = (*picks[:place], pick + 1, *picks[place + 1 :])
            if pick + 1 < len(logs[place]) and after not in known:
                known.add(after)
                heapq.heappush(waiting, (cost + logs[place][pick] - logs[place][pick + 1], after))
