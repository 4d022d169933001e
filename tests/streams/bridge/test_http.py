"""Servers over streamable HTTP: the same contract as over stdio, and what only a network brings."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pml.schemas.catalog import ServerTools
from pml.streams.bridge.server import Server
from pml.streams.bridge.unavailable import ServerUnavailable
from pml.streams.local.ports import free_port
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.conftest import EventLog, NewServer, at, http_server
from tests.streams.bridge.test_server import ask, until

TOKEN = "tulip-4711-of-everybody"
CLIENT_SECRET = "client-secret-tulip-4711"


class Guarded:
    """The server that wants credentials, and what it saw."""

    def __init__(self, url: str, log: Path) -> None:
        self.url, self._log = url, log
        self.root = url.removesuffix("/mcp")

    def page(self, path: str) -> str:
        return f"{self.root}/{path}"

    def allow(self, *tokens: str) -> None:
        self._log.with_suffix(".tokens").write_text("\n".join(tokens))

    def revoke(self, *tokens: str) -> None:
        self._log.with_suffix(".revoked").write_text("\n".join(tokens))

    def give_out(self, token: str) -> None:
        self._log.with_suffix(".token").write_text(token)

    def seen(self, path: str = "/mcp") -> list[dict[str, Any]]:
        lines = (
            [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []
        )
        return [line for line in lines if line["path"] == path]

    def oauth(self, secret: object = CLIENT_SECRET) -> dict[str, Any]:
        return {"issuer": self.root, "client_id": "robot", "client_secret": secret}


@pytest.fixture(params=["events", "json"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Guarded]:
    """Once answering with events, once in one piece."""
    more = ["--json"] if request.param == "json" else []
    log = tmp_path / "guarded.log"
    with http_server("guarded_server.py", str(log), *more, port_last=False) as url:
        yield Guarded(url, log)


async def eventually(server: Server, tool: str, **arguments: Any) -> Any:
    """The answer once the server is back."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(ServerUnavailable):
                answer = await ask(server, tool, **arguments)
                if answer[0] == "ok":
                    return answer
            await asyncio.sleep(0.05)


async def test_a_server_that_dies_fails_the_call_and_is_used_again_when_it_is_back(
    new_server: NewServer, trouble_url: str, events: EventLog
) -> None:
    server = new_server(at(trouble_url))
    assert (await server.start()).status == "listed"
    slow = asyncio.create_task(ask(server, "slow", seconds=60))
    await until(lambda: events.entries("slow"))
    _, _, error = await ask(server, "die")
    assert (error.code, error.type, error.retryable) == ("CONNECTION_LOST", "NETWORK", True)
    assert (await slow)[2].code == "CONNECTION_LOST"
    assert (await eventually(server, "echo", text="x"))[0] == "ok"
    assert len({entry["pid"] for entry in events.entries()}) == 2
    await server.close()


async def test_one_call_that_hangs_up_leaves_the_others_alone(
    new_server: NewServer, guarded: Guarded
) -> None:
    guarded.allow(TOKEN)
    server = new_server(at(guarded.url, headers={"Authorization": f"Bearer {TOKEN}"}))
    await server.start()
    slow = asyncio.create_task(ask(server, "slow", seconds=1))
    cancelled = asyncio.create_task(ask(server, "slow", seconds=60))
    await asyncio.sleep(0.2)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert (await slow)[0] == "ok"
    await server.close()


async def test_a_server_that_is_not_there_is_unavailable_with_the_reason(new_server: NewServer) -> None:
    server = new_server(at(f"http://127.0.0.1:{free_port()}/mcp?key={TOKEN}"), "away")
    record = await server.start()
    assert record.status == "unavailable"
    assert "cannot be reached (ConnectError); check that it runs" in str(record.error)
    assert TOKEN not in str(record.error)
    await server.close()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("broken", "answered 503"),
        ("forbidden", "answered 403: the credentials may not do this"),
        ("compressed", "is compressed"),
        ("endless", "more than"),
        ("nowhere", "answered 404"),
    ],
)
async def test_what_is_no_mcp_server_is_said_without_its_words(
    new_server: NewServer, guarded: Guarded, path: str, words: str
) -> None:
    server = new_server(at(guarded.page(path), headers={"Authorization": f"Bearer {TOKEN}"}), "odd")
    record = await server.start()
    assert record.status == "unavailable"
    assert words in str(record.error)
    assert not [secret for secret in (TOKEN, "password") if secret in str(record.error)]
    await server.close()


