"""The example server, over a real stdio connection."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, RequestParamsMeta, TextContent

from pml.deploy.examples import files_server
from pml.deploy.examples.files_server import ENTRIES_MAX, MATCHES_MAX
from pml.deploy.examples.formats import TEXT_MAX_BYTES
from tests.fixtures.patience import PATIENCE_S

SCRIPT = Path(files_server.__file__)
MODULE = ("-m", "pml.deploy.examples.files_server")


@asynccontextmanager
async def serving(root: Path, *options: str, how: tuple[str, ...] = MODULE) -> AsyncIterator[Client]:
    arguments = [*how, "--root", str(root), *options]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, cwd=os.sep)
    async with Client(stdio_client(parameters)) as client:
        yield client


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


def error(result: CallToolResult) -> str:
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def log_lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


async def test_it_lists_seven_tools_with_hints_and_output_schemas(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    reading = {"read_file", "list_dir", "search", "parse_json", "format"}
    assert set(tools) == reading | {"write_file", "delete_file"}
    for name, tool in tools.items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name in reading)
        assert tool.annotations.destructive_hint is (name not in reading)
        assert tool.annotations.open_world_hint is False
        assert tool.output_schema is not None
        assert tool.description


async def test_it_runs_as_a_script_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    async with serving(tmp_path, how=(str(SCRIPT),)) as client:
        read = structured(await client.call_tool("read_file", {"path": "a.txt"}))
    assert read == {"path": "a.txt", "text": "one\ntwo\n", "size_bytes": 8, "lines": 2}


async def test_what_is_written_is_read_listed_found_and_deleted(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        document = {"path": "notes/a.md", "content": "# A\nfirst\nsecond Å\n"}
        first = structured(await client.call_tool("write_file", document))
        again = structured(await client.call_tool("write_file", document))
        listed = structured(await client.call_tool("list_dir", {"path": ".", "recursive": True}))
        found = structured(await client.call_tool("search", {"path": "notes", "text": "SECOND å"}))
        folded = {"path": ".", "text": "SECOND å", "ignore_case": True}
        found_folded = structured(await client.call_tool("search", folded))
        gone = structured(await client.call_tool("delete_file", {"path": "notes/a.md"}))
        missing = error(await client.call_tool("delete_file", {"path": "notes/a.md"}))
    assert (first["created"], again["created"]) == (True, False)
    assert first["size_bytes"] == again["size_bytes"] == gone["size_bytes"] == 20
    assert [(e["path"], e["kind"]) for e in listed["entries"]] == [
        ("notes", "directory"),
        ("notes/a.md", "file"),
    ]
    assert found["matches"] == []
    assert found_folded["matches"] == [{"path": "notes/a.md", "line": 3, "text": "second Å"}]
    assert "not found" in missing
    assert list((tmp_path / "notes").iterdir()) == []


async def test_no_path_leaves_the_folder(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("kept")
    (root / "file").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    leaving = ["../outside/secret", "a/../../outside/secret", str(outside / "secret"), "x\0y", "x" * 1_001]
    linked = ["file", "folder/secret", "folder/new", "loop"]
    async with serving(root) as client:
        for path in [*leaving, *linked]:
            expected = "Permission denied" if path in linked else "Invalid path"
            assert expected in error(await client.call_tool("read_file", {"path": path}))
            assert expected in error(await client.call_tool("write_file", {"path": path, "content": "x"}))
            assert expected in error(await client.call_tool("delete_file", {"path": path}))
            assert expected in error(await client.call_tool("list_dir", {"path": path}))
            assert expected in error(await client.call_tool("search", {"path": path, "text": "kept"}))
        found = structured(await client.call_tool("search", {"path": ".", "text": "kept"}))
        listed = structured(await client.call_tool("list_dir", {"path": ".", "recursive": True}))
    assert found["matches"] == []
    assert [entry["kind"] for entry in listed["entries"]] == ["link", "link", "link"]
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret": "kept"}


async def test_sizes_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * (TEXT_MAX_BYTES + 1))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "hits").write_text("hit\n" * (MATCHES_MAX + 1))
    os.mkfifo(tmp_path / "pipe")
    many = tmp_path / "many"
    many.mkdir()
    for number in range(ENTRIES_MAX + 1):
        (many / f"{number:04}").touch()
    async with serving(tmp_path) as client:
        assert "larger than" in error(await client.call_tool("read_file", {"path": "large"}))
        assert "no UTF-8" in error(await client.call_tool("read_file", {"path": "binary"}))
        assert "no regular file" in error(await client.call_tool("read_file", {"path": "pipe"}))
        oversized = {"path": "new", "content": "x" * (TEXT_MAX_BYTES + 1)}
        assert "larger than" in error(await client.call_tool("write_file", oversized))
        listed = structured(await client.call_tool("list_dir", {"path": "many"}))
        found = structured(await client.call_tool("search", {"path": ".", "text": "hit"}))
        passed_over = structured(await client.call_tool("search", {"path": ".", "text": "absent"}))
    assert (listed["count"], listed["truncated"]) == (ENTRIES_MAX, True)
    assert (found["count"], found["truncated"]) == (MATCHES_MAX, True)
    assert (passed_over["files_skipped"], passed_over["truncated"]) == (2, False)
    assert not (tmp_path / "new").exists()


async def test_json_is_parsed_or_refused_with_the_place(tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        parsed = structured(await client.call_tool("parse_json", {"text": '{"a": [1, {"b": null}]}'}))
        broken = error(await client.call_tool("parse_json", {"text": '{"a": 1\n "b": 2}'}))
        table = {"data": [{"a": 1, "b": "x|y"}], "syntax": "markdown_table"}
        formatted = structured(await client.call_tool("format", table))
    assert parsed == {"kind": "object", "keys": ["a"], "value": {"a": [1, {"b": None}]}}
    assert "line 2 column 2" in broken
    assert formatted["text"] == "| a   | b    |\n| --- | ---- |\n| 1   | x\\|y |\n"


async def test_the_log_has_two_lines_a_call(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    root = tmp_path / "root"
    root.mkdir()
    early: RequestParamsMeta = {"pml/call-id": "call_1", "pml/speculative": True}  # type: ignore[typeddict-unknown-key]
    asked: RequestParamsMeta = {"pml/call-id": "call_2", "pml/speculative": False}  # type: ignore[typeddict-unknown-key]
    async with serving(root, "--log", str(log)) as client:
        await client.call_tool("write_file", {"path": "a", "content": "secret"}, meta=asked)
        await client.call_tool("read_file", {"path": "a"}, meta=early)
        await client.call_tool("read_file", {"path": "b"})
        await client.call_tool("read_file", {"path": "a"}, meta=early)
    begun = [line for line in log_lines(log) if line["ended_at"] is None]
    ended = [line for line in log_lines(log) if line["ended_at"] is not None]
    assert [(line["tool"], line["call_id"], line["speculative"]) for line in begun] == [
        ("write_file", "call_2", False),
        ("read_file", "call_1", True),
        ("read_file", None, False),
        ("read_file", "call_1", True),
    ]
    assert [line["outcome"] for line in ended] == ["ok", "ok", "error", "ok"]
    assert [line["call"] for line in begun] == [line["call"] for line in ended]
    assert all(line["started_at"] <= line["ended_at"] for line in ended)
    assert begun[1]["arguments_digest"] == begun[3]["arguments_digest"] != begun[2]["arguments_digest"]
    assert "secret" not in log.read_text()


async def test_a_call_is_in_the_log_before_its_effect(tmp_path: Path) -> None:
    """The log is the folder's own file, so a call that reads it sees its own first line."""
    log = tmp_path / "calls.jsonl"
    async with serving(tmp_path, "--log", str(log)) as client:
        read = structured(await client.call_tool("read_file", {"path": "calls.jsonl"}))
    (seen,) = (json.loads(line) for line in read["text"].splitlines())
    assert (seen["tool"], seen["ended_at"]) == ("read_file", None)


