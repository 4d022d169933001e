"""The snapshot a decision is taken with, and the full values it reads."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow import Catalog, Policy, payload_of
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.catalog import CatalogData, CatalogRecord, ServerTools, SpeculationSwitch
from pml.schemas.codec import encode
from pml.schemas.commands import Command, RunStart
from pml.schemas.errors import UndecodableRecord
from pml.schemas.topics import Topics
from tests.processors.session_world import KEY, catalog

TOPICS = Topics()


def test_a_newer_record_takes_the_place_of_the_older_one() -> None:
    gone = ServerTools(server="files", status="unavailable", error="it died")
    found = catalog().with_record(CatalogRecord(kind="tool", id="files", data=gone))
    assert found.server_of("files:read_file") == gone
    assert found.server_of("nope:x") is None


def test_a_kind_that_decides_nothing_here_is_passed_over() -> None:
    found = catalog()
    assert found.with_record(CatalogRecord(kind="model", id="m", data=CatalogData())) is found


def test_a_tombstone_takes_back_what_was_said() -> None:
    switched = catalog().with_record(
        CatalogRecord(kind="switch", id="global", data=SpeculationSwitch(mode="off"))
    )
    assert not switched.speculates
    assert switched.without("switch", "global").speculates
    assert "files" not in switched.without("tool", "files").servers
    assert switched.without("permission", "file").permissions.find("files:read_file") is None
    assert switched.without("model", "m") is switched


@pytest.mark.parametrize(
    ("policy", "speculates"),
    [({}, True), ({"speculation_mode": "off"}, False), ({"budget_name": "off"}, False)],
)
def test_speculation_is_on_unless_somebody_says_otherwise(policy: dict[str, Any], speculates: bool) -> None:
    assert Catalog(Policy(hash_key=KEY, **policy)).speculates is speculates


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
