"""Processes that end: each has one thing to find out, a limit of time and memory, and a word to say."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A mutant of a bound may build lists without end. What the tests need is a small part of this.
MEMORY_BYTES = 1 << 30
# Only what sleeps lives this many times as long as it computes; a busy machine gives little time to each.
WAITS = 100


@dataclass(frozen=True)
class Ended:
    """How a process ended: with a value, or (None) by a signal because a limit was reached."""

    key: Any
    value: Any
    by_limit: bool


class Children:
    """At most `jobs` processes at a time, forked from this one."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._running: dict[int, tuple[Any, int]] = {}

    def start(self, key: Any, work: Callable[[], Any], cpu_s: int) -> Iterator[Ended]:
        """Start a process; yields one that ended, where it had to wait for it."""
        if len(self._running) == self._jobs:
            yield self._wait()
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reads)
            _live(work, writes, cpu_s)
        os.close(writes)
        self._running[pid] = key, reads

    def rest(self) -> Iterator[Ended]:
        """Those that still run, as they end."""
        while self._running:
            yield self._wait()

    def stop(self) -> None:
        """End those that still run; nobody waits for their word."""
        for pid, (_, reads) in self._running.items():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reads)
        self._running.clear()

    def _wait(self) -> Ended:
        pid, status = os.wait()
        key, reads = self._running.pop(pid)
        with os.fdopen(reads, "rb") as pipe:
            told = pipe.read()
        return Ended(key, pickle.loads(told) if told else None, by_limit=os.WIFSIGNALED(status))


def alone(work: Callable[[], Any]) -> Any:
    """What a process of its own finds out, without a limit of time."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        _silence()
        _tell(work, writes)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(told)


def _live(work: Callable[[], Any], writes: int, cpu_s: int) -> None:
    """Limits end the process by a signal: SIGXCPU where it computes, SIGALRM where it waits for ever."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WAITS * cpu_s)
    _silence()
    _tell(work, writes)


def _tell(work: Callable[[], Any], writes: int) -> None:
    try:
        with os.fdopen(writes, "wb") as pipe:
            pipe.write(pickle.dumps(work()))
    finally:
        os._exit(0)


def _silence() -> None:
    gc.enable()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (sys.stdin.fileno() if sys.stdin else 0, 1, 2):
        os.dup2(nothing, number)
