"""An event loop without a world: virtual time, one seed, and processes that can die or stand still.

Callbacks that are ready run in an order that the seed chooses; time passes only when nothing is ready.
A process is a context: everything that it starts carries it, so that killing one drops whatever it still
had to do, at once and without a word, as kill -9 does.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import events
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, field
from heapq import heappop
from random import Random
from typing import Any

# As often as asyncio's own order is kept; the rest is chosen.
IN_ORDER = 0.6


@dataclass(eq=False)
class Process:
    """One process of the installation. `held` is what it has to do when it wakes."""

    name: str
    alive: bool = True
    paused: bool = False
    held: list[Any] = field(default_factory=list)
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)


PROCESS: ContextVar[Process | None] = ContextVar("simulated_process", default=None)


class Killed(BaseException):
    """Ends the code that runs when its process is killed; nothing of it is awaited any more."""


class Stuck(AssertionError):
    """Nothing is ready and nothing is scheduled, or the seed takes too many steps."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Asyncio with a clock that jumps and an order that a seed chooses.

    Args:
        random: where every choice comes from.
        steps_max: callbacks after which something must be spinning.
    """

    _ready: Any
    _scheduled: Any

    def __init__(self, random: Random, steps_max: int) -> None:
        super().__init__()
        self._random = random
        self._now_s = 0.0
        self._steps_max = steps_max
        self.steps = 0
        self.failures: list[BaseException] = []
        self.processes: list[Process] = []
        self.set_exception_handler(self._on_failure)

    def time(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now_s

    def process(self, name: str) -> Process:
        """A new process."""
        process = Process(name)
        self.processes.append(process)
        return process

    def spawn(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something as a process; whatever it starts belongs to it."""
        context = contextvars.copy_context()
        context.run(PROCESS.set, process)
        task: asyncio.Task[Any] = self.create_task(work, context=context)
        process.tasks.append(task)
        return task

    def outside(self, delay_s: float, action: Callable[..., Any], *arguments: Any) -> None:
        """Do something later that belongs to no process."""
        self.call_later(delay_s, action, *arguments, context=OUTSIDE.copy())

    def kill(self, process: Process) -> None:
        """The process is gone; code of it that runs right now must raise `Killed`."""
        process.alive = False
        process.held.clear()

    def pause(self, process: Process) -> None:
        """The process stands still, as after SIGSTOP."""
        process.paused = True

    def resume(self, process: Process) -> None:
        """It goes on with what came up meanwhile."""
        process.paused = False
        self._ready.extend(process.held)
        process.held.clear()

    def _write_to_self(self) -> None:
        """Nobody waits in a system call."""

    def _run_once(self) -> None:
        self._wake_due()
        while not self._ready:
            if not self._scheduled:
                raise Stuck("nothing is left to happen")
            self._now_s = max(self._now_s, self._scheduled[0]._when)
            self._wake_due()
        handle = self._chosen()
        if handle._cancelled:
            return
        process = handle._context.get(PROCESS)
        if process is None or (process.alive and not process.paused):
            self.steps += 1
            if self.steps > self._steps_max:
                raise Stuck(f"more than {self._steps_max} steps at {self._now_s:.3f} s")
            handle._run()
        elif process.alive:
            process.held.append(handle)

    def _wake_due(self) -> None:
        scheduled = self._scheduled
        while scheduled and (scheduled[0]._cancelled or scheduled[0]._when <= self._now_s):
            timer = heappop(scheduled)
            timer._scheduled = False
            if timer._cancelled:
                self._timer_cancelled_count = max(0, self._timer_cancelled_count - 1)
            else:
                self._ready.append(timer)

    def _chosen(self) -> Any:
        count = len(self._ready)
        if count == 1 or self._random.random() < IN_ORDER:
            return self._ready.popleft()
        index = int(self._random.random() * count)
        handle = self._ready[index]
        del self._ready[index]
        return handle

    def _on_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What asyncio would only log; a task that nobody awaited failed."""
        error = context.get("exception")
        if error is not None and not isinstance(error, Killed):
            self.failures.append(error)


def play(loop: SimulatedLoop, work: Coroutine[Any, Any, Any]) -> Any:
    """Run until `work` is done; what is left of everything else is let go without being run."""
    try:
        return loop.run_until_complete(work)
    finally:
        _let_go(loop)


def _let_go(loop: SimulatedLoop) -> None:
    """Close what never ended. Closing runs `finally` blocks, which must not disturb the next seed."""
    loop.set_exception_handler(lambda *_: None)
    for process in loop.processes:
        process.alive = False
    closed: set[asyncio.Task[Any]] = set()
    previous = events._get_running_loop()
    events._set_running_loop(loop)
    try:
        for _ in range(20):
            tasks = [task for task in asyncio.all_tasks(loop) if task not in closed]
            closed.update(tasks)
            for task in tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close(task.get_coro())
    finally:
        events._set_running_loop(previous)
    loop._ready.clear()
    loop._scheduled.clear()
    loop.close()


def _close(work: Any) -> None:
    for _ in range(50):
        try:
            work.close()
            return
        except RuntimeError:
            continue  # it awaited something while it was closed
        except BaseException:
            return


OUTSIDE = contextvars.Context()
