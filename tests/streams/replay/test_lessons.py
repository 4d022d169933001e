"""Lessons beside what events teach, and rows beside what lessons teach, without a broker."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.schemas.base import Coordinate
from pml.schemas.codec import encode
from pml.schemas.events import Event
from pml.schemas.lessons import BranchLesson, Lesson, ThresholdLesson
from pml.streams.connection import partition_for
from pml.streams.projections.thresholds.learning import PartitionLearning
from pml.streams.projections.thresholds.table import encode_row, key_of, position_key
from pml.streams.projections.thresholds.teaching import lessons_of
from pml.streams.replay import learned as module
from pml.streams.replay.learned import LearnedReplay
from pml.streams.replay.lessons import LessonsReplay, marks_of
from pml.streams.replay.report import Comparison
from pml.streams.replay.sources import LogEntry
from tests.lesson_records import Held, folded, held
from tests.log_writer import run_completed, run_started, speculation_ended, task_completed, task_started
from tests.streams.replay.test_comparison import FIRST, PARTITION, entries, events

TOPIC = "pml.events"
TEACHING = (
    run_started(),
    task_started(),
    task_completed(),
    speculation_ended(kind="branch", confidence=0.9, context={"user": "ann", "workflow_type": "audit"}),
    run_completed(workflow_type="audit", decisions={"d1": "true"}),
)
SUBJECTS = ("threshold/local/type=audit", "threshold/local/default", "branch_stats/local/audit/d1")
LESSONS_PARTITION = 4


def taught(found: list[Event]) -> list[tuple[int, Lesson]]:
    """Each lesson of these events with the partition that it belongs to."""
    lessons = [
        lesson
        for entry in entries(found)
        for lesson in lessons_of(entry.event.type, entry.fields, place(entry))
    ]
    return [(partition_for(lesson.key), lesson) for lesson in lessons]


def place(entry: LogEntry) -> Coordinate:
    return Coordinate(topic=TOPIC, partition=PARTITION, offset=entry.event.offset)


def compared(
    topic: Sequence[tuple[int, bytes]], until: int = 1_000, lost: frozenset[int] = frozenset()
) -> Comparison:
    replay = LessonsReplay(TOPIC, PARTITION, until)
    for entry in entries(events(*TEACHING)):
        replay.fold(entry)
    for partition, value in topic:
        replay.look(marks_of(TOPIC, partition, [value]).get(PARTITION, b""))
    replay.finish(lost)
    return replay.comparison


@pytest.fixture
def topic() -> list[tuple[int, bytes]]:
    found = [(partition, encode(lesson)) for partition, lesson in taught(events(*TEACHING))]
    assert len(found) > 2
    return found


def test_lessons_are_those_that_events_teach(topic: list[tuple[int, bytes]]) -> None:
    found = compared(topic)
    assert (found.verdict, found.compared, found.folded) == ("same", len(topic), len(topic))
    assert compared([*topic, *topic]).verdict == "same"


def test_what_is_no_lesson_or_from_elsewhere_is_passed_over(topic: list[tuple[int, bytes]]) -> None:
    elsewhere = orjson.loads(topic[0][1])
    elsewhere["source"]["partition"] = PARTITION + 1
    later = orjson.loads(topic[0][1])
    later["source"]["offset"] = FIRST + 99
    others = [(0, b"no json"), (0, b"[]"), (0, b'{"source":1}'), (0, orjson.dumps(elsewhere))]
    assert compared([*topic, *others, (0, orjson.dumps(later))]).verdict == "same"


def test_a_lesson_that_is_missing_is_named(topic: list[tuple[int, bytes]]) -> None:
    found = compared(topic[1:])
    offset = orjson.loads(topic[0][1])["source"]["offset"]
    assert found.first is not None
    assert (found.differences, found.first.lies) == (1, (PARTITION, offset))
    assert compared(topic[1:], until=offset).verdict == "same"
    assert compared(topic[1:], lost=frozenset({topic[0][0]})).notes == ["1 lessons may have expired"]


def test_a_lesson_that_was_altered_is_named_on_both_sides(topic: list[tuple[int, bytes]]) -> None:
    altered = topic[0][1].replace(b'"at":"2', b'"at":"1')
    found = compared([(topic[0][0], altered), *topic[1:]])
    assert found.first is not None
    assert (found.differences, found.first.field) == (2, "lesson")


def lesson(number: int, subject: str, success: bool) -> Lesson:
    source = Coordinate(topic=TOPIC, partition=number % 3, offset=number)
    at = f"2026-11-22T00:00:00.{number:06}Z"
    if subject.startswith("branch"):
        return BranchLesson(subject=subject, source=source, at=at, outcome=str(success))
    return ThresholdLesson(subject=subject, source=source, at=at, success=success)


def live_after(records: list[Held], chunk: int) -> dict[bytes, bytes]:
    """The table after these lessons, read in chunks of that size."""
    state = PartitionLearning()
    for start in range(0, len(records), chunk):
        folded(state, records[start : start + chunk])
    rows = {key_of(LESSONS_PARTITION, name): encode_row(row) for name, row in state.rows.items()}
    return {**rows, position_key(LESSONS_PARTITION): b"%d" % state.position}


def learned(live: dict[bytes, bytes], records: list[Held], *, lost: bool = False) -> Comparison:
    replay = LearnedReplay(LESSONS_PARTITION, live)
    replay.fold(records)
    replay.finish(lost=lost)
    return replay.comparison


DRAWN = st.lists(st.tuples(st.sampled_from(SUBJECTS), st.booleans()), min_size=1, max_size=200)


@settings(max_examples=40)
@given(DRAWN, st.integers(1, 60), st.integers(1, 200))
def test_rows_are_those_that_lessons_teach(drawn: list[tuple[str, bool]], chunk: int, known: int) -> None:
    """However many were read at once, and whatever came since."""
    records = held([lesson(number, *each) for number, each in enumerate(drawn)])
    found = learned(live_after(records[:known], chunk), records)
    assert (found.verdict, found.notes) == ("same", [])
    assert found.compared == len({subject for subject, _ in drawn[:known]})


def test_a_row_that_was_altered_is_named() -> None:
    records = held([lesson(number, SUBJECTS[number % 3], number % 2 == 0) for number in range(120)])
    live = live_after(records, 7)
    for key in (key_of(LESSONS_PARTITION, name) for name in SUBJECTS):
        altered = live | {key: live[key].replace(b'"at":"2026', b'"at":"2027')}
        first = learned(altered, records).first
        assert first is not None
        assert (first.key.encode(), first.offset) == (key, 119)
    gone = {key: value for key, value in live.items() if not key.endswith(b"default")}
    assert learned(gone, records).differences == 1


def test_rows_that_are_written_while_they_are_read_are_passed_over() -> None:
    records = held([lesson(number, SUBJECTS[0], True) for number in range(20)])
    live = live_after(records, 5) | {position_key(LESSONS_PARTITION): b"14"}
    found = learned(live, records)
    assert (found.verdict, found.notes) == ("not compared", ["1 rows were written while they were read"])


def test_rows_whose_lessons_have_expired_are_not_compared() -> None:
    records = held([lesson(number, SUBJECTS[0], True) for number in range(20)])
    found = learned(live_after(records, 5), records[10:], lost=True)
    assert (found.verdict, found.notes) == ("not compared", ["1 rows rest on lessons that have expired"])


def test_a_partition_that_forgot_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    records = held([lesson(number, SUBJECTS[number % 3], True) for number in range(20)])
    live = live_after(records, 5)
    monkeypatch.setattr(module, "SUBJECTS_MAX", 3)
    found = learned(live, records)
    assert (found.verdict, len(found.notes)) == ("not compared", 1)
