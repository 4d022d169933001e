"""What the catalog offers: the tools of servers that answer, and each tenant's learned capabilities."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pml.processors.discovery.documents import Document, capability_document, tool_document
from pml.processors.discovery.history import Past
from pml.processors.discovery.prior import Standing
from pml.processors.discovery.tool_graph import Link, page_ranks
from pml.processors.speculation.guard import Refusal, grant
from pml.schemas.catalog import (
    Capability,
    CapabilityName,
    CatalogRecord,
    Edge,
    ModelRecord,
    PermissionRecord,
    ServerTools,
    Tool,
)
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Workflow

# A capability that was used last this long before the tenant's latest counts half as recent.
RECENT_HALF_LIFE_S = 30 * 86_400
# As deep as a run may inline capabilities (DESIGN §5).
NESTING_MAX = 5


@dataclass(frozen=True, slots=True)
class Shelf:
    """What one tenant may find, with what is known of it."""

    documents: Mapping[str, Document]
    pasts: tuple[Past, ...]
    standings: Mapping[str, Standing]
    links: tuple[Link, ...] = ()


@dataclass(slots=True)
class _Tenant:
    capabilities: dict[str, Capability] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    edges: dict[str, Edge] = field(default_factory=dict)
    version: int = 0


class Library:
    """The records of the catalog that discovery is about, the newest of each key.

    A server that is not available offers nothing until it is listed again, nor does a capability that
    needs it.
    """

    def __init__(self) -> None:
        self._servers: dict[str, ServerTools] = {}
        self._tools: dict[str, tuple[ServerTools, Tool]] = {}
        self._tool_documents: dict[str, Document] = {}
        self._tenants: dict[str, _Tenant] = {}
        self._permissions = PermissionFile()
        self._models: dict[str, ModelRecord] = {}
        self._tools_version = 0

    def take(self, record: CatalogRecord) -> None:
        """One more record; kinds that nobody finds are passed over."""
        match record.data:
            case ServerTools() as server:
                self._put_server(record.id, server)
            case PermissionRecord(file=file):
                self._permissions = file
            case Capability() as capability:
                tenant = self._tenant(capability.tenant)
                tenant.capabilities[_own(record.id)] = capability
                tenant.version += 1
            case CapabilityName() as named:
                tenant = self._tenant(named.tenant)
                tenant.names[_own(record.id)] = named.name
                tenant.version += 1
            case Edge() as edge:
                tenant = self._tenant(edge.tenant)
                tenant.edges[_own(record.id)] = edge
                tenant.version += 1
            case ModelRecord() as model:
                self._models[record.id] = model

    def drop(self, kind: str, record_id: str) -> None:
        """A tombstone."""
        if kind == ServerTools.KIND:
            self._put_server(record_id, None)
            return
        if kind == ModelRecord.KIND:
            self._models.pop(record_id, None)
            return
        tenant = self._tenants.get(record_id.partition("/")[0])
        if tenant is not None and kind in (Capability.KIND, CapabilityName.KIND, Edge.KIND):
            parts: dict[str, dict[str, Any]] = {
                Capability.KIND: tenant.capabilities,
                CapabilityName.KIND: tenant.names,
                Edge.KIND: tenant.edges,
            }
            parts[kind].pop(_own(record_id), None)
            tenant.version += 1

    def version(self, tenant: str) -> tuple[int, int]:
        """Another one as soon as this tenant may find something else."""
        known = self._tenants.get(tenant)
        return self._tools_version, known.version if known else 0

    def model(self, tenant: str) -> ModelRecord | None:
        """The model that predicts for a tenant, if one was promoted."""
        return self._models.get(tenant)

    @property
    def predicted(self) -> tuple[str, ...]:
        """The tenants for which a model predicts, in a fixed order."""
        return tuple(tenant for tenant, model in sorted(self._models.items()) if model.model_id)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that are listed now, by id."""
        return {name: tool for name, (_, tool) in self._tools.items()}

    @property
    def tool_documents(self) -> Mapping[str, Document]:
        """The tools that every tenant may find."""
        return self._tool_documents

    def shelf(self, tenant: str) -> Shelf:
        """All that a tenant may find: its own capabilities and the tools of all."""
        offered, links = self.offered(tenant), self.links(tenant)
        documents = {**self._tool_documents, **{name: self._document(tenant, name) for name in offered}}
        return Shelf(
            documents,
            tuple(past for name in offered for past in self._pasts(tenant, name)),
            _ranked(_standings(offered), page_ranks(links), documents),
            links,
        )

    def links(self, tenant: str) -> tuple[Link, ...]:
        """The edges of a tenant's tool graph as discovery uses them, in a fixed order."""
        return tuple(
            Link(edge.type, edge.source, edge.target, edge.weight, edge.runs) for edge in self.edges(tenant)
        )

    def edges(self, tenant: str) -> tuple[Edge, ...]:
        """A tenant's tool graph in a fixed order; names that only a person gave are resolved."""
        known = self._tenants.get(tenant)
        if known is None or not known.edges:
            return ()
        called = {name: item.capability_id for name, item in self._named(tenant).items()}
        return tuple(_resolved(edge, called) for _, edge in sorted(known.edges.items()))

    def offered(self, tenant: str) -> dict[str, Capability]:
        """The learned capabilities of a tenant that can be called now, by id."""
        known = self._tenants.get(tenant)
        found, others = known.capabilities if known else {}, self._named(tenant)
        return {
            name: found[name]
            for name in sorted(found)
            if found[name].status == "learned" and self._runs(found[name], others, NESTING_MAX)
        }

    def find(self, tenant: str, name_or_id: str) -> Capability | None:
        """What a program of a tenant calls by this name: a person's name counts before a record's own."""
        return self._named(tenant).get(name_or_id)

    def tools_of(self, tenant: str, capability_id: str) -> tuple[str, ...]:
        """Every tool that a capability calls, also through others, in the order of its tasks."""
        others = self._named(tenant)
        return tuple(dict.fromkeys(all_tools(others[capability_id], others, NESTING_MAX)))

    def capability(self, tenant: str, capability_id: str) -> Capability:
        """One of them."""
        return self._tenants[tenant].capabilities[capability_id]

    def name_of(self, tenant: str, capability_id: str) -> str:
        """What a person calls a capability, else its own name."""
        known = self._tenants[tenant]
        return known.names.get(capability_id) or known.capabilities[capability_id].name

    def tool(self, name: str) -> Tool:
        """A tool that is offered, as its server listed it."""
        return self._tools[name][1]

    def needs_approval(self, tool: str) -> bool:
        """Whether a person is asked before a call of a tool."""
        server = self._servers.get(split_tool(tool)[0])
        return isinstance(grant(tool, {}, self._permissions, server), Refusal)

    def _named(self, tenant: str) -> dict[str, Capability]:
        """A tenant's capabilities by all that they may be called."""
        known = self._tenants.get(tenant)
        if known is None:
            return {}
        found = known.capabilities
        given = {name: found[own] for own, name in known.names.items() if own in found}
        return {**{item.name: item for item in found.values()}, **given, **found}

    def _tenant(self, name: str) -> _Tenant:
        return self._tenants.setdefault(name, _Tenant())

    def _put_server(self, name: str, server: ServerTools | None) -> None:
        known = self._servers.pop(name, None)
        for gone in _ids(known):
            self._tools.pop(gone, None)
            self._tool_documents.pop(gone, None)
        if server is not None:
            self._servers[name] = server
        for tool_id, tool in _ids(server).items():
            assert server is not None
            self._tools[tool_id] = server, tool
            self._tool_documents[tool_id] = tool_document(
                tool_id, tool.description, tool.input_schema, tool.output_schema
            )
        self._tools_version += 1

    def _runs(self, capability: Capability, others: Mapping[str, Capability], depth: int) -> bool:
        """Whether all that it calls is there."""
        if not all(tool in self._tools for tool in capability.tools):
            return False
        return all(
            depth > 0 and name in others and self._runs(others[name], others, depth - 1)
            for name in capability.capabilities
        )

    def _document(self, tenant: str, name: str) -> Document:
        intent = self.capability(tenant, name).intent or ""
        return capability_document(
            name, self.name_of(tenant, name), intent, tools=self.tools_of(tenant, name)
        )

    def _pasts(self, tenant: str, name: str) -> list[Past]:
        """One for each intent that it was good for."""
        capability, tools = self.capability(tenant, name), self.tools_of(tenant, name)
        return [Past(intent, tools, name) for intent in capability.asked_for or (capability.name,)]


