"""What a server was started with: which of it is secret, and that nothing but a result repeats it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from structlog.testing import capture_logs

from pml.schemas.calls import CallEnded
from pml.schemas.sanitiser import REDACTED
from pml.streams.bridge.call import Call
from pml.streams.bridge.http_failure import NOT_SENT
from pml.streams.bridge.runner import Runner
from pml.streams.bridge.secret_values import Passage, SecretValues
from pml.streams.bridge.server import Server
from pml.streams.bridge.server_specs import StdioServer
from pml.streams.bridge.session import reason
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.conftest import SERVERS, NewServer
from tests.streams.bridge.running import run, until

SECRET = "tulip-meadow-7"
SAID = "level 1: bad credentials [REDACTED]"


@pytest.fixture
def telling(new_server: NewServer) -> Server:
    """A server that repeats its token in everything that it says."""
    given = {"command": sys.executable, "args": [str(SERVERS / "telling_server.py")]}
    return new_server(StdioServer.model_validate(given | {"env": {"TOKEN": SECRET, "DEBUG": "1"}}), "telling")


async def called(server: Server, tool: str) -> CallEnded:
    """What a call is answered by the bridge."""

    async def nobody(late: CallEnded) -> None:
        raise AssertionError(late)

    claims: Any = None  # the call is a safe one
    runner = Runner({server.name: server}, 64 * 1024, nobody)
    async with asyncio.timeout(PATIENCE_S):
        ended = await runner.run(Call.of(run(f"{server.name}:{tool}"), 0, 0, 0), claims)
    assert ended is not None
    return ended


@pytest.mark.parametrize("tool", ["fail", "refuse", "misread", "give_up"])
async def test_the_error_of_a_call_is_without_what_the_server_was_started_with(
    telling: Server, tool: str
) -> None:
    ended = await called(telling, tool)
    assert ended.error is not None
    assert SAID in ended.error.message
    assert SECRET not in repr(ended.error)
    await telling.close()


async def test_a_result_is_what_the_server_answered_also_where_the_tool_failed(telling: Server) -> None:
    """It goes to who called; PML changes no result."""
    for tool in ("tell", "fail"):
        ended = await called(telling, tool)
        assert ended.result is not None
        assert ended.result.content[0]["text"] == f"level 1: bad credentials {SECRET}"
    await telling.close()


async def test_the_catalog_is_without_what_the_server_was_started_with(telling: Server) -> None:
    record = await telling.start()
    tool = record.tools[0]
    assert (tool.description, tool.title, tool.hints.title, tool.hints.read_only) == (SAID, SAID, SAID, True)
    assert tool.input_schema["properties"]["key"] == {"type": "string", "default": "[REDACTED]"}
    assert SECRET not in repr(record)
    await telling.close()


async def test_the_logs_are_without_what_the_server_was_started_with(
    telling: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own, which it writes in pieces, and ours, where the SDK says what it cannot read."""
    caplog.set_level("WARNING")
    path = tmp_path / "log" / "mcp" / "telling.log"
    assert (await called(telling, "tell")).status == "ok"
    await until(lambda: "and half of it: [REDACTED]" in path.read_text().replace("\n[", "["))
    await until(lambda: f"printed by mistake: {SAID}" in path.read_text())
    await until(lambda: "Failed to validate notification" in caplog.text)
    await telling.close()
    assert SECRET[:9] not in path.read_text() + caplog.text


async def test_a_list_that_is_refused_is_logged_without_what_the_server_was_started_with(
    telling: Server,
) -> None:
    with capture_logs() as logged:
        assert (await called(telling, "grown")).status == "ok"
        await until(lambda: "tools not listed again" in [line["event"] for line in logged])
    assert SAID in repr(logged)
    assert SECRET not in repr(logged)
    await telling.close()


def test_a_server_that_says_at_its_start_that_nothing_was_sent_is_quoted_without_its_token() -> None:
    said = reason(MCPError(NOT_SENT, f"bad credentials {SECRET}"), SecretValues.of({"TOKEN": SECRET}))
    assert said == "cannot be used: bad credentials [REDACTED]"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("TOKEN", SECRET, SECRET),
        ("DB_PASS", "correct horse battery", "correct horse battery"),
        ("SETTING", "x7tulip9meadow", "x7tulip9meadow"),
        ("AUTHORIZATION", f"Bearer {SECRET}", SECRET),
        ("HEADERS", json.dumps({"Authorization": f"Bearer {SECRET}"}), SECRET),
        ("SETTINGS", json.dumps({"level": "debug", "more": ["x7tulip9meadow"]}), "x7tulip9meadow"),
        ("DATABASE_URL", f"postgres://pml:{SECRET}@db/x", SECRET),
        ("SERVICE", f"https://example.com/a?api_key={SECRET}", SECRET),
    ],
)
def test_what_names_or_looks_like_a_secret_is_taken_out(name: str, value: str, secret: str) -> None:
    told = SecretValues.of({name: value}).taken_from(f"no: {value}, {secret}!")
    assert secret not in told
    assert told.startswith("no: [REDACTED]" if value == secret else "no: ")


