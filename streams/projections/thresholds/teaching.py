"""From the log to lessons: each event that teaches something is addressed to the owner of what it teaches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pml.processors.capabilities.records import ANALYSED, STEPPED, drafted, stepped, used
from pml.processors.learning.live_hits import guess_of
from pml.processors.speculation.outcomes import OBSERVED, lessons
from pml.schemas.base import Coordinate
from pml.schemas.catalog import Capability, DivergenceRecord, ModelLive
from pml.schemas.codec import open_envelope, upcast
from pml.schemas.errors import LogCorrupted, PMLError, UndecodableRecord, UnknownMessage
from pml.schemas.events import EVENTS, PredictionMade
from pml.schemas.lessons import (
    BranchLesson,
    DivergenceLesson,
    DraftLesson,
    GuessLesson,
    Lesson,
    StepLesson,
    ThresholdLesson,
    UseLesson,
)
from pml.streams.dead_letters import Received
from pml.streams.log.reader import TYPE_HEADER, counted, header

TEACHING = OBSERVED | ANALYSED | {STEPPED, PredictionMade.TYPE}
"""The types of events that can teach something; no other needs to be decoded."""
_TYPES = {name.encode(): name for name in TEACHING}


@dataclass(slots=True)
class Taught:
    """The lessons of a chunk in the order of the log, and the records that count but cannot be read."""

    lessons: list[Lesson] = field(default_factory=list)
    broken: list[tuple[Received, PMLError]] = field(default_factory=list)


def teach(records: Iterable[Received]) -> Taught:
    """What these records of the log teach; only types that matter are decoded.

    Raises:
        LogCorrupted: an event of a newer release.
    """
    taught = Taught()
    for record in records:
        kind = _TYPES.get(header(record, TYPE_HEADER) or b"")
        if kind is None or not counted(record):
            continue
        try:
            taught.lessons.extend(_lessons(kind, record))
        except UndecodableRecord as error:
            taught.broken.append((record, error))
    return taught


def _lessons(kind: str, record: Received) -> list[Lesson]:
    source = Coordinate(topic=record.topic, partition=record.partition, offset=record.offset)
    try:
        return lessons_of(kind, upcast(open_envelope(record.value), EVENTS[kind].VERSION).fields, source)
    except UnknownMessage as error:
        raise LogCorrupted(
            f"thresholds cannot be learned on at offset {record.offset}: {error.message}; upgrade PML, "
            "nothing is lost until then",
            offset=record.offset,
        ) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UndecodableRecord(f"{kind} without what its type must say: {error!r}") from None


def lessons_of(kind: str, fields: Mapping[str, Any], source: Coordinate) -> list[Lesson]:
    """What one event teaches, in order.

    Args:
        kind: its type, one of `TEACHING`.
        fields: its JSON object.
        source: where it lies.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: it does not say what its type must.
    """
    at = str(fields["occurred_at"])
    tenant, data = fields["tenant"], fields["data"]
    found = [_lesson(subject, said, source, at) for subject, said in _lessons_of(kind, tenant, data)]
    return [*found, *_of_capabilities(kind, fields, source, at), *_of_models(kind, fields, source, at)]


def _lessons_of(kind: str, tenant: str, data: Mapping[str, Any]) -> list[tuple[str, bool | str]]:
    return lessons(kind, tenant, data) if kind in OBSERVED else []


def _of_capabilities(kind: str, fields: Mapping[str, Any], source: Coordinate, at: str) -> Iterator[Lesson]:
    tenant, data = fields["tenant"], fields["data"]
    run = f"{fields['session_id']}/{fields['run_id']}" if fields.get("run_id") else None
    draft = drafted(kind, tenant, data, at) if kind in ANALYSED else None
    if draft is not None:
        yield DraftLesson(
            subject=_subject(tenant, draft.capability_id), source=source, at=at, record=draft, run=run
        )
    step = stepped(kind, data)
    if step is not None and run is not None:
        yield StepLesson(subject=_subject(tenant, step[0]), source=source, at=at, run=run, tasks=step[1])
    use = used(kind, data)
    if use is not None:
        path = tuple(data.get("executed_path") or ())
        yield UseLesson(
            subject=_subject(tenant, use[0]), source=source, at=at, success=use[1], run=run, path=path
        )


def _of_models(kind: str, fields: Mapping[str, Any], source: Coordinate, at: str) -> Iterator[Lesson]:
    guess = guess_of(fields["session_id"], fields["data"]) if kind == PredictionMade.TYPE else None
    if guess is not None:
        subject = f"{ModelLive.KIND}/{fields['tenant']}"
        yield GuessLesson(subject=subject, source=source, at=at, **guess._asdict())


def _subject(tenant: str, capability_id: str) -> str:
    return f"{Capability.KIND}/{tenant}/{capability_id}"


def _lesson(subject: str, said: bool | str, source: Coordinate, at: str) -> Lesson:
    if isinstance(said, bool) and subject.startswith(f"{DivergenceRecord.KIND}/"):
        return DivergenceLesson(subject=subject, source=source, at=at, same=said)
    if isinstance(said, bool):
        return ThresholdLesson(subject=subject, source=source, at=at, success=said)
    return BranchLesson(subject=subject, source=source, at=at, outcome=said)
