"""What is found in the catalog of a real broker, as it is when somebody asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pml.schemas.discovery import DiscoverAnswer, DiscoverRequest
from pml.schemas.errors import BrokerUnavailable, PrerequisiteError, TopicMismatch
from pml.streams.discovery import sentence_embedding
from pml.streams.discovery.catalog_tail import CatalogTail
from pml.streams.discovery.finder import TENANTS_MAX, Finder
from pml.streams.discovery.kept_points import FILE
from pml.streams.settings import DiscoverySettings, Settings
from tests.fixtures.settings import folder_settings
from tests.processors.discovery.catalog_records import capability, permissions, renamed, server
from tests.streams.discovery.catalog_world import CatalogWorld, catalog_world

pytestmark = pytest.mark.integration
FILES = server("files", "read_file", "write_file")
TIDY = capability("tidy", "tidy up my folder", "files:read_file", "files:write_file")


@asynccontextmanager
async def asked_of(kafka: str, folder: Path) -> AsyncIterator[tuple[CatalogWorld, Finder]]:
    async with catalog_world(kafka, folder) as world:
        finder = world.finder()
        try:
            yield world, finder
        finally:
            await finder.close()


async def found(finder: Finder, intent: str, tenant: str = "local", **asked: object) -> DiscoverAnswer:
    return await finder.discover(tenant, DiscoverRequest.model_validate({"intent": intent, **asked}))


def ids(answer: DiscoverAnswer) -> list[str]:
    return [item.id for item in answer.items]


async def test_tools_and_capabilities_are_found_as_they_come_and_go(kafka: str, tmp_path: Path) -> None:
    async with asked_of(kafka, tmp_path) as (world, finder):
        nothing = await found(finder, "read a file")
        assert (nothing.items, nothing.total, nothing.complete) == ((), 0, True)
        await world.put(FILES, permissions(files__read_file={"approval": "auto"}))
        read, write = (await found(finder, "read a file")).items
        assert (read.id, read.name, read.type) == ("files:read_file", "read_file", "tool")
        assert (read.needs_approval, write.needs_approval) == (False, True)
        assert read.input_schema == {"type": "object", "properties": {"path": {"type": "string"}}}

        await world.put(TIDY)
        tidy = (await found(finder, "tidy up my folder")).items[0]
        assert (tidy.id, tidy.type, tidy.name) == ("cap_tidy", "capability", "tidy")
        assert tidy.tools == ("files:read_file", "files:write_file")
        assert tidy.definition is not None
        assert [task["tool"] for task in tidy.definition["tasks"]] == list(tidy.tools)
        assert [taken.name for taken in tidy.parameters] == ["path"]
        await world.put(renamed(TIDY, "spring_cleaning"))
        assert (await found(finder, "spring cleaning")).items[0].name == "spring_cleaning"

        await world.put(server("files", status="unavailable"))
        assert ids(await found(finder, "tidy up my folder")) == []
        await world.put(FILES)
        await world.put_raw(TIDY.key, None)
        assert set(ids(await found(finder, "tidy up my folder"))) == {"files:read_file", "files:write_file"}
    assert world.loads == 1


async def test_a_tenant_finds_nothing_of_another(kafka: str, tmp_path: Path) -> None:
    async with asked_of(kafka, tmp_path) as (world, finder):
        secret = capability("secret", "pay the secret supplier", "files:read_file", tenant="ann")
        # The same structure in both tenants has one id, and two intents.
        same = [
            capability("same", f"ship for {who}", "files:read_file", tenant=who) for who in ("ann", "bob")
        ]
        await world.put(FILES, secret, *same)
        for _ in range(2):
            mine = await found(finder, "pay the secret supplier", "ann")
            theirs = await found(finder, "pay the secret supplier", "bob")
            assert mine.items[0].id == "cap_secret"
            assert set(ids(theirs)) == {"files:read_file", "files:write_file", "cap_same"}
            assert "secret" not in theirs.model_dump_json()
            assert "ann" not in theirs.model_dump_json()
        assert set(ids(await found(finder, "pay", "carl"))) == {"files:read_file", "files:write_file"}
        assert b"secret" not in (world.settings.data_dir / FILE).read_bytes()


async def test_only_so_many_tenants_are_kept_and_all_are_answered(kafka: str, tmp_path: Path) -> None:
    async with asked_of(kafka, tmp_path) as (world, finder):
        tenants = [f"t{number}" for number in range(TENANTS_MAX + 2)]
        await world.put(
            FILES, *(capability(f"of_{name}", "x y", "files:read_file", tenant=name) for name in tenants)
        )
        for name in (*tenants, *tenants):
            answer = await found(finder, "x y", name, filter={"type": "capability"})
            assert ids(answer) == [f"cap_of_{name}"]
        assert len(finder._tenants) == TENANTS_MAX


async def test_pages_are_parts_of_one_order(kafka: str, tmp_path: Path) -> None:
    async with asked_of(kafka, tmp_path) as (world, finder):
        await world.put(server("s", *(f"tool_{number}" for number in range(7))))
        whole = await found(finder, "the tool")
        pages = [await found(finder, "the tool", limit=3, offset=offset) for offset in (0, 3, 6)]
        assert sum((page.items for page in pages), ()) == whole.items
        assert [page.next_offset for page in pages] == [3, 6, None]
        assert {page.total for page in pages} == {7}
        assert ids(await found(finder, "the tool", filter={"min_score": 1.0})) == []


async def test_many_ask_at_once_and_some_go_away(kafka: str, tmp_path: Path) -> None:
    async with asked_of(kafka, tmp_path) as (world, finder):
        await world.put(FILES, TIDY)
        leaving = [asyncio.create_task(found(finder, "tidy up")) for _ in range(20)]
        await asyncio.sleep(0)
        for task in leaving[::2]:
            task.cancel()
        answers = await asyncio.gather(*leaving, return_exceptions=True)
        assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[::2])
        assert {ids(answer)[0] for answer in answers[1::2]} == {"cap_tidy"}  # type: ignore[arg-type]
        assert ids(await found(finder, "tidy up"))[0] == "cap_tidy"


async def test_records_that_cannot_be_read_are_passed_over(kafka: str, tmp_path: Path) -> None:
    async with asked_of(kafka, tmp_path) as (world, finder):
        await world.put_raw(b"tool/broken", b"{")
        await world.put_raw(b"new/kind", b'{"kind": "new", "id": "kind", "version": 1, "data": {}}')
        await world.put(FILES)
        assert len((await found(finder, "read a file")).items) == 2


async def test_between_questions_nothing_is_fetched(kafka: str, tmp_path: Path) -> None:
    """A fetch that waits for records would hold up the next question on its connection."""
    async with catalog_world(kafka, tmp_path) as world:
        tail = CatalogTail(world.settings)
        await world.put(FILES)
        for _ in range(2):
            assert (await tail.read()).whole
            assert tail.fetches is False
        await tail.close()


async def test_after_the_connection_was_lost_it_reads_all_anew(kafka: str, tmp_path: Path) -> None:
    async with asked_of(kafka, tmp_path) as (world, finder):
        await world.put(FILES, TIDY)
        assert "cap_tidy" in ids(await found(finder, "tidy up"))
        await finder._tail.close()
        await world.put_raw(TIDY.key, None)
        assert "cap_tidy" not in ids(await found(finder, "tidy up"))
        assert world.loads == 1


async def test_without_a_catalog_it_says_so(kafka: str, tmp_path: Path) -> None:
    finder = Finder(folder_settings(tmp_path, kafka, "nowhere"))
    with pytest.raises(TopicMismatch, match="catalog"):
        await found(finder, "x")
    await finder.close()


async def test_without_a_broker_it_says_so(tmp_path: Path) -> None:
    finder = Finder(Settings(data_dir=tmp_path, kafka={"bootstrap_servers": "127.0.0.1:1"}))
    with pytest.raises(BrokerUnavailable):
        await found(finder, "x")
    await finder.close()


async def test_a_model_that_is_not_installed_is_told(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_embedding, "find_spec", lambda name: None)
    async with catalog_world(kafka, tmp_path) as world:
        named = world.settings.model_copy(update={"discovery": DiscoverySettings(model="all-MiniLM-L6-v2")})
        async with Finder(named) as finder:
            with pytest.raises(PrerequisiteError, match="sentence-transformers"):
                await found(finder, "x")
