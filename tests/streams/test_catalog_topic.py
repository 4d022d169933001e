import asyncio
import json
import os
import sys
import uuid
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from pml.schemas.catalog import CatalogRecord, ServerTools, ThresholdOverride, Tool, ToolHints
from pml.schemas.codec import encode
from pml.schemas.errors import UnknownMessage
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
from pml.streams.learning.promotion import roll_back
from pml.streams.learning.pruning import prune
from pml.streams.projections.thresholds.reader import contexts
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.tool_listing import tool_rows
from pml.streams.topics import ensure_topics
from pml.streams.unreadable import once, telling

GIT = ServerTools(
    server="git",
    status="listed",
    tools=(Tool(name="log", definition="a" * 64, hints=ToolHints(read_only=True)), Tool(name="reset")),
)
GONE = ServerTools(server="mail", status="unavailable", error="its command does not exist")


RUBBISH = {
    b"tool/mail": b"rubbish",
    b"\xff\x1b[31m": b"\xff\x00",
    b"speed/light": b'{"kind": "speed", "id": "light", "version": 1, "data": {}}',
    b"model/local": b'{"kind": "model", "id": "local", "version": 99, "data": {}}',
    b"threshold/nowhere": b'{"kind": "threshold", "id": "nowhere", "version": 1, "data": {}}',
}


@pytest.fixture
async def strewn(kafka: str, tmp_path: Path) -> Settings:
    """A catalog with one good record among what nobody can read."""
    prefix = f"c{uuid.uuid4().hex[:8]}."
    settings = Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": kafka, "topic_prefix": prefix})
    await ensure_topics(settings)
    record = CatalogRecord(kind=GIT.KIND, id=GIT.server, data=GIT)
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        for key, value in {**RUBBISH, record.key: encode(record)}.items():
            await producer.send_and_wait(settings.topics.catalog, value, key)
    return settings


@pytest.mark.integration
async def test_what_cannot_be_read_is_passed_over_and_told(strewn: Settings) -> None:
    told: list[str] = []
    telling.set(once(told.append))
    for _ in range(2):
        assert servers_of(await read_catalog(strewn)) == {"git": GIT}
    (line,) = told
    assert f"{len(RUBBISH) - 1} more" in line
    assert line.isprintable()


@pytest.mark.integration
async def test_what_would_do_harm_if_it_were_missed_is_not_passed_over(strewn: Settings) -> None:
    for act in (prune(strewn, "local", 0), roll_back(strewn, "ann", "local")):
        with pytest.raises(UnknownMessage, match=r"'model/local' of .* cannot be read"):
            await act
    assert await prune(strewn, "acme", 0) == []


@pytest.mark.integration
@pytest.mark.parametrize(
    "command",
    [
        *(["tools", "list"], ["speculation", "status"], ["capability", "list"], ["model", "list"]),
        ["thresholds", "list"],
    ],
    ids=" ".join,
)
async def test_commands_tell_once_what_they_pass_over_and_go_on(strewn: Settings, command: list[str]) -> None:
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pml.streams.cli", *command, "--json"),
        env=dict(os.environ) | strewn.environment(),
        cwd=strewn.data_dir,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = (stream.decode() for stream in await done.communicate())
    assert done.returncode == 0, errors
    json.loads(output)
    (line,) = errors.splitlines()
    assert "passed over in" in line


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


def test_a_threshold_that_names_no_context_is_of_none() -> None:
    good, bad = (
        CatalogRecord(
            kind=ThresholdOverride.KIND,
            id=key,
            data=ThresholdOverride(
                tenant="local", level="default", value=0.5, principal="ann", changed_at="2026-01-01T00:00:00Z"
            ),
        )
        for key in ("local/default", "nowhere")
    )
    assert [item.key for item in contexts({b"\xff": good, b"x": bad}, {})] == ["local/default"]


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
