"""The steps of a run as a client follows them: each one, over lost connections and lives of a session."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from pml.schemas.events import Event, RunScored
from pml.streams.gateway import event_stream
from tests.log_writer import run_completed, run_started, task_completed, task_started
from tests.streams.gateway.session_log import Told, events, log_has, refused
from tests.streams.gateway.test_app import client

SCORED = RunScored(name="helpful", number=1.0, source="human", known=False, command_hash="")
RUN: list[Told] = [(7, run_started()), (7, task_started()), (7, task_completed()), (7, run_completed())]
# A day later the session lives again: seq begins anew.
LATE: list[Told] = [*RUN, (90, SCORED)]


@pytest.fixture
def door(tmp_path: Path) -> Iterator[TestClient]:
    with client(tmp_path) as opened:
        yield opened


def followed(door: TestClient, last_id: str | None = None) -> list[str]:
    """The ids of the events that come, after one of them."""
    headers = {} if last_id is None else {"last-event-id": last_id}
    answer = door.get("/v1/runs/run_1/events?session=s", headers=headers)
    assert answer.status_code in {200, 204}, answer.text
    return re.findall(r"^id: (.*?)\r?$", answer.text, re.MULTILINE)


def test_an_id_says_in_which_life_of_the_session_an_event_was(
    door: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_has(monkeypatch, *LATE)
    assert followed(door) == ["7-0", "7-1", "7-2", "7-3", "90-0"]


def test_who_goes_on_gets_what_a_later_life_of_the_session_added(
    door: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_has(monkeypatch, *LATE)
    assert followed(door, "7-1") == ["7-2", "7-3", "90-0"]
    assert followed(door, "7-3") == ["90-0"]
    assert followed(door, "90-0") == []


def test_an_id_of_an_older_release_is_of_the_life_in_which_the_run_began(
    door: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_has(monkeypatch, *LATE)
    assert followed(door, "1") == ["7-2", "7-3", "90-0"]
    assert followed(door, "3") == ["90-0"]
    log_has(monkeypatch, *RUN)
    assert followed(door, "3") == []


@pytest.mark.parametrize(
    "last_id", ["", "x", "7-", "-7", "7--1", "7-1-1", "7:1", "7-x", "1.5", "7 - 1", "7-" + "1" * 20]
)
def test_what_is_no_id_is_refused(door: TestClient, monkeypatch: pytest.MonkeyPatch, last_id: str) -> None:
    log_has(monkeypatch, *RUN)
    answer = door.get("/v1/runs/run_1/events?session=s", headers={"last-event-id": last_id})

    assert (answer.status_code, answer.json()["code"]) == (400, "UNDECODABLE")
    assert "Last-Event-ID" in answer.json()["detail"]


def test_a_start_that_is_refused_before_or_after_ends_no_stream(
    door: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_has(monkeypatch, (7, refused()), *RUN, (7, refused("CONFLICT")))
    assert followed(door) == [f"7-{seq}" for seq in range(6)]


def test_a_run_that_began_again_in_a_later_life_of_the_session_is_followed_to_its_own_end(
    door: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [*RUN, (90, run_started()), (90, run_completed())]
    log_has(monkeypatch, *told[:-1])
    monkeypatch.setattr(event_stream, "EventConsumer", partial(Coming, events(*told)))
    assert followed(door, "7-3") == ["90-0", "90-1"]


class Coming:
    """Events that are in the log by now."""

    def __init__(self, told: list[Event], *args: Any, **fields: Any) -> None:
        self.told = told

    async def __aenter__(self) -> Coming:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    def seek(self, offset: int) -> None:
        self.told = self.told[offset:]

    async def __aiter__(self) -> AsyncIterator[Event]:
        for event in self.told:
            yield event
