"""A bridge that is killed, stopped or overtaken never runs an unsafe call twice (DESIGN §2, rule 6)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from pml.schemas.calls import CallRun
from pml.schemas.errors import ConfigurationError
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.role import Bridge
from pml.streams.connection import client_options, producer_options
from pml.streams.health import Health
from pml.streams.local.kafka import EmbeddedKafka
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.running import World, bridge, ready, run, until, worker, world

pytestmark = [pytest.mark.integration]
ROUNDS = int(os.environ.get("PML_DRILL_ROUNDS", "1"))
# What a crash before the claim leaves behind is run by the next bridge: it comes last, so that each of the
# others is hit by the call that was sent for it.
POINTS = ("after_claim", "after_call", "after_outcome", "before_commit", "after_commit", "before_claim")
# A static member is back at once; else each new bridge waits for the session of the killed one.
STATIC = {"PML_KAFKA__GROUP_INSTANCE_ID": "one"}


@pytest.fixture
async def pml(kafka: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world(kafka, tmp_path, ["trouble"]) as made:
        yield made


@pytest.fixture(params=["stdio", "http"])
async def reached(request: pytest.FixtureRequest, kafka: str, tmp_path: Path) -> AsyncIterator[World]:
    """The server by every way in which one is reached."""
    others = {"trouble": {"url": request.getfixturevalue("trouble_url")}} if request.param == "http" else {}
    async with world(kafka, tmp_path, ["trouble"], others) as made:
        yield made


async def test_killed_at_every_step_each_unsafe_call_runs_at_most_once(reached: World) -> None:
    pml = reached
    crashed: dict[str, list[CallRun]] = {point: [] for point in POINTS}
    for point in (point for point in POINTS for _ in range(ROUNDS)):
        call = run("trouble:count")
        crashed[point].append(call)
        async with worker(pml, PML_CRASH_AT=f"bridge.{point}", **STATIC) as process:
            await pml.send(call)
            assert await asyncio.wait_for(process.ended(), PATIENCE_S) == -signal.SIGKILL
    calls = [call for point in POINTS for call in crashed[point]]
    async with worker(pml, **STATIC) as process:
        await ready(pml, process)
        for call in calls:
            await pml.send(call)
        last = run("trouble:echo", arguments={"text": "x"})
        await pml.send(last)
        assert (await pml.answer(last.call_id)).status == "ok"
        await pml.answers([call.call_id for call in crashed["before_claim"]])
    runs = {call.call_id: pml.happened("count", call) for call in calls}
    answers = {call.call_id: [o.status for o in await pml.outcomes(call)] for call in calls}
    for call in calls:
        assert runs[call.call_id] <= 1
        assert len(await pml.claims(call)) == 1
    for call in crashed["after_claim"]:
        assert (runs[call.call_id], answers[call.call_id]) == (0, []), "claimed: never run, not answered"
    for call in crashed["after_call"]:
        assert (runs[call.call_id], answers[call.call_id]) == (1, []), "its effect stands, its answer is lost"
    for call in crashed["before_claim"] + crashed["after_outcome"]:
        assert (runs[call.call_id], answers[call.call_id]) == (1, ["ok"])
    for call in crashed["before_commit"] + crashed["after_commit"]:
        assert answers[call.call_id] in ([], ["ok"]), "a commit may come while the call still runs"


async def test_killed_in_the_middle_of_unsafe_calls_with_work_in_flight(pml: World) -> None:
    unsafe = [
        run("trouble:count", arguments={"seconds": 0.3}, session_id=f"ses_{number}") for number in range(24)
    ]
    safe = [run("trouble:slow", arguments={"seconds": 0.2}, session_id=f"ses_{n}") for n in range(24)]
    async with worker(pml, **STATIC) as process:
        await ready(pml, process)
        for pair in zip(unsafe, safe, strict=True):
            for call in pair:
                await pml.send(call)
        await until(lambda: len(pml.events.entries("count")) >= 6)
        process.kill()
    await until(lambda: not alive(pml))
    async with worker(pml, **STATIC) as process:
        await ready(pml, process)
        for call in unsafe + safe:
            await pml.send(call)
        await pml.answers([call.call_id for call in safe], timeout_s=PATIENCE_S)
        last = run("trouble:echo", arguments={"text": "x"})
        await pml.send(last)
        await pml.answer(last.call_id)
        await until_settled(pml, unsafe)
    begun = [pml.happened("count", call) for call in unsafe]
    unanswered = [await pml.outcomes(call) for call in unsafe].count([])
    assert max(begun) == 1
    assert begun.count(0) <= unanswered, "what was claimed and never sent is not answered"
    assert 0 < unanswered < len(unsafe), f"{unanswered} unsafe calls were cut off"


def alive(pml: World) -> list[int]:
    """The servers that did something and still run."""
    return [pid for pid in {entry["pid"] for entry in pml.events.entries()} if psutil.pid_exists(pid)]


async def until_settled(pml: World, calls: list[CallRun]) -> None:
    """Every unsafe call is claimed, and none of them runs any more."""
    async with asyncio.timeout(PATIENCE_S):
        while not all([await pml.claims(call) for call in calls]):
            await asyncio.sleep(0.1)
        while any(
            entry["pid"] == pml.events.entries()[-1]["pid"]
            and not pml.events.entries("count ended", entry["call_id"])
            for entry in pml.events.entries("count")
        ):
            await asyncio.sleep(0.1)


async def test_a_bridge_that_was_paused_and_overtaken_runs_nothing_again(pml: World) -> None:
    calls = [run("trouble:count", session_id=f"ses_{number}") for number in range(30)]
    async with worker(pml) as old:
        await ready(pml, old)
        os.kill(old.pid, signal.SIGSTOP)
        for call in calls:
            await pml.send(call)
        async with worker(pml) as new:
            await ready(pml, new)
            await pml.answers([call.call_id for call in calls], timeout_s=PATIENCE_S)
            os.kill(old.pid, signal.SIGCONT)
            late = [run("trouble:count", session_id=f"ses_{number}") for number in range(30)]
            for call in late + calls:
                await pml.send(call)
            await pml.answers([call.call_id for call in late], timeout_s=PATIENCE_S)
    assert {pml.happened("count", call) for call in calls + late} == {1}
    assert {len(await pml.claims(call)) for call in calls + late} == {1}


async def test_a_broker_that_is_killed_loses_no_answer_and_repeats_no_effect(tmp_path: Path) -> None:
    broker = EmbeddedKafka(tmp_path / "broker")
    await broker.start()
    try:
        async with world(broker.bootstrap_servers, tmp_path, ["trouble"]) as pml, bridge(pml) as health:
            calls = [
                run(tool, arguments={"seconds": 0.5}, session_id=f"ses_{number}")
                for number in range(12)
                for tool in ("trouble:count", "trouble:slow")
            ]
            for call in calls:
                await pml.send(call)
            await until(lambda: pml.events.entries("count"))
            broker.kill()
            await until(lambda: pml.events.entries("count ended"))
            await broker.start()
            await pml.answers([call.call_id for call in calls], timeout_s=PATIENCE_S)
            assert health.record.state == "ready"
        assert {pml.happened("count", call) for call in calls[::2]} == {1}
    finally:
        await broker.stop()


async def test_of_two_runners_one_gets_the_claim(pml: World) -> None:
    appenders = [Appender(producer_options(pml.settings)) for _ in range(2)]
    tails = Tails(client_options(pml.settings))
    await tails.start()
    topic = pml.topics.call_claims
    claims = [Claims(topic, 0, f"runner-{n}", appender, tails) for n, appender in enumerate(appenders)]
    try:
        for either in claims:
            await either.load(0)
        calls = [run("trouble:count") for _ in range(20)]
        won = [await asyncio.gather(*(either.claim(call, 0) for either in claims)) for call in calls]
        assert all(sorted(pair) == [False, True] for pair in won)
        claims[0].lost = True
        assert not await claims[0].claim(run("trouble:count"), 0)
    finally:
        await asyncio.gather(*(appender.stop() for appender in appenders), tails.stop())
    for call in calls:
        (counted,) = await pml.claims(call)
        winner = won[calls.index(call)].index(True)
        assert counted.runner == f"runner-{winner}"


async def test_a_clean_stop_leaves_nothing_running_and_nothing_lost(pml: World) -> None:
    unsafe = run("trouble:count", arguments={"seconds": 1})
    safe = run("trouble:slow", arguments={"seconds": 12})
    async with worker(pml, **STATIC) as process:
        await ready(pml, process)
        await pml.send(unsafe)
        await pml.send(safe)
        await until(lambda: pml.happened("count", unsafe) and pml.happened("slow", safe))
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.ended(), 25) == 0
    assert [outcome.status for outcome in await pml.outcomes(unsafe)] == ["ok"], "an unsafe call is awaited"
    assert await pml.outcomes(safe) == [], "a safe one is left to the next bridge"
    assert not alive(pml)
    async with worker(pml, **STATIC) as process:
        await ready(pml, process)
        assert (await pml.answer(safe.call_id)).status == "ok"
    assert pml.happened("count", unsafe) == 1


async def test_two_bridges_share_the_partitions(pml: World) -> None:
    calls = [run("trouble:echo", arguments={"text": "x"}, session_id=f"ses_{n}") for n in range(60)]
    async with bridge(pml) as first, bridge(pml) as second:
        await until(lambda: first.record.facts["partitions"] == second.record.facts["partitions"] == 6)
        for call in calls:
            await pml.send(call)
        await pml.answers([call.call_id for call in calls])
    assert len({entry["pid"] for entry in pml.events.entries("echo")}) == 2


async def test_of_two_bridges_with_different_permissions_one_stops_with_a_sentence(
    pml: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pml.streams.bridge.catalog.DIFFERENCE_GRACE_S", 1.0)
    other = tmp_path / "other.yaml"
    other.write_text("tools: {}")
    files = [pml.settings.mcp_permissions, other]
    stop = asyncio.Event()
    bridges = [
        asyncio.create_task(
            Bridge(
                pml.settings.model_copy(update={"mcp_permissions": file}),
                Health(pml.settings.data_dir, f"bridge-{number}"),
            ).run(stop)
        )
        for number, file in enumerate(files)
    ]
    done, _ = await asyncio.wait(bridges, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    results = await asyncio.gather(*bridges, return_exceptions=True)
    assert len(done) == 1
    stopped = bridges.index(done.pop())
    error = results[stopped]
    assert isinstance(error, ConfigurationError)
    assert str(files[stopped]) in error.message
    assert "same file" in error.message
    assert results[1 - stopped] is None
