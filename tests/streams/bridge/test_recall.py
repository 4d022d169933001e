"""`pml:recall` over a real bridge, a real broker and the embedded ClickHouse."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.schemas.calls import CallRun, ToolResult
from pml.schemas.memory import RECALL_TOOL, RecallAnswer, RecallRequest
from pml.streams.bridge.builtin import Builtin
from pml.streams.settings import ClickHouseSettings
from tests.clickhouse import history as h
from tests.clickhouse.history import History
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.running import World, bridge, run, world

pytestmark = pytest.mark.integration
CONTEXT = {"domain": "docs", "complexity": "low", "repo": "."}


def recall(**fields: Any) -> CallRun:
    request = RecallRequest(workflow_type="release", context=CONTEXT, **fields)
    return run(RECALL_TOOL, arguments=request.model_dump(mode="json"))


def past(session_id: str, offset: int) -> History:
    session = History(session_id=session_id, offset=offset, epoch=offset)
    session.add(h.run_started(context=CONTEXT), run_id=session_id)
    session.add(h.completed("n1", tool="git:log"), run_id=session_id)
    session.add(h.failed("n2", tool="git:show"), run_id=session_id)
    return session


async def asked(pml: World, call: CallRun) -> RecallAnswer:
    await pml.send(call)
    outcome = await pml.answer(call.call_id)
    assert (outcome.status, outcome.error) == ("ok", None)
    assert outcome.result is not None
    return RecallAnswer.model_validate(outcome.result.structured)


async def test_the_past_is_recalled_and_what_is_new_of_it(
    kafka: str, tmp_path: Path, clickhouse_url: str, empty_store: Store, database: str
) -> None:
    """No entry of the permissions names the server `pml`, and no server of that name is configured."""
    await asyncio.to_thread(migrate, empty_store)
    past("ses_1", 100).insert(empty_store)
    async with world(kafka, tmp_path, ["trouble"]) as made:
        store = ClickHouseSettings(url=SecretStr(clickhouse_url), database=database)
        made.settings = made.settings.model_copy(update={"clickhouse": store})
        async with bridge(made):
            for mode in ("exact", "fuzzy", "hybrid"):
                found = (await asked(made, recall(mode=mode))).episodes
                assert {item.episode.task_id for item in found} == {"n1", "n2"}
                assert all(item.keys == 3 for item in found)
            now = h.time_of(h.START.replace(year=h.START.year + 1))
            tools = {"tools": ("git:log", "git:show"), "before": now, "within_s": 400 * 86_400, "k": 0}
            answer = await asked(made, recall(**tools))
            assert answer.episodes == ()
            assert {tool: (p.successes, p.failures) for tool, p in answer.tools.items()} == {
                "git:log": (1, 0),
                "git:show": (0, 1),
            }
            past("ses_2", 200).insert(empty_store)
            async with asyncio.timeout(PATIENCE_S):
                while (await asked(made, recall(**tools))).tools["git:log"].successes != 2:
                    await asyncio.sleep(0.1)
            assert len((await asked(made, recall(mode="exact"))).episodes) == 4


async def test_what_cannot_be_answered_is_an_error_of_the_call_and_the_bridge_goes_on(
    kafka: str, tmp_path: Path
) -> None:
    async with world(kafka, tmp_path, ["trouble"]) as made, bridge(made):
        wrong = run(RECALL_TOOL, arguments={"k": -1})
        unknown = run("pml:divine")
        early = run(RECALL_TOOL, speculative=True)
        storeless = recall()
        for call in (wrong, unknown, early, storeless):
            await made.send(call)
        answers = await made.answers([call.call_id for call in (wrong, unknown, early, storeless)])
        codes = {call_id: answer.error.code for call_id, answer in answers.items() if answer.error}
        assert codes == {
            wrong.call_id: "BAD_ARGUMENTS",
            unknown.call_id: "UNKNOWN_TOOL",
            early.call_id: codes[early.call_id],
            storeless.call_id: "STORE_UNAVAILABLE",
        }
        assert answers[early.call_id].status == "refused"
        echo = run("trouble:echo", arguments={"text": "hello"})
        await made.send(echo)
        assert (await made.answer(echo.call_id)).status == "ok"


async def test_a_service_that_hangs_or_breaks_is_answered_in_time() -> None:
    async def hang(call: CallRun) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def fail(call: CallRun) -> dict[str, Any]:
        raise KeyError(call.call_id)

    async def echo(call: CallRun) -> dict[str, Any]:
        return dict(call.arguments)

    builtin = Builtin({"hang": hang, "fail": fail, "echo": echo})
    began = "2026-11-22T10:00:00.000000Z"
    late = await builtin.run(run("pml:hang", timeout_ms=20), began)
    assert late.error is not None
    assert (late.status, late.error.code, late.started_at) == ("error", "TIMEOUT", began)
    assert late.duration_ms >= 20
    broken = await builtin.run(run("pml:fail"), began)
    assert broken.error is not None
    assert broken.error.code == "INTERNAL"
    assert (await builtin.run(run("pml:echo", arguments={"a": 1}), began)).result == ToolResult(
        structured={"a": 1}
    )
