"""What goes wrong with the real parts, every five to forty seconds, as the seed has it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from tests.chaos.installation import ROLES, SESSION_TIMEOUT_S
from tests.drills.workshop import Workshop
from tests.fixtures.store import start_embedded

EVERY_S = (5.0, 40.0)
# A role that is told to stop has ten seconds for it, a loaded machine and a broker that is away some more.
STOP_TIMEOUT_S = 40.0
AWAY_S = (0.0, 5.0)
PAUSE_S = (SESSION_TIMEOUT_S + 1, SESSION_TIMEOUT_S + 6)
COMPANY_S = (8.0, 25.0)
WEIGHTS = {
    "kill orchestrator": 3.0,
    "kill bridge": 3.0,
    "kill sink": 1.5,
    "kill projections": 1.0,
    "terminate orchestrator": 1.5,
    "terminate bridge": 1.5,
    "terminate sink": 0.7,
    "terminate projections": 0.5,
    "pause orchestrator": 2.0,
    "pause bridge": 1.5,
    "pause sink": 0.7,
    "pause projections": 0.5,
    "kill broker": 2.0,
    "stop broker": 1.5,
    "kill store": 1.0,
    "second orchestrator": 2.5,
    "second bridge": 2.0,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong: from when to when, in seconds since 1970."""

    name: str
    began_s: float
    ended_s: float


class Faults:
    """Draws faults and does them. A part that is in trouble is left alone until it is over.

    Args:
        longest_s: the longest time between two faults.
    """

    def __init__(self, workshop: Workshop, seed: int, longest_s: float) -> None:
        self._workshop, self._random = workshop, Random(f"{seed}/faults")
        self._between_s = (EVERY_S[0], min(EVERY_S[1], longest_s))
        self._busy: set[str] = set()
        self._running: set[asyncio.Task[None]] = set()
        self.done: list[Fault] = []
        self.counts: Counter[str] = Counter()
        self.unclean: list[str] = []

    async def happen(self, seconds: float) -> None:
        """Faults for so long; returns when all of them are over and everything runs.

        Raises:
            AssertionError: a part did not come back.
        """
        give_up = time.monotonic() + seconds
        while (wait_s := self._random.uniform(*self._between_s)) < give_up - time.monotonic():
            await asyncio.sleep(wait_s)
            self._begin()
        await asyncio.sleep(max(0.0, give_up - time.monotonic()))
        await asyncio.gather(*self._running)

    def _begin(self) -> None:
        free = {name: weight for name, weight in WEIGHTS.items() if name.split()[1] not in self._busy}
        if not free:
            return
        (name,) = self._random.choices(list(free), list(free.values()))
        self._busy.add(name.split()[1])
        self.counts[name] += 1
        task = asyncio.create_task(self._do(name))
        self._running.add(task)

    async def _do(self, name: str) -> None:
        act, _, part = name.partition(" ")
        acts: dict[str, Callable[[str], Awaitable[None]]] = {
            "kill": self._kill,
            "stop": self._stop,
            "terminate": self._terminate,
            "pause": self._pause,
            "second": self._second,
        }
        began_s = time.time()
        await acts[act](part)
        self.done.append(Fault(name, began_s, time.time()))
        self._busy.discard(part)

    async def _kill(self, part: str) -> None:
        """kill -9; what tends the roles starts them again, broker and store come back after a while."""
        if part in ROLES:
            if self._workshop.alive(part):
                self._workshop.kill(part)
            return
        away_s = self._random.uniform(*AWAY_S)
        if part == "broker":
            self._workshop.broker.kill()
            await asyncio.sleep(away_s)
            await self._workshop.broker.start()
            return
        store, port = self._workshop.store, int(self._workshop.store.url.rpartition(":")[2])
        store.kill()
        await asyncio.sleep(away_s)
        store.process = (await asyncio.to_thread(start_embedded, self._workshop.store_folder, port)).process

    async def _stop(self, part: str) -> None:
        """The broker stops cleanly and comes back."""
        away_s = self._random.uniform(*AWAY_S)
        await self._workshop.broker.stop()
        await asyncio.sleep(away_s)
        await self._workshop.broker.start()

    async def _terminate(self, name: str) -> None:
        """SIGTERM: the role ends by itself, in bounded time."""
        pid = self._workshop.pid(name)
        if not self._workshop.alive(name):
            return
        self._workshop.terminate(name)
        give_up = time.monotonic() + STOP_TIMEOUT_S
        while self._workshop.pid(name) == pid and self._workshop.alive(name):
            if time.monotonic() > give_up:
                self.unclean.append(f"{name} did not end within {STOP_TIMEOUT_S:.0f} s of SIGTERM")
                self._workshop.kill(name)
            await asyncio.sleep(0.1)

    async def _pause(self, name: str) -> None:
        """SIGSTOP until the group has given its partitions away, then SIGCONT."""
        if self._workshop.alive(name):
            self._workshop.pause(name)
            await asyncio.sleep(self._random.uniform(*PAUSE_S))
            self._workshop.resume(name)

    async def _second(self, role: str) -> None:
        """Another worker comes, takes its share, and goes."""
        name = f"second-{role}"
        self._workshop.start(role, name=name)
        self._workshop.kept[name] = role
        await asyncio.sleep(self._random.uniform(*COMPANY_S))
        del self._workshop.kept[name]
        if self._workshop.alive(name) and self._random.random() < 0.5:
            await self._terminate(name)
        elif self._workshop.alive(name):
            self._workshop.kill(name)
