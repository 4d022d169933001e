"""Where and on what something was measured."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import psutil

PACKAGES = ("aiokafka", "dbos", "faust-streaming", "mcp", "orjson", "pydantic", "uvloop")
# What others take beyond that is seen in the figures.
BUSY_SHARE = 0.1
# What a durable step of a database on one file writes and waits for; 50 take 0.2 s on a slow disk.
SYNC_BYTES = 4_096
SYNCS = 50
CHECKOUT = Path(__file__).resolve().parent.parent
# Of a commit: files differ from it; there is none.
CHANGED, UNKNOWN = "+", "unknown"


def describe(folder: Path) -> dict[str, Any]:
    """The machine, the disk of a folder, the interpreter and the versions of what is measured."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_mb": psutil.virtual_memory().total // 1024**2,
        "disk_sync_ms": round(disk_sync_ms(folder), 3),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: _installed(name) for name in PACKAGES},
    }


def disk_sync_ms(folder: Path) -> float:
    """How long 4 KiB take to be on the disk of a folder: the median of 50 `fsync`."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return median(_sync_ms(file.fileno()) for _ in range(SYNCS))


def _sync_ms(descriptor: int) -> float:
    os.write(descriptor, bytes(SYNC_BYTES))
    began = time.perf_counter()
    os.fsync(descriptor)
    return (time.perf_counter() - began) * 1_000


def _installed(package: str) -> str | None:
    """Its version; None where it is not there (`make bench` brings what only baselines need)."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str:
    """The commit that was measured; `+` says that files differ from it, `unknown` that there is no git.

    Results do not count: a benchmark of several parts writes them while it runs.
    """
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/results")
        return head + (CHANGED if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


class OthersWatch:
    """How much of all cores others took since this was made: everybody but this process and its children."""

    def __init__(self) -> None:
        self._began = _cpu_s(), own_cpu_s(), time.perf_counter()

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was made."""
        return time.perf_counter() - self._began[2]

    def share(self) -> float:
        """0 to 1; call it while the children still live, or after they were waited for."""
        everybody_s, own_s, _ = self._began
        return others_share(_cpu_s() - everybody_s, own_cpu_s() - own_s, self.elapsed_s, os.cpu_count() or 1)


def others_share(everybody_s: float, own_s: float, elapsed_s: float, cores: int) -> float:
    """What is left of everybody's processor time without ours, as a share of all cores."""
    if elapsed_s <= 0:
        return 0.0
    return min(1.0, max(0.0, (everybody_s - own_s) / (elapsed_s * cores)))


def own_cpu_s() -> float:
    """Processor time of this process, of the children that it has waited for, and of those that live."""
    own = psutil.Process()
    return sum(_cpu_of(process) for process in (own, *own.children(recursive=True)))


def _cpu_s() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


def _cpu_of(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0


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
