"""A bridge on a real broker, and what its orchestrator would send and read."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from pml.schemas.calls import CallCancel, CallClaim, CallEnded, CallRun
from pml.schemas.catalog import CatalogRecord
from pml.schemas.codec import decode_catalog, decode_claim, decode_outcome, encode
from pml.schemas.identifiers import session_key
from pml.schemas.times import to_rfc3339
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.bridge.role import Bridge
from pml.streams.connection import client_options, producer_options
from pml.streams.health import Health, read_all
from pml.streams.log.reader import counted
from pml.streams.log.tail import Tails
from pml.streams.topics import ensure_topics
from tests.fixtures.commands import Command, start_role
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.settings import folder_settings
from tests.streams.bridge.conftest import SERVERS, EventLog

LOG_SHOWN = 20_000
PERMISSIONS = {
    "version": 1,
    "tools": {
        "trouble:*": {"scope": "readonly", "approval": "auto"},
        "trouble:count": {"scope": "filesystem", "approval": "auto", "effect": "write"},
        "single:*": {"scope": "readonly", "approval": "auto"},
        "raw:*": {"scope": "readonly", "approval": "hil"},
    },
}


class World:
    """Topics of their own, configuration files, a client of the bridge's topics."""

    def __init__(
        self,
        kafka: str,
        folder: Path,
        servers: Iterable[str] | None = None,
        others: Mapping[str, Any] | None = None,
    ) -> None:
        self.events = EventLog(folder / "trouble.log")
        self.folder = folder
        self._write_files(servers, others or {})
        self.settings = folder_settings(folder, kafka, f"bridge-{uuid.uuid4().hex[:8]}")
        self.topics = self.settings.topics
        self._producer: Any = None
        self._tails = Tails(client_options(self.settings))

    def _write_files(self, wanted: Iterable[str] | None, others: Mapping[str, Any]) -> None:
        """Those of the usual servers that are wanted, and others in their place or beside them."""
        trouble = [str(SERVERS / "trouble_server.py"), str(self.events.path)]
        servers = {
            "trouble": {"command": sys.executable, "args": trouble},
            "single": {"command": sys.executable, "args": trouble, "concurrency": 1},
            "raw": {"command": sys.executable, "args": [str(SERVERS / "raw_server.py")]},
            "absent": {"command": "/no/such/server"},
        }
        kept = {name: servers[name] for name in wanted or servers} | dict(others)
        (self.folder / "mcp-servers.yaml").write_bytes(orjson.dumps({"mcpServers": kept}))
        self.write_permissions(PERMISSIONS)

    def write_permissions(self, content: Mapping[str, Any]) -> None:
        (self.folder / "mcp-permissions.yaml").write_bytes(orjson.dumps(content))

    async def open(self) -> None:
        await ensure_topics(self.settings)
        self._producer = AIOKafkaProducer(**producer_options(self.settings))
        await self._producer.start()
        await self._tails.start()

    async def close(self) -> None:
        await self._producer.stop()
        await self._tails.stop()

    async def send(self, message: CallRun | CallCancel) -> int:
        key = session_key(message.tenant, message.session_id)
        return await self.send_raw(self.topics.tool_calls, encode(message), key)

    async def send_raw(
        self, topic: str, value: bytes | None, key: bytes, partition: int | None = None
    ) -> int:
        sent = await self._producer.send_and_wait(topic, value=value, key=key, partition=partition)
        return int(sent.offset)

    async def read(self, topic: str) -> list[Any]:
        """Every record of a topic, as it is now."""
        partitions = 1 if topic in (self.topics.catalog, self.topics.dead_letters) else SESSION_PARTITIONS
        ends = await self._tails.ends((topic, number) for number in range(partitions))
        read = [self._read_partition(topic, number, end) for (topic, number), end in ends.items() if end]
        return [record for records in await asyncio.gather(*read) for record in records]

    async def _read_partition(self, topic: str, number: int, end: int) -> list[Any]:
        return [r async for records in self._tails.read(topic, number, 0, end) for r in records]

    async def outcomes(self, call: CallRun | None = None) -> list[CallEnded]:
        records = await self.read(self.topics.tool_outcomes)
        outcomes = [decode_outcome(record.value) for record in records]
        return [outcome for outcome in outcomes if call is None or outcome.call_id == call.call_id]

    async def claims(self, call: CallRun) -> list[CallClaim]:
        """The claims of a call that count."""
        records = await self.read(self.topics.call_claims)
        claims = [decode_claim(record.value) for record in records if counted(record)]
        return [claim for claim in claims if claim.call_id == call.call_id]

    def happened(self, what: str, call: CallRun) -> int:
        """How often the trouble server says that this happened for a call."""
        return len(self.events.entries(what, call.call_id))

    async def catalog(self) -> dict[str, CatalogRecord | None]:
        records = await self.read(self.topics.catalog)
        return {
            record.key.decode(): decode_catalog(record.value) if record.value is not None else None
            for record in records
        }

    async def answer(self, call_id: str, timeout_s: float = PATIENCE_S) -> CallEnded:
        """The first answer to a call."""
        return (await self.answers([call_id], timeout_s))[call_id]

    async def answers(self, call_ids: list[str], timeout_s: float = PATIENCE_S) -> dict[str, CallEnded]:
        async with asyncio.timeout(timeout_s):
            while True:
                found = {outcome.call_id: outcome for outcome in reversed(await self.outcomes())}
                if set(call_ids) <= found.keys():
                    return found
                await asyncio.sleep(0.05)

    async def committed(self, number: int) -> int:
        """The group's committed offset of a partition of the calls."""
        consumer = AIOKafkaConsumer(
            **client_options(self.settings), group_id=self.settings.group("bridge"), enable_auto_commit=False
        )
        await consumer.start()
        try:
            return int(await consumer.committed(TopicPartition(self.topics.tool_calls, number)) or 0)
        finally:
            await consumer.stop()


