"""The snapshot a decision is taken with: policy, servers, permissions, switch, thresholds, branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from pml.processors.speculation.branches import branch_key, branch_probability
from pml.processors.speculation.budget import BUDGETS, Budget, BudgetName
from pml.processors.speculation.distrust import distrusted
from pml.processors.speculation.mode import for_all, mode_of, strictest
from pml.processors.speculation.thresholds import ThresholdFound, find_threshold
from pml.schemas.base import ThresholdContext
from pml.schemas.catalog import (
    BranchStats,
    Capability,
    CatalogRecord,
    DivergenceRecord,
    PermissionRecord,
    ServerTools,
    SpeculationMode,
    SpeculationSwitch,
    ThresholdOverride,
    ThresholdRecord,
)
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import Permission, PermissionFile
from pml.schemas.workflow import Approve, OnTimeout

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits and time-outs, from the settings. Milliseconds throughout."""

    hash_key: bytes
    task_timeout_ms: int = 30_000
    queue_timeout_ms: int = 60_000
    run_timeout_ms: int = 300_000
    bridge_grace_ms: int = 5_000
    session_ttl_ms: int = 86_400_000
    speculation_ttl_ms: int = 300_000
    results_ttl_ms: int = 3_600_000
    speculation_mode: SpeculationMode = "on"
    budget_name: BudgetName = "normal"
    speculation_depth: int = 1
    cache_bytes: int = 16_777_216
    verified_share: float = 0.0
    memory_influence: Literal["on", "off"] = "off"
    predictions: Literal["on", "off"] = "off"
    runs_live_max: int = 64
    runs_remembered_max: int = 1_000
    commands_remembered_max: int = 1_000
    decision_timeout_ms: int = 60_000
    approval_timeout_ms: int = 300_000
    on_timeout: OnTimeout = "abort"
    four_eyes: bool = False
    approve: Approve = "each"

    @property
    def budget(self) -> Budget:
        """The limits behind the budget's name."""
        return BUDGETS[self.budget_name]

    def kept_ms(self, permission: Permission) -> int:
        """How long a result may serve, by what its permission says.

        What others share is joined while it runs and not kept any longer: 0 (DESIGN §4, condition 3). Else at
        most half of the time for which results can be read: whoever is served reads it as one that was
        written when it was kept.
        """
        if permission.shared:
            return 0
        ttl_s = permission.ttl_s
        wanted = self.speculation_ttl_ms if ttl_s is None else round(ttl_s * 1_000)
        return min(wanted, self.results_ttl_ms // 2)


@dataclass(frozen=True, slots=True)
class Catalog:
    """One snapshot for a chunk of inputs; what a decision takes from it is written into its events."""

    policy: Policy
    servers: Mapping[str, ServerTools] = field(default_factory=dict)
    permissions: PermissionFile = field(default_factory=PermissionFile)
    switches: Mapping[str, SpeculationMode] = field(default_factory=dict)
    capabilities: Mapping[str, Capability] = field(default_factory=dict)
    divergences: Mapping[str, DivergenceRecord] = field(default_factory=dict)
    thresholds: Mapping[str, ThresholdRecord] = field(default_factory=dict)
    overrides: Mapping[str, float] = field(default_factory=dict)
    branches: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def with_record(self, record: CatalogRecord) -> Catalog:
        """The snapshot after one more record; kinds that decide nothing here are passed over."""
        match record.data:
            case ServerTools() as tools:
                return replace(self, servers={**self.servers, record.id: self._with_known(tools)})
            case PermissionRecord(file=file):
                return replace(self, permissions=file)
            case SpeculationSwitch(mode=mode):
                return replace(self, switches={**self.switches, record.id: mode})
            case Capability() as capability:
                return replace(self, capabilities={**self.capabilities, record.id: capability})
            case DivergenceRecord() as diverged:
                return replace(self, divergences={**self.divergences, record.id: diverged})
            case ThresholdRecord() as learned:
                return self._with_threshold(record.id, learned)
            case ThresholdOverride(value=None):
                return replace(self, overrides=_without(self.overrides, record.id))
            case ThresholdOverride(value=float(value)):
                return replace(self, overrides={**self.overrides, record.id: value})
            case BranchStats(counts=counts):
                return replace(self, branches={**self.branches, record.id: counts})
        return self

    def _with_threshold(self, key: str, learned: ThresholdRecord) -> Catalog:
        """An owner of the projection that was overtaken may write once more what is no longer the newest."""
        known = self.thresholds.get(key)
        if known is not None and known.outcomes > learned.outcomes:
            return self
        return replace(self, thresholds={**self.thresholds, key: learned})

    def _with_known(self, tools: ServerTools) -> ServerTools:
        """A server that is away keeps what it listed last: its hints narrow calls that wait for it, too."""
        known = self.servers.get(tools.server)
        if known is None or tools.status == "listed" or tools.tools:
            return tools
        return tools.model_copy(update={"tools": known.tools})

    def without(self, kind: str, record_id: str) -> Catalog:
        """The snapshot after a tombstone."""
        match kind:
            case ServerTools.KIND:
                return replace(self, servers=_without(self.servers, record_id))
            case PermissionRecord.KIND:
                return replace(self, permissions=PermissionFile())
            case SpeculationSwitch.KIND:
                return replace(self, switches=_without(self.switches, record_id))
            case Capability.KIND:
                return replace(self, capabilities=_without(self.capabilities, record_id))
            case DivergenceRecord.KIND:
                return replace(self, divergences=_without(self.divergences, record_id))
            case ThresholdRecord.KIND:
                return replace(self, thresholds=_without(self.thresholds, record_id))
            case ThresholdOverride.KIND:
                return replace(self, overrides=_without(self.overrides, record_id))
            case BranchStats.KIND:
                return replace(self, branches=_without(self.branches, record_id))
        return self

    def server_of(self, tool: str) -> ServerTools | None:
        """The server a tool belongs to, if it is known."""
        return self.servers.get(split_tool(tool)[0])

    def threshold(self, tenant: str, user: str, domain: str, workflow_type: str) -> ThresholdFound:
        """What a confidence must reach in this context, and the context that says so."""
        context = ThresholdContext(user=user, domain=domain, workflow_type=workflow_type)
        return find_threshold(tenant, context, self.thresholds, self.overrides)

    def branch_probability(self, tenant: str, workflow_type: str, decision_id: str, outcome: str) -> float:
        """How likely a decision comes to this outcome; one half where nothing is known."""
        counts = self.branches.get(branch_key(tenant, workflow_type, decision_id), {})
        return branch_probability(counts, outcome)

    def _distrusts(self, tool: str) -> bool:
        found = self.permissions.find(tool)
        return distrusted(self.divergences[tool], found[1] if found else None)

    @property
    def general_mode(self) -> SpeculationMode:
        """What holds for every call, whatever it is of: settings, budget, and the switches for all."""
        if self.policy.budget.concurrent == 0:
            return "off"
        for_everybody = (mode for scope, mode in self.switches.items() if for_all(scope))
        return strictest((self.policy.speculation_mode, *for_everybody))

    def mode_of(self, tenant: str, tool: str) -> SpeculationMode:
        """Whether a tenant's call of a tool may run early, be planned only, or neither."""
        if tool in self.divergences and self._distrusts(tool):
            return "off"
        general = self.general_mode
        if general == "off" or not self.switches:
            return general
        return strictest((general, mode_of(self.switches, tenant, tool)))


def _without(records: Mapping[str, V], key: str) -> dict[str, V]:
    return {name: value for name, value in records.items() if name != key}
