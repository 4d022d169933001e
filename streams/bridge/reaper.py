"""MCP servers die with the bridge, also with one that is killed: a small process reaps their groups.

A server ends when its input closes, if it is well-behaved and not busy. For the others the reaper, a
process of its own, waits on a pipe from the bridge; when that closes it kills what is still held.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pml.schemas.errors import PMLError

SCRIPT = Path(__file__).with_name("reaper_process.py")
# Longer than the reaper gives the servers it kills.
STOP_TIMEOUT_S = 5.0


class ReaperLost(PMLError):
    """The process that guards the MCP servers is gone; the bridge starts again with a new one."""

    code = "REAPER_LOST"
    retryable = True


class Reaper:
    """Process groups that must not outlive this process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )

    def hold(self, group: int) -> None:
        """This process group dies with us.

        Raises:
            ReaperLost: the guarding process is gone.
        """
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """This process group has ended."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the guard end; it kills what is still held."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
        except (OSError, ValueError):
            raise ReaperLost(
                "the process that guards the MCP servers is gone; start the bridge again"
            ) from None
