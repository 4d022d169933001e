"""What training is doing, and how long each part of it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Phases:
    """Seconds of each phase, in their order.

    `on_start` is called with a phase and how many steps it has (None: nobody knows), `on_step` after each.
    """

    on_start: Callable[[str, int | None], None] = lambda name, steps: None
    on_step: Callable[[], None] = lambda: None
    taken_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, steps: int | None = None) -> Iterator[None]:
        """Everything inside counts for this phase, also where it fails; again: more of the same."""
        self.on_start(name, steps)
        began = time.perf_counter()
        try:
            yield
        finally:
            self.taken_s[name] = self.taken_s.get(name, 0.0) + time.perf_counter() - began

    def step(self, _name: str = "") -> None:
        """One step of the phase that runs is done."""
        self.on_step()

    def as_dict(self) -> dict[str, float]:
        """Seconds to the millisecond."""
        return {name: round(seconds, 3) for name, seconds in self.taken_s.items()}
