"""The fold of what lessons say of capabilities: a row for each, and a record where it is told (again)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from pml.processors.capabilities.records import (
    KnownCapability,
    after_steps,
    after_use,
    awaiting,
    drafted_again,
    first_draft,
)
from pml.schemas.catalog import Capability
from pml.schemas.lessons import DraftLesson, StepLesson, UseLesson

# A tenant's work has tens; every process that reads the catalog holds all of them.
CAPABILITIES_MAX = 500

Known = Mapping[str, KnownCapability]


def after_lesson(
    before: KnownCapability | None,
    lesson: DraftLesson | UseLesson | StepLesson,
    names: Callable[[], Collection[str]],
) -> KnownCapability | None:
    """What is known of a lesson's capability after it; None where it was never drafted, or is forgotten.

    Args:
        names: what the other capabilities of its tenant are called.
    """
    if isinstance(lesson, UseLesson):
        return None if before is None else after_use(before, lesson.success, lesson.at, lesson.run)
    if isinstance(lesson, StepLesson):
        return None if before is None else after_steps(before, lesson.run, lesson.tasks)
    drafted = first_draft(lesson.record, names()) if before is None else drafted_again(before, lesson.record)
    return awaiting(drafted, lesson.run, lesson.record.intent)


def published(before: KnownCapability | None, after: KnownCapability) -> Capability | None:
    """The record that is to be told: of a new or changed capability, or after enough of its runs."""
    changed = before is None or _kept(before) != _kept(after)
    return after.record if changed or after.stale else None


def surplus(known: Known) -> list[str]:
    """The subjects beyond what is kept: first what was never learned, then what was not used for longest."""

    def worth(subject: str) -> tuple[bool, str]:
        record = known[subject].record
        return record.status == "learned", record.used_at

    return sorted(known, key=worth)[: max(0, len(known) - CAPABILITIES_MAX)]


def taken_names(known: Known, subject: str) -> set[str]:
    """What the other capabilities of a subject's tenant are called."""
    tenant = subject.rpartition("/")[0]
    return {item.record.name for name, item in known.items() if name.rpartition("/")[0] == tenant}


def _kept(known: KnownCapability) -> dict[str, object]:
    return known.record.model_dump(exclude={"runs", "successes", "used_at"})
