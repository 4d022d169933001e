"""`python -m pml.clickhouse.embedded --data-dir D --port 0 --ready-file F`."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

import orjson
import uvicorn

from pml.clickhouse.embedded.engine import Engine
from pml.clickhouse.embedded.parent import die_with_parent
from pml.clickhouse.embedded.request import Credentials
from pml.clickhouse.embedded.server import application

HOST = "127.0.0.1"
USER = "default"
# Connections kept open by clients: a few pools of eight. More than this is a leak somewhere.
MAX_CONNECTIONS = 256
# How long running queries may end in peace at a stop; then their connections are cut.
SHUTDOWN_S = 5


class Server(uvicorn.Server):
    """Writes the ready file once it listens."""

    def __init__(self, config: uvicorn.Config, ready_file: Path | None, ready: dict[str, str | int]) -> None:
        super().__init__(config)
        self._ready_file, self._ready = ready_file, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_file is not None and self.started:
            _write_private(self._ready_file, orjson.dumps(self._ready))


def main() -> None:
    """Serve until SIGTERM, SIGINT, or the end of the parent; then exit 0 with everything written."""
    arguments = _arguments()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    die_with_parent()
    folder: Path = arguments.data_dir / "clickhouse"
    listener = _listen(arguments.port)
    engine = _engine(folder)
    credentials = Credentials(USER, _password(folder / "password"))
    port = listener.getsockname()[1]
    ready: dict[str, str | int] = {
        "url": f"http://{USER}:{credentials.password}@{HOST}:{port}",
        "port": port,
        "pid": os.getpid(),
        "version": engine.version,
    }
    config = uvicorn.Config(
        application(engine, credentials),
        log_level="warning",
        access_log=False,
        lifespan="on",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    asyncio.run(Server(config, arguments.ready_file, ready).serve([listener]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pml.clickhouse.embedded", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="data live in its folder `clickhouse`")
    parser.add_argument("--port", type=int, default=0, help="0: any free one (default)")
    parser.add_argument("--ready-file", type=Path, help="gets address, port, pid and version once it answers")
    return parser.parse_args()


def _leave(number: int, frame: FrameType | None) -> None:
    """uvicorn raises the signal that stopped it once more; a clean stop ends with 0."""
    raise SystemExit(0)


def _listen(port: int) -> socket.socket:
    try:
        listener = socket.create_server((HOST, port), backlog=MAX_CONNECTIONS)
    except OSError as error:
        sys.exit(
            f"Port {port} on {HOST} cannot be used ({error.strerror}). Choose another, or 0 for any free one."
        )
    # asyncio sets this only on sockets made for TCP by name; without it an answer waits 40 ms for an ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _engine(folder: Path) -> Engine:
    try:
        return Engine(folder)
    except RuntimeError as error:
        sys.exit(f"ClickHouse cannot open {folder}: is another PML running on it? ({error})")


def _password(file: Path) -> str:
    """The password of this folder's data: made once, readable by its owner only.

    Without one, any web page and any user of this machine could run SQL, which may read and write files.
    """
    if not file.exists():
        _write_private(file, secrets.token_urlsafe(24).encode())
    return file.read_text().strip()


def _write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    draft = file.with_name(f"{file.name}.{os.getpid()}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    draft.replace(file)


if __name__ == "__main__":
    main()
