"""What is measured with: brokers, stacks and programs that run while a block does."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from pydantic import SecretStr

from pml.schemas.errors import PMLError
from pml.streams.connection import bootstrap_servers, store_url
from pml.streams.local.child import Child
from pml.streams.local.child import program as launched
from pml.streams.local.kafka import EmbeddedKafka
from pml.streams.local.services import Store, child_environment
from pml.streams.settings import Settings

NOOP = Path(__file__).parent / "servers" / "noop.py"
CHECKOUT = Path(__file__).resolve().parent.parent
# A program that is not gone by then is killed: nothing of it is kept.
STOP_TIMEOUT_S = 10
# DBOS makes its tables and runs 20 × 20 steps; a busy machine takes a minute.
PROGRAM_TIMEOUT_S = 300

Say = Callable[[str], None]


class ProgramFailed(PMLError):
    """A program that PML is compared with did not do its work."""

    code = "PROGRAM_FAILED"


def bench_settings(folder: Path, server: Path = NOOP, **values: Any) -> Settings:
    """Settings with a data folder and topics of their own, and one MCP server with the files beside it."""
    os.environ["PML_BENCH_PYTHON"] = sys.executable
    os.environ["PML_BENCH_SERVER"] = str(server)
    settings = Settings.load(
        data_dir=folder / "pml",
        mcp_servers=server.with_name("mcp-servers.yaml"),
        mcp_permissions=server.with_name("mcp-permissions.yaml"),
        **values,
    )
    return with_prefix(settings)


def with_prefix(settings: Settings) -> Settings:
    """The same settings with topics of their own."""
    kafka = settings.kafka.model_copy(update={"topic_prefix": f"pml-bench-{uuid.uuid4().hex[:8]}."})
    return settings.model_copy(update={"kafka": kafka})


def beside(settings: Settings, folder: Path, database: str) -> Settings:
    """The settings of a second stack on the broker and the store of one that runs, with names of its own."""
    kafka = settings.kafka.model_copy(update={"bootstrap_servers": bootstrap_servers(settings)})
    clickhouse = settings.clickhouse.model_copy(
        update={"url": SecretStr(store_url(settings)), "database": database}
    )
    own = {"data_dir": folder / "pml", "kafka": kafka, "clickhouse": clickhouse}
    return with_prefix(settings.model_copy(update=own))


@asynccontextmanager
async def broker(settings: Settings) -> AsyncIterator[Settings]:
    """The settings with the address of a broker: the one they name, else an embedded one."""
    if not settings.embedded_broker:
        yield settings
        return
    async with EmbeddedKafka(settings.data_dir, settings.kafka.port) as kafka:
        address = {"bootstrap_servers": kafka.bootstrap_servers}
        yield settings.model_copy(update={"kafka": settings.kafka.model_copy(update=address)})


@asynccontextmanager
async def store(settings: Settings) -> AsyncIterator[Settings]:
    """The settings with the address of a store: the one they name, else an embedded one."""
    if not settings.embedded_store:
        yield settings
        return
    service = Store(settings)
    await service.start()
    try:
        address = {"url": SecretStr(service.url)}
        yield settings.model_copy(update={"clickhouse": settings.clickhouse.model_copy(update=address)})
    finally:
        await service.stop()


@asynccontextmanager
async def beside_block(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do some work for as long as the block runs."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def program(settings: Settings, module: str, *arguments: str) -> AsyncIterator[Child]:
    """A module of ours in a process of its own, while the block runs."""
    child = _child(settings, module, arguments)
    await child.start()
    try:
        yield child
    finally:
        await child.stop(STOP_TIMEOUT_S)


async def answer_of(settings: Settings, module: str, *arguments: str) -> dict[str, Any]:
    """What a module of ours prints as its last line, as JSON, once it has ended.

    Raises:
        ProgramFailed: it did not end well, or not in time.
    """
    child = _child(settings, module, arguments)
    await child.start()
    try:
        async with asyncio.timeout(PROGRAM_TIMEOUT_S):
            code = await child.wait()
    except TimeoutError:
        raise ProgramFailed(f"{module} did not end within {PROGRAM_TIMEOUT_S} s") from None
    finally:
        await child.stop(STOP_TIMEOUT_S)
    if code != 0:
        raise ProgramFailed(f"{module} ended with code {code}: {child.last_words()}")
    answer: dict[str, Any] = orjson.loads(child.last_words(1))
    return answer


def _child(settings: Settings, module: str, arguments: Sequence[str]) -> Child:
    log = settings.data_dir / "log" / f"{module.rpartition('.')[2]}.log"
    environment = child_environment(settings) | {"PYTHONPATH": str(CHECKOUT)}
    return Child(launched([sys.executable, "-m", module, *arguments], environment), log)
