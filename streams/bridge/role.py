"""The role `bridge`: MCP servers, claims, outcomes and the consumer of calls, put together."""

from __future__ import annotations

import asyncio
import os
import uuid
from contextlib import AsyncExitStack

import structlog

from pml.schemas.catalog import ServerTools
from pml.schemas.identifiers import INTERNAL_SERVER
from pml.streams.bridge.admission import Admission
from pml.streams.bridge.analyse import Analyse
from pml.streams.bridge.builtin import CONCURRENCY, Builtin, Service
from pml.streams.bridge.catalog import CatalogLink
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.clients import Clients, clients
from pml.streams.bridge.dispatcher import Dispatcher
from pml.streams.bridge.gate import Gate
from pml.streams.bridge.inline import Inline
from pml.streams.bridge.match import Match
from pml.streams.bridge.outcomes import Outcomes
from pml.streams.bridge.partition import Partition
from pml.streams.bridge.partitions import Partitions
from pml.streams.bridge.permissions_file import PermissionsWatch
from pml.streams.bridge.predict import Predict
from pml.streams.bridge.reaper import Reaper
from pml.streams.bridge.recall import Recall
from pml.streams.bridge.runner import Runner
from pml.streams.bridge.server import Server, ServerOptions
from pml.streams.bridge.server_log import ServerLog
from pml.streams.bridge.servers_file import read_servers
from pml.streams.bridge.service import CallService
from pml.streams.bridge.stdio import StdioOptions
from pml.streams.bridge.step import Steps
from pml.streams.discovery.finder import Finder
from pml.streams.health import Health
from pml.streams.sandbox.programs import Programs
from pml.streams.settings import Settings

# JSON text may escape each character of a result (three bytes become twelve) and wrap it twice.
LINE_FACTOR = 3
FACTS_S = 0.5
# Servers that could not be started are tried again, as their back-off allows; idle ones are ended.
TEND_S = 5.0

log = structlog.get_logger("pml.bridge")


class _Done(Exception):
    """Ends the task group after a clean stop."""


