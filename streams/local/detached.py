"""A stack in the background: started from a command that returns, and stopped by another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from pml.schemas.errors import PMLError, WaitedTooLong
from pml.streams.local.child import StartFailed, last_lines, trim
from pml.streams.local.processes import ProcessId
from pml.streams.local.services import LOG_FOLDER, child_environment
from pml.streams.local.stack import Stack, read_stack, remove_stack
from pml.streams.local.supervisor import check_files
from pml.streams.settings import Settings

POLL_S = 0.05
# Three rounds of 30 s at most (workers, readers, broker and store); it takes two or three seconds.
STOP_TIMEOUT_S = 100.0

Watch = Callable[[Stack], None]


def start_detached(settings: Settings, timeout_s: float, watch: Watch = lambda stack: None) -> Stack:
    """Start a supervisor that outlives this process, and wait until the stack is ready.

    Raises:
        ConfigurationError: the file of the servers or of the permissions is wrong.
        StartFailed: it ended; says why.
        WaitedTooLong: it is not ready in time; it goes on starting.
    """
    check_files(settings)
    log = settings.make_data_dir() / LOG_FOLDER / "up.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    trim(log)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pml.streams.cli", "up"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=child_environment(settings),
            start_new_session=True,
        )
    give_up = time.monotonic() + timeout_s
    while time.monotonic() < give_up:
        stack = read_stack(settings.data_dir)
        if stack is not None and stack.supervisor.pid == process.pid:
            watch(stack)
            if stack.ready:
                return stack
        if process.poll() is not None:
            raise _why(read_stack(settings.data_dir), process.pid, last_lines(log, 5))
        time.sleep(POLL_S)
    raise WaitedTooLong(f"the stack is not ready after {timeout_s:.0f} s; `pml status` shows how far it is")


def stop_stack(settings: Settings, stack: Stack, timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Stop a running stack cleanly, and by force what is left after `timeout_s`."""
    _signal(stack.supervisor, signal.SIGTERM)
    _wait_gone(stack.supervisor, timeout_s)
    _signal(stack.supervisor, signal.SIGKILL)
    stack = read_stack(settings.data_dir) or stack
    for part in stack.parts:
        if part.process is not None:
            _signal(part.process, signal.SIGKILL)
    remove_stack(settings.data_dir)


def _why(stack: Stack | None, pid: int, last_words: str) -> PMLError:
    if stack is None or stack.supervisor.pid != pid or stack.error is None:
        return StartFailed(f"the stack did not come up: {last_words}")
    error = StartFailed(str(stack.error["message"]), **stack.error["details"])
    error.code, error.retryable = str(stack.error["code"]), bool(stack.error["retryable"])
    return error


def _signal(process: ProcessId, number: signal.Signals) -> None:
    if process.alive:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _wait_gone(process: ProcessId, timeout_s: float) -> None:
    """Wait until it ended, or until `timeout_s` has passed."""
    if process.alive:
        with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            psutil.Process(process.pid).wait(timeout_s)
