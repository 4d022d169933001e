"""The fold of the tool graph: what the runs of capabilities teach of edges, a row for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pml.processors.capabilities.edge_weights import (
    KnownEdge,
    after_run,
    edge_parts,
    edge_record,
    edge_subject,
    new_edge,
    surplus_edges,
    told,
)
from pml.processors.capabilities.edges import Find, edges_of_run
from pml.processors.capabilities.records import KnownCapability
from pml.schemas.catalog import Capability, Edge
from pml.schemas.lessons import UseLesson
from pml.streams.projections.thresholds.table import Row

Rows = Mapping[str, Row | None]


@dataclass(frozen=True, slots=True)
class Layers:
    """The rows of a partition with what a chunk has changed of them so far, which counts first."""

    changed: Rows
    kept: Mapping[str, Row]

    def of(self, subject: str) -> Row | None:
        """The row of a subject, if there is one."""
        return self.changed[subject] if subject in self.changed else self.kept.get(subject)

    def all(self) -> Iterator[tuple[str, Row]]:
        """Every row that there is."""
        for subject, row in {**self.kept, **self.changed}.items():
            if row is not None:
                yield subject, row


def walked(lesson: UseLesson, rows: Layers) -> dict[str, Row]:
    """The rows of the edges that a run went along, after it.

    Each has a guard of its own: where a crash came between the writes of rows, only the others follow.
    """
    row = rows.of(lesson.subject)
    if row is None or not isinstance(row.learned, KnownCapability) or not lesson.path:
        return {}
    record, source = _as_run(row.learned, lesson), lesson.source
    tenant = record.tenant
    found: dict[str, Row] = {}
    for key, fields in edges_of_run(record, lesson.path, _finder(tenant, rows)).items():
        subject = edge_subject(tenant, key)
        before = rows.of(subject)
        guard = before.guard if before is not None else {}
        if source.offset <= guard.get(source.partition, -1):
            continue
        known = before.learned if before is not None and isinstance(before.learned, KnownEdge) else None
        after = after_run(known or new_edge(key), lesson.success, fields)
        at = lesson.at if before is None else max(before.at, lesson.at)
        found[subject] = Row(after, {**guard, source.partition: source.offset}, at)
    return found


def stale_edges(rows: Rows) -> Iterator[tuple[str, Row, Edge]]:
    """Of changed rows the edges that are to be told (again), as they are then, and the records of them."""
    for subject, row in rows.items():
        if row is not None and isinstance(row.learned, KnownEdge) and row.learned.stale:
            tenant, _ = edge_parts(subject)
            yield subject, replace(row, learned=told(row.learned)), edge_record(tenant, row.learned, row.at)


def forgotten_edges(rows: Iterable[tuple[str, Row]]) -> list[str]:
    """The subjects of edges beyond what is kept; all of them were told."""
    return list(surplus_edges({name: row.at for name, row in rows if isinstance(row.learned, KnownEdge)}))


def _as_run(known: KnownCapability, lesson: UseLesson) -> Capability:
    """A capability with the calls that its run asked for, where only the run could tell."""
    steps = dict(known.steps).get(lesson.run or "")
    return known.record if steps is None else known.record.model_copy(update={"tasks": steps})


def _finder(tenant: str, rows: Layers) -> Find:
    """Looks for capabilities of a tenant by name or id; most runs call none."""
    known: dict[str, Capability] = {}

    def find(name: str) -> Capability | None:
        if not known:
            records = [
                row.learned.record for _, row in rows.all() if isinstance(row.learned, KnownCapability)
            ]
            own = [record for record in records if record.tenant == tenant]
            known.update({record.name: record for record in own})
            known.update({record.capability_id: record for record in own})
        return known.get(name)

    return find
