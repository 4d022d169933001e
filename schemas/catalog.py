"""What everyone must know: the records of the compacted topic `pml.catalog`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, SerializeAsAny

from pml.schemas.analysis import Mode
from pml.schemas.base import Json, Record
from pml.schemas.permissions import PermissionFile
from pml.schemas.structure import Language, Structure, StructureParameter
from pml.schemas.workflow import Argument, Decision, Task


class CatalogData(Record):
    """What a catalog record says; a subclass names its kind and version."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1


class ToolHints(Record):
    """What an MCP server says of its own tool; None where it says nothing."""

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


class Tool(Record):
    """One tool of a server; `definition` is the sha256 of its description and schemas."""

    name: str
    title: str | None = None
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
Count = Annotated[int, Field(ge=0)]
Milliseconds = Annotated[float, Field(ge=0.0)]
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
    """A workflow of a tenant that was analysed: what the guard looks at, and what runs where it is called.

    The record's id is `tenant/capability_id`. Its tasks name tools, or other capabilities by id; what differs
    from use to use are `parameters`, each literal of the original with its value as default; `result` is what
    its value is.

    Attributes:
        status: `learned` from its first success on; only such a one answers an intent.
        intents: what else successful runs of it were for, in other words than `intent`.
        not_learned: why it never will be; absent for all others.
        workflow_type: under which its branches are counted, where that is not its id.
        mode: how it runs: as a DAG of its tasks, or, for the `reasons` beside it, its `code` in the sandbox.
        code: the program that it is from, where it is from one.
        uses: the tools, and `calls` the capabilities by name, that code in the sandbox is known to call.
        structure: in the place of tasks, of a program that is a DAG as soon as its loops are known.
        tool_id, default_args: the tool that a capability of the source `tool` is, and its arguments.
        runs, successes: how many ended, and how many of them well, when this record was written.
    """

    KIND = "capability"

    tenant: str
    name: str
    capability_id: str = ""
    status: Literal["draft", "learned"] = "draft"
    not_learned: str | None = None
    source: Literal["code", "dag", "tool"] = "dag"
    intent: str | None = None
    intents: tuple[str, ...] | None = None
    workflow_type: str | None = None
    language: Language | None = None
    mode: Mode = "dag"
    reasons: tuple[str, ...] = ()
    code: str | None = None
    uses: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    tool_id: str | None = None
    default_args: dict[str, Json] | None = None
    parameters: tuple[StructureParameter, ...] = ()
    tasks: tuple[Task, ...] = ()
    decisions: tuple[Decision, ...] = ()
    result: Argument | None = None
    structure: Structure | None = None
    runs: int = 0
    successes: int = 0
    created_at: str = ""
    used_at: str = ""

    @property
    def asked_for(self) -> tuple[str, ...]:
        """What it is known to be for: its intent, then others."""
        return tuple(intent for intent in (self.intent, *(self.intents or ())) if intent)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that it may call itself, in the order of its tasks."""
        named = (task.tool for task in self.tasks if task.tool is not None)
        return tuple(dict.fromkeys((*named, *self.uses)))

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities that it may call, by name or id."""
        named = (task.capability for task in self.tasks if task.capability is not None)
        return tuple(dict.fromkeys((*named, *self.calls)))


class CapabilityName(CatalogData):
    """`pml capability rename`: what a person calls a capability; the record's id is the capability's."""

    KIND = "capability_name"

    tenant: str
    capability_id: str
    name: str
    principal: str = "local"


EdgeType = Literal["dependency", "contains", "provides", "sequence", "co_occurrence"]


class EdgeField(Record):
    """Which field of one result goes into which argument; without `from_field` it is the whole result."""

    from_field: str | None = None
    to_field: str


class Edge(CatalogData):
    """Two tools or capabilities of a tenant that runs brought together: `server:name` or `cap_…`.

    The record's id is `tenant/type/source/target`, the last two with everything but letters, digits and
    `_.-~` escaped. Of a `co_occurrence`, which has no direction, `source` is the first by name.

    Attributes:
        type: `dependency`: a workflow says that target waits for source · `contains`: target is a call of
            the capability source · `provides`: target takes something of what source gives · `sequence`: a
            program calls target next after source · `co_occurrence`: both ran in one run.
        weight: from its start weight by 0.1 of the way to 1 with each run that went well, to 0 with others.
        runs, successes: how many had it, and how many of them went well, when this record was written.
        fields: of `provides`, what was seen to go where, at most eight.
    """

    KIND = "edge"

    tenant: str
    type: EdgeType
    source: str
    target: str
    weight: Share
    runs: int = 0
    successes: int = 0
    fields: tuple[EdgeField, ...] = ()
    used_at: str = ""


class ModelFallen(Record):
    """A model that was rolled back: why, and when (log time where it did worse than its best baseline)."""

    model_id: str
    why: str
    at: str


class ModelBacktest(Record):
    """What a model would have predicted of sessions that went on, in [since, until), before it was promoted.

    Attributes:
        threshold: the confidence at which calls would have begun.
        runs, known_runs: that it was asked about, and those of them that it may have been trained on.
        begun, hits: calls that would have begun early, and those of them that were then asked for.
        saved_ms, wasted_ms: what somebody would have waited less, and what tools would have taken for nobody.
    """

    since: str
    until: str
    threshold: Share
    runs: Count
    known_runs: Count
    begun: Count
    hits: Count
    saved_ms: Milliseconds
    wasted_ms: Milliseconds


class ModelRecord(CatalogData):
    """`pml train`, `pml model promote|rollback`: which model predicts what comes next; its id is the tenant.

    Attributes:
        model_id: of the artefact, `mdl_` and the first digits of the hash of its bytes.
        learner: what serves in it, by name.
        hit_1: how often its first candidate was right on sessions that it had not seen.
        baseline, baseline_hit_1: the best baseline, and the same of it. Live it must not do worse than that.
        previous: what was promoted before and can be gone back to, the latest first, at most ten.
        why: of one that was rolled back by itself, for what the one before it had to go.
        fallen: models that were rolled back, by themselves or by a person, the latest first, at most ten;
            only a person promotes them again.
        backtest: its latest when it was promoted; None where there was none.

    Without a `model_id` none serves: what is counted of the latest runs predicts. The figures are then those
    of the best baseline beside the model that had to go.
    """

    KIND = "model"

    model_id: str
    learner: str
    hit_1: Share
    baseline: str
    baseline_hit_1: Share
    promoted_at: str
    reason: Literal["promoted", "rolled_back"] = "promoted"
    principal: str = "local"
    previous: tuple[str, ...] = ()
    why: str | None = None
    fallen: tuple[ModelFallen, ...] | None = None
    backtest: ModelBacktest | None = None


class ModelLive(CatalogData):
    """How often the first candidate of a served model was what came, since `since`; its id is the tenant.

    Told at 50, 100 and 200 outcomes, then counted anew. `low` and `high` are the ends of the interval that
    the true rate lies in; `since` and `at` the log times of the first and the last outcome.
    """

    KIND = "model_live"

    model_id: str
    outcomes: int
    hits: int
    hit_1: Share
    low: Share
    high: Share
    since: str
    at: str


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
        CapabilityName,
        DivergenceRecord,
        Edge,
        ModelRecord,
        ModelLive,
    )
}
