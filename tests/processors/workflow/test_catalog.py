"""The snapshot a decision is taken with, and the full values it reads."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.speculation.guard import Grant, grant
from pml.processors.workflow import Catalog, Policy, payload_of
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.catalog import CatalogData, CatalogRecord, ServerTools, SpeculationSwitch, Tool, ToolHints
from pml.schemas.codec import encode
from pml.schemas.commands import Command, RunStart
from pml.schemas.errors import UndecodableRecord
from pml.schemas.topics import Topics
from tests.processors.session_world import KEY, catalog

TOPICS = Topics()


def test_a_newer_record_takes_the_place_of_the_older_one() -> None:
    gone = ServerTools(server="files", status="unavailable", error="it died")
    known = catalog()
    found = known.with_record(CatalogRecord(kind="tool", id="files", data=gone)).server_of("files:read_file")
    assert found is not None
    assert (found.status, found.error) == ("unavailable", "it died")
    assert known.server_of("nope:x") is None


def test_a_server_that_is_away_keeps_what_it_listed_last() -> None:
    tool = Tool(name="erase", hints=ToolHints(read_only=False), definition="erase-1")
    listed = ServerTools(server="disk", status="listed", tools=(tool,))
    gone = ServerTools(server="disk", status="unavailable", error="it died")
    found = catalog({"disk:*": {"scope": "readonly", "approval": "auto"}})
    for record in (listed, gone):
        found = found.with_record(CatalogRecord(kind="tool", id="disk", data=record))
    granted = grant("disk:erase", {}, found.permissions, found.server_of("disk:erase"))
    assert isinstance(granted, Grant)
    assert granted.effect == "write", "its hint still says that it writes"


def test_a_kind_that_decides_nothing_here_is_passed_over() -> None:
    found = catalog()
    assert found.with_record(CatalogRecord(kind="model", id="m", data=CatalogData())) is found


def test_a_tombstone_takes_back_what_was_said() -> None:
    switched = catalog().with_record(
        CatalogRecord(kind="switch", id="global", data=SpeculationSwitch(mode="off"))
    )
    assert switched.general_mode == "off"
    assert switched.without("switch", "global").general_mode == "on"
    assert "files" not in switched.without("tool", "files").servers
    assert switched.without("permission", "file").permissions.find("files:read_file") is None
    assert switched.without("model", "m") is switched


@pytest.mark.parametrize(
    ("policy", "mode"),
    [({}, "on"), ({"speculation_mode": "off"}, "off"), ({"budget_name": "off"}, "off")],
)
def test_speculation_is_on_unless_somebody_says_otherwise(policy: dict[str, Any], mode: str) -> None:
    assert Catalog(Policy(hash_key=KEY, **policy)).general_mode == mode


def test_a_full_value_is_read_from_where_it_rests() -> None:
    start = RunStart(context={"a": 1})
    command = Command(type="run.start", command_id="c", session_id="s", data=start)
    assert payload_of(TOPICS, "pml.commands", encode(command)) == start
    result = ToolResult(structured={"a": 1})
    outcome = CallEnded(call_id="c", tenant="t", session_id="s", status="ok", result=result)
    assert payload_of(TOPICS, "pml.tool-outcomes", encode(outcome)) == result
    assert payload_of(TOPICS, "pml.events", b"anything") is None
    with pytest.raises(UndecodableRecord):
        payload_of(TOPICS, "pml.commands", b"{")
