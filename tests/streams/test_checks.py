"""`pml doctor` on servers at URLs and on Deno, and what it says to do."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IncompatibleBrokerVersion

from pml.streams import checks
from pml.streams.checks import Check, run_checks
from pml.streams.local.ports import free_port
from pml.streams.settings import Settings
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.settings import folder_settings
from tests.streams.bridge.conftest import http_server

TOKEN = "tulip-4711-of-everybody"


async def checked(settings: Settings, name: str) -> Check:
    return next(check for check in await run_checks(settings) if check.name == name)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return folder_settings(tmp_path, "127.0.0.1:1", "doctor")


def write(settings: Settings, **servers: object) -> None:
    settings.mcp_servers.write_bytes(orjson.dumps({"mcpServers": servers}))


async def test_each_server_at_a_url_is_asked(settings: Settings, tmp_path: Path) -> None:
    log = tmp_path / "guarded.log"
    log.with_suffix(".tokens").write_text(TOKEN)
    with http_server("guarded_server.py", str(log), port_last=False) as url:
        right = {"url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
        write(settings, right=right)
        assert (await checked(settings, "servers at URLs")).detail == "right with 5 tools"
        away = {"url": f"http://127.0.0.1:{free_port()}/mcp?key={TOKEN}"}
        write(settings, right=right, wrong={"url": url}, away=away, off=away | {"disabled": True})
        found = await checked(settings, "servers at URLs")
    assert not found.good
    assert "wrong cannot be used" in found.detail
    assert "answered 401" in found.detail
    assert "away cannot be used" in found.detail
    assert "off" not in found.detail.split()
    assert TOKEN not in repr(found)


async def test_deno_is_grey_where_it_is_not_installed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await checked(settings, "Deno")).detail[0].isdigit()
    monkeypatch.setattr(checks, "deno_path", lambda: None)
    found = await checked(settings, "Deno")
    assert (found.good, found.used) == (True, False)
    assert "procedural-memory-layer[typescript]" in found.remedy


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Broker and store at a port that takes connections and says nothing."""
    monkeypatch.setattr(checks, "BROKER_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        yield folder_settings(tmp_path, address, "doctor", clickhouse={"url": f"http://{address}"})


async def test_a_broker_and_a_store_that_say_nothing_are_red_lines_with_what_to_do(silent: Settings) -> None:
    found = {check.name: check for check in await run_checks(silent)}
    for name in ("broker", "topics"):
        assert not found[name].good
        assert "says nothing for 0.2 s" in found[name].detail
        assert "KAFKA_BOOTSTRAP_SERVERS" in found[name].remedy
    assert not found["store"].good
    assert "CLICKHOUSE_URL" in found["store"].remedy


@pytest.mark.integration
async def test_a_check_that_blocks_lets_no_time_of_others_run_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()

    async def answering(_: Settings) -> str:
        await asyncio.sleep(0.05)
        answered.set()
        return "answers"

    def blocking(_: Settings) -> str:
        """It would wait in vain if nothing ran beside it."""
        return "answers late" if answered.wait(PATIENCE_S / 2) else "waited in vain"

    monkeypatch.setattr(checks, "_broker", answering)
    monkeypatch.setattr(checks, "_store", blocking)
    found = {check.name: check for check in await run_checks(settings)}
    assert (found["broker"].detail, found["store"].detail) == ("answers", "answers late")


async def test_a_broker_that_answers_with_an_error_is_a_red_line_with_what_to_do(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(admin: AIOKafkaAdminClient) -> None:
        raise IncompatibleBrokerVersion("too old")

    monkeypatch.setattr(AIOKafkaAdminClient, "describe_cluster", refused)
    found = await checked(folder_settings(tmp_path, kafka, "doctor"), "broker")
    assert not found.good
    assert "too old" in found.detail
    assert "log" in found.remedy


async def test_a_file_that_is_wrong_is_a_red_line_with_what_to_do(settings: Settings) -> None:
    settings.mcp_servers.write_text("mcpServers: [1]\n")
    settings.mcp_permissions.write_text("tools: {'files:*': {approval: perhaps}}\n")
    found = {check.name: check for check in await run_checks(settings)}
    for name, file in (
        ("MCP servers", settings.mcp_servers),
        ("servers at URLs", settings.mcp_servers),
        ("permissions", settings.mcp_permissions),
    ):
        assert not found[name].good
        assert str(file) in found[name].detail
        assert f"correct {file.name}" in found[name].remedy


async def test_a_key_that_cannot_be_read_is_a_red_line_that_says_what_to_do(settings: Settings) -> None:
    (settings.data_dir / "installation.key").mkdir(parents=True)
    found = await checked(settings, "installation key")
    assert not found.good
    assert "own it" in found.detail
