"""Where the runs of `pml_execute` begin: in the same session as the proxied calls beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pml.processors.workflow.obedience import RUNS_REMEMBERED, SessionFull
from pml.schemas.errors import WaitedTooLong
from pml.streams.client import Submission
from pml.streams.mcp_server import execute as executing
from pml.streams.mcp_server.door import LOCAL_AGENT, Call, Door
from pml.streams.mcp_server.execute import ExecuteAsked, execute
from pml.streams.mcp_server.lookups import session_for
from pml.streams.mcp_server.run_answer import RunAnswer
from pml.streams.mcp_server.session_parts import part_name
from pml.streams.settings import Settings
from tests.streams.mcp_server.clients import settings_in

SECOND = part_name("chat", 2)
DAG = {"tasks": [{"id": "a", "tool": "files:read_file", "arguments": {"path": "x"}}]}


class World:
    """A door, the runs that were sent through it, and sessions of which `chat` is full."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[dict[str, Any]] = []
        self.waited: list[float] = []
        self.statuses: list[str] = []
        producer: Any = self
        finder: Any = None
        self.door = Door(settings_in(folder), producer, finder, lambda context: LOCAL_AGENT)
        self.heard: list[float] = []
        self.silent = False
        monkeypatch.setattr(executing, "follow", self.follow)
        monkeypatch.setattr(executing, "wait_for_answer", self.wait_for_answer)

    async def start_run(self, workflow: Any, **fields: Any) -> Submission:
        self.started.append({**fields, "workflow": workflow})
        run_id = fields["run_id"] or f"run_{len(self.started)}"
        return Submission(run_id, fields["session_id"] or run_id, "cmd", 0, 1, "local", 1)

    async def follow(self, call: Call, submission: Submission, wait_s: float) -> RunAnswer:
        self.waited.append(wait_s)
        status = self.statuses.pop(0) if self.statuses else "completed"
        if submission.session_id == "chat" and status != "queued":
            raise SessionFull("full", reason=RUNS_REMEMBERED)
        return RunAnswer.model_validate(
            {"status": status, "run_id": submission.run_id, "session_id": submission.session_id}
        )

    async def wait_for_answer(self, settings: Settings, submission: Submission, timeout_s: float) -> None:
        self.heard.append(timeout_s)
        if self.silent:
            raise WaitedTooLong("nobody answers")
        if submission.session_id == "chat":
            raise SessionFull("full", reason=RUNS_REMEMBERED)

    async def execute(self, meta: str | None = "chat", mcp: str | None = None, **asked: Any) -> RunAnswer:
        return await execute(self.call(meta, mcp), ExecuteAsked.model_validate({"dag": DAG, **asked}))

    def call(self, meta: str | None = None, mcp: str | None = None) -> Call:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            raise AssertionError

        return Call(self.door, LOCAL_AGENT, report, meta_session=meta, mcp_session=mcp)

    @property
    def sessions(self) -> list[str]:
        return [start["session_id"] for start in self.started]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.mark.parametrize("named", [{"meta": "chat"}, {"meta": None, "session": "chat"}, {"mcp": "chat"}])
async def test_a_run_goes_on_in_the_part_of_its_conversation(world: World, named: dict[str, Any]) -> None:
    assert (await world.execute(**{"meta": None, **named})).session_id == SECOND
    assert world.sessions == ["chat", SECOND]
    assert [start["workflow"].get("options") for start in world.started] == [None, {"speculation": "off"}]


async def test_a_program_or_an_intent_in_a_later_part_has_nothing_early(world: World) -> None:
    await world.execute(dag=None, code="return 1")
    assert world.started[-1]["options"].speculation == "off"
    await world.execute(dag=None, intent="mail it", context={}, timeout_s=5)
    assert (world.started[-1]["options"].speculation, world.started[-1]["options"].timeout_s) == ("off", 5)


async def test_a_proxied_call_and_a_run_begin_in_the_same_part(world: World) -> None:
    await world.execute()
    parts = world.door.parts
    assert parts.first_open("local", "chat") == 2
    assert world.call(meta="chat").conversation().session_id == "chat"
    assert world.call(mcp="ses_1").conversation().session_id == "ses_1"


async def test_a_run_of_ones_own_id_is_asked_for_in_the_first_part_first(world: World) -> None:
    await world.execute()
    await world.execute(run_id="mine")
    await world.execute(run_id="mine")
    assert world.sessions == ["chat", SECOND] * 3
    await world.execute(meta=None, mcp="ses_1", run_id="mine")
    assert world.sessions[-1] is None, "it is to be found over another connection"


async def test_who_does_not_wait_is_not_told_of_a_run_that_its_session_did_not_take(world: World) -> None:
    world.statuses = ["queued", "queued"]
    answer = await world.execute(wait_s=0)
    assert (answer.session_id, answer.status) == (SECOND, "queued")
    assert (world.waited, world.heard) == ([0, 0], [executing.HEARD_S] * 2)


async def test_who_waits_for_nobody_hears_of_a_silent_session_that_its_run_is_queued(world: World) -> None:
    world.statuses, world.silent = ["queued"], True
    assert (await world.execute(meta="quiet", wait_s=0)).status == "queued"


async def test_a_decision_goes_to_the_part_where_its_run_began(world: World) -> None:
    answer = await world.execute()
    assert answer.run_id is not None
    assert await session_for(world.call(meta="chat"), answer.run_id, None) == SECOND
    assert await session_for(world.call(meta="chat"), answer.run_id, "other") == "other"
    assert await session_for(world.call(meta="chat"), "run_of_another_door", None) == "chat"
