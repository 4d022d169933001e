"""Capabilities as people see them, from the records of a catalog."""

from __future__ import annotations

from typing import Any

import pytest

from pml.schemas.catalog import (
    Capability,
    CapabilityName,
    CatalogData,
    CatalogRecord,
    Edge,
    PermissionRecord,
    ServerTools,
    Tool,
)
from pml.schemas.errors import ConfigurationError
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Task
from pml.streams.capability_listing import (
    NoSuchCapability,
    check_name,
    chosen,
    listed,
    surrounded,
)

PERMISSIONS = {
    "f:read": {"scope": "readonly", "approval": "auto"},
    "f:write": {"scope": "filesystem", "approval": "auto", "effect": "write"},
    "f:delete": {"scope": "filesystem", "approval": "hil", "effect": "write"},
}


def records(*capabilities: Capability, names: tuple[CapabilityName, ...] = ()) -> dict[bytes, CatalogRecord]:
    tools = tuple(Tool(name=name) for name in ("read", "write", "delete", "new"))
    file = PermissionFile.model_validate({"version": 1, "tools": PERMISSIONS})
    data: list[tuple[str, CatalogData]] = [
        ("f", ServerTools(server="f", status="listed", tools=tools)),
        ("permissions", PermissionRecord(file=file, hash="h")),
    ]
    data += [(f"{item.tenant}/{item.capability_id}", item) for item in (*capabilities, *names)]
    found = [CatalogRecord(kind=item.KIND, id=name, data=item) for name, item in data]
    return {record.key: record for record in found}


def capability(name: str, *tools: str, tenant: str = "local", **fields: Any) -> Capability:
    tasks = tuple(Task(id=f"n{number}", tool=tool) for number, tool in enumerate(tools, start=1))
    return Capability(tenant=tenant, name=name, capability_id=f"cap_{name}", tasks=tasks, **fields)


@pytest.mark.parametrize(
    ("tools", "approval", "effect", "speculable"),
    [
        (("f:read",), "auto", "read", True),
        (("f:read", "f:write"), "auto", "write", False),
        (("f:read", "f:delete"), "hil", None, False),
        (("f:new", "f:delete"), "refused", None, False),
        (("g:read",), "refused", None, False),
    ],
)
def test_the_worst_of_its_tools_is_told(
    tools: tuple[str, ...], approval: str, effect: str | None, speculable: bool
) -> None:
    (item,) = listed(records(capability("notes", *tools)), "local")
    assert (item.approval, item.effect, item.speculable) == (approval, effect, speculable)
    assert bool(item.why) is not speculable


def test_what_others_do_for_it_counts_too() -> None:
    inner = capability("wipe", "f:read", "f:write")
    outer = Capability(
        tenant="local", name="tidy", capability_id="cap_tidy", tasks=(Task(id="c1", capability="wipe"),)
    )
    tidy, wipe = listed(records(inner, outer), "local")
    assert (tidy.approval, tidy.effect, tidy.speculable) == ("auto", "write", False)
    assert tidy.why == wipe.why


def test_a_tenant_sees_its_own_under_the_names_that_people_gave() -> None:
    given = CapabilityName(tenant="local", capability_id="cap_notes", name="peek")
    foreign = CapabilityName(tenant="other", capability_id="cap_list", name="theirs")
    found = records(
        capability("notes", "f:read"),
        capability("list", "f:read"),
        capability("secret", "f:read", tenant="other"),
        names=(given, foreign),
    )
    assert [item.name for item in listed(found, "local")] == ["list", "peek"]
    assert [item.name for item in listed(found, "other")] == ["secret"]


def test_one_is_chosen_by_name_or_id() -> None:
    found = listed(records(capability("notes", "f:read")), "local")
    assert chosen(found, "notes") is chosen(found, "cap_notes")
    with pytest.raises(NoSuchCapability, match="pml capability list"):
        chosen(found, "note")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("taken", "is taken; free is taken-2"),
        ("Not A Name", "free is not-a-name"),
        ("", "free is capability"),
    ],
)
def test_a_name_that_cannot_be_given_is_refused_with_one_that_can(name: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        check_name(name, {"taken"})
    check_name("release-notes-2", {"taken"})


def edge(kind: str, source: str, target: str, tenant: str = "local") -> CatalogRecord:
    given = {"tenant": tenant, "type": kind, "source": source, "target": target, "weight": 0.5, "runs": 1}
    return CatalogRecord(
        kind="edge", id=f"{tenant}/{kind}/{source}/{target}", data=Edge.model_validate(given)
    )


def test_one_is_shown_with_its_neighbours_and_no_other_tenants() -> None:
    given = CapabilityName(tenant="local", capability_id="cap_notes", name="diary")
    found = records(capability("notes", "f:read"), capability("outer"), names=(given,))
    told = (
        edge("contains", "cap_outer", "diary"),
        edge("sequence", "f:read", "f:write"),
        edge("sequence", "f:write", "f:new"),
        edge("sequence", "f:read", "f:delete", tenant="other"),
    )
    shown = surrounded(found | {record.key: record for record in told}, "local", "diary")
    assert [(each.source, each.target) for each in shown.neighbours] == [
        ("cap_outer", "diary"),
        ("f:read", "f:write"),
    ]
    assert shown.names == {"cap_notes": "diary", "cap_outer": "outer"}
    assert shown.edges()[0] == {
        "type": "contains",
        "source": "cap_outer",
        "target": "diary",
        "weight": 0.5,
        "runs": 1,
        "successes": 0,
        "coverage": None,
        "fields": [],
    }
