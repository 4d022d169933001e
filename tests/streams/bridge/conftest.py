"""Real servers for the bridge's tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from pml.schemas.catalog import ServerTools
from pml.streams.bridge.reaper import Reaper
from pml.streams.bridge.server import Server, ServerOptions
from pml.streams.bridge.server_log import ServerLog
from pml.streams.bridge.server_specs import HttpServer, ServerSpec, StdioServer
from pml.streams.bridge.stdio import StdioOptions
from pml.streams.local.ports import free_port

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
def trouble(events: EventLog) -> StdioServer:
    return spec(str(SERVERS / "trouble_server.py"), str(events.path))


@pytest.fixture
def trouble_url(events: EventLog) -> Iterator[str]:
    """The same server at a URL, started again whenever it dies."""
    with http_server("trouble_server.py", str(events.path), respawn=True) as url:
        yield url


@pytest.fixture(params=["stdio", "http"])
def connected(request: pytest.FixtureRequest) -> ServerSpec:
    """The same server by every way in which one is reached."""
    if request.param == "stdio":
        return cast("ServerSpec", request.getfixturevalue("trouble"))
    return at(request.getfixturevalue("trouble_url"))


@pytest.fixture
def raw() -> ServerSpec:
    return spec(str(SERVERS / "raw_server.py"))


def spec(*args: str, **fields: Any) -> StdioServer:
    return StdioServer.model_validate({"command": sys.executable, "args": args, **fields})


def at(url: str, **fields: Any) -> HttpServer:
    return HttpServer.model_validate({"url": url, **fields})


@contextmanager
def http_server(program: str, *args: str, respawn: bool = False, port_last: bool = True) -> Iterator[str]:
    """A server of `tests/servers` that listens on a free port of this machine."""
    port = str(free_port())
    places = (*args, port) if port_last else (port, *args)
    command = [str(SERVERS / program), *places]
    launcher = [str(SERVERS / "respawn.py")] if respawn else []
    process = subprocess.Popen(
        [sys.executable, *launcher, *command],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(int(port))
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_port(port: int, timeout_s: float = 30) -> None:
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline_s, "the server does not listen"
            time.sleep(0.02)


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
