"""The snapshot a decision is taken with, and the full values it reads."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.speculation.guard import Grant, grant
from pml.processors.workflow import Catalog, Policy, payload_of
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.catalog import (
    BranchStats,
    Capability,
    CatalogData,
    CatalogRecord,
    DivergenceRecord,
    ServerTools,
    SpeculationSwitch,
    ThresholdOverride,
    ThresholdRecord,
    Tool,
    ToolHints,
)
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


def test_a_server_that_never_came_up_is_known_without_tools() -> None:
    gone = ServerTools(server="disk", status="unavailable", error="it does not start")
    found = catalog().with_record(CatalogRecord(kind="tool", id="disk", data=gone))
    assert found.server_of("disk:read") == gone


def test_only_a_tool_that_diverged_three_times_is_not_run_early_though_speculation_is_on() -> None:
    found = catalog()
    for name, count in (("files:search", 3), ("files:parse", 2), ("disk:unknown", 3)):
        diverged = DivergenceRecord(tool=name, diverged_at=("2023-11-14T22:13:20Z",) * count)
        found = found.with_record(CatalogRecord(kind=diverged.KIND, id=name, data=diverged))
    tools = ("files:search", "files:parse", "files:read_file", "disk:unknown")
    assert [found.mode_of("local", tool) for tool in tools] == ["off", "on", "on", "off"]


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


def learned(outcomes: int) -> ThresholdRecord:
    """What the projection publishes after so many outcomes."""
    window = {"previous": 0.92, "ema": 0.88, "success_rate": 1.0, "windows": 1, "outcomes": outcomes}
    told = {"state": "converged", "reason": "tuned", "changed_at": "2023-11-14T22:13:20.000000Z"}
    scope = {"tenant": "local", "level": "default"}
    return ThresholdRecord.model_validate({**scope, "value": 0.8, **window, **told})


@pytest.mark.parametrize(
    ("field", "data"),
    [
        ("divergences", DivergenceRecord(tool="files:search", diverged_at=("2023-11-14T22:13:20Z",))),
        ("thresholds", learned(50)),
        (
            "overrides",
            ThresholdOverride(tenant="local", level="default", value=0.5, changed_at="2023-11-14T22:13:20Z"),
        ),
        ("capabilities", Capability(tenant="local", name="c")),
        ("branches", BranchStats(tenant="local", workflow_type="w", decision_id="d", counts={"true": 1})),
    ],
)
def test_what_was_learned_or_set_is_known_until_its_tombstone(field: str, data: Any) -> None:
    known = catalog().with_record(CatalogRecord(kind=data.KIND, id="one", data=data))
    known = known.with_record(CatalogRecord(kind=data.KIND, id="two", data=data))
    assert set(getattr(known, field)) == {"one", "two"}
    assert set(getattr(known.without(data.KIND, "one"), field)) == {"two"}
    assert set(getattr(known.without(data.KIND, "none"), field)) == {"one", "two"}


def test_of_two_learned_thresholds_the_one_with_more_outcomes_holds_and_of_equals_the_newer() -> None:
    def value_after(*records: ThresholdRecord) -> float:
        found = catalog()
        for data in records:
            found = found.with_record(CatalogRecord(kind=data.KIND, id="local/default", data=data))
        return found.thresholds["local/default"].value

    changed = learned(50).model_copy(update={"value": 0.7})
    assert value_after(learned(50), changed) == 0.7
    assert value_after(learned(51), changed) == 0.8
    assert value_after(learned(49), changed) == 0.7


def test_limits_and_times_are_what_the_documentation_says() -> None:
    policy = Policy(hash_key=KEY)
    assert policy.task_timeout_ms == 30 * 1_000
    assert policy.queue_timeout_ms == 60 * 1_000
    assert policy.run_timeout_ms == policy.speculation_ttl_ms == policy.approval_timeout_ms == 300 * 1_000
    assert policy.bridge_grace_ms == 5 * 1_000
    assert policy.session_ttl_ms == 24 * 3_600 * 1_000
    assert policy.cache_bytes == 16 * 1_024 * 1_024
    assert (policy.runs_live_max, policy.runs_remembered_max, policy.commands_remembered_max) == (
        64,
        1_000,
        1_000,
    )
    assert (policy.decision_timeout_ms, policy.on_timeout) == (60 * 1_000, "abort")
    assert (policy.speculation_depth, policy.speculation_mode, policy.budget_name) == (1, "on", "normal")
    assert (policy.verified_share, policy.memory_influence, policy.four_eyes) == (0, "off", False)


TOOL, OTHER = Tool(name="erase", definition="erase-1"), Tool(name="format", definition="format-1")


@pytest.mark.parametrize(
    ("status", "tools", "known"),
    [
        ("listed", (), ()),
        ("listed", (OTHER,), (OTHER,)),
        ("unavailable", (), (TOOL,)),
        ("unavailable", (OTHER,), (OTHER,)),
    ],
)
def test_only_a_server_that_is_away_and_names_no_tools_is_known_by_what_it_listed_last(
    status: Any, tools: tuple[Tool, ...], known: tuple[Tool, ...]
) -> None:
    found = catalog()
    for data in (
        ServerTools(server="disk", status="listed", tools=(TOOL,)),
        ServerTools(server="disk", status=status, tools=tools),
    ):
        found = found.with_record(CatalogRecord(kind="tool", id="disk", data=data))
    assert (found.servers["disk"].status, found.servers["disk"].tools) == (status, known)
