"""The orchestrator: folds commands and outcomes into the log and says which calls must run."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from pml.processors.workflow import Catalog, Policy
from pml.schemas.errors import PMLError
from pml.streams.app import ChunkApp, make_app, restored, run_app
from pml.streams.connection import client_options, producer_options
from pml.streams.health import Health
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from pml.streams.orchestrator.agent import add_agent
from pml.streams.orchestrator.catalog import CatalogFollower
from pml.streams.orchestrator.ownership import Ownership
from pml.streams.orchestrator.payloads import PayloadCache
from pml.streams.orchestrator.shell import Shell
from pml.streams.orchestrator.table import SessionTable
from pml.streams.settings import Settings
from pml.streams.telemetry import ConsumerLag

# One request for all ends; the frame of the worker ends a role that has lag and stands still for a minute.
WATCH_S = 1.0


class Orchestrator:
    """The role that writes `pml.events` (DESIGN §2, rules 1 to 5 and 9)."""

    name = "orchestrator"

    def __init__(self, settings: Settings, health: Health) -> None:
        self._settings = settings
        self._health = health

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set.

        Raises:
            PMLError: something that only a new start can repair.
        """
        settings = self._settings
        failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        async with self._opened(failure) as shell:
            app = make_app(self.name, settings, instance_id=settings.orchestrator.instance_id)
            table, fail = SessionTable(app), partial(_fail, failure)
            ownership = Ownership(app, shell, table, fail, self._health.ready)
            add_agent(app, settings.topics, ownership.get)
            ownership.connect()
            watching = _guarded(self._watch(app, shell, ownership), failure)
            try:
                await run_app(app, stop, failure)
            finally:
                watching.cancel()
                await ownership.close()

    @asynccontextmanager
    async def _opened(self, failure: asyncio.Future[None]) -> AsyncIterator[Shell]:
        """The clients, connected; they close in the opposite order."""
        settings, topics = self._settings, self._settings.topics
        clients, producing = client_options(settings), producer_options(settings)
        timeout_s = settings.orchestrator.append_timeout_s
        tails = Tails(clients)
        shell = Shell(
            settings=settings,
            topics=topics,
            owner=f"{socket.gethostname()}-{os.getpid()}",
            hash_key=settings.installation_key(),
            log=Appender(producing, timeout_s=timeout_s),
            outbox=Appender(producing, timeout_s=timeout_s),
            tails=tails,
            payloads=PayloadCache(topics, tails, settings.orchestrator.payload_cache_bytes),
            catalog=CatalogFollower(clients, topics.catalog, Catalog(policy(settings)), self._bury),
        )
        self._shell = shell
        async with AsyncExitStack() as stack:
            for client in (shell.log, shell.outbox, shell.tails, shell.catalog):
                stack.push_async_callback(client.stop)
                await client.start()
            following = _guarded(shell.catalog.follow(), failure)
            stack.callback(following.cancel)
            yield shell

    async def _bury(self, record: Any, error: PMLError) -> None:
        await self._shell.bury(record, "decode", error)

    async def _watch(self, app: ChunkApp, shell: Shell, ownership: Ownership) -> None:
        """Say how far we are: the worker ends a role that has lag and does not get on (rule 9)."""
        lag_told = ConsumerLag(self.name)
        while True:
            await asyncio.sleep(WATCH_S)
            partitions = ownership.all
            positions = {
                (topic, part.number): at for part in partitions for topic, at in part.positions.items()
            }
            ends = await shell.tails.ends(positions) if positions else {}
            # One that was lost meanwhile is not ours to tell of.
            owned = {partition.number for partition in ownership.all}
            lags = {
                (topic, number): max(0, end - positions[topic, number])
                for (topic, number), end in ends.items()
                if number in owned
            }
            lag_told.tell(lags)
            self._health.progress(
                restored=restored(app),
                partitions=len(partitions),
                sessions=sum(len(part.states) for part in partitions),
                position=sum(positions.values()),
                lag=sum(lags.values()),
            )


def policy(settings: Settings) -> Policy:
    """The limits and time-outs of the core, in milliseconds."""
    timeouts = settings.timeouts
    return Policy(
        hash_key=settings.installation_key(),
        task_timeout_ms=round(timeouts.task_s * 1000),
        queue_timeout_ms=round(timeouts.queue_s * 1000),
        run_timeout_ms=round(timeouts.run_s * 1000),
        session_ttl_ms=round(timeouts.session_ttl_s * 1000),
        speculation_ttl_ms=round(settings.speculation.ttl_s * 1000),
        results_ttl_ms=round(timeouts.results_ttl_s * 1000),
        speculation_mode=settings.speculation.mode,
        budget_name=settings.speculation.budget,
        decision_timeout_ms=round(timeouts.decision_s * 1000),
        approval_timeout_ms=round(timeouts.approval_s * 1000),
        on_timeout=settings.decisions.on_timeout,
        four_eyes=settings.approvals.four_eyes,
        approve=settings.approvals.approve,
        speculation_depth=settings.speculation.depth,
        cache_bytes=settings.speculation.cache_bytes,
        verified_share=settings.speculation.verify,
        memory_influence=settings.memory.influence,
        predictions=settings.speculation.predictions,
    )


def _guarded(work: Any, failure: asyncio.Future[None]) -> asyncio.Task[None]:
    """A task whose error ends the role."""
    task: asyncio.Task[None] = asyncio.create_task(work)

    def ended(done: asyncio.Task[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            _fail(failure, error)

    task.add_done_callback(ended)
    return task


def _fail(failure: asyncio.Future[None], error: BaseException) -> None:
    if not failure.done():
        failure.set_exception(error)
