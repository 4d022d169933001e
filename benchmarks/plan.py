"""What every benchmark is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure


@dataclass(frozen=True, slots=True)
class Plan:
    """How often, with which seed, in which folder for what is thrown away; `say` is told the progress."""

    rounds: int
    seed: int
    folder: Path
    say: Callable[[str], None]

    def seed_of(self, round_number: int) -> int:
        """The seed of a round: both sides of it use the same."""
        return self.seed * 1_000 + round_number


Benchmark = Callable[[Plan], Coroutine[Any, Any, Sequence[Figure]]]


async def in_turns(round_number: int, *sides: Callable[[], Awaitable[None]]) -> None:
    """All sides of a round, one after another; another one begins in each round."""
    first = round_number % len(sides)
    for side in (*sides[first:], *sides[:first]):
        await side()
