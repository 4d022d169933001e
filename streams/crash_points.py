"""Named points at which a drill kills the process, as kill -9 would: nothing is flushed, nobody is told.

`PML_CRASH_AT=orchestrator.after_append` kills at the first pass, `…:3` at the third. With `@FILE` that file
says so, once it is there: a process that has long been at work is killed without being started anew. Unset,
a point is two look-ups. A simulator, which runs several processes in one, sets `passing` in the context of
each.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

VARIABLE = "PML_CRASH_AT"
_IN_FILE = "@"
_passes: Counter[str] = Counter()


def _kill_where_named(name: str) -> None:
    wanted = os.environ.get(VARIABLE)
    if wanted and _reached(name, _told(wanted)):
        os.kill(os.getpid(), signal.SIGKILL)


passing: ContextVar[Callable[[str], None]] = ContextVar("pml_crash_point", default=_kill_where_named)
"""Called with the name of each point that is passed."""


def crash_point(name: str) -> None:
    """End this process here if the environment names this point."""
    passing.get()(name)


def _told(wanted: str) -> str:
    if not wanted.startswith(_IN_FILE):
        return wanted
    with suppress(FileNotFoundError):
        return Path(wanted.removeprefix(_IN_FILE)).read_text().strip()
    return ""


def _reached(name: str, wanted: str) -> bool:
    point, _, count = wanted.partition(":")
    if point != name:
        return False
    _passes[name] += 1
    return _passes[name] == int(count or 1)
