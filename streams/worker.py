"""`pml worker ROLE …`: runs roles in this process until it is told to stop or one of them fails."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import structlog
import uvloop

from pml.schemas.errors import ConfigurationError, PMLError
from pml.streams.health import Health
from pml.streams.logs import configure_logging
from pml.streams.lost_connections import mend_connections
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings
from pml.streams.telemetry import serve
from pml.streams.topics import ensure_changelog, ensure_topics

ROLES = {
    "orchestrator": "pml.streams.orchestrator.role:Orchestrator",
    "bridge": "pml.streams.bridge.role:Bridge",
    "metrics": "pml.streams.projections.role:Metrics",
    "thresholds": "pml.streams.projections.thresholds.role:Thresholds",
    "sink": "pml.streams.sink:Sink",
    "gateway": "pml.streams.gateway.role:Gateway",
}
# The Faust tables of roles, by name, and how their changelogs are kept.
TABLES = {
    "orchestrator": ("sessions", "pml.streams.orchestrator.table:CHANGELOG"),
    "metrics": ("totals", "pml.streams.projections.table:CHANGELOG"),
    "thresholds": ("learned", "pml.streams.projections.thresholds.table:CHANGELOG"),
}
# Longer than a rebalance (20 s), a broker killed and back (5 s) and a producer's patience (20 s) together.
STALL_S = 60.0
WATCH_S = 1.0
# A role finishes its chunk and leaves its group in one or two seconds; a produce request may take 20.
STOP_TIMEOUT_S = 25.0
# What was cancelled then ends at once; a client whose broker is gone may hold on to its threads all the same.
CANCEL_TIMEOUT_S = 3.0
# Roles have ended: what their libraries left running (a thread of Faust's, joined at exit) is not waited for.
EXIT_TIMEOUT_S = 5.0
FROZEN_EXIT_CODE = 70
# Faust's consumer has a thread of its own, which by default waits 5 ms for a busy one. Measured with this:
# a layer takes a sixth less of our time.
THREAD_SWITCH_S = 0.0005
# Often and briefly: somebody waits for each layer. `pml` itself collects more seldom.
COLLECTED_AFTER = 700

log = structlog.get_logger("pml.worker")


class Role(Protocol):
    """Something that consumes and produces until it is told to stop."""

    name: str

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; an error ends the process, and what started it starts it again."""


class Stalled(PMLError):
    """A role has work and does not get on."""

    code = "STALLED"
    retryable = True


@dataclass(slots=True)
class StallWatch:
    """Remembers since when a role with lag stands still; `facts` are those of its health.

    A role tells `position` (anything that changes when it gets on), `lag` (records that wait for it) and,
    while it waits for something outside by design, `blocked` (for what).
    """

    stall_s: float = STALL_S
    position: Any = None
    moved_at: float | None = None

    def stalled_for(self, facts: Mapping[str, Any], now: float) -> float | None:
        """Seconds that it stood still, once they are too many; `now` is a monotonic time in seconds."""
        idle = not facts.get("lag") or facts.get("blocked")
        if idle or self.moved_at is None or facts.get("position") != self.position:
            self.position, self.moved_at = facts.get("position"), now
            return None
        stood_s = now - self.moved_at
        return stood_s if stood_s >= self.stall_s else None


def run_worker(settings: Settings, names: Sequence[str]) -> None:
    """Run these roles in this process; returns after a clean stop (SIGTERM, SIGINT).

    Raises:
        PMLError: a role failed, or cannot be started.
    """
    configure_logging(settings.log, role="+".join(names))
    faulthandler.enable()
    sys.setswitchinterval(THREAD_SWITCH_S)
    _load(names)
    mend_connections()
    # Faust's consumer threads make their loops by the policy.
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_until_signalled(settings, names))


async def run_roles(settings: Settings, names: Sequence[str], stop: asyncio.Event) -> None:
    """Run these roles until `stop` is set or one fails; then all others are stopped as well."""
    await ensure_topics(settings)
    for name in names:
        await ensure_table(settings, name)
    endpoint = serve(settings.metrics.port)
    try:
        healths = {name: Health(settings.data_dir, name) for name in names}
        for health in healths.values():
            health.starting()
            health.progress(metrics=endpoint.address)
        roles = [load_role(name)(settings, healths[name]) for name in names]
        await _run_together(settings, roles, healths, stop)
    finally:
        endpoint.close()


def load_role(name: str) -> Callable[[Settings, Health], Role]:
    """The class of a role.

    Raises:
        ConfigurationError: there is no such role.
    """
    if name not in ROLES:
        raise ConfigurationError(f"there is no role {name!r}; there are {', '.join(ROLES)}")
    role: Callable[[Settings, Health], Role] = _loaded(ROLES[name])
    return role


