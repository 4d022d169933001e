"""Capabilities as people look at them: their records, what they may do, and how their runs went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pml.clickhouse.client import Limits, Store
from pml.processors.capabilities.identity import capability_name
from pml.processors.capabilities.inlining import DEPTH_MAX
from pml.processors.capabilities.neighbours import Neighbour, neighbours
from pml.processors.capabilities.provides import ToolSchemas
from pml.processors.discovery.library import all_tools
from pml.processors.speculation.capabilities import Surroundings, can_speculate_capability
from pml.processors.speculation.guard import Grant, Refusal, grant
from pml.schemas.catalog import Capability, CapabilityName, CatalogRecord, Edge
from pml.schemas.errors import ConfigurationError, PMLError
from pml.schemas.identifiers import split_tool
from pml.schemas.permissions import PermissionFile
from pml.streams.catalog_topic import Records, permissions_of, publish, read_catalog, servers_of
from pml.streams.settings import Settings

Approval = Literal["auto", "hil", "refused"]
# A tool that everybody uses has hundreds.
EDGES_SHOWN = 100
RUN_COLUMNS = (
    *("run_id", "session_id", "status", "started_at", "duration_ms", "executed_path", "decisions"),
    *("hits", "misses", "saved_ms", "error_code"),
)
RUNS = """
SELECT {columns} FROM capability_runs
WHERE tenant = {{tenant:String}} AND capability_id = {{capability_id:String}}
ORDER BY started_at DESC LIMIT {{most:UInt32}}
"""
PATHS = """
SELECT executed_path AS path, count() AS runs, round(countIf(status = 'completed') / runs, 3) AS success_rate,
    round(median(duration_ms), 1) AS median_ms
FROM capability_runs
WHERE tenant = {tenant:String} AND capability_id = {capability_id:String}
    AND status IN ('completed', 'failed')
GROUP BY path ORDER BY runs DESC, path LIMIT 20
"""
DECISIONS = """
SELECT decision, outcome, count() AS runs
FROM capability_runs
ARRAY JOIN mapKeys(decisions) AS decision, mapValues(decisions) AS outcome
WHERE tenant = {tenant:String} AND capability_id = {capability_id:String}
    AND status IN ('completed', 'failed')
GROUP BY decision, outcome ORDER BY decision, runs DESC, outcome LIMIT 100
"""


class NoSuchCapability(PMLError):
    """Nothing of that name or id is in the catalog."""

    code = "NOT_FOUND"


@dataclass(frozen=True, slots=True)
class ListedCapability:
    """A record under the name that holds, with the worst that its tools need.

    Attributes:
        approval: `refused` where a tool has no entry in the permissions file, `hil` where a person is asked.
        speculable: whether all of it may run before it is asked for, and `why` not.
    """

    record: Capability
    name: str
    approval: Approval
    effect: Literal["read", "write"] | None
    speculable: bool
    why: str

    def as_dict(self) -> dict[str, Any]:
        """For programs: the record with the name that holds, and what it may do."""
        return {
            **self.record.model_dump(mode="json", exclude_none=True),
            "name": self.name,
            "tools": list(self.record.tools),
            "approval": self.approval,
            "effect": self.effect,
            "speculable": self.speculable,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Surrounded:
    """A capability and what lies around it in the tool graph; `names` are those of all of them by id."""

    item: ListedCapability
    neighbours: list[Neighbour]
    names: Mapping[str, str]

    def edges(self) -> list[dict[str, Any]]:
        """The neighbours for programs."""
        return [
            {
                **asdict(each),
                "fields": [{"from_field": given, "to_field": taken} for given, taken in each.fields],
            }
            for each in self.neighbours[:EDGES_SHOWN]
        ]


async def read_capability(settings: Settings, tenant: str, name_or_id: str) -> Surrounded:
    """One capability of a tenant with its neighbours, the strongest first.

    Raises:
        NoSuchCapability: there is none of that name or id.
        BrokerUnavailable: the broker does not answer.
    """
    return surrounded(await read_catalog(settings), tenant, name_or_id)


def surrounded(records: Records, tenant: str, name_or_id: str) -> Surrounded:
    """One of a catalog.

    Raises:
        NoSuchCapability: there is none of that name or id.
    """
    known = listed(records, tenant)
    item = chosen(known, name_or_id)
    data = [record.data for record in records.values()]
    edges = [each for each in data if isinstance(each, Edge) and each.tenant == tenant]
    schemas = {
        f"{server.server}:{tool.name}": ToolSchemas(tool.input_schema, tool.output_schema)
        for server in servers_of(records).values()
        for tool in server.tools
    }
    around = {item.record.capability_id, item.record.name, item.name, *item.record.tools}
    names = {each.record.capability_id: each.name for each in known}
    return Surrounded(item, neighbours(edges, around, schemas), names)


async def read_capabilities(settings: Settings, tenant: str) -> list[ListedCapability]:
    """All capabilities of a tenant by name, drafts too.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    return listed(await read_catalog(settings), tenant)