async def test_calls_at_once_keep_the_log_whole(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    async with serving(tmp_path, "--log", str(log)) as client:
        contents = {f"f{number}": f"{number}" * 100 for number in range(30)}
        writes = [client.call_tool("write_file", {"path": p, "content": c}) for p, c in contents.items()]
        results = await asyncio.gather(*writes)
    assert not any(result.is_error for result in results)
    assert len(log_lines(log)) == 60
    assert {path: (tmp_path / path).read_text() for path in contents} == contents


@pytest.mark.parametrize("root", ["missing", "file"])
def test_a_folder_that_cannot_be_served_is_said_at_the_start(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").touch()
    command = [sys.executable, *MODULE, "--root", str(tmp_path / root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert root in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_deleted_meanwhile_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stays.txt", "goes.txt", "folder/inside.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    children = files_server._children

    def deleted_behind(start: Path) -> list[os.DirEntry[str]]:
        found = list(children(start))
        (tmp_path / "goes.txt").unlink(missing_ok=True)
        shutil.rmtree(tmp_path / "folder", ignore_errors=True)
        return found

    monkeypatch.setattr(files_server, "_children", deleted_behind)
    tools = files_server.FileTools(tmp_path)
    assert [entry.path for entry in tools.list_dir(".", recursive=True).entries] == ["stays.txt"]
    assert tools.search(".", "text").files_searched == 1
