"""A program in a process of its own that may take so much memory and time, and lets all others go first."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from pml.schemas.errors import PMLError
from pml.streams.learning.giving_way import GivingWay
from pml.streams.local.leash import IDLE, leashed

MIB = 1024 * 1024
# What it may have allocated beyond its limit before somebody notices.
LOOK_S = 0.2
# The kernel takes one such wish in a tenth of a second, from whomever.
AUTOGROUP_TRIES = 5
OUTPUT_BYTES_MAX = 64 * MIB
LAST_WORDS_BYTES = 2_000


class TrainingFailed(PMLError):
    """`pml train` ended with an error."""

    code = "TRAINING_FAILED"


class OverLimit(PMLError):
    """It took more memory or time than it may, and was ended."""

    code = "OVER_LIMIT"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may take: memory that is resident, with that of its children; time on the wall clock,
    without that in which it gives way."""

    memory_bytes: int
    time_s: float
    niceness: int = 15


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended well: what it wrote to standard output, and the most that it took.

    `gave_way_s` is how much of `took_s` it stood still for others.
    """

    output: bytes
    took_s: float
    peak_bytes: int
    gave_way_s: float = 0.0


async def run_limited(command: Sequence[str], environment: Mapping[str, str], limits: Limits) -> Ended:
    """Run a program to its end; whatever happens, it and its children are gone afterwards.

    Memory is what is resident, looked at five times a second: numerical libraries reserve far more addresses
    than they use, so a limit of the kernel on addresses would end programs that take little.

    Raises:
        OverLimit: it took too much, and was killed.
        TrainingFailed: it could not begin, or ended with another exit code than 0; its last words are in the
            message.
    """
    try:
        return await _run(command, environment, limits)
    except OSError as error:
        raise TrainingFailed(f"pml train cannot begin: {error.strerror or error}") from None


async def _run(command: Sequence[str], environment: Mapping[str, str], limits: Limits) -> Ended:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began_s = time.monotonic()
        program = [*command]
        held = leashed(program, limits.niceness, IDLE)
        process = await asyncio.create_subprocess_exec(
            *held,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=dict(environment),
            start_new_session=True,  # Ctrl-C at the terminal is ours to pass on
        )
        try:
            await _stand_behind(process.pid, limits.niceness, on_leash=held != program)
            peak_bytes, gave_way_s = await _watched(process, limits, began_s)
        finally:
            await _ended(process)
        if process.returncode != 0:
            told = _last_words(errors) or f"exit code {process.returncode}"
            raise TrainingFailed(f"pml train: {told}", exit_code=process.returncode)
        output.seek(0)
        took_s = time.monotonic() - began_s
        return Ended(output.read(OUTPUT_BYTES_MAX), took_s, peak_bytes, gave_way_s)


async def _stand_behind(pid: int, niceness: int, *, on_leash: bool) -> None:
    """Let everybody else have the processors first.

    Linux shares them out among sessions before it asks how nice a process is in its own, which this one has
    to itself: the session must stand behind too (sched(7), autogroup). A leash does the rest.
    """
    if not on_leash:
        with suppress(psutil.Error):
            psutil.Process(pid).nice(niceness)
    with suppress(OSError):
        for _ in range(AUTOGROUP_TRIES):
            try:
                await asyncio.to_thread(_write_autogroup, pid, niceness)
                return
            except BlockingIOError:
                await asyncio.sleep(LOOK_S)


def _write_autogroup(pid: int, niceness: int) -> None:
    session = Path(f"/proc/{pid}/autogroup")
    if session.exists():
        session.write_text(str(niceness), encoding="ascii")


async def _watched(process: asyncio.subprocess.Process, limits: Limits, began_s: float) -> tuple[int, float]:
    """Wait for its end; the most memory that it was seen with, in bytes, and how long it gave way."""
    peak_bytes, way = 0, GivingWay(process.pid)
    waiting = asyncio.ensure_future(process.wait())
    try:
        while not (await asyncio.wait((waiting,), timeout=LOOK_S))[0]:
            family = family_of(process.pid)
            found = resident_bytes(family)
            peak_bytes = max(peak_bytes, found)
            way.look(family)
            _hold_to(limits, found, time.monotonic() - began_s - way.gave_way_s)
    finally:
        waiting.cancel()
    return peak_bytes, way.gave_way_s


def _hold_to(limits: Limits, resident: int, ran_s: float) -> None:
    """Raises OverLimit."""
    if resident > limits.memory_bytes:
        raise OverLimit(
            f"the training took {resident // MIB} MiB, more than {limits.memory_bytes // MIB}, and was "
            "ended; allow it more (--memory-mb), or train on a shorter time (--since)"
        )
    if ran_s > limits.time_s:
        raise OverLimit(
            f"the training took longer than {limits.time_s:g} s and was ended; allow it more "
            "(--time-limit), or train on a shorter time (--since)"
        )


def family_of(pid: int) -> list[psutil.Process]:
    """A process and its children; nobody where it is gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def resident_bytes(family: list[psutil.Process]) -> int:
    """Their memory that is resident, as far as they are still there."""
    found = 0
    for member in family:
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            found += int(member.memory_info().rss)
    return found


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Nothing is left of it, whoever is in a hurry: nor of its children, where it went before them."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(process.wait())


def _last_words(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - LAST_WORDS_BYTES))
    return " ".join(errors.read().decode(errors="replace").split())[-500:]
