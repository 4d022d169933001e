"""The role `gateway`: serves HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from pml.schemas.errors import ConfigurationError
from pml.streams.client import IntentProducer
from pml.streams.gateway.app import make_app
from pml.streams.health import Health, read_all
from pml.streams.local.ports import choose_port
from pml.streams.settings import GatewaySettings, Settings

ROLE = "gateway"
# Requests that wait for a run wait 50 seconds at most; a stop does not wait for them.
STOP_S = 5
CONNECTIONS_MAX = 1_000


class Gateway:
    """One HTTP server; it holds no state, so any number of them may stand side by side."""

    name = ROLE

    def __init__(self, settings: Settings, health: Health) -> None:
        self._settings = settings
        self._health = health
        self._listening = False

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        listener = _listener(self._settings.gateway, _last_port(self._settings))
        app = make_app(self._settings, lambda: IntentProducer(self._settings), self._missing)
        config = uvicorn.Config(
            app,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            # Anybody may write X-Forwarded-For; each address in it would be a caller with a rate of its own.
            proxy_headers=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=STOP_S,
        )
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        telling = asyncio.create_task(self._tell(server, listener))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            await serving
        finally:
            for task in (telling, stopping, serving):
                task.cancel()
            await asyncio.gather(telling, stopping, serving, return_exceptions=True)
            listener.close()

    async def _tell(self, server: uvicorn.Server, listener: socket.socket) -> None:
        """Say where it listens once it does."""
        while not server.started:
            await asyncio.sleep(0.05)
        self._listening = True
        host, port = listener.getsockname()[:2]
        self._health.ready(http=f"http://{f'[{host}]' if ':' in host else host}:{port}")

    def _missing(self) -> dict[str, Any] | None:
        return None if self._listening else {"status": "starting"}


class _Server(uvicorn.Server):
    """Leaves signals to the worker."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: the worker has its own."""
        yield


def _listener(gateway: GatewaySettings, last: int) -> socket.socket:
    port = choose_port(gateway.port, last) if gateway.on_loopback else gateway.port
    family = socket.AF_INET6 if ":" in gateway.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((gateway.host, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"gateway.host {gateway.host}, port {port} cannot be listened on: {error.strerror}"
        ) from None
    return listener


def _last_port(settings: Settings) -> int:
    """Where it listened before: whoever knows the address keeps it."""
    told = [record.facts.get("http") for record in read_all(settings.data_dir) if record.role == ROLE]
    ports = [str(address).rpartition(":")[2] for address in told if address]
    return next((int(port) for port in reversed(ports) if port.isdigit()), 0)
