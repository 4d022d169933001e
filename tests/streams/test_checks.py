"""`pml doctor` on servers at URLs and on Deno."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pml.streams import checks
from pml.streams.checks import Check, run_checks
from pml.streams.settings import Settings
from tests.fixtures.settings import folder_settings
from tests.streams.bridge.conftest import free_port, http_server

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
        assert (await checked(settings, "servers at URLs")).detail == "right with 3 tools"
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