class Bridge:
    """Runs the calls of `pml.tool-calls` on MCP servers and answers them in `pml.tool-outcomes`."""

    name = "bridge"

    def __init__(self, settings: Settings, health: Health) -> None:
        self._settings, self._health = settings, health
        self._servers: dict[str, Server] = {}
        self._reaper: Reaper

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set.

        Raises:
            ConfigurationError: a file is wrong, or another bridge has other permissions.
            BrokerUnavailable, InDoubt: the broker was away for too long.
        """
        watch = PermissionsWatch(self._settings.mcp_permissions)
        async with AsyncExitStack() as stack:
            self._prepare_servers(stack)
            # Servers take about as long to start as the clients of Kafka.
            listing = asyncio.gather(*(server.start() for server in self._servers.values()))
            kafka = await stack.enter_async_context(clients(self._settings))
            await listing
            try:
                async with asyncio.TaskGroup() as tasks:
                    await self._serve(stop, kafka, watch, tasks)
                    raise _Done
            except* _Done:
                pass
            except* Exception as group:
                raise first_error(group) from group

    def _prepare_servers(self, stack: AsyncExitStack) -> None:
        """What the stack closes last is the reaper: it ends what the servers' own closing left."""
        bridge = self._settings.bridge
        self._reaper = reaper = Reaper()
        stack.callback(reaper.close)
        for name, spec in read_servers(self._settings.mcp_servers).enabled().items():
            server_log = ServerLog(self._settings.data_dir, name)
            stack.callback(server_log.close)
            stdio = StdioOptions(LINE_FACTOR * bridge.result_max_bytes, server_log, reaper)
            options = ServerOptions(stdio, bridge.server_concurrency, bridge.start_timeout_s, _log_listing)
            self._servers[name] = Server(name, spec, options)
        stack.push_async_callback(self._close_servers)

    async def _close_servers(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    async def _serve(
        self, stop: asyncio.Event, kafka: Clients, watch: PermissionsWatch, tasks: asyncio.TaskGroup
    ) -> None:
        settings = self._settings
        gate = Gate(settings.speculation.mode, self._servers)
        outcomes = Outcomes(settings.topics.tool_outcomes, kafka.outcomes)
        recall = Recall(settings)
        finder = Finder(settings)
        inline = Inline(finder)
        analyse = Analyse(lambda: [server.record for server in self._servers.values()], inline)
        match = Match(finder, inline, settings.capabilities.match_threshold)
        programs = Programs(settings.sandbox, self._reaper, settings.data_dir / "interpreters")
        steps = Steps(settings, kafka.tails, programs, inline)
        predict = Predict(settings, finder)
        services: dict[str, Service] = {"recall": recall, "analyse": analyse, "inline": inline}
        builtin = Builtin({**services, "match": match, "predict": predict, "step": steps})
        runner = Runner(self._servers, settings.bridge.result_max_bytes, outcomes.send, builtin=builtin)
        dispatcher = Dispatcher(
            self._servers, self._admission(), gate, runner=runner, outcomes=outcomes, tasks=tasks
        )
        service = CallService(settings.topics, kafka, self._partitions(kafka), dispatcher, tasks)
        catalog = CatalogLink(
            settings,
            self._servers,
            gate,
            watch,
            appender=kafka.outcomes,
            letters=kafka.letters,
            owner=lambda: service.owns(0),
            on_switched_off=dispatcher.stop_speculating,
        )
        helpers = [
            tasks.create_task(work)
            for work in (catalog.run(), self._report(service, catalog), self._tend(steps))
        ]
        preparing = tasks.create_task(self._prepare(service, catalog, predict))
        try:
            await service.run(stop)
        finally:
            preparing.cancel()  # while its threads are there
            await runner.close()
            recall.close()
            analyse.close()
            predict.close()
            await finder.close()
            await steps.close()
            for helper in helpers:
                helper.cancel()

    def _admission(self) -> Admission:
        bridge = self._settings.bridge
        limits = {name: server.concurrency for name, server in self._servers.items()}
        # A program that computes for long keeps nobody else from an answer.
        limits[INTERNAL_SERVER] = CONCURRENCY + self._settings.sandbox.live_max
        return Admission(bridge.concurrency, bridge.session_in_flight_max, limits)

    def _partitions(self, kafka: Clients) -> Partitions:
        topic = self._settings.topics.call_claims
        runner = f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        in_flight_max = self._settings.bridge.partition_in_flight_max

        def new(number: int) -> Partition:
            return Partition(number, Claims(topic, number, runner, kafka.claims, kafka.tails), in_flight_max)

        return Partitions(new)

    async def _ready(self, service: CallService, catalog: CatalogLink) -> None:
        """Wait until calls are taken and, where this bridge publishes, the catalog says what there is."""
        await service.recovered.wait()
        if service.owns(0):
            await catalog.published.wait()

    async def _prepare(self, service: CallService, catalog: CatalogLink, predict: Predict) -> None:
        """What the first prediction would wait for holds up nobody's start, but comes right after it."""
        await self._ready(service, catalog)
        if self._settings.speculation.predictions == "on":
            await predict.prepare()

    async def _report(self, service: CallService, catalog: CatalogLink) -> None:
        await self._ready(service, catalog)
        self._health.ready(**self._facts(service))
        log.info("bridge ready", servers={name: s.record.status for name, s in self._servers.items()})
        while True:
            await asyncio.sleep(FACTS_S)
            self._health.progress(**self._facts(service))

    def _facts(self, service: CallService) -> dict[str, object]:
        servers = {
            name: server.record.error or server.record.status for name, server in self._servers.items()
        }
        return {**service.facts(), "servers": servers}

    async def _tend(self, steps: Steps) -> None:
        while True:
            await asyncio.sleep(TEND_S)
            await steps.tend()
            for server in self._servers.values():
                await server.end_idle()
                if server.record.status == "unavailable" and server.may_start:
                    await server.start()


def _log_listing(record: ServerTools) -> None:
    log.info("server listed", server=record.server, status=record.status, tools=len(record.tools))


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that ended the bridge, out of the group in which it travelled."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
