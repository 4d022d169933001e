"""Runs the local stack: starts its parts in order, starts again what dies, stops them in the right order."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from pml.schemas.errors import ConfigurationError, PMLError
from pml.schemas.times import to_rfc3339
from pml.streams.bridge.permissions_file import read_permissions
from pml.streams.bridge.servers_file import ServersFile, read_servers
from pml.streams.connection import store_url
from pml.streams.local.child import trim
from pml.streams.local.forked import Template, forks_here
from pml.streams.local.processes import ProcessId
from pml.streams.local.services import LOG_FOLDER, Broker, Service, Store, Worker, child_environment
from pml.streams.local.stack import WORKERS, Part, Stack, remove_stack, write_stack
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics

LOCK_FILE = "up.lock"
BACKOFF_FIRST_S = 0.5
BACKOFF_MAX_S = 30.0
# Whoever ran this long did not die of what it does at its start.
STEADY_S = 60.0
TRIM_S = 30.0
BRIDGE = "bridge"
# Somebody who saved the file turns to the command line next.
SERVERS_S = 0.5

Report = Callable[[Part], None]


class AlreadyUp(ConfigurationError):
    """Another supervisor runs a stack on this data folder."""

    code = "ALREADY_UP"


class Supervisor:
    """The local stack of one data folder.

    `report` is called with each part whose state changed, `on_ready` once, when all of them are up.
    """

    def __init__(
        self,
        settings: Settings,
        report: Report = lambda part: None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self._report = report
        self._on_ready = on_ready
        self._broker = Broker(settings) if settings.embedded_broker else None
        self._store = Store(settings) if settings.embedded_store else None
        self._template = (
            Template(settings.data_dir / LOG_FOLDER / "template.log", child_environment(settings))
            if forks_here()
            else None
        )
        self._workers = [Worker(settings, roles, self._template) for roles in WORKERS]
        self._stores = [service for service in (self._broker, self._store) if service is not None]
        self._parts: dict[str, Part] = {}
        self._known_servers: ServersFile | None = None
        self.stack = Stack(
            supervisor=ProcessId.own(),
            started_at=to_rfc3339(time.time_ns() // 1_000_000),
            broker=settings.kafka.bootstrap_servers,
            broker_embedded=settings.embedded_broker,
            store_embedded=settings.embedded_store,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Bring the stack up, keep it up until `stop` is set, bring it down.

        Raises:
            AlreadyUp: a stack runs on this data folder.
            ConfigurationError: the file of the servers or of the permissions is wrong.
            PMLError: a part did not start; everything that was started is stopped again.
        """
        check_files(self.settings)
        with hold_folder(self.settings):
            self._write()
            try:
                await self._run(stop)
            except PMLError as error:
                self._write(ready=False, error=error.as_dict())
                raise
            remove_stack(self.settings.data_dir)

    async def _run(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        try:
            if await _done_before(asyncio.create_task(self._start()), stopping):
                self._write(ready=True)
                self._on_ready()
                await self._keep_up(stopping)
        finally:
            stopping.cancel()
            await self._stop()

    async def _start(self) -> None:
        """The broker and the store, then what they must hold, then the workers."""
        if self._template is not None:
            await self._template.start()
        await _together(self._start_one(service) for service in self._stores)
        await _together((ensure_topics(self.settings), asyncio.to_thread(migrate_store, self.settings)))
        # Before the bridge reads them: what changes from here on it may not know.
        self._known_servers = self._servers()
        await _together(self._start_one(worker) for worker in self._workers)

    async def _start_one(self, service: Service) -> None:
        self._note(service, "starting")
        try:
            await service.start()
        except PMLError as error:
            self._note(service, "failed", error.message)
            raise
        if self._broker is not None and service is self._broker:
            self._write(broker=self._broker.address)
        if self._store is not None and service is self._store:
            self._write(store=self._store.url)
        self._note(service, "ready")

    async def _keep_up(self, stopping: asyncio.Task[bool]) -> None:
        keepers = [asyncio.create_task(self._keep(service)) for service in (*self._stores, *self._workers)]
        keepers.append(asyncio.create_task(self._trim_logs()))
        keepers.append(asyncio.create_task(self._follow_servers()))
        try:
            done, _ = await asyncio.wait((stopping, *keepers), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)

    async def _keep(self, service: Service) -> None:
        """Start the service again whenever it ends, later each time unless it ran well in between."""
        backoff_s = BACKOFF_FIRST_S
        while True:
            since = time.monotonic()
            code = await service.wait()
            if time.monotonic() - since >= STEADY_S:
                backoff_s = BACKOFF_FIRST_S
            error = (service.last_error() or f"ended with code {code}") if code else None
            self._note(service, "restarting", error, restarts=1)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
            with suppress(PMLError):  # noted by _start_one; it has ended, so the loop goes on
                await self._start_one(service)

    async def _trim_logs(self) -> None:
        while True:
            await asyncio.sleep(TRIM_S)
            for log in (self.settings.data_dir / LOG_FOLDER).glob("*.log"):
                trim(log)

    async def _follow_servers(self) -> None:
        """End the bridge when `mcp-servers.yaml` names other servers: it starts again with those."""
        while True:
            await asyncio.sleep(SERVERS_S)
            servers = self._servers() or self._known_servers
            if servers != self._known_servers:
                self._known_servers = servers
                await asyncio.gather(*(w.stop() for w in self._workers if BRIDGE in w.name.split("+")))

    def _servers(self) -> ServersFile | None:
        """The servers that are configured; None while the file is wrong."""
        try:
            return read_servers(self.settings.mcp_servers)
        except ConfigurationError:
            return None

    async def _stop(self) -> None:
        """Who decides and calls first, then who reads what they wrote, then what holds it."""
        *first, readers = self._workers
        for services in (first, [readers], self._stores):
            await asyncio.gather(*(self._stop_one(service) for service in services))
        if self._template is not None:
            await self._template.stop()

    async def _stop_one(self, service: Service) -> None:
        if service.pid is not None:
            self._note(service, "stopping")
            await service.stop()
            self._note(service, "stopped")

    def _note(self, service: Service, state: str, error: str | None = None, restarts: int = 0) -> None:
        before = self._parts.get(service.name)
        part = Part(
            name=service.name,
            state=state,
            process=_process_id(service.pid),
            restarts=(before.restarts if before else 0) + restarts,
            last_error=error or (before.last_error if before else None),
            log=str(service.log),
        )
        self._parts[service.name] = part
        self._write(parts=tuple(self._parts.values()))
        self._report(part)

    def _write(self, **fields: Any) -> None:
        self.stack = self.stack.model_copy(update=fields)
        write_stack(self.settings.data_dir, self.stack)


def check_files(settings: Settings) -> None:
    """Read what the workers will read, before anything is started.

    Raises:
        ConfigurationError: the file of the servers or of the permissions is wrong.
    """
    read_servers(settings.mcp_servers)
    read_permissions(settings.mcp_permissions)


@asynccontextmanager
async def supervised(settings: Settings, say: Callable[[str], None]) -> AsyncIterator[None]:
    """A stack that runs while the block does; `say` is told what becomes of its parts.

    Raises:
        PMLError: it did not come up, or it ended with an error.
    """
    stop, ready = asyncio.Event(), asyncio.Event()

    def report(part: Part) -> None:
        say(f"the stack: {part.name} {part.state}")

    running = asyncio.create_task(Supervisor(settings, report, ready.set).run(stop))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    try:
        if running.done():
            running.result()
        yield
    finally:
        waiting.cancel()
        stop.set()
        await running


def migrate_store(settings: Settings) -> None:
    """Bring the store's tables and views up to this release.

    Raises:
        StoreUnavailable: it does not answer.
    """
    from pml.clickhouse.client import Store as StoreClient
    from pml.clickhouse.migrate import migrate
    from pml.clickhouse.retention import EpisodeRetention

    with StoreClient.connect(store_url(settings), settings.clickhouse.database) as store:
        migrate(store, EpisodeRetention(settings.memory.retention_days, settings.memory.episodes_max))


@contextmanager
def hold_folder(settings: Settings) -> Iterator[None]:
    """Hold the data folder for one supervisor; the kernel lets it go when the process ends.

    Raises:
        AlreadyUp: another supervisor holds it.
        ConfigurationError: it cannot be written.
    """
    try:
        data_dir = settings.make_data_dir()
        handle = os.open(data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"the data folder {settings.data_dir} cannot be used: {error.strerror}"
        ) from None
    try:
        _lock(handle, data_dir)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, data_dir: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise AlreadyUp(f"a stack on {data_dir} is already up: `pml status` shows it") from None


async def _together(awaitables: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """All at once; the first error is raised when all others have been cancelled."""
    tasks = [asyncio.create_task(awaitable) for awaitable in awaitables]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _done_before(work: asyncio.Task[None], stopping: asyncio.Task[bool]) -> bool:
    """Whether the work was done before the stop came; else it is cancelled."""
    try:
        await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
        return work.done()
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


def _process_id(pid: int | None) -> ProcessId | None:
    try:
        return ProcessId.of(pid) if pid is not None else None
    except psutil.NoSuchProcess:
        return None
