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

from pml.schemas.errors import BrokerUnavailable, PMLError, WaitedTooLong, WorkflowInvalid
from pml.schemas.events import EventData
from pml.streams.client import Submission
from pml.streams.gateway import approvals, runs
from pml.streams.gateway.app import make_app
from pml.streams.gateway.doors import Waiting
from pml.streams.settings import Settings
from tests.log_writer import run_started
from tests.streams.gateway.session_log import log_has, refused
from tests.streams.gateway.test_app import NOWHERE, token

Post = tuple[str, dict[str, Any]]
STARTED: Post = ("/v1/runs", {"workflow": {"tasks": []}})
CONTINUED: Post = ("/v1/runs/run_1/continue?session=s", {"checkpoint_id": "chk_1"})
RESOLVED: Post = ("/v1/runs/run_1/tasks/n1/resolve?session=s", {"resolution": "retry"})
APPROVED: Post = ("/v1/approvals/apr_1/approve?session=s", {})
DECIDED: list[Post] = [
    CONTINUED,
    ("/v1/runs/run_1/replan?session=s", {"tasks": [{"id": "n1", "tool": "a:b"}]}),
    ("/v1/runs/run_1/abort?session=s", {}),
    ("/v1/runs/run_1/retry?session=s", {}),
    RESOLVED,
    APPROVED,
    ("/v1/approvals/apr_1/reject?session=s", {}),
]
ASKED = pytest.mark.parametrize(("path", "body"), [STARTED, CONTINUED, RESOLVED, APPROVED])


class Kept:
    """A producer that keeps what was sent: nobody answers it."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.ids: list[str | None] = []
        self.failure: PMLError | None = None

    async def start_run(self, workflow: Any, **fields: Any) -> Submission:
        return self._taken("run_1", "start", fields["run_id"])

    async def decide(self, run_id: str, data: Any, **fields: Any) -> Submission:
        return self._taken(run_id, data.TYPE, fields["command_id"])

    def _taken(self, run_id: str, what: str, named: str | None) -> Submission:
        """Keeps the id by which a repetition is known: that of the run, or that of the command."""
        self.sent.append(what)
        self.ids.append(named)
        if self.failure is not None:
            raise self.failure
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
    headers = token(tmp_path, "runs:read", "runs:write", "approvals:write")
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


@pytest.mark.parametrize(("path", "body"), DECIDED)
def test_a_decision_with_the_same_key_is_the_same_command(
    door: TestClient, kept: Kept, path: str, body: dict[str, Any]
) -> None:
    for key in ("k1", "k1", "k2"):
        door.post(path, json=body, headers={"idempotency-key": key})
    door.post(path, json=body)
    first, again, other, without = kept.ids

    assert str(first).startswith("cmd_")
    assert first == again != other
    assert without is None


@pytest.mark.parametrize(("path", "body"), DECIDED)
@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_decision_with_a_key_of_the_wrong_length_is_not_sent(
    door: TestClient, kept: Kept, path: str, body: dict[str, Any], key: str
) -> None:
    answer = door.post(path, json=body, headers={"idempotency-key": key})

    assert (answer.status_code, answer.json()["code"]) == (400, "UNDECODABLE")
    assert kept.sent == []


@ASKED
def test_a_send_that_may_have_arrived_names_its_run(
    door: TestClient, kept: Kept, path: str, body: dict[str, Any]
) -> None:
    kept.failure = BrokerUnavailable("no broker answers")
    answer = door.post(path, json=body)

    assert (answer.status_code, answer.json()["code"]) == (503, "BROKER_UNAVAILABLE")
    # What is sent again under that id is the same run.
    assert answer.json()["run_id"] == (kept.ids[0] if kept.sent == ["start"] else "run_1")


def test_a_start_that_was_not_sent_names_no_run(door: TestClient, kept: Kept) -> None:
    kept.failure = WorkflowInvalid("TOO_LARGE", "the command has 2,000,000 bytes")
    answer = door.post(STARTED[0], json=STARTED[1])

    assert (answer.status_code, answer.json()["run_id"]) == (413, None)


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (refused("SESSION_FULL"), (409, "SESSION_FULL", True)),
        (refused("UNKNOWN_TOOL", invalid=True), (422, "UNKNOWN_TOOL", False)),
    ],
)
@pytest.mark.parametrize("place", ["", "/tasks/n1/result", "/events"])
def test_a_run_whose_start_was_refused_is_answered_with_the_refusal(
    door: TestClient, monkeypatch: pytest.MonkeyPatch, told: EventData, wanted: tuple[Any, ...], place: str
) -> None:
    log_has(monkeypatch, (4, told))
    answer = door.get(f"/v1/runs/run_1{place}?session=s")

    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["retryable"]) == wanted
    assert problem["run_id"] == "run_1"


def test_a_run_that_began_after_a_refusal_is_shown(door: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    log_has(monkeypatch, (4, refused()), (4, run_started()), (4, refused("NOT_WAITING", "run.continue")))

    assert door.get("/v1/runs/run_1?session=s").json()["status"] == "running"