def workflow_of(capability: Capability, name: str) -> Workflow:
    """What makes its calls: its tasks, with the defaults of its parameters as context."""
    defaults = {given.name: given.default for given in capability.parameters if not given.required}
    return Workflow(
        name=name[:200],
        intent=capability.intent,
        workflow_type=capability.workflow_type,
        context=defaults,
        tasks=capability.tasks,
        decisions=capability.decisions,
        result=capability.result,
    )


def _own(record_id: str) -> str:
    """The capability's id out of its record's, `tenant/cap_…`."""
    return record_id.partition("/")[2] or record_id


def _resolved(edge: Edge, called: Mapping[str, str]) -> Edge:
    ends = {"source": called.get(edge.source, edge.source), "target": called.get(edge.target, edge.target)}
    return edge if ends == {"source": edge.source, "target": edge.target} else edge.model_copy(update=ends)


def _ids(server: ServerTools | None) -> dict[str, Tool]:
    if server is None or server.status != "listed":
        return {}
    return {f"{server.server}:{tool.name}": tool for tool in server.tools}


def all_tools(capability: Capability, others: Mapping[str, Capability], depth: int) -> Iterator[str]:
    """Every tool that a capability calls, also through others by name or id, as deep as that goes."""
    for task in capability.tasks:
        if task.tool is not None:
            yield task.tool
        elif depth > 0 and task.capability is not None and task.capability in others:
            yield from all_tools(others[task.capability], others, depth - 1)
    yield from capability.uses
    for name in capability.calls:
        if depth > 0 and name in others:
            yield from all_tools(others[name], others, depth - 1)


def _standings(offered: Mapping[str, Capability]) -> dict[str, Standing]:
    """By how often they ended well, and how long before the latest use of any they were used last."""
    used = {name: _seconds(capability.used_at) for name, capability in offered.items()}
    latest = max((at for at in used.values() if at is not None), default=0.0)
    return {
        name: Standing(
            success=(capability.successes + 1) / (capability.runs + 2) if capability.runs else 0.0,
            recency=_recency(used[name], latest),
        )
        for name, capability in offered.items()
    }


def _ranked(
    standings: Mapping[str, Standing], ranks: Mapping[str, float], documents: Collection[str]
) -> dict[str, Standing]:
    """Standings with PageRank, also of what is only known by it."""
    known = Standing()
    return {
        name: replace(standings.get(name, known), page_rank=ranks.get(name, 0.0))
        for name in documents
        if name in standings or name in ranks
    }


def _recency(used_s: float | None, latest_s: float) -> float:
    return 0.0 if used_s is None else float(0.5 ** ((latest_s - used_s) / RECENT_HALF_LIFE_S))


def _seconds(at: str) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp() if at else None
    except ValueError:
        return None
