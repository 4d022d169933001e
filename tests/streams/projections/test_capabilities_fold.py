"""The fold of lessons about capabilities, without a broker."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities.records import AWAITED_MAX, KnownCapability
from pml.schemas.base import Coordinate
from pml.schemas.catalog import Capability
from pml.schemas.codec import encode
from pml.schemas.events import InternalEnded, RunCompleted, RunFailed
from pml.schemas.lessons import DraftLesson, Lesson, UseLesson
from pml.streams.projections.thresholds import capabilities
from pml.streams.projections.thresholds.learning import Learned, PartitionLearning
from pml.streams.projections.thresholds.table import decode_row, encode_row
from pml.streams.projections.thresholds.teaching import teach
from tests.lesson_records import Held, event, folded, held

AT = "2026-11-22T00:00:{:02}.000000Z"


def place(offset: int, partition: int = 3) -> dict[str, Any]:
    source = Coordinate(topic="pml.events", partition=partition, offset=offset)
    return {"source": source, "at": AT.format(offset % 60)}


def draft(
    name: str, offset: int, tenant: str = "local", called: str = "Read notes", **said: Any
) -> DraftLesson:
    record = Capability(
        tenant=tenant,
        capability_id=name,
        name=called,
        intent=said.get("intent"),
        used_at=AT.format(offset % 60),
    )
    return DraftLesson(
        subject=f"capability/{tenant}/{name}", record=record, run=said.get("run"), **place(offset)
    )


def use(
    name: str, offset: int, success: bool = True, partition: int = 3, run: str | None = None
) -> UseLesson:
    subject = f"capability/local/{name}"
    return UseLesson(subject=subject, success=success, run=run, **place(offset, partition))


def names(learned: Learned) -> dict[str, str]:
    return {subject: record.name for subject, record in learned.records if isinstance(record, Capability)}


def known(state: PartitionLearning) -> dict[str, KnownCapability]:
    rows = {name: row.learned for name, row in state.rows.items()}
    return {name: item for name, item in rows.items() if isinstance(item, KnownCapability)}


def test_a_capability_is_told_when_it_is_drafted_and_when_it_is_learned() -> None:
    state = PartitionLearning()
    learned = folded(state, held([draft("cap_1", 1), use("cap_1", 2, False), use("cap_1", 3)]))
    told = [record.status for _, record in learned.records if isinstance(record, Capability)]
    assert told == ["draft", "draft", "learned"]
    assert known(state)["capability/local/cap_1"].record.runs == 2


def test_names_are_unique_in_a_tenant_and_only_there() -> None:
    drafts = [draft("cap_1", 1), draft("cap_2", 2), draft("cap_1", 3, tenant="other")]
    assert names(folded(PartitionLearning(), held(list(drafts)))) == {
        "capability/local/cap_1": "read-notes",
        "capability/local/cap_2": "read-notes-2",
        "capability/other/cap_1": "read-notes",
    }


def test_lessons_of_a_tenant_lie_in_one_partition() -> None:
    assert {draft("cap_1", 1).key, draft("cap_2", 2).key, use("cap_3", 3).key} == {b"capability/local"}


def test_a_run_of_what_was_never_drafted_changes_nothing() -> None:
    learned = folded(PartitionLearning(), held([use("cap_1", 1)]))
    assert (learned.rows, learned.records) == ({}, [])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=30), st.data())
def test_lessons_that_come_twice_count_once(uses: list[tuple[bool, int]], data: st.DataObject) -> None:
    lessons: list[Lesson] = [draft("cap_1", 0)]
    lessons += [use("cap_1", number, *said) for number, said in enumerate(uses, start=1)]
    repeated: list[Lesson] = []
    for position, lesson in enumerate(lessons):
        earlier = data.draw(st.integers(0, position)) if data.draw(st.booleans()) else position
        same = lesson.source.partition
        repeated += [item for item in lessons[earlier:position] if item.source.partition == same]
        repeated.append(lesson)
    once, twice = PartitionLearning(), PartitionLearning()
    folded(once, held(lessons))
    folded(twice, held(repeated))
    assert known(twice) == known(once)


def test_a_row_is_read_as_it_was_written() -> None:
    """Every kind of argument is still of its kind: what is told after a restart has to run."""
    arguments = {
        "one": {"type": "reference", "expression": "n1.content"},
        "two": {"type": "parameter", "parameter_name": "path"},
        "three": {"type": "object_of", "fields": {"a": {"type": "reference", "expression": "n1"}}},
        "four": {"type": "expression", "code": "n1.count + 1"},
        "five": {"expression": "n1"},
        "six": None,
    }
    tasks = [{"id": "n1", "tool": "f:read"}, {"id": "n2", "tool": "f:write", "arguments": arguments}]
    record = Capability.model_validate({**draft("cap_1", 1).record.model_dump(), "tasks": tasks})
    state = PartitionLearning()
    folded(state, held([draft("cap_1", 1).model_copy(update={"record": record}), use("cap_1", 2)]))
    (row,) = (row for row in state.rows.values() if isinstance(row.learned, KnownCapability))
    assert [leaf.type for leaf in row.learned.record.tasks[1].arguments.values()][:2] == [
        "reference",
        "parameter",
    ]
    assert decode_row(encode_row(row)) == row


def asked(*runs: tuple[str, bool]) -> KnownCapability:
    """One capability after runs, each begun with an intent, which then ended well or not."""
    lessons: list[Lesson] = []
    for number, (intent, success) in enumerate(runs):
        lessons.append(draft("cap_1", 2 * number, intent=intent, run=f"s/{number}"))
        lessons.append(use("cap_1", 2 * number + 1, success, run=f"s/{number}"))
    state = PartitionLearning()
    folded(state, held(lessons))
    assert decode_row(encode_row(next(iter(state.rows.values())))) == next(iter(state.rows.values()))
    return known(state)["capability/local/cap_1"]


def test_what_the_same_calls_were_good_for_is_one_more_intent() -> None:
    record = asked(("Read notes", True), ("Show my diary", True), ("read the notes", True)).record
    assert record.asked_for == ("Read notes", "Show my diary")


def test_what_it_failed_at_is_none() -> None:
    assert asked(("Read notes", True), ("Cook a meal", False)).record.asked_for == ("Read notes",)


def test_a_run_that_was_found_by_its_intent_teaches_none() -> None:
    """Nobody drafted anything for it: only its end names the capability."""
    state = PartitionLearning()
    folded(state, held([draft("cap_1", 1, intent="Read notes", run="s/1"), use("cap_1", 2, run="s/9")]))
    row = known(state)["capability/local/cap_1"]
    assert (row.record.asked_for, row.record.runs) == (("Read notes",), 1)
    assert row.awaited == (("s/1", "Read notes"),)


def test_one_more_intent_is_told_at_once() -> None:
    state, lessons = PartitionLearning(), [draft("cap_1", 0)]
    uses: list[Lesson] = [*lessons, *(use("cap_1", number) for number in range(1, 60))]
    folded(state, held(uses))
    more: list[Lesson] = [draft("cap_1", 60, intent="Other words", run="s/1"), use("cap_1", 61, run="s/1")]
    learned = folded(state, [Held(100 + n, encode(item)) for n, item in enumerate(more)])
    told = [record for _, record in learned.records if isinstance(record, Capability)]
    assert told[-1].asked_for == ("Other words",)


def test_runs_that_never_end_are_not_awaited_for_ever() -> None:
    lessons: list[Lesson] = [draft("cap_1", n, intent=f"word{n}", run=f"s/{n}") for n in range(50)]
    state = PartitionLearning()
    folded(state, held(lessons))
    assert len(known(state)["capability/local/cap_1"].awaited) == AWAITED_MAX


def test_what_was_never_learned_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "CAPABILITIES_MAX", 2)
    state = PartitionLearning()
    first = [draft("cap_1", 1), use("cap_1", 2), draft("cap_2", 3, called="b"), draft("cap_3", 4, called="c")]
    learned = folded(state, held(list(first)))
    assert ("capability/local/cap_2", None) in learned.records
    assert sorted(known(state)) == ["capability/local/cap_1", "capability/local/cap_3"]


def test_the_log_teaches_what_was_analysed_and_how_runs_ended() -> None:
    answer = {
        "capability_id": "cap_1",
        "intent": "Read notes",
        "source": "await mcp.f.read()",
        "structure": {
            "language": "python",
            "nodes": [{"id": "n1", "type": "task", "tool": "f:read", "arguments": {}}],
        },
    }
    records = [
        event(100, InternalEnded(call_id="c", tool="pml:analyse", answer=answer, duration_ms=1)),
        event(101, InternalEnded(call_id="c", tool="pml:recall", answer={"tools": {}}, duration_ms=1)),
        event(102, RunCompleted(capability_id="cap_1")),
        event(103, RunFailed(capability_id="cap_1")),
        event(104, RunCompleted()),
    ]
    taught = teach(records)
    assert [type(lesson) for lesson in taught.lessons] == [DraftLesson, UseLesson, UseLesson]
    learned = folded(PartitionLearning(), [Held(n, encode(item)) for n, item in enumerate(taught.lessons)])
    record = learned.records[-1][1]
    assert isinstance(record, Capability)
    assert (record.name, record.status, record.runs, record.successes) == ("read-notes", "learned", 2, 1)


def test_an_analysis_that_cannot_be_read_is_buried_and_the_rest_is_taught() -> None:
    broken = InternalEnded(call_id="c", tool="pml:analyse", answer={"structure": 7}, duration_ms=1)
    taught = teach([event(100, broken), event(101, RunCompleted(capability_id="cap_1"))])
    assert (len(taught.lessons), len(taught.broken)) == (1, 1)
