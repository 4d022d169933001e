"""What an MCP server writes to its standard error: kept in a bounded file, never in an event."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_MAX_BYTES = 1024 * 1024
FILES_OLD = 1


class ServerLog:
    """One file a server, `data_dir/log/mcp/NAME.log`, and the one before it; at most 2 MiB together."""

    def __init__(self, data_dir: Path, server: str) -> None:
        folder = data_dir / "log" / "mcp"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / f"{server}.log"
        self._handler = RotatingFileHandler(
            self.path, maxBytes=FILE_MAX_BYTES, backupCount=FILES_OLD, encoding="utf-8", delay=True
        )
        self._handler.setFormatter(logging.Formatter("%(message)s"))

    def write(self, chunk: bytes) -> None:
        """Append what the server wrote; whoever hands it in has taken the server's secrets out."""
        text = chunk.decode(errors="replace").rstrip("\n")
        if text:
            self._private()
            self._handler.emit(logging.makeLogRecord({"msg": text}))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()

    def _private(self) -> None:
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
