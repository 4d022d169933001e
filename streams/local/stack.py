"""`stack.json` in the data folder: what the local stack runs, and where."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from pml.schemas.base import Record
from pml.streams.local.processes import ProcessId

STACK_FILE = "stack.json"
# The roles of each worker that a stack runs.
WORKERS = (("orchestrator",), ("bridge",), ("metrics", "thresholds", "sink"), ("gateway",))


class Part(Record):
    """One child process of the stack."""

    name: str
    state: str
    process: ProcessId | None = None
    restarts: int = 0
    last_error: str | None = None
    log: str | None = None


class Stack(Record):
    """The stack that a supervisor runs; `broker` is host:port, `store` a URL with its password.

    `error` says why it did not come up; then its supervisor is gone.
    """

    version: int = 1
    supervisor: ProcessId
    started_at: str
    ready: bool = False
    broker: str | None = None
    broker_embedded: bool = True
    store: str | None = None
    store_embedded: bool = True
    parts: tuple[Part, ...] = ()
    error: dict[str, Any] | None = None

    @property
    def running(self) -> bool:
        """Whether its supervisor is there."""
        return self.supervisor.alive


def read_stack(data_dir: Path) -> Stack | None:
    """The stack of this data folder as it was last written, running or not; None where there is none."""
    try:
        return Stack.model_validate(orjson.loads((data_dir / STACK_FILE).read_bytes()))
    except (FileNotFoundError, NotADirectoryError, orjson.JSONDecodeError, ValidationError):
        return None


def running_stack(data_dir: Path) -> Stack | None:
    """The stack of this data folder if it runs now."""
    stack = read_stack(data_dir)
    return stack if stack is not None and stack.running else None


def write_stack(data_dir: Path, stack: Stack) -> None:
    """Replace the file as a whole: a reader sees the old one or the new one."""
    write_whole(data_dir / STACK_FILE, orjson.dumps(stack.model_dump(), option=orjson.OPT_INDENT_2))


def remove_stack(data_dir: Path) -> None:
    """The stack is down."""
    (data_dir / STACK_FILE).unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever reads half of it. Not synced: it describes running processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
