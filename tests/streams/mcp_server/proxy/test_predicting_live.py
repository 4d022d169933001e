"""An agent that plans nothing: after its call the proxy knows the next one, and has made it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from mcp import Client

from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import Project, wait_until
from tests.fixtures.project import guest as project
from tests.streams.mcp_server.test_live import over_stdio

__all__ = ["project"]

pytestmark = [pytest.mark.integration]

REQUEST = "look around, then tell me what a.txt says; my password is hunter2"
TOLD = {"customer": 7, "password": "hunter2"}
# An agent thinks between its calls, here longer each time: a busy machine predicts slowly.
THINKS_MOST_S = 10.0
# Often enough that what was right each time is as sure as a threshold asks for.
RECURS = 30
ENDED = "SELECT count() AS runs FROM runs WHERE status = 'completed'"


def reads(stack: Project) -> int:
    """How often the file was read that the agent read first, for whomever."""
    lines = [orjson.loads(line) for line in (stack.folder / "calls.jsonl").read_text().splitlines()]
    read = [line for line in lines if line["tool"] == "read_file"]
    return len({line["call"] for line in read if line["arguments_digest"] == read[0]["arguments_digest"]})


async def happens(what: Callable[[], bool], thinks_s: float) -> None:
    """Wait for it as long as an agent thinks."""
    try:
        async with asyncio.timeout(thinks_s):
            while not what():
                await asyncio.sleep(0.05)
    except TimeoutError:
        return


async def plays(client: Client, stack: Project, number: int) -> bool:
    """List, think, read; whether the file had been read before it was asked for."""
    meta: Any = {"pml/session": f"chat-{number}", "pml/request": REQUEST, "pml/context": TOLD}
    before = reads(stack)
    await client.call_tool("files__list_dir", {"path": "."}, meta=meta)
    await happens(lambda: reads(stack) > before, min(1.0 + number, THINKS_MOST_S))
    early = reads(stack) > before
    answer = await client.call_tool("files__read_file", {"path": "a.txt"}, meta=meta)
    assert answer.structured_content is not None
    assert answer.structured_content["text"] == "a file\n"
    assert reads(stack) == before + 1
    return early


async def test_the_next_call_is_there_before_it_is_asked_for(project: Project) -> None:
    (project.folder / "calls.jsonl").touch()
    project.environment["PML_SPECULATION__PREDICTIONS"] = "on"
    project.pml("up", "--detach")
    project.pml("thresholds", "set", "0.7")
    async with Client(over_stdio(project)) as client, asyncio.timeout(2 * PATIENCE_S):
        number = 0
        while not await plays(client, project, number):
            number += 1
    dump = project.pml("events", "dump", "--session", f"chat-{number}", "--json")
    events = [orjson.loads(line) for line in dump.splitlines()]
    begun = next(event for event in events if event["type"] == "run.started")
    assert begun["data"]["request"].startswith("look around, then tell me")
    assert begun["data"]["context"] == {"customer": 7, "password": "[REDACTED]"}
    assert "hunter2" not in dump
    made = next(event for event in events if event["type"] == "prediction.made")["data"]
    assert (made["candidates"][0]["name"], made["candidates"][0]["outcome"]) == ("files:read_file", "begun")
    ended = [event for event in events if event["type"] == "task.completed"][-1]
    assert ended["data"]["served_by"] in ("speculation", "joined")
    kinds = project.json("metrics", "--wait")["kinds"]
    assert kinds["prediction"]["hits"] >= 1
    assert "prediction: " in project.pml("metrics")


async def test_what_is_done_again_and_again_is_foreseen_surely_once_it_was_learned(project: Project) -> None:
    """No threshold is set: what recurs word for word, secret or not, is as sure as it must be."""
    (project.folder / "calls.jsonl").touch()
    project.environment["PML_SPECULATION__PREDICTIONS"] = "on"
    project.pml("up", "--detach")
    async with Client(over_stdio(project)) as client, asyncio.timeout(3 * PATIENCE_S):
        for number in range(RECURS):
            meta: Any = {"pml/session": f"before-{number}", "pml/request": REQUEST}
            await client.call_tool("files__list_dir", {"path": "."}, meta=meta)
            await client.call_tool("files__read_file", {"path": "a.txt"}, meta=meta)
            meta = {"pml/session": f"other-{number}", "pml/request": "where is a file?"}
            await client.call_tool("files__search", {"path": ".", "text": "file"}, meta=meta)
            await client.call_tool("files__list_dir", {"path": "."}, meta=meta)
        wait_until(lambda: project.json("query", ENDED) == [{"runs": 4 * RECURS}], "the sink")
        trained = project.json("train", "--test", "0")
        assert trained["promoted"]
        # All but of the latest sessions, which may go on, also how they end.
        questions = trained["recalled"]["questions"]
        assert 2 * RECURS < trained["recalled"]["right"] == questions <= 4 * RECURS
        number = 0
        while not await plays(client, project, number):
            number += 1
    dump = project.pml("events", "dump", "--session", f"chat-{number}", "--json")
    made = next(event for event in map(orjson.loads, dump.splitlines()) if event["type"] == "prediction.made")
    assert made["data"]["model"] == trained["model_id"]
    assert made["data"]["candidates"][0]["confidence"] > made["data"]["threshold"] == 0.92
