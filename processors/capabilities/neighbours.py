"""What lies around a capability in the tool graph: what runs taught, and what schemas say besides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pml.processors.capabilities.coverage import Coverage, field_mapping
from pml.processors.capabilities.edge_weights import START
from pml.processors.capabilities.edges import FIELDS_MAX, Field
from pml.processors.capabilities.provides import ToolSchemas, coverage_of
from pml.schemas.catalog import Edge, EdgeType

# What gives a tool only what it can do without, or is one of many that do, says little of it.
BY_SCHEMAS: frozenset[Coverage] = frozenset({"strict", "partial"})
PROVIDERS_MOST = 20
UNKNOWN = ToolSchemas()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One edge. Without runs it is only what schemas say.

    Attributes:
        coverage: of `provides`, how much of the required input it gives, by the schemas of both.
        fields: of `provides`, what was seen to go where, else what the schemas call alike.
    """

    type: EdgeType
    source: str
    target: str
    weight: float
    runs: int
    successes: int
    coverage: Coverage | Literal["unknown"] | None
    fields: tuple[Field, ...]


def neighbours(
    edges: Iterable[Edge], around: Collection[str], schemas: Mapping[str, ToolSchemas]
) -> list[Neighbour]:
    """The edges with an end among these, those that runs taught first, then by weight and runs.

    Args:
        schemas: of the tools that are known, by `server:name`.
    """
    seen = [_seen(edge, schemas) for edge in edges if {edge.source, edge.target} & set(around)]
    known = {(item.source, item.target) for item in seen if item.type == "provides"}
    told = [item for item in _by_schemas(around, schemas) if (item.source, item.target) not in known]
    return sorted((*seen, *told), key=_strongest_first)


def _seen(edge: Edge, schemas: Mapping[str, ToolSchemas]) -> Neighbour:
    fields = tuple((item.from_field, item.to_field) for item in edge.fields)
    coverage: Coverage | Literal["unknown"] | None = None
    if edge.type == "provides":
        provider, consumer = (schemas.get(name, UNKNOWN) for name in (edge.source, edge.target))
        coverage = coverage_of(provider, consumer) or "unknown"
        fields = fields or _alike(provider, consumer)
    return Neighbour(
        type=edge.type,
        source=edge.source,
        target=edge.target,
        weight=edge.weight,
        runs=edge.runs,
        successes=edge.successes,
        coverage=coverage,
        fields=fields,
    )


def _by_schemas(around: Collection[str], schemas: Mapping[str, ToolSchemas]) -> Iterator[Neighbour]:
    """Who could give these tools what they need."""
    for target in sorted(set(around) & schemas.keys()):
        covered = {
            source: coverage_of(schemas[source], schemas[target]) for source in schemas if source != target
        }
        found = {source: how for source, how in covered.items() if how is not None and how in BY_SCHEMAS}
        for source, how in sorted(found.items()) if len(found) <= PROVIDERS_MOST else ():
            yield Neighbour(
                type="provides",
                source=source,
                target=target,
                weight=START["provides"],
                runs=0,
                successes=0,
                coverage=how,
                fields=_alike(schemas[source], schemas[target]),
            )


def _alike(provider: ToolSchemas, consumer: ToolSchemas) -> tuple[Field, ...]:
    mapped = field_mapping(provider.output, consumer.input)
    return tuple((item.from_field, item.to_field) for item in mapped if item.type_compatible)[:FIELDS_MAX]


def _strongest_first(item: Neighbour) -> tuple[bool, float, int, str, str, str]:
    return item.runs == 0, -item.weight, -item.runs, item.type, item.source, item.target
