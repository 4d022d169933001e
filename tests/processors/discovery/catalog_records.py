"""Records of the catalog as bridges and projections write them."""

from __future__ import annotations

from typing import Any

from pml.schemas.catalog import (
    Capability,
    CapabilityName,
    CatalogRecord,
    Edge,
    PermissionRecord,
    ServerTools,
    Tool,
)
from pml.schemas.permissions import PermissionFile
from pml.schemas.structure import StructureParameter
from pml.schemas.workflow import Task


def server(name: str, *tools: str, status: str = "listed") -> CatalogRecord:
    """A server whose tools say of themselves what their names say."""
    listed = tuple(
        Tool(
            name=tool,
            description=tool.replace("_", " "),
            input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
        )
        for tool in tools
    )
    data = ServerTools.model_validate({"server": name, "status": status, "tools": listed})
    return CatalogRecord(kind="tool", id=name, data=data)


def capability(name: str, intent: str, *tools: str, tenant: str = "local", **fields: Any) -> CatalogRecord:
    """A learned capability `cap_NAME` that calls these tools, one after the other."""
    tasks = tuple(
        Task(id=f"n{number}", tool=tool, arguments={"path": {"type": "parameter", "parameter_name": "path"}})
        for number, tool in enumerate(tools, start=1)
    )
    given = {
        "tenant": tenant,
        "name": name,
        "capability_id": f"cap_{name}",
        "status": "learned",
        "intent": intent,
        "tasks": tasks,
        "parameters": (StructureParameter(name="path", required=False, default="a.txt"),),
        "runs": 1,
        "successes": 1,
        "used_at": "2026-01-01T00:00:00.000000Z",
        **fields,
    }
    data = Capability.model_validate(given)
    return CatalogRecord(kind="capability", id=f"{tenant}/cap_{name}", data=data)


def edge(kind: str, source: str, target: str, tenant: str = "local", **fields: Any) -> CatalogRecord:
    """An edge of the tool graph after one good run, told by the projection."""
    given = {"tenant": tenant, "type": kind, "source": source, "target": target, "weight": 0.9, "runs": 1}
    return CatalogRecord(
        kind="edge", id=f"{tenant}/{kind}/{source}/{target}", data=Edge.model_validate({**given, **fields})
    )


def renamed(record: CatalogRecord, name: str) -> CatalogRecord:
    """What a person calls a capability."""
    tenant, _, capability_id = record.id.partition("/")
    data = CapabilityName(tenant=tenant, capability_id=capability_id, name=name)
    return CatalogRecord(kind="capability_name", id=record.id, data=data)


def permissions(**entries: Any) -> CatalogRecord:
    """A permissions file; `files__read` is the tool `files:read`."""
    tools = {name.replace("__", ":"): entry for name, entry in entries.items()}
    data = PermissionRecord(file=PermissionFile.model_validate({"tools": tools}), hash="h")
    return CatalogRecord(kind="permission", id="file", data=data)
