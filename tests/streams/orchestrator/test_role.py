"""The orchestrator on a real broker: runs end, inputs are decided once, restarts change nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson

from pml.schemas.calls import CallError
from pml.schemas.identifiers import session_key
from pml.streams.connection import partition_for
from tests.streams.orchestrator.world import Installation, until, workflow


async def test_runs_of_many_sessions_end(installation: Installation) -> None:
    sessions = [f"s{number}" for number in range(30)]
    async with installation.orchestrator(), installation.bridge() as asked:
        await asyncio.gather(*(installation.start_run(session) for session in sessions))
        for session in sessions:
            await installation.wait_for(session, "run.completed")
    await installation.check()
    assert len(asked) == 2 * len(sessions)
    assert max(asked.values()) == 1


async def test_the_same_command_again_attaches_and_runs_nothing(installation: Installation) -> None:
    async with installation.orchestrator(), installation.bridge() as asked:
        await installation.start_run("s")
        await installation.wait_for("s", "run.completed")
        await installation.start_run("s")
        await installation.wait_for("s", "command.attached")
    assert len(asked) == 2
    await installation.check()


async def test_a_run_goes_on_where_a_restart_left_it(installation: Installation) -> None:
    async with installation.orchestrator():
        await installation.start_run("s", definition=workflow(3))
        first = (await until(installation.calls, "the first call"))[0]
    await installation.answer(first)
    async with installation.orchestrator():

        async def second() -> bool:
            return len({call.call_id for call in await installation.calls()}) > 1

        await until(second, "the call after the restart")
    async with installation.orchestrator(), installation.bridge():
        await installation.wait_for("s", "run.completed")
    await installation.check()


async def test_states_come_back_from_the_table_without_reading_the_whole_log(
    installation: Installation,
) -> None:
    async with installation.orchestrator() as running, installation.bridge():
        await installation.start_run("s")
        await installation.wait_for("s", "run.completed")

        async def written() -> bool:
            keys = {record.key for record in await installation.changelog()}
            return any(b"/session/" in key for key in keys) and any(b"marker" in key for key in keys)

        async def told() -> bool:
            return running.health.record.facts.get("partitions") == 12

        await until(written, "the state to be written behind")
        await until(told, "the health to name all partitions")
    async with installation.orchestrator(), installation.bridge():
        await installation.start_run("s")
        await installation.wait_for("s", "command.attached")
    await installation.check()


async def test_a_failed_call_fails_its_run(installation: Installation) -> None:
    async with installation.orchestrator():
        await installation.start_run("s")
        call = (await until(installation.calls, "the first call"))[0]
        await installation.answer(call, CallError(code="TOOL_ERROR", message="no such file"))
        await installation.wait_for("s", "run.failed")
    await installation.check()


async def test_a_task_whose_bridge_is_gone_ends_by_its_deadline(kafka: str, tmp_path: Path) -> None:
    timeouts = {"task_s": 0.5, "queue_s": 0.5, "run_s": 2}
    async with Installation(kafka, tmp_path, **timeouts).opened() as installation:
        async with installation.orchestrator():
            await installation.start_run("s", definition=workflow(1) | {"options": {"timeout_s": 2}})
            await installation.wait_for("s", "run.failed")
        reached = [
            orjson.loads(record.value)["type"]
            for record in await installation.records(installation.topics.commands)
        ]
        assert "deadline.reach" in reached
        await installation.check()


async def test_records_that_cannot_be_read_are_buried_and_answered(installation: Installation) -> None:
    topics = installation.topics
    unknown = orjson.dumps({"type": "run.teleport", "command_id": "c7", "session_id": "s"})
    wrong = orjson.dumps(
        {"type": "run.start", "command_id": "c8", "session_id": "s", "data": {"workflow": 7}}
    )
    valueless = orjson.dumps(
        {"type": "run.score", "command_id": "c9", "session_id": "s", "data": {"name": "q"}}
    )
    async with installation.orchestrator(), installation.bridge():
        await installation.start_run("s", "first")
        for value in (b"\xff{", None, b"[1]", unknown, wrong, valueless):
            await installation.send(topics.commands, "s", value)
        for value in (b"\x00", orjson.dumps({"type": "call.ended", "call_id": 5})):
            await installation.send(topics.tool_outcomes, "s", value)
        await installation.start_run("s", "second")
        await installation.wait_for("s", "run.completed", count=2)
    answers = {
        event.command_id: event.data.model_dump()["error"]["code"]
        for event in await installation.events("s")
        if event.type == "command.rejected"
    }
    assert answers == {"c7": "UNKNOWN_TYPE_OR_VERSION", "c8": "UNDECODABLE", "c9": "UNDECODABLE"}
    buried = await installation.records(topics.dead_letters)
    assert sorted(record.value or b"" for record in buried) == sorted(
        [
            b"",
            b"\x00",
            b"[1]",
            b"\xff{",
            unknown,
            wrong,
            valueless,
            orjson.dumps({"type": "call.ended", "call_id": 5}),
        ]
    )
    await installation.check()


async def test_a_record_in_the_wrong_partition_is_decided_in_the_right_one(
    installation: Installation,
) -> None:
    key = session_key("local", "s")
    right = partition_for(key)
    async with installation.orchestrator(), installation.bridge():
        await installation.start_run("other")
        record = (await until(lambda: installation.records(installation.topics.commands), "a command"))[0]
        value = record.value.replace(b"cmd_other", b"cmd_s").replace(b"run_other", b"run_s")
        value = value.replace(b'"session_id":"other"', b'"session_id":"s"')
        await installation.producer.send_and_wait(
            installation.topics.commands, value, key=key, partition=(right + 1) % 12
        )
        await installation.producer.send_and_wait(
            installation.topics.commands, value.replace(b"cmd_s", b"cmd_t")
        )
        events = await installation.wait_for("s", "run.completed")

        async def keyless() -> bool:
            return any(event.command_id == "cmd_t" for event in await installation.events("s"))

        await until(keyless, "the record without a key")
    assert events[0].cause is not None
    assert events[0].cause.partition == right
    await installation.check()
