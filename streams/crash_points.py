"""Named points at which a drill kills the process, as kill -9 would: nothing is flushed, nobody is told.

`PML_CRASH_AT=orchestrator.after_append` kills at the first pass, `…:3` at the third. Unset, a point is
one dictionary look-up.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "PML_CRASH_AT"
_passes: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """End this process here if the environment names this point."""
    wanted = os.environ.get(VARIABLE)
    if wanted and _reached(name, wanted):
        os.kill(os.getpid(), signal.SIGKILL)


def _reached(name: str, wanted: str) -> bool:
    point, _, count = wanted.partition(":")
    if point != name:
        return False
    _passes[name] += 1
    return _passes[name] == int(count or 1)
