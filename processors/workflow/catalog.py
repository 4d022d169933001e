"""The snapshot a decision is taken with: policy, servers, permissions, switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pml.processors.speculation.budget import BUDGETS, Budget, BudgetName
from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, SpeculationSwitch
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import PermissionFile


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
    speculation_mode: Literal["on", "off"] = "on"
    budget_name: BudgetName = "normal"
    runs_live_max: int = 64
    runs_remembered_max: int = 1_000

    @property
    def budget(self) -> Budget:
        """The limits behind the budget's name."""
        return BUDGETS[self.budget_name]


@dataclass(frozen=True, slots=True)
class Catalog:
    """One snapshot for a chunk of inputs; what a decision takes from it is written into its events."""

    policy: Policy
    servers: Mapping[str, ServerTools] = field(default_factory=dict)
    permissions: PermissionFile = field(default_factory=PermissionFile)
    switch: Literal["on", "off"] = "on"

    def with_record(self, record: CatalogRecord) -> Catalog:
        """The snapshot after one more record; kinds that decide nothing here are passed over."""
        match record.data:
            case ServerTools() as tools:
                return replace(self, servers={**self.servers, record.id: tools})
            case PermissionRecord(file=file):
                return replace(self, permissions=file)
            case SpeculationSwitch(mode=mode):
                return replace(self, switch=mode)
        return self

    def without(self, kind: str, record_id: str) -> Catalog:
        """The snapshot after a tombstone."""
        if kind == ServerTools.KIND:
            return replace(
                self, servers={name: tools for name, tools in self.servers.items() if name != record_id}
            )
        if kind == PermissionRecord.KIND:
            return replace(self, permissions=PermissionFile())
        return replace(self, switch="on") if kind == SpeculationSwitch.KIND else self

    def server_of(self, tool: str) -> ServerTools | None:
        """The server a tool belongs to, if it is known."""
        return self.servers.get(split_tool(tool)[0])

    @property
    def speculates(self) -> bool:
        """Whether anything may be started or served early now."""
        wanted = self.policy.speculation_mode == "on" and self.policy.budget.concurrent > 0
        return wanted and self.switch == "on"
