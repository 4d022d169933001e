"""The world that real MCP servers share: a file of lines, one for each call that came and each that ran.

Whoever looks at the world or changes it holds the file's lock, folds what others wrote, and adds its own
line: the order of the lines is the order of the effects. A line is written whole or cut off by the next one.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from tests.simulation.tools import ToolSpec, answer, effect
from tests.simulation.world import Change, World


class Journal:
    """One process's view of the file; `world` is what its lines come to."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._position = 0
        self.world = World()

    def reached(self, spec: ToolSpec, arguments: Mapping[str, Any], call_id: str, early: bool) -> None:
        """A call came to its tool."""
        with self._held():
            self._write(
                "reached", call_id=call_id, tool=spec.name, arguments=dict(arguments), early=bool(early)
            )

    def read(self, spec: ToolSpec, arguments: Mapping[str, Any], call_id: str) -> Any:
        """What a reading tool says of the world as it is now.

        Raises:
            ToolFailed: there is nothing to read.
        """
        with self._held():
            value = answer(spec, arguments, self.world.values, time.time_ns())
            self._ran(spec, call_id, value)
            return value

    def change(self, spec: ToolSpec, arguments: Mapping[str, Any], call_id: str) -> Any:
        """What a writing tool does, and says of it."""
        with self._held():
            value = effect(spec, arguments, self.world, at_s=0.0, who="", call_id=call_id)
            self._ran(spec, call_id, value, self.world.changes[-1])
            return value

    def failed(self, spec: ToolSpec, call_id: str) -> None:
        """A call that failed without having looked."""
        with self._held():
            self._write("failed", call_id=call_id, tool=spec.name)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every line, from the first."""
        size = os.fstat(self._file).st_size
        yield from map(orjson.loads, os.pread(self._file, size, 0).splitlines())

    @contextmanager
    def _held(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            self._catch_up()
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _catch_up(self) -> None:
        size = os.fstat(self._file).st_size
        tail = os.pread(self._file, size - self._position, self._position)
        whole, newline, torn = tail.rpartition(b"\n")
        if torn:
            os.ftruncate(self._file, size - len(torn))
        for line in whole.splitlines():
            said = orjson.loads(line)
            if said.get("wrote"):
                self.world.write(Change(0.0, said["resource"], said["text"], "", said["call_id"]))
        self._position += len(whole) + len(newline)

    def _ran(self, spec: ToolSpec, call_id: str, value: Any, change: Change | None = None) -> None:
        done = {"wrote": True, "resource": change.resource, "text": change.value} if change else {}
        position = self.world.position
        self._write("ran", call_id=call_id, tool=spec.name, value=value, change=position, **done)

    def _write(self, kind: str, **said: Any) -> None:
        line = orjson.dumps({"kind": kind, "at_ms": time.time_ns() // 1_000_000, **said}) + b"\n"
        written = os.write(self._file, line)
        assert written == len(line), "a full disk"
        self._position += written
