"""The fold of lessons, and what of the log becomes one, without a broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.speculation.adaptation import Learning
from pml.processors.speculation.branches import BranchCounts
from pml.schemas.base import Coordinate
from pml.schemas.catalog import BranchStats, DivergenceRecord, ModelLive, ThresholdRecord
from pml.schemas.codec import encode
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import (
    PredictionMade,
    SpeculationDiverged,
    SpeculationVerified,
    VerifiedOutcome,
)
from pml.schemas.lessons import BranchLesson, DivergenceLesson, GuessLesson, Lesson, ThresholdLesson
from pml.streams.health import Health
from pml.streams.projections.thresholds import learning
from pml.streams.projections.thresholds.learning import PartitionLearning
from pml.streams.projections.thresholds.reader import branches
from pml.streams.projections.thresholds.role import Thresholds, show, show_live
from pml.streams.projections.thresholds.table import Row, decode_row, encode_row
from pml.streams.projections.thresholds.teaching import teach
from pml.streams.settings import Settings
from pml.streams.telemetry import MODEL_HIT_RATE, SPECULATION_THRESHOLD
from tests.lesson_records import Held, event, folded, held
from tests.log_writer import run_completed, speculation_ended

TYPE, USER, BRANCH = (
    "threshold/local/type=audit",
    "threshold/local/user=ann/type=audit",
    "branch_stats/local/audit/d1",
)
CONTEXT = {"user": "ann", "domain": "web", "workflow_type": "audit"}


def lesson(subject: str, said: bool | str, source: tuple[int, int]) -> Lesson:
    place = Coordinate(topic="pml.events", partition=source[0], offset=source[1])
    given: dict[str, Any] = {"subject": subject, "source": place, "at": f"2026-11-22T00:00:{source[1]:06}"}
    return (
        ThresholdLesson(success=said, **given)
        if isinstance(said, bool)
        else BranchLesson(outcome=said, **given)
    )


def test_a_context_changes_with_each_full_window_only() -> None:
    state = PartitionLearning()
    records = held([lesson(TYPE, True, (0, number)) for number in range(120)])
    learned = folded(state, records)
    told = [data for subject, data in learned.records if isinstance(data, ThresholdRecord)]
    assert [(item.windows, item.outcomes, item.success_rate) for item in told] == [
        (1, 50, 1.0),
        (2, 100, 1.0),
    ]
    assert [(item.level, item.workflow_type, item.user) for item in told] == [("type", "audit", None)] * 2
    assert [item.state for item in told] == ["converged", "drifting"]
    assert told[1].previous == told[0].value
    assert told[0].changed_at.endswith("000049")
    row = state.rows[TYPE]
    assert isinstance(row.learned, Learning)
    assert (row.learned.seen, row.guard, state.position) == (20, {0: 119}, 119)


LESSONS = st.lists(
    st.tuples(st.sampled_from([TYPE, USER, BRANCH]), st.integers(0, 2), st.booleans()), max_size=250
)


@given(LESSONS, st.lists(st.integers(0, 250), max_size=6), st.integers(0, 60))
@settings(max_examples=60)
def test_chunks_repeats_and_lessons_sent_twice_change_nothing(
    drawn: list[tuple[str, int, bool]], cuts: list[int], again: int
) -> None:
    offsets = [0, 0, 0]
    lessons = []
    for subject, partition, success in drawn:
        said: bool | str = ("true" if success else "false") if subject == BRANCH else success
        lessons.append(lesson(subject, said, (partition, offsets[partition])))
        offsets[partition] += 1
    plain = PartitionLearning()
    told = folded(plain, held(lessons)).records
    # A teacher that crashed sends its last lessons again, in their order.
    doubled = held(lessons[:again] + lessons[max(0, again - 25) :])
    other, start, records = PartitionLearning(), 0, []
    for cut in [*sorted(cuts), len(doubled)]:
        records += folded(other, doubled[max(0, start - 3) : cut]).records
        rows = {subject: decode_row(encode_row(row)) for subject, row in other.rows.items()}
        other, start = PartitionLearning(rows, other.position), max(start, cut)
    assert thresholds(records) == thresholds(told)
    assert without_told(other) == without_told(plain)


def thresholds(records: list[Any]) -> list[Any]:
    return [(subject, data) for subject, data in records if not isinstance(data, BranchStats)]


def without_told(state: PartitionLearning) -> dict[str, Any]:
    """What a branch told depends on where chunks end; what it counted does not."""
    return {subject: getattr(row.learned, "counts", row.learned) for subject, row in state.rows.items()}


def test_a_branch_is_told_once_a_chunk() -> None:
    state = PartitionLearning()
    outcomes = ["true"] * 7 + ["false"] * 2
    learned = folded(state, held([lesson(BRANCH, said, (1, n)) for n, said in enumerate(outcomes)]))
    expected = BranchStats(
        tenant="local", workflow_type="audit", decision_id="d1", counts={"true": 7, "false": 2}
    )
    assert learned.records == [(BRANCH, expected)]


def test_nothing_is_kept_before_it_is_published() -> None:
    state = PartitionLearning()
    state.fold(held([lesson(TYPE, True, (0, 0))]))
    assert (state.rows, state.position) == ({}, -1)


def test_subjects_that_were_not_taught_for_long_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "SUBJECTS_MAX", 3)
    names = [f"threshold/local/type=t{number}" for number in range(5)]
    windows = [lesson(names[0], True, (0, offset)) for offset in range(50)]
    others = [lesson(name, True, (0, 50 + offset)) for offset, name in enumerate(names[1:])]
    state = PartitionLearning()
    folded(state, held(windows))
    learned = folded(state, [Held(50 + n, encode(item)) for n, item in enumerate(others)])
    assert set(state.rows) == set(names[2:])
    # Only what was told of has to be taken back.
    assert learned.records == [(names[0], None)]


@pytest.mark.parametrize(
    "value",
    [
        b"no json",
        b'{"type":"lesson.x"}',
        None,
        encode(lesson("threshold/local/nothing", True, (0, 1))),
        encode(lesson("branch_stats/x", "true", (0, 1))),
    ],
)
def test_a_broken_lesson_between_good_ones_is_handed_out(value: bytes | None) -> None:
    good = [encode(lesson(TYPE, True, (0, 0))), encode(lesson(TYPE, True, (0, 2)))]
    state = PartitionLearning()
    if value == b'{"type":"lesson.x"}':
        with pytest.raises(LogCorrupted, match=r"lesson\.x"):
            state.fold([Held(0, value)])
        return
    learned = folded(state, [Held(0, good[0]), Held(1, value), Held(2, good[1])])
    assert [record.offset for record, _ in learned.broken] == [1]
    assert state.rows[TYPE].guard == {0: 2}


def test_a_row_of_another_release_stops_the_role() -> None:
    value = encode_row(Row(Learning())).replace(b'"v":1', b'"v":2')
    with pytest.raises(LogCorrupted, match="upgrade PML"):
        decode_row(value)
    with pytest.raises(LogCorrupted, match="rebuild"):
        decode_row(b"{}")


def test_events_become_lessons_of_their_place_in_the_log() -> None:
    records = [
        event(0, speculation_ended(confidence=0.9, context=CONTEXT)),
        event(1, speculation_ended()),
        event(2, speculation_ended(confidence=0.9, context=CONTEXT), written_for=5),
        event(3, run_completed(workflow_type="audit", decisions={"d1": "true"})),
    ]
    taught = teach(records)
    assert taught.broken == []
    assert [(item.subject, item.source.offset) for item in taught.lessons] == [
        ("threshold/local/user=ann/type=audit", 0),
        ("threshold/local/domain=web/type=audit", 0),
        ("threshold/local/type=audit", 0),
        ("threshold/local/default", 0),
        ("branch_stats/local/audit/d1", 3),
    ]
    assert {item.source.partition for item in taught.lessons} == {3}


def divergence(same: bool, offset: int, tool: str = "files:read_file") -> Lesson:
    place = Coordinate(topic="pml.events", partition=0, offset=offset)
    at = f"2026-11-22T00:00:{offset:06}"
    return DivergenceLesson(subject=f"divergence/{tool}", source=place, at=at, same=same)


@given(st.lists(st.booleans(), max_size=12))
def test_divergences_in_a_row_are_told_as_they_come(answers: list[bool]) -> None:
    state = PartitionLearning()
    told: list[tuple[str, ...]] = []
    for number, same in enumerate(answers):
        learned = folded(state, [Held(number, encode(divergence(same, number)))])
        told += [data.diverged_at for _, data in learned.records if isinstance(data, DivergenceRecord)]
        again = PartitionLearning(dict(state.rows), state.position)
        assert not folded(again, [Held(number + 1, encode(divergence(same, number)))]).records
    row = list(reversed(answers))
    in_a_row = next((index for index, same in enumerate(row) if same), len(row))
    assert len(told[-1] if told else ()) == min(in_a_row, 3)
    assert all(len(times) <= 3 for times in told)


def test_a_tool_that_never_differed_has_no_row_and_one_that_did_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(learning, "SUBJECTS_MAX", 1)
    state = PartitionLearning()
    assert not folded(state, held([divergence(True, 0)])).rows
    records = [divergence(False, 1), lesson(TYPE, True, (0, 2)), lesson(USER, True, (0, 3))]
    folded(state, [Held(offset + 1, encode(item)) for offset, item in enumerate(records)])
    assert "divergence/files:read_file" in state.rows
    assert (
        decode_row(encode_row(state.rows["divergence/files:read_file"]))
        == state.rows["divergence/files:read_file"]
    )


def test_verified_hits_become_lessons_of_their_tool() -> None:
    call = {"call_id": "call_1", "started_seq": 5, "task_id": "n3", "tool": "git:log"}
    same = {outcome: SpeculationVerified(**call, outcome=outcome) for outcome in get_args(VerifiedOutcome)}
    differs = SpeculationDiverged(
        **call, kind="branch", confidence=0.9, served_hash="a", result_hash="b", context=CONTEXT
    )
    records = [event(number, data) for number, data in enumerate([*same.values(), differs])]
    taught = teach(records).lessons
    about = [(item.source.offset, item.same) for item in taught if isinstance(item, DivergenceLesson)]
    assert about == [(list(same).index("same"), True), (len(same), False)]
    failures = [item.success for item in taught if isinstance(item, ThresholdLesson)]
    assert failures == [False] * 4


@pytest.mark.parametrize("value", [b"no json", b'{"type":"run.failed","data":{}}', None])
def test_a_broken_event_is_handed_out_and_a_newer_one_stops(value: bytes | None) -> None:
    good = event(0, run_completed())
    assert [code.code for _, code in teach([Held(0, value, good.headers)]).broken] == ["UNDECODABLE"]
    newer = b'{"type":"run.completed","version":9,"data":{}}'
    with pytest.raises(LogCorrupted, match="upgrade PML"):
        teach([Held(0, newer, good.headers)])


def test_prometheus_is_told_of_types_and_of_all_and_of_nobody_else() -> None:
    for number, name in enumerate(("default", "type=a%20b", "user=ann/type=a", "domain=web/type=a")):
        show(f"threshold/local/{name}", 0.7 + number / 100)
    show("threshold/acme/default", 0.8)
    shown = {
        tuple(sample.labels.values()): sample.value
        for family in SPECULATION_THRESHOLD.collect()
        for sample in family.samples
    }
    assert (shown["default", ""], shown["type", "a b"]) == (0.7, 0.71)
    assert {scope for scope, _ in shown} == {"default", "type"}


class Rows(dict[bytes, bytes]):
    """A Faust table without Faust: rows, and the place where their memory lies."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(data=self)


