"""The training set: columns say what the view `traces` says, reproducible, near-duplicates on one side."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import chdb
import numpy as np
import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE
from pml.clickhouse.training import export, reading
from pml.clickhouse.training.export import write_npz, write_parquet
from pml.clickhouse.training.reading import count_traces, read_arrays
from pml.clickhouse.training.selection import EARLIEST, LATEST, SIDES, Selection, Split
from pml.clickhouse.training.trace_priorities import TraceNames, write_priorities
from pml.processors.learning.packed_texts import unpacked
from pml.processors.learning.splits import LEFT_OUT, TEST, TRAINING, by_time, leaks
from pml.schemas.errors import ConfigurationError, QueryError
from pml.streams.learning.sources import Known, from_file, from_store
from tests.clickhouse import history as h
from tests.clickhouse.history import History

pytestmark = pytest.mark.integration
MEMORY_LIMIT = 241  # of ClickHouse
TOOLS = ("git:git_log", "files:read_file", "files:search")
SELECTION = Selection(validation=0.2, test=0.3, seed=1)
WRITERS: dict[str, Callable[..., dict[str, Any]]] = {"npz": write_npz, "parquet": write_parquet}
FILES = pytest.mark.parametrize("kind", WRITERS)


@pytest.fixture
def store(migrated_store: Store) -> Store:
    _insert(migrated_store, range(40))
    return migrated_store


def _insert(store: Store, numbers: Iterable[int], later_s: int = 0) -> None:
    rows = [row for number in numbers for row in _later(_session(number), later_s).rows()]
    store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows)


def _later(session: History, seconds: int) -> History:
    for event in session.events:
        moment = datetime.fromisoformat(event["occurred_at"]) + timedelta(seconds=seconds)
        event["occurred_at"] = h.time_of(moment)
    return session


def _session(number: int) -> History:
    """A run of up to three calls; every fourth fails, every eighth is one that was there before."""
    session = History(f"ses_{number:03}", number % 3, 1000 * number, 1000 * number)
    kind = number // 8 if number % 8 == 7 else number
    session.add(h.run_started(intent=f"Look at {kind % 5}", capability_id=f"cap_{kind % 6}"), f"run_{number}")
    tools = TOOLS[: kind % 4]
    order = reversed(list(enumerate(tools))) if number % 2 else enumerate(tools)
    for place, tool in order:
        session.add(h.completed(f"n{place}", tool=tool, arguments={"of": kind}, layer=place), f"run_{number}")
    session.add(h.run_failed() if number % 4 == 3 else h.run_completed(), f"run_{number}")
    return session


def _texts(arrays: dict[str, Any], name: str) -> list[str]:
    return [str(arrays[f"{name}_words"][number]) for number in arrays[name]]


def _twin(store: Store) -> list[tuple[Any, ...]]:
    """What the view says, a row at a time."""
    sql = (
        "SELECT run_id, session_id, capability_id, intent, success, ifNull(error_code, ''), duration_ms, "
        "partition, log_offset, "
        "arrayMap(t -> (t.tool, t.status, t.argument_pattern, t.layer, t.duration_ms, "
        "t.error_type, t.success, t.mocked, toString(cityHash64(t.args))), task_results) "
        "FROM traces ORDER BY partition, log_offset, run_id"
    )
    return [tuple(map(_plain, row)) for row in store.query(sql).rows]


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _rows(arrays: dict[str, Any]) -> list[tuple[Any, ...]]:
    calls = list(
        zip(
            _texts(arrays, "tool"),
            _texts(arrays, "call_status"),
            _texts(arrays, "call_pattern"),
            arrays["call_layer"].tolist(),
            arrays["call_duration_ms"].tolist(),
            _texts(arrays, "call_error_type"),
            map(bool, arrays["call_success"]),
            map(bool, arrays["call_mocked"]),
            map(str, arrays["call_arguments"]),
            strict=True,
        )
    )
    starts, ends = arrays["offsets"][:-1], arrays["offsets"][1:]
    return list(
        zip(
            map(bytes.decode, arrays["run_id"].tolist()),
            map(bytes.decode, arrays["session_id"].tolist()),
            _texts(arrays, "capability"),
            _texts(arrays, "intent"),
            map(bool, arrays["success"]),
            _texts(arrays, "error_code"),
            arrays["duration_ms"].tolist(),
            arrays["partition"].tolist(),
            arrays["log_offset"].tolist(),
            [tuple(calls[start:end]) for start, end in zip(starts, ends, strict=True)],
            strict=True,
        )
    )


def test_the_columns_say_what_the_view_says(store: Store) -> None:
    arrays = read_arrays(store, SELECTION)
    assert _rows(arrays) == _twin(store)
    assert len(arrays["run_id"]) == 40


def test_a_task_that_a_person_or_the_permissions_refused_has_arguments_that_nobody_learns_success_from(
    migrated_store: Store,
) -> None:
    session = History("ses_refused", 0, 500, 500)
    session.add(h.run_started(), "run_refused")
    session.add(h.failed("n0"), "run_refused")
    session.add(h.failed("n1", call_id=None), "run_refused")
    session.add(h.run_failed(), "run_refused")
    session.insert(migrated_store)
    called, refused = _texts(read_arrays(migrated_store, SELECTION), "call_pattern")
    assert called != ""
    assert refused == ""


def test_a_task_that_ended_twice_is_one_call_as_in_the_view(migrated_store: Store) -> None:
    session = History("ses_twice", 0, 500, 500)
    session.add(h.run_started(), "run_twice")
    session.add(h.failed("n0", final=False), "run_twice")
    session.add(h.unknown("n1"), "run_twice")
    session.add(h.completed("n0", attempt=2, mocked=True), "run_twice")
    session.add(h.resolved("n1"), "run_twice")
    session.add(h.run_completed(), "run_twice")
    session.insert(migrated_store)
    rows = _rows(read_arrays(migrated_store, SELECTION))
    assert rows == _twin(migrated_store)
    assert [len(row[-1]) for row in rows] == [2]


def test_a_task_that_is_settled_while_a_set_is_read_has_the_words_of_one_state(
    migrated_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = History("ses_late", 0, 500, 500)
    for data in (h.run_started(), h.completed("n0"), h.unknown("n1"), h.skipped("n2"), h.run_failed()):
        session.add(data, "run_late")
    session.insert(migrated_store)
    session.add(h.resolved("n1", resolution="not_done", result=None), "run_late")
    read, late = reading._vocabularies, iter([session.rows()[-1:]])

    def settled_before(store: Store, selection: Selection) -> dict[str, Any]:
        for rows in late:
            store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows)
        return read(store, selection)

    monkeypatch.setattr(reading, "_vocabularies", settled_before)
    arrays = read_arrays(migrated_store, SELECTION)
    assert _rows(arrays) == _twin(migrated_store)
    assert "failed" in _texts(arrays, "call_status")


@pytest.fixture
def heavy(migrated_store: Store) -> Store:
    """Runs whose results are far larger than all else of them: 14 MB, the older half of the day before."""
    for number in range(12):
        session = History(f"ses_{number:03}", number % 3, 1000 * number, 1000 * number)
        session.add(h.run_started(), f"run_{number}")
        for place in range(4):
            result = {"content": [random_text(number * 4 + place, 300_000)]}
            session.add(h.completed(f"n{place}", result=result, layer=place), f"run_{number}")
        session.add(h.run_completed(), f"run_{number}")
        _later(session, -86_400 if number < 6 else 0).insert(migrated_store)
    return migrated_store


def random_text(seed: int, length: int) -> str:
    return np.random.default_rng(seed).bytes(length // 2).hex()


def test_columns_need_no_memory_for_values(heavy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LIMITS", replace(reading.LIMITS, memory_bytes=24 << 20))
    assert len(read_arrays(heavy, SELECTION)["tool"]) == 48


def test_a_table_of_a_shorter_time_needs_less_memory(
    heavy: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fits(since: str, megabytes: int) -> bool:
        limits = replace(export.VALUES_LIMITS, memory_bytes=megabytes << 20)
        monkeypatch.setattr(export, "VALUES_LIMITS", limits)
        try:
            write_parquet(heavy, replace(SELECTION, since=since), tmp_path / "traces.parquet")
        except QueryError as error:
            if error.details["number"] != MEMORY_LIMIT:
                raise
            return False
        return True

    late = h.time_of(h.START - timedelta(hours=1))
    megabytes = range(16, 80, 4)
    enough = megabytes[bisect_left(megabytes, True, key=partial(fits, late))]
    assert not fits(EARLIEST, round(1.25 * enough))


def test_what_a_client_said_goes_before_what_a_run_was_for(store: Store) -> None:
    session = History("ses_asked", 0, 90_000, 90_000)
    session.add(h.run_started(intent="look", request="all of it"), "run_asked")
    session.add(h.run_completed(), "run_asked")
    session.insert(store)
    arrays = read_arrays(store, SELECTION)
    intents, requests = _texts(arrays, "intent"), _texts(arrays, "request")
    asked = arrays["run_id"].tolist().index(b"run_asked")
    assert (intents.pop(asked), requests.pop(asked)) == ("look", "all of it")
    assert intents == requests


def test_near_duplicates_lie_on_one_side_and_stay_there_when_more_runs_end(store: Store) -> None:
    before = read_arrays(store, SELECTION)
    sides = dict(zip(before["run_id"].tolist(), before["side"].tolist(), strict=True))
    for group in np.unique(before["group"]):
        assert len(np.unique(before["side"][before["group"] == group])) == 1
    # The same calls with the same arguments that ended in another order, on purpose.
    assert len(np.unique(before["group"])) < 40
    _insert(store, range(40, 50))
    after = read_arrays(store, SELECTION)
    known = zip(after["run_id"].tolist(), after["side"].tolist(), strict=True)
    assert sides == {run: side for run, side in known if run in sides}
    assert len(after["run_id"]) == 50


def test_the_seed_and_the_shares_decide_about_the_sides(store: Store) -> None:
    drawn = {tuple(read_arrays(store, replace(SELECTION, seed=seed))["side"]) for seed in range(4)}
    assert len(drawn) == 4
    assert not read_arrays(store, Selection(validation=0, test=0))["side"].any()


@pytest.fixture
def conversations(migrated_store: Store) -> Store:
    """Sessions of three runs that overlap in time; of a run there are near-duplicates in other sessions."""
    rows = [row for number in range(40) for row in _later(_conversation(number), 5 * number).rows()]
    migrated_store.insert(EVENTS_TABLE, EVENT_COLUMNS, rows)
    return migrated_store


def _conversation(number: int) -> History:
    session = History(f"ses_{number:03}", number % 3, 1000 * number, 1000 * number)
    for turn in range(3):
        kind = 7 if number % 5 == 4 and turn == 1 else 3 * number + turn
        session.add(h.run_started(capability_id=f"cap_{kind % 6}"), f"run_{turn}")
        session.add(h.completed("n0", arguments={"of": kind}), f"run_{turn}")
        session.add(h.run_completed(), f"run_{turn}")
    return session


def _leaking(arrays: dict[str, Any]) -> tuple[int, int]:
    """How many sessions, and how many groups, lie on two sides."""
    sides = np.where(arrays["side"] == SIDES.index("left_out"), LEFT_OUT, arrays["side"].astype(np.int64))
    sessions = np.unique(arrays["session_id"], return_inverse=True)[1]
    return len(leaks(sessions, sides)), len(leaks(arrays["group"].view(np.int64), sides))


@pytest.mark.parametrize("split", ["sessions", "time"])
def test_no_session_and_no_near_duplicate_lies_on_two_sides(conversations: Store, split: Split) -> None:
    assert _leaking(read_arrays(conversations, SELECTION))[0] > 0
    arrays = read_arrays(conversations, replace(SELECTION, split=split))
    assert _leaking(arrays) == (0, 0)
    counts = np.bincount(arrays["side"], minlength=4)
    assert counts.min() > 0
    assert counts[3] < counts[:3].sum() / 4


def test_a_split_by_time_tests_on_what_ended_last(conversations: Store) -> None:
    arrays = read_arrays(conversations, replace(SELECTION, split="time"))
    ended = [arrays["ended_at_us"][arrays["side"] == side] for side in range(3)]
    assert ended[0].max() < ended[1].min() <= ended[1].max() < ended[2].min()


@pytest.mark.parametrize("share", [0.05, 0.3, 0.999])
def test_the_store_splits_by_time_as_the_core_does(conversations: Store, share: float) -> None:
    selection = Selection(validation=0, test=share, split="time")
    arrays = read_arrays(conversations, selection)
    sessions = np.unique(arrays["session_id"], return_inverse=True)[1].astype(np.int64)
    wanted = [by_time(of, arrays["ended_at_us"], share) for of in (arrays["group"].view(np.int64), sessions)]
    told = {TRAINING: 0, TEST: 2, LEFT_OUT: 3}
    assert arrays["side"].tolist() == [told[side] for side in np.minimum(*wanted).tolist()]


def test_a_split_by_time_may_keep_nothing_for_the_end(conversations: Store) -> None:
    assert not read_arrays(conversations, Selection(validation=0, test=0, split="time"))["side"].any()
    sides = read_arrays(conversations, Selection(validation=0.3, test=0, split="time"))["side"]
    assert set(sides.tolist()) == {0, 1, 3}
    assert len(read_arrays(conversations, Selection(tenant="nobody", split="time"))["side"]) == 0


@pytest.mark.parametrize("split", ["sessions", "time"])
def test_both_formats_have_the_split_of_their_manifest(
    conversations: Store, tmp_path: Path, split: Split
) -> None:
    asked = replace(SELECTION, split=split)
    one = write_npz(conversations, asked, tmp_path / "traces.npz")
    _insert(conversations, range(50, 55), later_s=600)
    again = Selection(**one["selection"])
    assert again.split == split
    other = write_parquet(conversations, again, tmp_path / "traces.parquet")
    assert (other["sides"], other["cuts"], other["selection"]) == (
        one["sides"],
        one["cuts"],
        one["selection"],
    )
    assert list(one["cuts"]) == (["validation_from", "test_from"] if split == "time" else [])
    with np.load(tmp_path / "traces.npz") as stored:
        assert np.bincount(stored["side"], minlength=4).tolist() == [*one["sides"].values()]


def test_a_selection_has_what_ended_in_its_time_of_its_tenant(store: Store) -> None:
    ended = sorted({row[0] for row in store.query("SELECT ended_at FROM traces").rows})
    first = read_arrays(store, Selection(until=ended[1]))
    rest = read_arrays(store, Selection(since=ended[1]))
    assert 0 < len(first["run_id"]) < 40
    assert set(first["run_id"].tolist()) | set(rest["run_id"].tolist()) == set(
        read_arrays(store, Selection())["run_id"].tolist()
    )
    assert len(first["run_id"]) + len(rest["run_id"]) == 40
    assert len(read_arrays(store, Selection(tenant="local"))["run_id"]) == 40


def test_nothing_selected_is_an_empty_set(store: Store) -> None:
    arrays = read_arrays(store, Selection(tenant="nobody"))
    assert arrays["offsets"].tolist() == [0]
    assert all(len(array) == 0 for name, array in arrays.items() if name != "offsets")


def test_the_same_selection_gives_the_same_file(store: Store, tmp_path: Path) -> None:
    one = write_npz(store, SELECTION, tmp_path / "one.npz")
    other = write_npz(store, SELECTION, tmp_path / "other.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()
    assert one["blake2b"] == other["blake2b"]
    assert json.loads((tmp_path / "one.npz.json").read_text()) == one
    assert one["traces"] == 40
    assert set(one["sides"]) == set(SIDES)
    with np.load(tmp_path / "one.npz", allow_pickle=False) as stored:
        assert {name: stored[name].dtype.str for name in stored.files} == one["columns"]


def _runs(file: Path) -> list[str]:
    """Sorted; those that are in the file itself."""
    if file.suffix == ".npz":
        with np.load(file) as stored:
            return sorted(map(bytes.decode, stored["run_id"].tolist()))
    found = chdb.query(f"SELECT run_id FROM file('{file}', Parquet) ORDER BY run_id", "JSONCompact")
    return [row[0] for row in json.loads(found.bytes())["data"]]


@FILES
def test_a_manifest_is_enough_to_make_its_file_again(store: Store, tmp_path: Path, kind: str) -> None:
    first = WRITERS[kind](store, SELECTION, tmp_path / f"first.{kind}")
    _insert(store, range(40, 45), later_s=60)
    again = WRITERS[kind](store, Selection(**first["selection"]), tmp_path / f"again.{kind}")
    assert SELECTION.until == LATEST > first["selection"]["until"]
    assert _runs(tmp_path / f"again.{kind}") == _runs(tmp_path / f"first.{kind}")
    told = ("traces", "sides", "selection", "columns")
    assert [again[name] for name in told] == [first[name] for name in told]
    assert first["traces"] == 40


@FILES
@pytest.mark.parametrize(("later_s", "had"), [(60, 40), (0, 45)])
def test_a_manifest_counts_what_is_in_the_file_though_runs_end_meanwhile(
    store: Store, tmp_path: Path, kind: str, later_s: int, had: int
) -> None:
    more = iter([range(40, 45)])

    def told(size: int) -> None:
        for numbers in more:
            _insert(store, numbers, later_s)

    # What a sink brings late ended before the last one that was there; then all is read again.
    manifest = WRITERS[kind](store, SELECTION, tmp_path / f"traces.{kind}", told)
    assert manifest["traces"] == sum(manifest["sides"].values()) == had
    assert len(_runs(tmp_path / f"traces.{kind}")) == had


@FILES
def test_a_file_of_nothing_is_nothing_again(store: Store, tmp_path: Path, kind: str) -> None:
    since = h.time_of(h.START + timedelta(seconds=30))
    manifest = WRITERS[kind](store, Selection(since=since), tmp_path / f"traces.{kind}")
    _insert(store, range(40, 45), later_s=60)
    again = WRITERS[kind](store, Selection(**manifest["selection"]), tmp_path / f"traces.{kind}")
    assert (manifest["traces"], again["traces"]) == (0, 0)


@FILES
def test_what_training_writes_changes_no_file(store: Store, tmp_path: Path, kind: str) -> None:
    before = WRITERS[kind](store, SELECTION, tmp_path / f"before.{kind}")
    names = TraceNames.of(read_arrays(store, SELECTION))
    write_priorities(store, names, np.full(len(names), 0.9), h.START)
    after = WRITERS[kind](store, SELECTION, tmp_path / f"after.{kind}")
    assert "priority" not in before["columns"]
    assert kind == "parquet" or after["blake2b"] == before["blake2b"]


def test_one_long_word_does_not_make_the_others_long(store: Store, tmp_path: Path) -> None:
    session = History("ses_long", 0, 90_000, 90_000)
    session.add(h.run_started(request="long " * 2_000), "run_long")
    session.add(h.run_completed(), "run_long")
    session.insert(store)
    words = read_arrays(store, SELECTION)["request_words"]
    assert len(words) > 5
    assert words.nbytes + sum(map(len, words.tolist())) < 4 * 10_000
    write_npz(store, SELECTION, tmp_path / "traces.npz")
    with np.load(tmp_path / "traces.npz") as stored:
        assert list(unpacked("request_words", stored)) == words.tolist()
        assert max(stored[name].nbytes for name in stored) < 2 * 10_000


def test_a_model_of_a_file_saw_what_one_of_the_store_saw(store: Store, tmp_path: Path) -> None:
    write_npz(store, Selection(tenant="local"), tmp_path / "traces.npz")
    found = from_file(tmp_path / "traces.npz", Known(), "local").sessions
    wanted = from_store(store, Selection(tenant="local"), Known()).sessions
    assert found.traces.items.tolist() == wanted.traces.items.tolist()
    assert (found.texts, found.vocabulary.names) == (wanted.texts, wanted.vocabulary.names)
    assert found.calls is not None
    assert wanted.calls is not None
    assert found.calls.pattern_words == wanted.calls.pattern_words


def test_parquet_has_the_same_traces_on_the_same_sides(store: Store, tmp_path: Path) -> None:
    pieces: list[int] = []
    manifest = write_parquet(store, SELECTION, tmp_path / "traces.parquet", pieces.append)
    content = (tmp_path / "traces.parquet").read_bytes()
    assert (content[:4], content[-4:], sum(pieces)) == (b"PAR1", b"PAR1", len(content))
    counts = np.bincount(read_arrays(store, SELECTION)["side"], minlength=len(SIDES)).tolist()
    assert list(manifest["sides"].values()) == counts
    assert {"run_id", "tasks", "side", "group"} <= set(manifest["columns"])


def test_a_file_that_could_not_be_written_leaves_the_old_one(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "traces.parquet"
    file.write_bytes(b"old")
    with pytest.raises(QueryError):
        write_parquet(store, Selection(since="no time"), file)
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["traces.parquet"]


@pytest.mark.parametrize(("validation", "test"), [(-0.1, 0.2), (0.5, 0.5), (0, 1)])
def test_shares_that_leave_nothing_to_train_on_are_refused(validation: float, test: float) -> None:
    with pytest.raises(ConfigurationError, match="less than 1 together"):
        Selection(validation=validation, test=test)


def test_runs_that_ended_since_are_counted(store: Store) -> None:
    ended = sorted(str(row[0]) for row in store.query("SELECT toString(ended_at) FROM traces").rows)
    assert count_traces(store, "local", EARLIEST) == len(ended) == 40
    assert count_traces(store, "local", ended[30]) == sum(at >= ended[30] for at in ended)
    assert count_traces(store, "acme", EARLIEST) == 0
