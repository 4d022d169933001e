import uuid
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from pml.schemas.catalog import CatalogRecord, ServerTools, Tool, ToolHints
from pml.schemas.codec import encode
from pml.schemas.permissions import PermissionFile
from pml.streams.catalog_topic import (
    SWITCH_ID,
    permissions_of,
    publish_switch,
    read_catalog,
    servers_of,
    switches_of,
)
from pml.streams.connection import producer_options
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.tool_listing import tool_rows
from pml.streams.topics import ensure_topics

GIT = ServerTools(
    server="git",
    status="listed",
    tools=(Tool(name="log", definition="a" * 64, hints=ToolHints(read_only=True)), Tool(name="reset")),
)
GONE = ServerTools(server="mail", status="unavailable", error="its command does not exist")


@pytest.mark.integration
async def test_the_newest_record_of_each_key_counts(kafka: str, tmp_path: Path) -> None:
    prefix = f"c{uuid.uuid4().hex[:8]}."
    settings = Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": kafka, "topic_prefix": prefix})
    await ensure_topics(settings)
    assert await read_catalog(settings) == {}
    assert switches_of({}) == {}
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        for data in (GIT, GONE):
            record = CatalogRecord(kind=data.KIND, id=data.server, data=data)
            await producer.send_and_wait(settings.topics.catalog, encode(record), record.key)
        await producer.send_and_wait(settings.topics.catalog, None, b"tool/mail")
    await publish_switch(settings, "on", "ann")
    await publish_switch(settings, "off", "ben")
    records = await read_catalog(settings)
    assert servers_of(records) == {"git": GIT}
    assert permissions_of(records) is None
    switch = switches_of(records)[SWITCH_ID]
    assert (switch.mode, switch.principal) == ("off", "ben")


def test_each_tool_is_listed_with_what_it_may_do_and_why_not() -> None:
    permissions = PermissionFile.model_validate(
        {"tools": {"git:log": {"scope": "readonly", "approval": "auto", "definition": "a" * 64}}}
    )
    rows = {row["tool"]: row for row in tool_rows({"git": GIT, "mail": GONE}, permissions)}
    assert (rows["git:log"]["allowed"], rows["git:log"]["speculable"]) == (True, True)
    assert not rows["git:log"]["asks_person"]
    assert (rows["git:reset"]["allowed"], rows["git:reset"]["asks_person"]) == (False, True)
    assert "pml tools approve git:reset" in rows["git:reset"]["why"]
    assert (rows[None]["server"], rows[None]["why"]) == ("mail", "its command does not exist")


def test_a_tool_that_changed_since_it_was_approved_may_not_run() -> None:
    permissions = PermissionFile.model_validate(
        {"tools": {"git:log": {"scope": "readonly", "approval": "auto", "definition": "b" * 64}}}
    )
    (row, _) = tool_rows({"git": GIT}, permissions)
    assert (row["allowed"], row["speculable"]) == (False, False)
    assert "changed since it was approved" in row["why"]
