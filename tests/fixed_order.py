"""Python orders sets of texts differently in every process: what must not differ starts itself again."""

from __future__ import annotations

import os
import sys

ORDER = "PYTHONHASHSEED"


def start_in_fixed_order(module: str) -> None:
    """Become `python -m module` with that order fixed, unless this process has it."""
    if os.environ.get(ORDER) != "0":
        again = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, ORDER: "0"})