async def test_no_credentials_go_where_a_redirect_points(new_server: NewServer, guarded: Guarded) -> None:
    elsewhere = guarded.root.replace("127.0.0.1", "localhost")
    server = new_server(
        at(guarded.page(f"away?to={elsewhere}/mcp"), headers={"Authorization": f"Bearer {TOKEN}"}), "away"
    )
    record = await server.start()
    assert (record.status, guarded.seen("/mcp")) == ("unavailable", [])
    assert "not followed" in str(record.error)
    assert guarded.seen("/away")
    await server.close()


async def test_wrong_credentials_are_refused_clearly_and_told_nowhere(
    new_server: NewServer,
    guarded: Guarded,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    server = new_server(at(guarded.url, headers={"Authorization": f"Bearer {TOKEN}"}))
    record = await server.start()
    assert "answered 401: it does not accept the credentials; correct `headers`" in str(record.error)
    guarded.allow(TOKEN)
    assert (await eventually(server, "slow", seconds=0))[0] == "ok"
    guarded.allow("another")
    _, _, error = await ask(server, "slow", seconds=0)
    assert (error.code, error.type, error.retryable) == ("CREDENTIALS_REFUSED", "PERMISSION", False)
    await server.close()
    written = "".join(capfd.readouterr()) + caplog.text + repr((record, error, server.spec))
    assert TOKEN not in written


async def test_what_a_server_repeats_of_its_credentials_is_taken_out(
    new_server: NewServer, guarded: Guarded
) -> None:
    guarded.allow(TOKEN)
    server = new_server(
        at(guarded.url, headers={"Authorization": f"Bearer {TOKEN}", "X-Org": "green-and-large"})
    )
    status, result, _ = await ask(server, "who")
    assert (status, result.content[0]["text"]) == ("ok", "you are [credential removed] green-and-large")
    _, _, error = await ask(server, "fail")
    assert "bad credentials [credential removed]" in error.message
    await server.close()


async def test_a_credential_is_found_as_json_writes_it_and_so_is_one_in_the_address(
    new_server: NewServer, guarded: Guarded
) -> None:
    token = 'tulip"4711/of-everybody'
    guarded.allow(token)
    server = new_server(
        at(f"{guarded.url}?api_key=meadow-4712&lang=english", headers={"Authorization": f"Bearer {token}"})
    )
    _, result, _ = await ask(server, "who")
    assert result.content[0]["text"] == "you are [credential removed] None"
    _, result, _ = await ask(server, "address")
    assert result.content[0]["text"].endswith("/mcp?api_key=[credential removed]&lang=english")
    await server.close()


async def test_a_token_in_a_file_is_read_again_for_each_request(
    new_server: NewServer, guarded: Guarded, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    header = {"Authorization": {"file": str(path), "prefix": "Bearer "}}
    server = new_server(at(guarded.url, headers=header), start_timeout_s=10)
    record = await server.start()
    assert f"`headers.Authorization` needs {path}, which cannot be read" in str(record.error)
    for token in ("first-token", "second-token"):
        path.write_text(token + "\n")
        guarded.allow(token)
        assert (await eventually(server, "slow", seconds=0))[0] == "ok"
    await server.close()


async def test_a_variable_that_is_not_set_is_named(new_server: NewServer, guarded: Guarded) -> None:
    server = new_server(at(guarded.url, headers={"Authorization": "Bearer ${NO_SUCH_TOKEN}"}))
    record = await server.start()
    assert "needs the environment variable NO_SUCH_TOKEN, which is not set" in str(record.error)
    assert guarded.seen() == []
    await server.close()


async def test_each_tenant_has_credentials_of_its_own(
    new_server: NewServer, guarded: Guarded, listings: list[ServerTools]
) -> None:
    guarded.allow("token-of-green", "token-of-blue")
    tenants = {
        name: {"headers": {"Authorization": f"Bearer token-of-{name}"}} for name in ("green", "blue", "grey")
    }
    server = new_server(at(guarded.url, tenants=tenants))
    assert (await server.start()).status == "listed"
    used = {}
    for tenant in ("green", "blue"):
        before = len(guarded.seen())
        async with server.session(tenant, "s") as session:
            await session.call("slow", {"seconds": 0}, {})
        used[tenant] = {line["authorization"] for line in guarded.seen()[before:]}
    assert used == {name: {f"Bearer token-of-{name}"} for name in ("green", "blue")}
    for _ in range(3):
        with pytest.raises(ServerUnavailable, match="answered 401"):
            async with server.session("grey", "s"):
                raise AssertionError
    with pytest.raises(ServerUnavailable, match="no credentials for the tenant red"):
        async with server.session("red", "s"):
            raise AssertionError
    async with server.session("green", "s") as session:
        assert (await session.call("slow", {"seconds": 0}, {})).is_error is False
    assert {record.status for record in listings} == {"listed"}
    await server.close()


async def test_oauth_client_credentials_get_a_token_and_another_when_it_is_revoked(
    new_server: NewServer, guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = new_server(at(guarded.url, oauth=guarded.oauth()))
    assert (await server.start()).status == "listed"
    assert len(guarded.seen("/token")) == 1
    token = guarded.seen()[-1]["authorization"].removeprefix("Bearer ")
    guarded.revoke(token)
    answers = await asyncio.gather(*(ask(server, "slow", seconds=0.3) for _ in range(6)))
    assert {status for status, _, _ in answers} == {"ok"}
    assert len(guarded.seen("/token")) == 2, "one renewal for all"
    _, result, _ = await ask(server, "who")
    assert "access-token" not in str(result)
    await server.close()
    assert not [secret for secret in (token, CLIENT_SECRET) if secret in caplog.text]


async def test_a_token_that_is_given_out_again_is_used_again(new_server: NewServer, guarded: Guarded) -> None:
    """An authorization server may give the one that still holds; it is in its answer, and no echo."""
    guarded.give_out("access-token-4711")
    server = new_server(at(guarded.url, oauth=guarded.oauth()))
    assert (await ask(server, "slow", seconds=0))[0] == "ok"
    guarded.revoke("access-token-4711")
    _, _, error = await ask(server, "slow", seconds=0)
    assert error.code == "CREDENTIALS_REFUSED"
    guarded.revoke()
    assert (await ask(server, "slow", seconds=0))[0] == "ok"
    await server.close()


async def test_calls_with_oauth_run_at_the_same_time(new_server: NewServer, guarded: Guarded) -> None:
    server = new_server(at(guarded.url, oauth=guarded.oauth()))
    await server.start()
    answers = await asyncio.gather(*(ask(server, "meet") for _ in range(5)))
    assert [status for status, _, _ in answers] == ["ok"] * 5
    await server.close()


async def test_a_client_secret_that_is_refused_is_said_and_a_corrected_file_helps(
    new_server: NewServer, guarded: Guarded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "secret"
    path.write_text("wrong-secret-0815")
    server = new_server(at(guarded.url, oauth=guarded.oauth({"file": str(path)})))
    record = await server.start()
    assert f"no access token from {guarded.root}" in str(record.error)
    assert "check `oauth` of this server" in str(record.error)
    path.write_text(CLIENT_SECRET)
    assert (await eventually(server, "slow", seconds=0))[0] == "ok"
    await server.close()
    assert "wrong-secret-0815" not in caplog.text + str(record)


async def test_credentials_for_another_issuer_are_not_given_to_this_one(
    new_server: NewServer, guarded: Guarded
) -> None:
    given = guarded.oauth() | {"issuer": "https://login.example"}
    server = new_server(at(guarded.url, oauth=given))
    assert "no access token from https://login.example" in str((await server.start()).error)
    assert guarded.seen("/token") == []
    await server.close()