def run(tool: str, /, call_id: str | None = None, **fields: Any) -> CallRun:
    """A `call.run` of a session, due in ten minutes."""
    return CallRun(
        **{
            "call_id": call_id or f"call_{uuid.uuid4().hex[:24]}",
            "tenant": "local",
            "session_id": "ses_1",
            "run_id": "run_1",
            "task_id": "n1",
            "tool": tool,
            "arguments": {},
            "speculative": False,
            "effect": "write" if tool.endswith(":count") else "read",
            "timeout_ms": 20_000,
            "deadline_at": to_rfc3339(int(time.time() * 1000) + 600_000),
            **fields,
        }
    )


def cancel(call: CallRun) -> CallCancel:
    return CallCancel(
        call_id=call.call_id, tenant=call.tenant, session_id=call.session_id, reason="not needed"
    )


@asynccontextmanager
async def world(
    kafka: str,
    folder: Path,
    servers: Iterable[str] | None = None,
    others: Mapping[str, Any] | None = None,
) -> AsyncIterator[World]:
    world = World(kafka, folder, servers, others)
    await world.open()
    try:
        yield world
    finally:
        await world.close()


@asynccontextmanager
async def bridge(world: World) -> AsyncIterator[Health]:
    """A bridge in this process, ready."""
    stop, health = asyncio.Event(), Health(world.settings.data_dir, f"bridge-{uuid.uuid4().hex[:6]}")
    running = asyncio.create_task(Bridge(world.settings, health).run(stop))
    try:
        await until(lambda: health.record.state == "ready" or running.done(), PATIENCE_S)
        if running.done():
            running.result()
        yield health
    finally:
        stop.set()
        await running


@asynccontextmanager
async def worker(world: World, **environment: str) -> AsyncIterator[Command]:
    """A bridge in a process of its own; killed at the end if it still runs."""
    variables = {**os.environ, **world.settings.environment(), **environment}
    log = world.folder / "worker.log"
    process = start_role("bridge", variables, log, world.folder)
    try:
        yield process
    finally:
        process.kill()
        await process.ended()
        sys.stdout.write(log.read_text()[-LOG_SHOWN:])


async def ready(world: World, process: Command) -> None:
    """Wait for the health file of this very process."""
    await until(
        lambda: (
            process.returncode is not None
            or any(r.pid == process.pid and r.state == "ready" for r in read_all(world.settings.data_dir))
        ),
        PATIENCE_S,
    )
    assert process.returncode is None


async def until(condition: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.02)
