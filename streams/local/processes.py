"""Processes by their identity: a number that was used again is another process."""

from __future__ import annotations

import os

import psutil

from pml.schemas.base import Record

# A start time is known to the kernel's tick (10 ms), and psutil adds the boot time to it.
CREATED_TOLERANCE_S = 1.0


class ProcessId(Record):
    """A process that may be gone; `created` is its start in seconds since 1970."""

    pid: int
    created: float

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """The identity of a process that runs now.

        Raises:
            psutil.NoSuchProcess: there is none.
        """
        return cls(pid=pid, created=psutil.Process(pid).create_time())

    @classmethod
    def own(cls) -> ProcessId:
        """This very process."""
        return cls.of(os.getpid())

    @property
    def alive(self) -> bool:
        """Whether that process still runs (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created) < CREATED_TOLERANCE_S
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True
