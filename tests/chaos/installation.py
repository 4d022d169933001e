"""The stack under test: broker, store, roles and MCP servers of one seed, in a folder of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from pml.streams.local.kafka import EmbeddedKafka
from pml.streams.settings import Settings
from tests.chaos.toolbox import write_tools, write_troubles
from tests.drills.workshop import Workshop
from tests.fixtures.settings import folder_settings
from tests.fixtures.store import start_embedded
from tests.simulation.tools import Toolbox

# Noticed as gone after this, not after the ten seconds of a release: faults come every few seconds.
SESSION_TIMEOUT_S = 6.0
# What a `pml up` starts, one process each; projections share one.
ROLES = {
    "orchestrator": "orchestrator",
    "bridge": "bridge",
    "sink": "sink",
    "projections": "metrics thresholds",
}
TROUBLES = {"fails": 0.04, "hangs": 0.004, "slow": 0.08, "lost": 0.004}


@asynccontextmanager
async def installation(folder: Path, seed: int, toolbox: Toolbox) -> AsyncIterator[Workshop]:
    """Everything started and ready; ended with the block, what it wrote stays in the folder."""
    write_tools(folder, toolbox)
    write_troubles(folder, TROUBLES)
    store = await asyncio.to_thread(start_embedded, folder)
    try:
        async with EmbeddedKafka(folder) as broker:
            settings = chaos_settings(folder, broker.bootstrap_servers, store.url, seed)
            workshop = Workshop(settings, broker, store, folder, ROLES)
            try:
                await workshop.set_up()
                yield workshop
            finally:
                await workshop.tear_down()
    finally:
        await asyncio.to_thread(store.stop)


def chaos_settings(folder: Path, kafka: str, store: str, seed: int) -> Settings:
    """Short time-outs, and limits, depth and budget that the seed chooses."""
    random = Random(f"{seed}/settings")
    speculation: dict[str, Any] = {
        "depth": random.choice([1, 2, 3]),
        "budget": random.choice(["low", "normal", "high"]),
        "ttl_s": random.choice([3, 15, 300]),
        "verify": random.choice([0.01, 0.2]),
        "cache_bytes": random.choice([4_096, 16_777_216]),
    }
    return folder_settings(
        folder,
        kafka,
        f"chaos-{seed}",
        session_timeout_s=SESSION_TIMEOUT_S,
        clickhouse={"url": store, "database": f"chaos_{seed}"},
        timeouts={
            "task_s": 4,
            "queue_s": 12,
            "decision_s": random.choice([3, 10]),
            "approval_s": 10,
            "session_ttl_s": random.choice([20, 86_400]),
        },
        decisions={"on_timeout": random.choice(["abort", "continue"])},
        speculation=speculation,
        orchestrator={"chunk_records": random.choice([10, 200])},
        log={"format": "json"},
    )
