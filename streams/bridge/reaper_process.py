"""The guarding process of `reaper.py`: standard library only, started without site packages."""

import os
import signal
import sys
import time

GRACE_S = 0.5


def main() -> None:
    """Read `+group` and `-group` lines until the bridge is gone, then end what is still held."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    held = _read_until_gone()
    if _signal(held, signal.SIGTERM):
        time.sleep(GRACE_S)
        _signal(held, signal.SIGKILL)


def _read_until_gone() -> set[int]:
    held: set[int] = set()
    for line in sys.stdin.buffer:
        group = int(line[1:])
        if line[:1] == b"+":
            held.add(group)
        else:
            held.discard(group)
    return held


def _signal(groups: set[int], number: signal.Signals) -> int:
    reached = 0
    for group in groups:
        try:
            os.killpg(group, number)
            reached += 1
        except (ProcessLookupError, PermissionError):
            continue
    return reached


if __name__ == "__main__":
    main()
