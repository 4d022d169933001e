"""`pml_discover`: over a real catalog, for two tenants, and always small enough."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client

from pml.schemas.discovery import Discovered
from pml.streams.gateway.callers import Caller
from pml.streams.mcp_server.bounds import ANSWER_BYTES_MAX, wire_bytes
from pml.streams.mcp_server.discover import FOUND_BYTES_MAX, FoundAnswer, fitting_items
from pml.streams.mcp_server.door import LOCAL_AGENT
from pml.streams.mcp_server.server import told
from pml.streams.mcp_server.tools import TOOLS
from tests.processors.discovery.catalog_records import capability, permissions, server
from tests.streams.discovery.catalog_world import CatalogWorld, catalog_world
from tests.streams.mcp_server.clients import connected

FILES = server("files", "read_file", "write_file")
WIDE = st.text(alphabet=st.sampled_from('a"\\\né😀\x01'), min_size=1, max_size=8)


@asynccontextmanager
async def agent(world: CatalogWorld, folder: Path, tenant: str) -> AsyncIterator[Client]:
    caller = Caller(tenant, "agent:a", LOCAL_AGENT.scopes)
    async with world.finder() as finder, connected(folder, caller, finder=finder) as client:
        yield client


async def asked(client: Client, name: str, **arguments: Any) -> Any:
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer.structured_content
    return answer.structured_content


@pytest.mark.integration
async def test_each_tenant_finds_the_tools_and_its_own_capabilities(kafka: str, tmp_path: Path) -> None:
    async with catalog_world(kafka, tmp_path) as world:
        mine = capability("tidy", "tidy up my folder", "files:read_file", tenant="ann", code="x = 1")
        await world.put(FILES, permissions(files__read_file={"approval": "auto"}), mine)
        async with agent(world, tmp_path, "ann") as ann, agent(world, tmp_path, "bob") as bob:
            first = (await asked(ann, "pml_discover", intent="tidy up my folder"))["items"][0]
            assert (first["id"], first["type"], first["code"]) == ("cap_tidy", "capability", "x = 1")
            assert first["definition"]["tasks"][0]["tool"] == "files:read_file"
            assert first["shortened"] == []
            theirs = await asked(bob, "pml_discover", intent="tidy up my folder")
            assert {item["id"] for item in theirs["items"]} == {"files:read_file", "files:write_file"}
            assert (theirs["total"], theirs["next_offset"], theirs["complete"]) == (2, None, True)


@pytest.mark.integration
async def test_an_intent_alone_is_answered_with_suggestions_and_runs_nothing(
    kafka: str, tmp_path: Path
) -> None:
    async with catalog_world(kafka, tmp_path) as world:
        await world.put(FILES)
        async with agent(world, tmp_path, "ann") as client:
            answer = await client.call_tool("pml_execute", {"intent": "read a file"})
    told_ = answer.structured_content
    assert not answer.is_error
    assert (told_["status"], told_["run_id"], told_["tasks"]) == ("suggestions", None, [])
    assert next(item["id"] for item in told_["suggestions"]) == "files:read_file"
    assert "Nothing ran" in told_["notice"]
    assert "files:read_file(path) (a person is asked)" in answer.content[0].text


def found(text: str, repeat: int, fields: int) -> Discovered:
    long = text * repeat
    properties = {f"{text}{number}": {"type": "string", "description": long} for number in range(fields)}
    return Discovered(
        type="tool",
        id=f"s:{long[:900]}",
        name=long,
        score=0.5,
        description=long,
        input_schema={"type": "object", "properties": properties},
        output_schema={"type": "object", "properties": properties},
        code=long,
        definition={"tasks": [long]},
        tools=(long,) * 3,
    )


@settings(max_examples=40, deadline=None)
@given(text=WIDE, repeat=st.integers(1, 3_000), fields=st.integers(0, 60), count=st.integers(0, 50))
def test_whatever_tools_say_of_themselves_an_answer_has_room(
    text: str, repeat: int, fields: int, count: int
) -> None:
    items = [found(text, repeat, fields) for _ in range(count)]
    kept = fitting_items(items, FOUND_BYTES_MAX)
    answer = told(TOOLS["pml_discover"], FoundAnswer(items=kept, total=count))
    assert wire_bytes(answer.model_dump(mode="json", by_alias=True)) <= ANSWER_BYTES_MAX
    assert bool(kept) == bool(items)


def test_nothing_is_cut_that_has_room() -> None:
    item = found("a", 100, 3)
    assert fitting_items([item], FOUND_BYTES_MAX) == (item,)


def test_what_is_cut_is_named_and_fields_keep_their_types() -> None:
    large = found("a", 900, 20)
    (kept, *_) = fitting_items([large] * 5, FOUND_BYTES_MAX)
    assert {"description", "input_schema", "output_schema"} <= set(kept.shortened)
    assert kept.input_schema is not None
    assert list(kept.input_schema["properties"].values()) == [{"type": "string"}] * 20
    assert kept.description.endswith("…")