def listed(records: Records, tenant: str) -> list[ListedCapability]:
    """Those of a catalog, by name."""
    data = [record.data for record in records.values()]
    own = {
        item.capability_id: item for item in data if isinstance(item, Capability) and item.tenant == tenant
    }
    given = [item for item in data if isinstance(item, CapabilityName) and item.tenant == tenant]
    names = {item.capability_id: item.name for item in given}
    called = {item.name: item for item in own.values()} | {
        name: own[capability_id] for capability_id, name in names.items() if capability_id in own
    }
    published = permissions_of(records)
    permissions = published.file if published else PermissionFile()
    around = Surroundings({**called, **own}, permissions, servers_of(records))
    found = [_listed(item, names.get(name, item.name), around) for name, item in own.items()]
    return sorted(found, key=lambda item: (item.name, item.record.capability_id))


def chosen(capabilities: Iterable[ListedCapability], name_or_id: str) -> ListedCapability:
    """The one of that name or id.

    Raises:
        NoSuchCapability: there is none.
    """
    for item in capabilities:
        if name_or_id in (item.name, item.record.capability_id):
            return item
    raise NoSuchCapability(
        f"there is no capability {name_or_id}; `pml capability list` shows those there are"
    )


async def rename(settings: Settings, tenant: str, name_or_id: str, name: str, principal: str) -> str:
    """Give a capability a name that nobody of its tenant has; its id.

    Raises:
        NoSuchCapability: there is none of that name or id.
        ConfigurationError: the name is no slug, or taken.
        BrokerUnavailable: the broker does not answer.
    """
    known = await read_capabilities(settings, tenant)
    capability_id = chosen(known, name_or_id).record.capability_id
    check_name(name, {item.name for item in known if item.record.capability_id != capability_id})
    data = CapabilityName(tenant=tenant, capability_id=capability_id, name=name, principal=principal)
    record = CatalogRecord(kind=data.KIND, id=f"{tenant}/{capability_id}", version=data.VERSION, data=data)
    await publish(settings, record)
    return capability_id


def check_name(name: str, taken: set[str]) -> None:
    """
    Raises:
        ConfigurationError: it is no slug, or taken.
    """
    free = capability_name(name, taken)
    if free != name:
        reason = "is taken" if name in taken else "is not written as names are (a-z, 0-9, -)"
        raise ConfigurationError(f"the name {name!r} {reason}; free is {free}")


def runs_of(store: Store, tenant: str, capability_id: str, most: int) -> list[dict[str, Any]]:
    """The newest runs of a capability.

    Raises:
        StoreUnavailable, QueryError
    """
    asked = {"tenant": tenant, "capability_id": capability_id, "most": most}
    sql = RUNS.format(columns=", ".join(RUN_COLUMNS))
    return store.query(sql, asked, Limits(rows=most)).as_dicts()


def statistics_of(store: Store, tenant: str, capability_id: str) -> dict[str, list[dict[str, Any]]]:
    """The paths that runs of a capability took, the dominant one first, and what its decisions came to.

    Raises:
        StoreUnavailable, QueryError
    """
    asked = {"tenant": tenant, "capability_id": capability_id}
    return {
        "paths": store.query(PATHS, asked).as_dicts(),
        "decisions": store.query(DECISIONS, asked).as_dicts(),
    }


def _listed(record: Capability, name: str, around: Surroundings) -> ListedCapability:
    tools = all_tools(record, around.capabilities, DEPTH_MAX)
    granted = [grant(tool, {}, around.permissions, around.servers.get(split_tool(tool)[0])) for tool in tools]
    early = can_speculate_capability(record.capability_id, around)
    return ListedCapability(record, name, _approval(granted), _effect(granted), early.allowed, early.reason)


def _approval(granted: list[Grant | Refusal]) -> Approval:
    codes = {item.code for item in granted if isinstance(item, Refusal)}
    if codes - {"APPROVAL_REQUIRED"}:
        return "refused"
    return "hil" if codes else "auto"


def _effect(granted: list[Grant | Refusal]) -> Literal["read", "write"] | None:
    """What it does to the world at worst; None where that is not known of each tool."""
    effects = [item.effect for item in granted if isinstance(item, Grant)]
    if len(effects) < len(granted):
        return None
    return "write" if "write" in effects else "read"
