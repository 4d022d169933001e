"""Runs a program that cannot outlive its parent: `python leash.py PARENT_PID NICENESS POLICY PROGRAM …`.

The kernel kills the program when the parent is gone, however it went. The wish is made here, in the child,
just before it becomes the program: between fork and exec of a process with threads nothing but exec is safe.
On Linux it is bound to the thread that started the child, so start children from a thread that stays.
Elsewhere it is not to be had.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
USUAL = "usual"
# Whoever else wakes up has the processor at once (SCHED_IDLE, sched(7)).
IDLE = "idle"


def leashed(command: list[str], niceness: int = 0, policy: str = USUAL) -> list[str]:
    """The command that runs `command` on the leash of this process, under the same process id.

    Args:
        niceness: how far behind this process it stands where both want a processor (0 to 19, as nice(2)).
        policy: `USUAL`, or `IDLE`: it has what nobody else wants.
    """
    if sys.platform != "linux":
        return command
    leash = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), str(niceness)]
    return [*leash, policy, *command]


def tie() -> None:
    """Have the kernel kill this process when the thread that started it is gone; ask afterwards if it is."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    tie()
    os.nice(int(sys.argv[2]))
    if sys.argv[3] == IDLE:
        with suppress(OSError):  # a sandbox may forbid it: niceness is what is left
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getppid() == int(sys.argv[1]):  # else the parent was gone before the kernel heard the wish
        os.execv(sys.argv[4], sys.argv[4:])


if __name__ == "__main__":
    main()
