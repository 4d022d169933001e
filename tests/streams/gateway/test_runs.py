"""A request that is refused has sent nothing, so that it may be made again; one that has names its run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pml.schemas.errors import WaitedTooLong
from pml.streams.client import Submission
from pml.streams.gateway import approvals, runs
from pml.streams.gateway.app import make_app
from pml.streams.gateway.doors import Waiting
from pml.streams.settings import Settings
from tests.streams.gateway.test_app import NOWHERE, token

Post = tuple[str, dict[str, Any]]
STARTED: Post = ("/v1/runs", {"workflow": {"tasks": []}})
CONTINUED: Post = ("/v1/runs/run_1/continue?session=s", {"checkpoint_id": "chk_1"})
RESOLVED: Post = ("/v1/runs/run_1/tasks/n1/resolve?session=s", {"resolution": "retry"})
APPROVED: Post = ("/v1/approvals/apr_1/approve?session=s", {})
ASKED = pytest.mark.parametrize(("path", "body"), [STARTED, CONTINUED, RESOLVED, APPROVED])


class Kept:
    """A producer that keeps what was sent: nobody answers it."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def start_run(self, workflow: Any, **fields: Any) -> Submission:
        return self._taken("run_1", "start")

    async def decide(self, run_id: str, data: Any, **fields: Any) -> Submission:
        return self._taken(run_id, data.TYPE)

    def _taken(self, run_id: str, what: str) -> Submission:
        self.sent.append(what)
        return Submission(run_id, "s", "cmd_1", 0, 0, "acme", 0)


async def no_answer(*args: Any, **fields: Any) -> Any:
    raise WaitedTooLong("no answer within 10 s")


async def an_answer(*args: Any, **fields: Any) -> Any:
    return None


async def an_approval(*args: Any) -> dict[str, Any]:
    return {"run_id": "run_1", "session_id": "s"}


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def door(tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Nobody answers what is sent through it."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Kept]:
        yield kept

    for module in (runs, approvals):
        monkeypatch.setattr(module, "wait_for_answer", no_answer)
    monkeypatch.setattr(approvals, "find_approval", an_approval)
    settings = Settings(data_dir=tmp_path, kafka={"bootstrap_servers": NOWHERE})
    headers = token(tmp_path, "runs:write", "approvals:write")
    app = make_app(settings, opened, lambda: None)
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def room_for(door: TestClient, most: int) -> Waiting:
    """Only so many may wait at that door."""
    assert isinstance(door.app, Starlette)
    waiting = Waiting(most)
    door.app.state.doors = replace(door.app.state.doors, waiting=waiting)
    return waiting


@ASKED
def test_where_nobody_may_wait_any_more_nothing_is_sent(
    door: TestClient, kept: Kept, path: str, body: dict[str, Any]
) -> None:
    room_for(door, 0)
    answer = door.post(path, json=body)

    assert (answer.status_code, answer.json()["code"]) == (503, "BUSY")
    assert kept.sent == []


@pytest.mark.parametrize(("path", "body"), [CONTINUED, RESOLVED])
@pytest.mark.parametrize("wait_s", ["51", "nan", "soon"])
def test_a_decision_that_waits_for_no_time_is_not_sent(
    door: TestClient, kept: Kept, path: str, body: dict[str, Any], wait_s: str
) -> None:
    answer = door.post(f"{path}&wait_s={wait_s}", json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "UNDECODABLE")
    assert kept.sent == []


@ASKED
def test_a_command_that_nobody_answers_names_its_run(
    door: TestClient, kept: Kept, path: str, body: dict[str, Any]
) -> None:
    waiting = room_for(door, 1)
    answer = door.post(path, json=body)

    assert len(kept.sent) == 1
    assert (answer.status_code, answer.json()["code"]) == (504, "WAITED_TOO_LONG")
    assert answer.json()["run_id"] == answer.json()["details"]["run_id"] == "run_1"
    waiting.check()


@ASKED
def test_who_waits_for_an_answer_is_counted(
    door: TestClient, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    waiting = room_for(door, 1)

    async def seen(*args: Any, **fields: Any) -> Any:
        waiting.check()

    for module in (runs, approvals):
        monkeypatch.setattr(module, "wait_for_answer", seen)

    assert door.post(path, json=body).json()["code"] == "BUSY"


def test_a_run_that_goes_on_is_told_as_such(door: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "wait_for_answer", an_answer)
    monkeypatch.setattr(runs, "wait_for_run", no_answer)
    path, body = STARTED
    answers = [door.post(asked, json=body) for asked in (path, f"{path}?wait_s=1")]

    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [
        (202, "queued"),
        (202, "running"),
    ]
