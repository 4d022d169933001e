"""How much an edge of the tool graph counts: it learns from each run that went along it (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import get_args
from urllib.parse import quote, unquote

from pml.processors.capabilities.edges import EdgeKey, Field, with_fields
from pml.schemas.catalog import Edge, EdgeField, EdgeType

# To have run in one run, in whatever order, says least.
START: Mapping[EdgeType, float] = {
    "dependency": 1.0,
    "contains": 0.8,
    "provides": 0.7,
    "sequence": 0.5,
    "co_occurrence": 0.3,
}
STEP = 0.1
# Nobody reads a weight more closely; one that goes to 1 in full steps is told six times on its way from 0.5.
TELL_FROM = 0.05
# Counts that were told are at most this often too small.
TELL_RUNS = 2
# Of each tenant and its neighbours in one partition: every process that reads the catalog reads all of them.
EDGES_MAX = 2_000
# So much is forgotten at once, or an overfull graph would forget and learn some with each run.
EDGES_KEPT = 1_800


@dataclass(frozen=True, slots=True)
class KnownEdge:
    """What runs taught about one edge, and what of it was told last (no runs: nothing yet)."""

    key: EdgeKey
    weight: float
    runs: int = 0
    successes: int = 0
    fields: tuple[Field, ...] = ()
    told_weight: float = 0.0
    told_runs: int = 0
    told_fields: int = 0

    @property
    def stale(self) -> bool:
        """Whether what was told is off by too much."""
        return (
            self.runs >= TELL_RUNS * self.told_runs
            or abs(self.weight - self.told_weight) >= TELL_FROM
            or len(self.fields) > self.told_fields
        )


def new_edge(key: EdgeKey) -> KnownEdge:
    """An edge that no run went along yet."""
    return KnownEdge(key, START[key.type])


def after_run(known: KnownEdge, success: bool, fields: Iterable[Field] = ()) -> KnownEdge:
    """What is known after one more run with this edge: w ← w + 0.1·(r − w), r = 1 for success, else 0."""
    return replace(
        known,
        weight=known.weight + STEP * (success - known.weight),
        runs=known.runs + 1,
        successes=known.successes + success,
        fields=with_fields(known.fields, fields),
    )


def told(known: KnownEdge) -> KnownEdge:
    """The same, as it is when its record was published."""
    return replace(known, told_weight=known.weight, told_runs=known.runs, told_fields=len(known.fields))


def edge_record(tenant: str, known: KnownEdge, at: str) -> Edge:
    """What is told of an edge; `at` is when the last run with it ended."""
    return Edge(
        tenant=tenant,
        type=known.key.type,
        source=known.key.source,
        target=known.key.target,
        weight=round(known.weight, 6),
        runs=known.runs,
        successes=known.successes,
        fields=tuple(EdgeField(from_field=given, to_field=taken) for given, taken in known.fields),
        used_at=at,
    )


def edge_subject(tenant: str, key: EdgeKey) -> str:
    """The key of an edge's catalog record."""
    ends = (quote(name, safe="") for name in (key.source, key.target))
    return "/".join((Edge.KIND, tenant, key.type, *ends))


def edge_parts(subject: str) -> tuple[str, EdgeKey]:
    """Tenant and edge of a subject.

    Raises:
        ValueError: it is none of an edge.
    """
    kind, tenant, named, source, target = subject.split("/")
    known = next((name for name in get_args(EdgeType) if name == named), None)
    if kind != Edge.KIND or known is None:
        raise ValueError(f"{subject} names no edge")
    return tenant, EdgeKey(known, unquote(source), unquote(target))


def surplus_edges(used_at: Mapping[str, str]) -> Collection[str]:
    """The subjects to forget where there are too many: those that no run went along for longest."""
    if len(used_at) <= EDGES_MAX:
        return ()
    return sorted(used_at, key=lambda subject: (used_at[subject], subject))[: len(used_at) - EDGES_KEPT]
