"""Whether a process that stands behind all others may run now: hardly, while they keep the processors busy.

To stand behind in the queue (`limited.py`) is not enough there: who wakes up finds a processor that works on
something else, and caches that are full of it.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import psutil

# What others may take of the processors before it gives way, on the mean of so many looks: for each processor
# that there is, and at most. Who has many seldom wakes up beside it, who has two always.
OTHERS_EACH, OTHERS_MOST = 0.075, 0.5
LOOKS = 5
# It then runs in one look of so many: however busy the machine is, it comes to its end.
ONE_OF = 10


class Taken(NamedTuple):
    """Processor time since some moment, in seconds: of all processors, and what others took of it."""

    all_s: float
    others_s: float


@dataclass(slots=True)
class Turns:
    """Says at each look whether it may run until the next one; `leave` is what others may take."""

    leave: float
    _seen: deque[Taken] = field(default_factory=lambda: deque(maxlen=LOOKS + 1))
    _missed: int = 0

    def may_run(self, taken: Taken) -> bool:
        """Whether others leave room, or it has given way for long enough.

        Args:
            taken: since the same moment at every look.
        """
        self._seen.append(taken)
        if self._others_share() < self.leave or self._missed == ONE_OF - 1:
            self._missed = 0
            return True
        self._missed += 1
        return False

    def _others_share(self) -> float:
        first, last = self._seen[0], self._seen[-1]
        passed_s = last.all_s - first.all_s
        return (last.others_s - first.others_s) / passed_s if passed_s > 0 else 0.0


def left_to_others(processors: int) -> float:
    """The share of all processors that others may take beside it."""
    return min(OTHERS_MOST, OTHERS_EACH * processors)


@dataclass(slots=True)
class GivingWay:
    """Stops and continues the process group `pid`; `gave_way_s` is how long it stood still so far."""

    pid: int
    gave_way_s: float = 0.0
    _turns: Turns = field(default_factory=lambda: Turns(left_to_others(psutil.cpu_count() or 1)))
    _runs: bool = True
    _looked_s: float = field(default_factory=time.monotonic)

    def look(self, family: list[psutil.Process]) -> None:
        """Let it run until the next look, or not; `family` are the processes of its group."""
        now_s = time.monotonic()
        if not self._runs:
            self.gave_way_s += now_s - self._looked_s
        self._looked_s = now_s
        runs = self._turns.may_run(taken_beside(family))
        if runs != self._runs:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGCONT if runs else signal.SIGSTOP)
        self._runs = runs


def taken_beside(family: list[psutil.Process]) -> Taken:
    """The time of all processors until now, and what all but these processes took of it."""
    times = psutil.cpu_times()._asdict()
    busy_s = sum(times.get(name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
    idle_s = sum(times.get(name, 0.0) for name in ("idle", "iowait", "steal"))
    return Taken(busy_s + idle_s, busy_s - sum(map(_own_s, family)))


def _own_s(process: psutil.Process) -> float:
    """What a process took, with its children that ended; 0 where it is gone."""
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return float(sum(process.cpu_times()[:4]))
    return 0.0
