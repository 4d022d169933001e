"""What the handlers of requests share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pml.schemas.errors import PMLError
from pml.streams.client import IntentProducer
from pml.streams.discovery.finder import Finder
from pml.streams.gateway.callers import Callers
from pml.streams.settings import Settings

WAITING_MAX = 200
"""Requests that wait or follow: each has a consumer of its own, of some 200 KB."""


class Busy(PMLError):
    """As many requests wait as may."""

    code = "BUSY"
    retryable = True


class Waiting:
    """Counts the requests that wait for something to happen."""

    def __init__(self, most: int = WAITING_MAX) -> None:
        self._most = most
        self._now = 0

    def check(self) -> None:
        """See that one more may wait.

        Raises:
            Busy: there are enough.
        """
        if self._now >= self._most:
            raise Busy(f"{self._now} requests wait already; try again, or ask without waiting")

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """One more waits inside of the block.

        Raises:
            Busy: there are enough.
        """
        self.check()
        self._now += 1
        try:
            yield
        finally:
            self._now -= 1


@dataclass(frozen=True, slots=True)
class Doors:
    """The settings, one producer and one finder for all, who may come in, and how many wait."""

    settings: Settings
    producer: IntentProducer
    finder: Finder
    callers: Callers
    waiting: Waiting = field(default_factory=Waiting)
