"""A log of one session that a door reads, without a broker."""

from __future__ import annotations

from typing import Any

import pytest

from pml.schemas.events import CommandRejected, Event, EventData
from pml.streams import run_history
from tests.log_writer import event_of

NOW = "2026-01-01T00:00:00.000000Z"
Told = tuple[int, EventData]


def log_has(monkeypatch: pytest.MonkeyPatch, *told: Told, run_id: str = "run_1") -> None:
    """Whoever reads the log of a session finds these facts of one run, each in an epoch."""

    async def session_events(*args: Any, **fields: Any) -> list[Event]:
        return events(*told, run_id=run_id)

    monkeypatch.setattr(run_history, "session_events", session_events)


def events(*told: Told, run_id: str = "run_1") -> list[Event]:
    """Events as they lie in the log: seq begins again in each epoch."""
    found: list[Event] = []
    for offset, (epoch, data) in enumerate(told):
        seq = sum(event.epoch == epoch for event in found)
        place = {"run_id": run_id, "epoch": epoch, "id": f"local/s:{epoch}:{seq}"}
        found.append(event_of(data, seq, offset, NOW).model_copy(update=place))
    return found


def refused(code: str = "SESSION_FULL", command: str = "run.start", **fields: Any) -> CommandRejected:
    """The answer to a command that was not obeyed."""
    error = {"code": code, "message": f"this is {code}", "retryable": code == "SESSION_FULL"}
    return CommandRejected(command_type=command, error=error, **fields)
