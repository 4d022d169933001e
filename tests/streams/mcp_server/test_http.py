"""`/mcp` in the gateway: the same guards and tokens as every route, and sessions that are their owner's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from pml.streams.gateway.app import make_app
from pml.streams.gateway.tokens import Scope, TokenFile
from tests.streams.gateway.test_app import NOW, client, nobody
from tests.streams.mcp_server.clients import settings_in

ACCEPT = {"accept": "application/json, text/event-stream"}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def token(folder: Path, tenant: str, *scopes: Scope) -> dict[str, str]:
    made = TokenFile(folder).create(tenant, "agent:a", scopes or ("runs:read",), NOW)
    return {"authorization": f"Bearer {made}"}


def ask(door: TestClient, method: str, params: Any, headers: dict[str, str]) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return door.post("/mcp", json=body, headers={**ACCEPT, **headers})


def told(answer: Any) -> Any:
    """The result of an answer, which comes as one event."""
    assert answer.status_code == 200
    lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return orjson.loads(lines[-1].removeprefix("data: "))["result"]


def connect(door: TestClient, headers: dict[str, str]) -> dict[str, str]:
    """What a client sends with each request once it is connected."""
    answer = ask(door, "initialize", HELLO, headers)
    assert told(answer)["serverInfo"]["name"] == "pml"
    return {**headers, "mcp-session-id": answer.headers["mcp-session-id"]}


@pytest.fixture
def door(tmp_path: Path) -> Iterator[TestClient]:
    with client(tmp_path) as opened:
        yield opened


def test_on_loopback_whoever_comes_is_let_in(door: TestClient) -> None:
    tools = told(ask(door, "tools/list", {}, connect(door, {})))["tools"]

    assert "pml_execute" in [tool["name"] for tool in tools]


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer pml_x_y"}, {"authorization": "Basic eDp5"}]
)
def test_where_there_is_a_token_nobody_comes_in_without_one(tmp_path: Path, headers: dict[str, str]) -> None:
    token(tmp_path, "acme")
    with client(tmp_path) as door:
        answer = ask(door, "initialize", HELLO, headers)

    assert (answer.status_code, answer.json()["code"]) == (401, "NOT_AUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_session_of_another_tenant_is_not_there(tmp_path: Path) -> None:
    mine, theirs = token(tmp_path, "acme"), token(tmp_path, "other")
    with client(tmp_path) as door:
        connected = connect(door, mine)
        assert ask(door, "tools/list", {}, {**connected, **theirs}).status_code == 404
        assert ask(door, "tools/list", {}, connected).status_code == 200


def test_a_token_that_was_revoked_during_a_session_lets_nobody_in(tmp_path: Path) -> None:
    mine = token(tmp_path, "acme")
    token(tmp_path, "acme")
    tokens = TokenFile(tmp_path)
    with client(tmp_path) as door:
        connected = connect(door, mine)
        tokens.revoke(tokens.all()[0].token_id)
        assert ask(door, "tools/list", {}, connected).status_code == 401


def test_scopes_are_those_of_the_token(tmp_path: Path) -> None:
    reads = token(tmp_path, "acme", "runs:read")
    with client(tmp_path) as door:
        connected = connect(door, reads)
        called = {"name": "pml_abort", "arguments": {"run_id": "run_1"}}
        answer = told(ask(door, "tools/call", called, connected))

    assert answer["isError"]
    assert answer["structuredContent"]["code"] == "NOT_ALLOWED"


def test_the_guards_of_the_gateway_stand_before_it(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(3):
            yield b"x" * 500

    with client(tmp_path, body_bytes_max=1_024) as door:
        assert door.post("/mcp", headers={"host": "evil.example"}).status_code == 421
        assert door.post("/mcp", headers={"origin": "https://evil.example"}).status_code == 403
        for body in (b"x" * 1_025, pieces()):
            answer = door.post("/mcp", content=body, headers={**ACCEPT, "content-type": "application/json"})
            assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE")


def test_the_gateway_can_be_opened_again(tmp_path: Path) -> None:
    """What serves sessions is made with each life of the application."""
    app = make_app(settings_in(tmp_path), nobody, lambda: None)
    for _ in range(2):
        with TestClient(app, base_url="http://127.0.0.1") as door:
            connect(door, {})
