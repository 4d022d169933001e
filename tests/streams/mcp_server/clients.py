"""A client of the official SDK in front of a server with nothing behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client

from pml.streams.client import Submission
from pml.streams.discovery.finder import Finder
from pml.streams.gateway.callers import Caller
from pml.streams.mcp_server.door import LOCAL_AGENT, Door
from pml.streams.mcp_server.server import make_server
from pml.streams.settings import Settings

# Nothing listens there: whatever passes the door ends with BROKER_UNAVAILABLE or STORE_UNAVAILABLE.
NOWHERE = "127.0.0.1:1"
SENT = Submission("run_1", "run_1", "cmd_1", 3, 1, "local", 1_700_000_000_000)


class Taken:
    """A producer that takes every command and keeps what it was given."""

    def __init__(self) -> None:
        self.started: list[tuple[Any, dict[str, Any]]] = []
        self.decided: list[tuple[str, Any, dict[str, Any]]] = []

    async def start_run(self, workflow: Any, **fields: Any) -> Submission:
        self.started.append((workflow, fields))
        return SENT

    async def decide(self, run_id: str, data: Any, **fields: Any) -> Submission:
        self.decided.append((run_id, data, fields))
        return SENT


def settings_in(folder: Path) -> Settings:
    return Settings(
        data_dir=folder, kafka={"bootstrap_servers": NOWHERE}, clickhouse={"url": f"http://{NOWHERE}"}
    )


@asynccontextmanager
async def connected(
    folder: Path,
    caller: Caller = LOCAL_AGENT,
    producer: Any = None,
    mode: str = "auto",
    finder: Finder | None = None,
) -> AsyncIterator[Client]:
    settings = settings_in(folder)
    async with Finder(settings) as nowhere:
        door = Door(settings, producer or Taken(), finder or nowhere, lambda context: caller)
        async with Client(make_server(door), mode=mode) as client:
            yield client