@pytest.mark.parametrize(
    "value",
    [
        *("1", "true", "en", "debug", "production", "en_US.UTF-8", "Europe/Berlin", "eu-west-1", "read only"),
        *(
            "2026-01-31",
            "123456789012",
            "/usr/bin",
            "/usr/local/bin:/usr/bin",
            "~/notes/2026a",
            "../x1y2z3w4",
        ),
        *("http://localhost:8080/mcp", "me@example.com", '{"level": "a plain word"}', ""),
    ],
)
def test_what_an_error_may_well_say_stays(value: str) -> None:
    assert SecretValues.of({"SETTING": value}).taken_from(f"no {value} there") == f"no {value} there"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--token", SECRET],
        [f"--api-key={SECRET}"],
        ["-e", f"TOKEN={SECRET}"],
        [f"postgres://u:{SECRET}@db/x"],
    ],
)
def test_secrets_of_the_command_line_are_taken_out_and_its_other_words_stay(arguments: list[str]) -> None:
    secrets = SecretValues.of({}, ["-y", "a-server-of-9tulips", "/work/notes", *arguments])
    told = secrets.taken_from(f"a-server-of-9tulips in /work/notes: not {SECRET}")
    assert told == "a-server-of-9tulips in /work/notes: not [REDACTED]"


@given(st.text(st.sampled_from('ab/"é +%\n7'), min_size=8))
def test_a_secret_is_found_however_it_is_written(secret: str) -> None:
    secrets = SecretValues.of({"PASSWORD": secret})
    for written in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        assert secrets.taken_from(f"<{written}>") == "<[REDACTED]>"
    assert secrets.taken_from_bytes(f"<{secret}>".encode()) == b"<[REDACTED]>"


def test_a_secret_that_is_part_of_another_leaves_nothing_of_it() -> None:
    secrets = SecretValues.of({"TOKEN": SECRET, "OTHER_TOKEN": f"{SECRET}-and-more"})
    assert secrets.taken_from(f"{SECRET}-and-more or {SECRET}") == "[REDACTED] or [REDACTED]"


def test_what_a_schema_demands_of_a_value_stays_since_who_calls_has_to_say_it() -> None:
    secrets = SecretValues.of({"WORKSPACE": "T0123456789"})
    demanded = {"enum": ["T0123456789", "all"], "description": "T0123456789 or all"}
    schema = {"properties": {"enum": demanded, "default": {"const": "T0123456789"}}}
    told = secrets.taken_from_tool(schema)
    assert told["properties"]["enum"] == demanded | {"description": f"{REDACTED} or all"}
    assert told["properties"]["default"] == {"const": "T0123456789"}


def test_nothing_shows_the_values() -> None:
    assert SECRET not in repr(SecretValues.of({"TOKEN": SECRET}))


@given(st.lists(st.sampled_from([SECRET, SECRET[:5], SECRET[5:], "x", " "])), st.data())
def test_where_a_text_is_cut_does_not_matter(words: list[str], data: st.DataObject) -> None:
    secrets, text = SecretValues.of({"TOKEN": SECRET}), ("".join(words) + ".").encode()
    passage, told = Passage(secrets), b""
    while text:
        size = data.draw(st.integers(1, len(text)))
        told, text = told + passage.feed(text[:size]), text[size:]
    whole = ("".join(words) + ".").encode()
    assert told + passage.rest() == secrets.taken_from_bytes(whole)


def test_what_is_no_secret_is_not_held_back_and_most_of_one_is_not_told() -> None:
    passage = Passage(SecretValues.of({"TOKEN": SECRET}))
    assert passage.feed(b"exit t") == b"exit "
    assert passage.rest() == b"t"
    assert passage.feed(f"exit {SECRET[:-1]}".encode()) == b"exit "
    assert passage.rest() == b"[REDACTED]"
    assert passage.rest() == b""
