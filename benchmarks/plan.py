"""What every benchmark is told."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

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


@contextmanager
def planned(name: str, rounds: int, seed: int) -> Iterator[Plan]:
    """The plan of a benchmark that tells its progress on standard error, while its folder is there."""
    console = Console(stderr=True, highlight=False)
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as folder:
        yield Plan(rounds, seed, Path(folder), lambda text: console.print(f"[dim]{name}:[/] {text}"))


Benchmark = Callable[[Plan], Coroutine[Any, Any, Sequence[Figure]]]


async def in_turns(round_number: int, *sides: Callable[[], Awaitable[None]]) -> None:
    """All sides of a round, one after another; another one begins in each round."""
    first = round_number % len(sides)
    for side in (*sides[first:], *sides[:first]):
        await side()
