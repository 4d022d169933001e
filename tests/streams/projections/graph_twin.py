"""The tool graph by brute force: plain dictionaries over the lessons, one after another, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from pml.processors.capabilities.edge_weights import KnownEdge
from pml.processors.capabilities.edges import edges_of_run
from pml.schemas.catalog import Capability
from pml.schemas.lessons import DraftLesson, Lesson, StepLesson, UseLesson
from pml.schemas.workflow import Task
from pml.streams.projections.thresholds.table import Row

BEGIN = {"dependency": 1.0, "contains": 0.8, "provides": 0.7, "sequence": 0.5, "co_occurrence": 0.3}
Figures = tuple[float, int, int]
"""Weight, runs and successes."""


@dataclass
class Twin:
    """What the rows must come to, whatever happened on the way."""

    records: dict[tuple[str, str], Capability] = field(default_factory=dict)
    edges: dict[str, Figures] = field(default_factory=dict)
    steps: dict[tuple[str, str, str], list[Task]] = field(default_factory=dict)
    seen: set[tuple[str, int, int]] = field(default_factory=set)

    def take(self, lesson: Lesson) -> None:
        """One lesson; the same one again changes nothing."""
        tenant, _, name = lesson.subject.partition("/")[2].partition("/")
        place = (type(lesson).TYPE, lesson.source.partition, lesson.source.offset)
        if place in self.seen:
            return
        self.seen.add(place)
        if isinstance(lesson, DraftLesson):
            self.records.setdefault((tenant, name), lesson.record)
        elif isinstance(lesson, StepLesson) and (tenant, name) in self.records:
            self.steps.setdefault((tenant, name, lesson.run), []).extend(lesson.tasks)
        elif isinstance(lesson, UseLesson) and (tenant, name) in self.records:
            self._walk(tenant, self.records[tenant, name], lesson)

    def _walk(self, tenant: str, record: Capability, lesson: UseLesson) -> None:
        steps = self.steps.pop((tenant, record.capability_id, lesson.run or ""), None)
        if steps is not None:
            record = record.model_copy(update={"tasks": tuple(steps)})
        own = {name: known for (whose, name), known in self.records.items() if whose == tenant}
        for key in edges_of_run(record, lesson.path, own.get):
            subject = f"edge/{tenant}/{key.type}/{quote(key.source, safe='')}/{quote(key.target, safe='')}"
            weight, runs, successes = self.edges.get(subject, (BEGIN[key.type], 0, 0))
            right = 1.0 if lesson.success else 0.0
            self.edges[subject] = weight + 0.1 * (right - weight), runs + 1, successes + lesson.success


def edges_in(rows: Mapping[str, Row]) -> dict[str, Figures]:
    """The edges among the rows."""
    found = {name: row.learned for name, row in rows.items()}
    return {
        name: (item.weight, item.runs, item.successes)
        for name, item in found.items()
        if isinstance(item, KnownEdge)
    }
