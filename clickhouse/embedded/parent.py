"""A child that does not outlive what started it, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
# Where the kernel does not tell, ask: a second without a parent harms nobody, a busier loop does.
_ASK_EVERY_S = 1.0


def die_with_parent() -> None:
    """Have SIGTERM sent to this process once its parent has ended."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
    else:
        threading.Thread(target=_watch, args=(parent,), name="parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_ASK_EVERY_S)
    os.kill(os.getpid(), signal.SIGTERM)
