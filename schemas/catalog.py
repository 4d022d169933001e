"""What everyone must know: the records of the compacted topic `pml.catalog`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, SerializeAsAny

from pml.schemas.base import Json, Record
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Decision, Task


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


SpeculationMode = Literal["off", "shadow", "on"]
"""Nothing early; plan and account but call nothing; all that DESIGN §4 allows."""


class SpeculationSwitch(CatalogData):
    """`pml speculation on|shadow|off`: holds everywhere within two seconds.

    The record's id is its scope: `tenant=NAME`, `server=NAME`, `tool=SERVER:NAME`, any other is for all.
    Of several that fit a call, the strictest holds.
    """

    KIND = "switch"

    mode: SpeculationMode = "on"
    principal: str = "local"


Share = Annotated[float, Field(ge=0.0, le=1.0)]
ThresholdLevel = Literal["user", "domain", "type", "default"]


class ThresholdScope(CatalogData):
    """The context that a record is about: its id in words. What its level does not look at is absent."""

    tenant: str
    level: ThresholdLevel
    user: str | None = None
    domain: str | None = None
    workflow_type: str | None = None


class ThresholdRecord(ThresholdScope):
    """What the projection learned for one context; its id is the context's key. One record a full window.

    `previous` and `value` are the threshold before and after this window; `success_rate` is the window's,
    `ema` the moving average it leads to; `windows` counts full windows, `outcomes` all that were counted
    up to this one's end. `changed_at` is the log time of the window's last outcome.
    """

    KIND = "threshold"

    value: Share
    previous: Share
    ema: Share
    success_rate: Share
    windows: int
    outcomes: int
    state: Literal["converged", "drifting"]
    reason: Literal["too_cautious", "too_bold", "tuned", "kept"]
    changed_at: str


class ThresholdOverride(ThresholdScope):
    """`pml thresholds set|unset`: what a person wants for one context; no value takes it back."""

    KIND = "threshold_override"

    value: Share | None = None
    principal: str = "local"
    changed_at: str


class BranchStats(CatalogData):
    """How often a decision of a workflow type came to each outcome, in runs that ended."""

    KIND = "branch_stats"

    tenant: str
    workflow_type: str
    decision_id: str
    counts: dict[str, int] = {}


class DivergenceRecord(CatalogData):
    """When a tool said something else than what was served: the last times in a row, at most three."""

    KIND = "divergence"

    tool: str
    diverged_at: tuple[str, ...] = ()


class Capability(CatalogData):
    """A learned workflow of a tenant: what the guard looks at, and what is inlined where it is called.

    Its tasks name tools, or other capabilities by id; `result` is the reference that its value is.
    """

    KIND = "capability"

    tenant: str
    name: str
    tasks: tuple[Task, ...] = ()
    decisions: tuple[Decision, ...] = ()
    result: str | None = None


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
    model.KIND: model
    for model in (
        ServerTools,
        PermissionRecord,
        SpeculationSwitch,
        ThresholdRecord,
        ThresholdOverride,
        BranchStats,
        Capability,
        DivergenceRecord,
    )
}
