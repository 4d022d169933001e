"""What every projection has in common: a Faust app that reads whole chunks, its table, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import structlog

from pml.schemas.errors import LogCorrupted
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.app import ChunkApp, Positions, make_app
from pml.streams.projections.table import CHUNK_RECORDS
from pml.streams.settings import Settings

# Polling for each event would cost more than folding it; nobody sees a fifth of a second in figures.
FETCH_MIN_BYTES = 64 * 1024
FETCH_WAIT_MS = 200

log = structlog.get_logger("pml.projections")


def projection_app(role: str, settings: Settings, positions: Positions) -> ChunkApp:
    """An app of large chunks that begins where `positions` says."""
    app = make_app(role, settings, positions=positions)
    app.delivery = replace(
        app.delivery,
        chunk_records=CHUNK_RECORDS,
        fetch_min_bytes=FETCH_MIN_BYTES,
        fetch_wait_ms=FETCH_WAIT_MS,
    )
    return app


def projection_table(app: ChunkApp, name: str, changelog: Mapping[str, str]) -> Any:
    """A table of bytes with as many partitions as the log; `changelog` are settings of its topic."""
    return app.Table(
        name, key_type=bytes, value_type=bytes, partitions=SESSION_PARTITIONS, extra_topic_configs=changelog
    )


def listen(app: ChunkApp, *, revoked: Any, assigned: Any, restored: Any) -> None:
    """Let Faust call these at a rebalance; it holds receivers weakly unless told otherwise."""
    app.on_partitions_revoked.connect(revoked, weak=False)
    app.on_partitions_assigned.connect(assigned, weak=False)
    app.on_rebalance_complete.connect(restored, weak=False)


async def end_role(role: str, failure: asyncio.Future[None], error: Exception) -> NoReturn:
    """The role ends with this error; the agent stands still, for Faust would pass over what it raised at."""
    log.error("projection stops", role=role, error=str(error), exc_info=not isinstance(error, LogCorrupted))
    if not failure.done():
        failure.set_exception(error)
    while True:
        await asyncio.get_running_loop().create_future()