@pytest.mark.parametrize("rebalanced", [False, True])
async def test_an_owner_that_was_overtaken_while_it_published_writes_no_row(
    rebalanced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = Thresholds(Settings.load(data_dir=tmp_path), Health(tmp_path, "thresholds"))
    role._table = rows = Rows()
    published: list[str] = []

    async def publish(subject: str, data: Any) -> asyncio.Future[None]:
        published.append(subject)
        if rebalanced:
            await role._on_revoked(None, set())  # type: ignore[arg-type]
        acknowledged = asyncio.get_running_loop().create_future()
        acknowledged.set_result(None)
        return acknowledged

    monkeypatch.setattr(role, "_publish", publish)
    await role._learn_chunk(4, held([lesson(TYPE, True, (0, number)) for number in range(50)]))
    assert published == [TYPE]
    assert set(rows) == (set() if rebalanced else {b"4/" + TYPE.encode(), b"4/position"})


def predicted(history: list[str], first: str) -> PredictionMade:
    return PredictionMade(
        call_id="call_1", model="mdl_a", learner="ranker", history=tuple(history), threshold=0.9, first=first
    )


def test_predictions_become_lessons_of_their_tenant_and_a_record_at_each_look() -> None:
    records = [event(place, predicted(["a:x"] * (place + 1), "a:x")) for place in range(3)]
    taught = teach([*records, event(3, predicted([], "a:x"))])
    assert {lesson.subject for lesson in taught.lessons} == {"model_live/local"}
    guesses = [lesson for lesson in taught.lessons if isinstance(lesson, GuessLesson)]
    assert [(item.session, item.came, item.first) for item in guesses] == [("s", "a:x", "a:x")] * 3
    assert guesses[0].after == guesses[1].before

    state, sent = PartitionLearning(), []
    for number in range(60):
        for place, item in enumerate(guesses[:2]):
            source = item.source.model_copy(update={"offset": 2 * number + place})
            sent.append(item.model_copy(update={"session": f"s{number}", "source": source}))
    # Sent twice, as after a crash: the guard of the row knows them.
    ((subject, record),) = folded(state, held([*sent[:80], *sent])).records
    assert isinstance(record, ModelLive)
    assert (subject, record.model_id, record.hits, record.outcomes) == ("model_live/local", "mdl_a", 50, 50)
    row = state.rows[subject]
    assert decode_row(encode_row(row)) == row
    show_live(subject, record)
    show_live("model_live/acme", record.model_copy(update={"hit_1": 0.5}))
    shown = {item.labels["figure"]: item.value for item in next(iter(MODEL_HIT_RATE.collect())).samples}
    assert (shown["live"], shown["low"]) == (1.0, record.low)


def test_branches_are_told_the_likeliest_first_with_their_share() -> None:
    rows = {
        "branch_stats/local/audit/d2": Row(BranchCounts({"else": 1, "big one": 3})),
        "branch_stats/acme/a%2Fb/d1": Row(BranchCounts({"true": 8})),
        "threshold/local/default": Row(Learning()),
    }
    told = [
        (o.tenant, o.workflow_type, o.decision_id, o.outcome, o.runs, o.of, o.probability)
        for o in branches(rows)
    ]
    assert told == [
        ("acme", "a/b", "d1", "true", 8, 8, 0.9),
        ("local", "audit", "d2", "big one", 3, 4, 4 / 6),
        ("local", "audit", "d2", "else", 1, 4, 2 / 6),
    ]
