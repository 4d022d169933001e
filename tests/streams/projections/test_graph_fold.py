"""The fold of the tool graph, without a broker."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.capabilities import edge_weights
from pml.processors.capabilities.records import STEPPING_MAX, STEPS_MAX, KnownCapability
from pml.schemas.catalog import Capability, CatalogRecord, Edge
from pml.schemas.codec import decode_catalog, encode
from pml.schemas.events import RunCompleted, RunExpanded, RunFailed
from pml.schemas.lessons import DraftLesson, Lesson, StepLesson, UseLesson
from pml.schemas.workflow import Task
from pml.streams.projections.thresholds.learning import Learned, PartitionLearning
from pml.streams.projections.thresholds.table import Row, decode_row, encode_row
from pml.streams.projections.thresholds.teaching import teach
from tests.lesson_records import Held, event, folded, held
from tests.streams.projections.graph_twin import Twin, edges_in
from tests.streams.projections.test_capabilities_fold import place

CHAINS = {"cap_1": "abc", "cap_2": "cb", "cap_3": "da"}
PATHS = {"cap_1": ("n0", "n1", "n2"), "cap_2": ("n0", "n1"), "cap_3": ("n0",)}


def draft(name: str, offset: int, tenant: str = "local", chain: str = "") -> DraftLesson:
    tasks = [
        {"id": f"n{number}", "tool": f"s:{tool}", "depends_on": [f"n{number - 1}"] if number else []}
        for number, tool in enumerate(chain or CHAINS[name])
    ]
    record = Capability.model_validate(
        {"tenant": tenant, "capability_id": name, "name": name, "source": "code", "tasks": tasks}
    )
    return DraftLesson(subject=f"capability/{tenant}/{name}", record=record, **place(offset))


def use(name: str, offset: int, success: bool = True, partition: int = 3, tenant: str = "local") -> UseLesson:
    subject = f"capability/{tenant}/{name}"
    return UseLesson(
        subject=subject, success=success, run=f"s/{offset}", path=PATHS[name], **place(offset, partition)
    )


def told_edges(learned: Learned) -> dict[str, Edge]:
    return {subject: record for subject, record in learned.records if isinstance(record, Edge)}


def test_a_run_makes_edges_and_tells_them() -> None:
    told = told_edges(folded(PartitionLearning(), held([draft("cap_2", 1), use("cap_2", 2)])))
    assert {(edge.type, edge.source, edge.target): edge.weight for edge in told.values()} == {
        ("contains", "cap_2", "s:c"): 0.82,
        ("contains", "cap_2", "s:b"): 0.82,
        ("sequence", "s:c", "s:b"): 0.55,
        ("co_occurrence", "s:b", "s:c"): 0.37,
    }
    record = next(iter(told.items()))
    stored = encode(CatalogRecord(kind="edge", id=record[0].partition("/")[2], data=record[1]))
    assert decode_catalog(stored).data == record[1]


def test_a_failed_run_takes_from_the_weight_and_an_aborted_or_replanned_one_nothing() -> None:
    state = PartitionLearning()
    told = told_edges(folded(state, held([draft("cap_2", 1), use("cap_2", 2, success=False)])))
    assert told["edge/local/sequence/s%3Ac/s%3Ab"].weight == 0.45
    assert teach([event(100, RunCompleted(executed_path=("n0",)))]).lessons == []


def test_the_log_teaches_what_a_run_came_to() -> None:
    ended = [
        event(100, RunCompleted(capability_id="cap_1", executed_path=("n0", "d1", "n2"))),
        event(101, RunFailed(capability_id="cap_1", executed_path=("n0",))),
    ]
    lessons = teach(ended).lessons
    assert [lesson.path for lesson in lessons if isinstance(lesson, UseLesson)] == [
        ("n0", "d1", "n2"),
        ("n0",),
    ]


def test_a_lesson_of_an_earlier_release_teaches_of_its_capability_and_no_edge() -> None:
    state = PartitionLearning()
    old = use("cap_2", 2).model_copy(update={"path": None, "run": None})
    folded(state, held([draft("cap_2", 1), old]))
    assert list(state.rows) == ["capability/local/cap_2"]


def stepping(offset: int, *calls: tuple[str, str, list[str]], run: str = "s/9") -> StepLesson:
    tasks = tuple(Task(id=name, tool=tool, depends_on=tuple(after)) for name, tool, after in calls)
    return StepLesson(subject="capability/local/cap_s", run=run, tasks=tasks, **place(offset))


def in_sandbox(*lessons: Lesson) -> PartitionLearning:
    record = Capability(tenant="local", capability_id="cap_s", name="s", source="code", mode="sandbox")
    begun = DraftLesson(subject="capability/local/cap_s", record=record, **place(0))
    state = PartitionLearning()
    folded(state, held([begun, *lessons]))
    return state


def ended(offset: int, *path: str, run: str = "s/9") -> UseLesson:
    subject = "capability/local/cap_s"
    return UseLesson(subject=subject, success=True, run=run, path=path, **place(offset))


def test_what_a_program_in_the_sandbox_asked_for_teaches_when_its_run_ends() -> None:
    asked = (stepping(1, ("n1", "a:x", [])), stepping(2, ("n2", "b:y", ["n1"]), ("n3", "c:z", ["n1"])))
    assert edges_in(in_sandbox(*asked).rows) == {}
    found = edges_in(in_sandbox(*asked, ended(3, "n1", "n2")).rows)
    assert {name.removeprefix("edge/local/") for name in found} == {
        "contains/cap_s/a%3Ax",
        "contains/cap_s/b%3Ay",
        "sequence/a%3Ax/b%3Ay",
        "co_occurrence/a%3Ax/b%3Ay",
    }


def test_runs_in_the_sandbox_are_kept_apart_and_forgotten_when_they_end() -> None:
    state = in_sandbox(
        stepping(1, ("n1", "a:x", [])), stepping(2, ("n1", "b:y", []), run="s/8"), ended(3, "n1", run="s/8")
    )
    assert [name.rpartition("/")[2] for name in edges_in(state.rows)] == ["b%3Ay"]
    row = state.rows["capability/local/cap_s"]
    assert isinstance(row.learned, KnownCapability)
    assert [run for run, _ in row.learned.steps] == ["s/9"]
    assert decode_row(encode_row(row)) == row


def test_calls_in_the_sandbox_are_bounded() -> None:
    lessons = [
        stepping(n, *((f"n{n}_{m}", "a:x", []) for m in range(30)), run=f"s/{n // 2}") for n in range(60)
    ]
    row = in_sandbox(*lessons).rows["capability/local/cap_s"]
    assert isinstance(row.learned, KnownCapability)
    assert [len(tasks) for _, tasks in row.learned.steps] == [STEPS_MAX] * STEPPING_MAX


def test_the_log_teaches_what_a_program_in_the_sandbox_asks_for() -> None:
    told = {"workflow_type": "t", "kept": {}, "layers": 1, "tasks": 1, "number": 2, "mode": "sandbox"}
    task = {
        "id": "n2",
        "tool": "a:x",
        "depends_on": ["n1"],
        "arguments": {"k": {"type": "literal", "value": 1}},
    }
    expanded = RunExpanded.model_validate(
        {
            **told,
            "capability_id": "cap_s",
            "definition": {"tasks": [task]},
            "payload_ref": {"topic": "t", "partition": 0, "offset": 0},
        }
    )
    dag = expanded.model_copy(update={"mode": None})
    (lesson,) = teach([event(100, expanded, run_id="r"), event(101, dag, run_id="r")]).lessons
    assert isinstance(lesson, StepLesson)
    assert (lesson.run, lesson.tasks) == ("s/r", (Task(id="n2", tool="a:x", depends_on=("n1",)),))


def test_rows_of_capabilities_are_written_behind_those_of_edges() -> None:
    learned = PartitionLearning().fold(held([draft("cap_1", 1), use("cap_1", 2), draft("cap_2", 3)]))
    kinds = [name.partition("/")[0] for name in learned.rows]
    assert kinds == sorted(kinds, key=lambda kind: kind == "capability")
    assert kinds.count("capability") == 2


def test_a_hot_edge_is_told_seldom() -> None:
    state, times = PartitionLearning(), 0
    folded(state, held([draft("cap_2", 0)]))
    for number in range(1, 500):
        learned = folded(state, [Held(number, encode(use("cap_2", number)))])
        times += "edge/local/sequence/s%3Ac/s%3Ab" in told_edges(learned)
    assert 9 <= times <= 16


def test_a_row_is_read_as_it_was_written() -> None:
    state = PartitionLearning()
    folded(state, held([draft("cap_1", 1), use("cap_1", 2)]))
    assert {name: decode_row(encode_row(row)) for name, row in state.rows.items()} == state.rows


def test_edges_beyond_what_is_kept_are_forgotten_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_weights, "EDGES_MAX", 6)
    monkeypatch.setattr(edge_weights, "EDGES_KEPT", 4)
    state = PartitionLearning()
    folded(state, held([draft("cap_2", 1), use("cap_2", 2)]))
    learned = folded(state, [Held(2, encode(draft("cap_1", 3))), Held(3, encode(use("cap_1", 4)))])
    kept = edges_in(state.rows)
    assert len(kept) == 4
    gone = [subject for subject, record in learned.records if record is None]
    assert "edge/local/sequence/s%3Ac/s%3Ab" in gone
    assert not set(gone) & set(kept)


LESSONS = st.lists(
    st.tuples(st.sampled_from(sorted(CHAINS)), st.booleans(), st.integers(0, 2), st.sampled_from("xy")),
    max_size=25,
)


def written(said: list[Any]) -> list[Lesson]:
    """Lessons of two tenants out of three partitions of the log."""
    drafts: list[Lesson] = [
        draft(name, number, tenant)
        for number, (name, tenant) in enumerate((n, t) for n in sorted(CHAINS) for t in "xy")
    ]
    uses = [
        use(name, 10 + number, success, partition, tenant)
        for number, (name, success, partition, tenant) in enumerate(said)
    ]
    return [*drafts, *uses]


@settings(deadline=None)
@given(LESSONS, st.data())
def test_edges_are_those_of_a_twin_however_often_the_role_dies(said: list[Any], data: st.DataObject) -> None:
    """Chunks of any size; a crash leaves some of the rows of a chunk written, and the chunk comes again."""
    lessons = written(said)
    twin = Twin()
    for lesson in lessons:
        twin.take(lesson)
    records, stored, position = held(lessons), dict[str, bytes](), -1
    while position < len(records) - 1:
        state = PartitionLearning({name: decode_row(row) for name, row in stored.items()}, position)
        end = data.draw(st.integers(position + 2, len(records)))
        learned = state.fold(records[max(0, position - 2) : end])
        rows = [(name, row) for name, row in learned.rows.items() if row is not None]
        dies = data.draw(st.booleans())
        reached = data.draw(st.integers(0, len(rows))) if dies else len(rows)
        stored.update({name: encode_row(row) for name, row in rows[:reached]})
        position = position if dies else learned.position
        if dies and data.draw(st.booleans()):
            stored.update({name: encode_row(row) for name, row in rows})
            position = learned.position
    found = edges_in({name: decode_row(row) for name, row in stored.items()})
    assert found == twin.edges


@given(LESSONS, st.integers(1, 40))
def test_the_catalog_says_what_the_rows_say_up_to_what_nobody_notices(said: list[Any], chunk: int) -> None:
    state, catalog = PartitionLearning(), dict[str, Edge]()
    records = held(written(said))
    for start in range(0, len(records), chunk):
        catalog.update(told_edges(folded(state, records[start : start + chunk])))
    rows: dict[str, Row] = state.rows
    weights = {name: weight for name, (weight, _, _) in edges_in(rows).items()}
    assert catalog.keys() == weights.keys()
    for name, edge in catalog.items():
        assert edge.weight == pytest.approx(weights[name], abs=edge_weights.TELL_FROM + 1e-6)
        assert edge.tenant == name.split("/")[1]
