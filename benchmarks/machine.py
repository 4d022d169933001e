"""Where and on what something was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("aiokafka", "dbos", "faust-streaming", "mcp", "orjson", "pydantic", "uvloop")
# Long enough to see somebody else's work, short enough to wait for.
LOOK_S = 1.0
BUSY_SHARE = 0.2
CHECKOUT = Path(__file__).resolve().parent.parent


def describe() -> dict[str, Any]:
    """The machine, the interpreter and the versions of what is measured."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_mb": psutil.virtual_memory().total // 1024**2,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def commit() -> str:
    """The commit that was measured; `+` says that files differ from it, `unknown` that there is no git."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def busy_share() -> float:
    """How much of all cores is taken by others right now, 0 to 1; call it while nothing of ours runs."""
    return float(psutil.cpu_percent(LOOK_S)) / 100


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(CHECKOUT), *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
