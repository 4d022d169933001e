"""Whose requests are counted together: what a header only says is nobody."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pml.streams.gateway.guards import Guards, Rate
from pml.streams.gateway.role import Gateway
from pml.streams.gateway.tokens import TokenFile
from pml.streams.health import Health
from pml.streams.settings import GatewaySettings, Settings
from pml.streams.topics import ensure_topics
from tests.fixtures.patience import PATIENCE_S
from tests.streams.gateway.test_app import client, token

BURST = 3
# So few a second that none comes while a test runs.
RATE: dict[str, Any] = {"requests_per_s": 0.001, "burst": BURST}


def made_up() -> dict[str, str]:
    return {"authorization": f"Bearer pml_{secrets.token_hex(6)}_{secrets.token_hex(8)}"}


def statuses(door: TestClient, *headers: dict[str, str], path: str = "/healthz") -> list[int]:
    return [door.get(path, headers=each).status_code for each in headers]


@pytest.mark.parametrize("path", ["/healthz", "/v1/runs", "/mcp"])
def test_a_new_header_each_time_is_the_same_caller(tmp_path: Path, path: str) -> None:
    with client(tmp_path, **RATE) as door:
        told = statuses(door, *(made_up() for _ in range(BURST + 2)), path=path)

    assert 429 not in told[:BURST]
    assert told[BURST:] == [429, 429]


def test_headers_that_prove_nothing_take_nobodys_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pml.streams.gateway.guards.CALLERS_MAX", 2)
    ours = token(tmp_path, "runs:read")
    with client(tmp_path, **RATE) as door:
        told = statuses(door, *[ours] * BURST, *(made_up() for _ in range(2)), ours)

    assert told == [*[200] * BURST, 200, 200, 429]


def test_a_token_has_a_rate_of_its_own(tmp_path: Path) -> None:
    ours, theirs = token(tmp_path, "runs:read"), token(tmp_path, "runs:read")
    with client(tmp_path, **RATE) as door:
        assert statuses(door, *[{}] * BURST, {}, made_up()) == [*[200] * BURST, 429, 429]
        assert statuses(door, *[ours] * BURST, ours) == [*[200] * BURST, 429]
        assert statuses(door, theirs) == [200]


def test_whoever_knows_only_the_id_of_a_token_takes_nothing_of_its_rate(tmp_path: Path) -> None:
    ours = token(tmp_path, "runs:read")
    wrong = {"authorization": ours["authorization"][:-1]}
    with client(tmp_path, **RATE) as door:
        assert statuses(door, *[wrong] * BURST, wrong) == [*[200] * BURST, 429]
        assert statuses(door, ours) == [200]


def test_a_broken_file_of_tokens_lets_nobody_count_as_a_token(tmp_path: Path) -> None:
    ours = token(tmp_path, "runs:read")
    TokenFile(tmp_path).path.write_bytes(b"{")
    with client(tmp_path, **RATE) as door:
        assert statuses(door, *[ours] * BURST, {}) == [*[200] * BURST, 429]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_a_host_that_has_many_addresses_is_one_caller(first: str, second: str, same: bool) -> None:
    rate = Rate(0.001, 1)
    guarded = Guards(Starlette(), (), (), 1024, rate=rate, token_of=lambda authorization: None)
    doors = [TestClient(guarded, "http://127.0.0.1", client=(host, 1)) for host in (first, second)]
    told = [door.get("/").status_code for door in doors]

    assert told == [404, 429 if same else 404]


@pytest.mark.integration
async def test_an_address_that_a_header_names_is_nobodys(kafka: str, tmp_path: Path) -> None:
    gateway = GatewaySettings(**RATE)
    broker = {"bootstrap_servers": kafka, "topic_prefix": f"g{uuid.uuid4().hex[:8]}."}
    settings = Settings.load(data_dir=tmp_path, kafka=broker, gateway=gateway)
    await ensure_topics(settings)
    health, stop = Health(settings.data_dir, "gateway"), asyncio.Event()
    serving = asyncio.create_task(Gateway(settings, health).run(stop))
    try:
        async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as program:
            while (place := health.record.facts.get("http")) is None:
                await asyncio.sleep(0.05)
            told = [
                (
                    await program.get(f"{place}/healthz", headers={"x-forwarded-for": f"10.0.0.{number}"})
                ).status_code
                for number in range(BURST + 1)
            ]
    finally:
        stop.set()
        await serving
    assert told == [*[200] * BURST, 429]
