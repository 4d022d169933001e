"""The bridge with servers over HTTP on a real broker: what it runs, and that it writes no credential."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pml.schemas.catalog import ServerTools
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.conftest import http_server
from tests.streams.bridge.running import World, bridge, ready, run, until, worker, world
from tests.streams.bridge.test_http import CLIENT_SECRET, Guarded

pytestmark = [pytest.mark.integration]
BASIC = base64.b64encode(f"robot:{CLIENT_SECRET}".encode()).decode()
SECRETS = (
    "token-of-green-4711",
    "token-of-blue-4712",
    "token-in-a-file-4713",
    CLIENT_SECRET,
    "access-token-",
)


@pytest.fixture
async def remote(kafka: str, tmp_path: Path, trouble_url: str) -> AsyncIterator[World]:
    async with world(kafka, tmp_path, ["raw"], {"trouble": {"url": trouble_url, "concurrency": 4}}) as made:
        yield made


async def test_calls_carry_their_id_and_their_trace_and_unsafe_ones_are_claimed(remote: World) -> None:
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    read = run("trouble:echo", arguments={"text": "x"}, traceparent=traceparent)
    write = run("trouble:count")
    async with bridge(remote):
        record = (await remote.catalog())["tool/trouble"]
        assert record is not None
        assert isinstance(record.data, ServerTools)
        assert (record.data.status, record.data.concurrency) == ("listed", 4)
        for call in (read, write):
            await remote.send(call)
        answers = await remote.answers([read.call_id, write.call_id])
    assert {answer.status for answer in answers.values()} == {"ok"}
    meta = remote.events.entries("echo", read.call_id)[0]["meta"]
    assert (meta["pml/call-id"], meta["traceparent"]) == (read.call_id, traceparent)
    assert (len(await remote.claims(write)), remote.happened("count", write)) == (1, 1)


async def test_time_outs_hold_and_a_server_that_hangs_costs_only_its_own_calls(remote: World) -> None:
    hanging = run("trouble:hang", timeout_ms=500)
    behind = run("trouble:count", timeout_ms=500)
    async with bridge(remote):
        await remote.send(hanging)
        await until(lambda: remote.happened("hang", hanging))
        await remote.send(behind)
        answers = await remote.answers([hanging.call_id, behind.call_id])
        errors = [answer.error for answer in answers.values()]
        assert [error.code for error in errors if error] == ["TIMEOUT", "TIMEOUT"]
        other = run("raw:good")
        await remote.send(other)
        assert (await remote.answer(other.call_id)).status in ("ok", "refused")


async def test_a_server_that_was_started_again_between_two_calls_is_asked_anew(remote: World) -> None:
    async with bridge(remote):
        first, last = run("trouble:die"), run("trouble:count")
        await remote.send(first)
        error = (await remote.answer(first.call_id)).error
        assert error is not None
        assert error.code == "CONNECTION_LOST"
        async with asyncio.timeout(PATIENCE_S):
            while (await remote.outcomes(first)) == []:
                await asyncio.sleep(0.05)
        calls = [last]
        async with asyncio.timeout(PATIENCE_S):
            while True:  # what could not be sent was not begun: the orchestrator sends another call
                await remote.send(calls[-1])
                answer = await remote.answer(calls[-1].call_id)
                if answer.status == "ok":
                    break
                assert answer.status == "not_started"
                calls.append(run("trouble:count"))
                await asyncio.sleep(0.2)
    assert [remote.happened("count", call) for call in calls] == [0] * (len(calls) - 1) + [1]


async def test_no_credential_is_written_anywhere(
    kafka: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, folder = tmp_path / "guarded.log", tmp_path / "pml"
    folder.mkdir()
    (tmp_path / "token").write_text("token-in-a-file-4713")
    with http_server("guarded_server.py", str(log), port_last=False) as url:
        server = Guarded(url, log)
        server.allow(*SECRETS[:3])
        others = {
            "tenants": {
                "url": url,
                "tenants": {
                    "local": {"headers": {"Authorization": "Bearer ${GREEN_TOKEN}"}},
                    "blue": {"headers": {"Authorization": f"Bearer {SECRETS[1]}"}},
                },
            },
            "file": {
                "url": url,
                "headers": {"Authorization": {"file": str(tmp_path / "token"), "prefix": "Bearer "}},
            },
            "oauth": {"url": url, "oauth": server.oauth()},
            "refused": {"url": url, "oauth": server.oauth("no-secret-of-theirs-99")},
            "wrong": {
                "url": f"{url}?key={SECRETS[1]}",
                "headers": {"X-Api-Key": SECRETS[0]},
            },
        }
        async with world(kafka, folder, ["raw"], others) as made:
            made.write_permissions(
                {"version": 1, "tools": {f"{n}:*": {"scope": "readonly", "approval": "auto"} for n in others}}
            )
            calls = [
                run(f"{name}:{tool}", tenant=tenant)
                for name, tenant in (("tenants", "local"), ("tenants", "blue"), ("file", "a"), ("oauth", "a"))
                for tool in ("who", "fail")
            ]
            calls += [run("wrong:who"), run("refused:who"), run("tenants:who", tenant="red")]
            async with worker(made, GREEN_TOKEN=SECRETS[0], PML_LOG__LEVEL="debug") as process:
                await ready(made, process)
                for call in calls:
                    await made.send(call)
                answers = await made.answers([call.call_id for call in calls])
            said = [answers[call.call_id] for call in calls]
            assert [answer.status for answer in said] == ["ok", "error"] * 4 + ["not_started"] * 3
            names = [topic.name for topic in made.topics.specs()]
            records = [record for name in names for record in await made.read(name)]
    written = b"".join((record.key or b"") + (record.value or b"") for record in records)
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "mcp-servers.yaml"]
    written += b"".join(path.read_bytes() for path in files) + "".join(capfd.readouterr()).encode()
    assert b"[credential removed]" in written
    assert b"bridge ready" in written, "the log was looked through"
    assert not [secret for secret in SECRETS if secret.encode() in written]
