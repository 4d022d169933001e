"""What each role says about itself: one small file a role and process, read by `pml status` and the stack."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field, ValidationError

from pml.schemas.base import Record
from pml.schemas.errors import PMLError
from pml.schemas.times import to_rfc3339
from pml.streams.local.processes import ProcessId
from pml.streams.local.stack import write_whole

State = Literal["starting", "ready", "failed", "stopped", "dead"]
RUN_FOLDER = "run"
# Facts change with every chunk; a person reads them twice a second at most.
WRITE_INTERVAL_S = 0.5
MESSAGE_CHARS_MAX = 500


class HealthRecord(Record):
    """The health of one role in one process. `dead`: its process is gone and did not say goodbye."""

    role: str
    process: ProcessId
    state: State
    since: str
    updated_at: str
    last_error: dict[str, Any] | None = None
    facts: dict[str, Any] = Field(default={})

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self.process.pid


class Health:
    """The health of one role in this process, written to `data_dir/run/<role>-<pid>.json`."""

    def __init__(self, data_dir: Path, role: str) -> None:
        self._process = ProcessId.own()
        self.path = data_dir / RUN_FOLDER / f"{role}-{self._process.pid}.json"
        self._written_at = float("-inf")
        self._pending: asyncio.TimerHandle | None = None
        now = _now()
        self.record = HealthRecord(
            role=role, process=self._process, state="starting", since=now, updated_at=now
        )

    def starting(self) -> None:
        """The role begins; what dead processes of the same role left behind is removed."""
        _remove_dead(self.path.parent, self.record.role)
        self._enter("starting")

    def ready(self, **facts: Any) -> None:
        """The role does its work."""
        self._enter("ready", facts)

    def progress(self, **facts: Any) -> None:
        """Facts that changed (counts, positions, addresses); written at most twice a second."""
        self._change(facts=self.record.facts | facts)
        if self._pending is not None:
            return
        wait_s = self._written_at + WRITE_INTERVAL_S - time.monotonic()
        if wait_s <= 0:
            self._write()
        else:
            self._write_later(wait_s)

    def failed(self, error: BaseException) -> None:
        """The role ends, or goes on, with this error."""
        self._change(last_error=_described(error))
        self._enter("failed")

    def stopped(self) -> None:
        """The role ended cleanly."""
        self._enter("stopped")

    def _enter(self, state: State, facts: dict[str, Any] | None = None) -> None:
        if state != self.record.state:
            self._change(state=state, since=_now())
        self._change(facts=self.record.facts | (facts or {}))
        self._write()

    def _change(self, **fields: Any) -> None:
        self.record = self.record.model_copy(update=fields)

    def _write_later(self, wait_s: float) -> None:
        try:
            self._pending = asyncio.get_running_loop().call_later(wait_s, self._write)
        except RuntimeError:
            self._pending = None

    def _write(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        self._change(updated_at=_now())
        write_whole(self.path, orjson.dumps(self.record.model_dump(), default=str))
        self._written_at = time.monotonic()


def read_all(data_dir: Path) -> list[HealthRecord]:
    """What every role of this data folder last said, by role and process."""
    records = [_read(path) for path in (data_dir / RUN_FOLDER).glob("*.json")]
    return sorted((record for record in records if record), key=lambda record: (record.role, record.pid))


def _read(path: Path) -> HealthRecord | None:
    try:
        record = HealthRecord.model_validate(orjson.loads(path.read_bytes()))
    except (FileNotFoundError, orjson.JSONDecodeError, ValidationError):
        return None
    gone = record.state not in ("stopped", "failed") and not record.process.alive
    return record.model_copy(update={"state": "dead"}) if gone else record


def _remove_dead(folder: Path, role: str) -> None:
    for path in folder.glob(f"{role}-*.json"):
        record = _read(path)
        if record is None or (record.role == role and not record.process.alive):
            path.unlink(missing_ok=True)


def _described(error: BaseException) -> dict[str, Any]:
    code = error.code if isinstance(error, PMLError) else type(error).__name__
    return {"code": code, "message": str(error)[:MESSAGE_CHARS_MAX], "at": _now()}


def _now() -> str:
    return to_rfc3339(time.time_ns() // 1_000_000)
