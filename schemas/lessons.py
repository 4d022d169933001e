"""What events teach, addressed to the one owner of what is learned: the records of `pml.lessons`.

Only the projection `thresholds` writes and reads them. The Kafka key is `subject`, the key of the catalog
record that follows from it, so that all lessons of one context lie in one partition, in one order.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pml.schemas.base import Coordinate, Record
from pml.schemas.catalog import Capability
from pml.schemas.workflow import Task


class Lesson(Record):
    """One lesson; `source` is the place in the log of the event that it is from, `at` that event's time."""

    TYPE: ClassVar[str]

    version: int = 1
    subject: str
    source: Coordinate
    at: str

    @property
    def key(self) -> bytes:
        """The Kafka key."""
        return self.subject.encode()


class ThresholdLesson(Lesson):
    """A speculation with a confidence below 1, or a candidate that was scored, was right or not."""

    TYPE = "lesson.threshold"

    type: Literal["lesson.threshold"] = "lesson.threshold"
    success: bool


class BranchLesson(Lesson):
    """A decision of a run that has ended came to this."""

    TYPE = "lesson.branch"

    type: Literal["lesson.branch"] = "lesson.branch"
    outcome: str


class DivergenceLesson(Lesson):
    """A tool whose hit was verified said the same, or something else."""

    TYPE = "lesson.divergence"

    type: Literal["lesson.divergence"] = "lesson.divergence"
    same: bool


class _OfCapability(Lesson):
    """The subject is `capability/tenant/id`. Names are unique in a tenant: one partition has all of them."""

    @property
    def key(self) -> bytes:
        """The Kafka key."""
        return self.subject.rpartition("/")[0].encode()


class DraftLesson(_OfCapability):
    """A program or workflow was analysed for a run; `record` is all but its final name."""

    TYPE = "lesson.draft"

    type: Literal["lesson.draft"] = "lesson.draft"
    record: Capability
    run: str | None = None


class UseLesson(_OfCapability):
    """A run of a capability has ended, well or not; `path` are the ids of the tasks and decisions it came to.

    `run` is `session/run`, as in the lesson of its draft; both are absent in lessons of earlier releases.
    """

    TYPE = "lesson.use"

    type: Literal["lesson.use"] = "lesson.use"
    success: bool
    run: str | None = None
    path: tuple[str, ...] | None = None


class StepLesson(_OfCapability):
    """A program in the sandbox asked for these calls; of each its id, tool, and the calls before it."""

    TYPE = "lesson.step"

    type: Literal["lesson.step"] = "lesson.step"
    run: str
    tasks: tuple[Task, ...] = ()


class GuessLesson(Lesson):
    """A session was asked what comes next: what is named first, and what had come (`live_hits.Guess`)."""

    TYPE = "lesson.guess"

    type: Literal["lesson.guess"] = "lesson.guess"
    session: str
    model: str = ""
    first: str | None = None
    came: str
    before: str
    after: str


AnyLesson = (
    ThresholdLesson | BranchLesson | DivergenceLesson | DraftLesson | UseLesson | StepLesson | GuessLesson
)

LESSONS: dict[str, type[AnyLesson]] = {
    ThresholdLesson.TYPE: ThresholdLesson,
    BranchLesson.TYPE: BranchLesson,
    DivergenceLesson.TYPE: DivergenceLesson,
    DraftLesson.TYPE: DraftLesson,
    UseLesson.TYPE: UseLesson,
    StepLesson.TYPE: StepLesson,
    GuessLesson.TYPE: GuessLesson,
}
