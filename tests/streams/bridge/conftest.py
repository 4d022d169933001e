"""Real servers for the bridge's tests."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pml.schemas.catalog import ServerTools
from pml.streams.bridge.reaper import Reaper
from pml.streams.bridge.server import Server, ServerOptions
from pml.streams.bridge.server_log import ServerLog
from pml.streams.bridge.servers_file import ServerSpec
from pml.streams.bridge.stdio import StdioOptions

SERVERS = Path(__file__).parents[2] / "servers"
LINE_MAX_BYTES = 256 * 1024
NewServer = Callable[..., Server]


class EventLog:
    """What the trouble server says it did."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self, what: str | None = None, call_id: str | None = None) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [line for line in lines if what in (None, line["what"]) and call_id in (None, line["call_id"])]


@pytest.fixture
def events(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path / "trouble.log")


@pytest.fixture
def trouble(events: EventLog) -> ServerSpec:
    return spec(str(SERVERS / "trouble_server.py"), str(events.path))


@pytest.fixture
def raw() -> ServerSpec:
    return spec(str(SERVERS / "raw_server.py"))


def spec(*args: str, **fields: Any) -> ServerSpec:
    return ServerSpec.model_validate({"command": sys.executable, "args": args, **fields})


@pytest.fixture
def reaper() -> Iterator[Reaper]:
    reaper = Reaper()
    yield reaper
    reaper.close()


@pytest.fixture
def listings() -> list[ServerTools]:
    return []


@pytest.fixture
def new_server(tmp_path: Path, reaper: Reaper, listings: list[ServerTools]) -> Iterator[NewServer]:
    logs: list[ServerLog] = []

    def make(server_spec: ServerSpec, name: str = "trouble", start_timeout_s: float = 20) -> Server:
        logs.append(ServerLog(tmp_path, name))
        stdio = StdioOptions(LINE_MAX_BYTES, logs[-1], reaper)
        return Server(name, server_spec, ServerOptions(stdio, 8, start_timeout_s, listings.append))

    yield make
    for log in logs:
        log.close()