async def ensure_table(settings: Settings, role: str) -> None:
    """Create the changelog of a role's table where it is missing; not every role has a table.

    Raises:
        BrokerUnavailable, ConfigurationError: as `ensure_topics`.
    """
    if role in TABLES:
        table, configs = TABLES[role]
        await ensure_changelog(settings, f"{settings.group(role)}-{table}-changelog", _loaded(configs))


def _loaded(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _load(names: Sequence[str]) -> None:
    """Import these roles; the collector passes over their modules and classes, then and later.

    To look for garbage among them takes a tenth of the imports; later a walk takes 0.1 s, in which nothing is
    decided.
    """
    gc.disable()
    try:
        for name in names:
            load_role(name)
    finally:
        gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)


async def _until_signalled(settings: Settings, names: Sequence[str]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        stop.set()
        end_in_time(STOP_TIMEOUT_S + 2 * CANCEL_TIMEOUT_S)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told)
    end_if_frozen(loop)
    try:
        await run_roles(settings, names, stop)
    finally:
        end_in_time(EXIT_TIMEOUT_S)
    log.info("stopped")


async def _run_together(
    settings: Settings, roles: Sequence[Role], healths: Mapping[str, Health], stop: asyncio.Event
) -> None:
    tasks = [
        asyncio.create_task(_run_one(settings, role, healths[role.name], stop), name=role.name)
        for role in roles
    ]
    told = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((*tasks, told), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
        unfinished = await _stopped(tasks)
    for task in tasks:
        if task not in unfinished:
            task.result()
    if unfinished:
        names = ", ".join(sorted(task.get_name() for task in unfinished))
        raise PMLError(f"{names} did not stop within {STOP_TIMEOUT_S:g} s and was cut off, as kill -9 would")


async def _stopped(tasks: Sequence[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Wait for tasks that were told to stop; those that did not in time are cancelled and returned."""
    _, unfinished = await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)
    for task in unfinished:
        log.error("did not stop in time", role=task.get_name(), after_s=STOP_TIMEOUT_S)
        task.cancel()
    if unfinished:
        await asyncio.wait(unfinished, timeout=CANCEL_TIMEOUT_S)
    return unfinished


async def _run_one(settings: Settings, role: Role, health: Health, stop: asyncio.Event) -> None:
    try:
        async with broker_errors(settings):
            await _run_watched(role, health, stop)
    except Exception as error:
        log.error("role failed", failed=role.name, error=str(error), exc_info=not isinstance(error, PMLError))
        health.failed(error)
        raise
    health.stopped()


async def _run_watched(role: Role, health: Health, stop: asyncio.Event) -> None:
    running = asyncio.create_task(role.run(stop))
    watching = asyncio.create_task(_watch(role.name, health))
    try:
        await asyncio.wait((running, watching), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
        if not stop.is_set():
            _hear(running)
            raise PMLError(f"the role {role.name} ended without being told to")
        await asyncio.wait({running})
        _hear(running)
    finally:
        for task in (running, watching):
            task.cancel()
        await asyncio.gather(running, watching, return_exceptions=True)


def _hear(running: asyncio.Task[None]) -> None:
    """Raise what a role ended with. Nobody cancelled it: a `CancelledError` comes from a task of its own."""
    try:
        running.result()
    except asyncio.CancelledError as error:
        raise RuntimeError("a task that it waited for was cancelled by another of its own") from error


async def _watch(name: str, health: Health) -> None:
    watch = StallWatch()
    while True:
        await asyncio.sleep(WATCH_S)
        stood_s = watch.stalled_for(health.record.facts, time.monotonic())
        if stood_s is not None:
            lag = health.record.facts.get("lag")
            raise Stalled(f"{name} has {lag} records waiting and stood still for {stood_s:.0f} s")


def end_if_frozen(loop: asyncio.AbstractEventLoop, frozen_s: float = STALL_S) -> None:
    """End the process with code 70 and all stacks on stderr when its event loop does not turn any more.

    Counted in this thread's own seconds: a process that was paused as a whole is not frozen.
    """
    threading.Thread(target=_watch_loop, args=(loop, frozen_s), name="frozen-loop-watch", daemon=True).start()


def end_in_time(timeout_s: float) -> None:
    """End the process with code 70 if it still lives after so long, whatever its libraries wait for."""
    timer = threading.Timer(timeout_s, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    faulthandler.dump_traceback()
    os._exit(FROZEN_EXIT_CODE)


def _watch_loop(loop: asyncio.AbstractEventLoop, frozen_s: float) -> None:
    turned = threading.Event()
    frozen_since_s = 0.0
    while frozen_since_s < frozen_s:
        turned.clear()
        try:
            loop.call_soon_threadsafe(turned.set)
        except RuntimeError:  # closed: the process ends
            return
        if turned.wait(WATCH_S):
            frozen_since_s = 0.0
            time.sleep(WATCH_S)
        else:
            frozen_since_s += WATCH_S
    _end()
