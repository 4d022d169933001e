"""What everyone must know: the records of the compacted topic `pml.catalog`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import SerializeAsAny

from pml.schemas.base import Json, Record
from pml.schemas.permissions import PermissionFile


class CatalogData(Record):
    """What a catalog record says; a subclass names its kind and version."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1


class ToolHints(Record):
    """What an MCP server says of its own tool; None where it says nothing."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


class Tool(Record):
    """One tool of a server; `definition` is the sha256 of its description and schemas."""

    name: str
    description: str = ""
    input_schema: dict[str, Json] = {}
    output_schema: dict[str, Json] | None = None
    hints: ToolHints = ToolHints()
    definition: str = ""


class ServerTools(CatalogData):
    """One MCP server: its whole list of tools, or why it has none."""

    KIND = "tool"

    server: str
    status: Literal["listed", "unavailable"]
    error: str | None = None
    trusted: bool = False
    isolation: Literal["shared", "tenant", "session"] = "shared"
    concurrency: int = 8
    tools: tuple[Tool, ...] = ()


class PermissionRecord(CatalogData):
    """The permissions file as the bridge read it."""

    KIND = "permission"

    file: PermissionFile
    hash: str


class SpeculationSwitch(CatalogData):
    """`pml speculation on|off`: holds everywhere within two seconds."""

    KIND = "switch"

    mode: Literal["on", "off"] = "on"
    principal: str = "local"


class CatalogRecord(Record):
    """The envelope; `kind/id` is the Kafka key."""

    kind: str
    id: str
    version: int = 1
    data: SerializeAsAny[CatalogData]

    @property
    def key(self) -> bytes:
        """The key under which compaction keeps the newest record."""
        return f"{self.kind}/{self.id}".encode()


CATALOG: dict[str, type[CatalogData]] = {
    model.KIND: model for model in (ServerTools, PermissionRecord, SpeculationSwitch)
}
