"""What was done before a replay was stopped is known again, and only that."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.replay.checkpoint import Checkpoint
from pml.streams.replay.play import ReplayReport, merged
from pml.streams.replay.report import Comparison, Place
from pml.streams.replay.selection import CLICKHOUSE, KAFKA, Selection
from pml.streams.settings import Settings


def report(partition: int, offset: int, differences: int = 0) -> ReplayReport:
    sessions = Comparison("sessions", folded=offset + 1, compared=2)
    sessions.remark("{} states found no room", partition)
    for number in range(differences):
        sessions.differs(Place(partition, offset - number, f"e{number}"), "state", "a", "b")
    return ReplayReport(offset + 1, {partition: [0, offset]}, [Comparison("log"), sessions])


def test_what_was_done_is_read_again(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "replay" / "a.jsonl")
    assert checkpoint.done() == {}
    checkpoint.begin()
    reports = {3: report(3, 10, differences=2), 7: report(7, 4)}
    for partition, each in reports.items():
        checkpoint.add(partition, each)
    assert Checkpoint(checkpoint.file).done() == reports
    checkpoint.remove()
    assert checkpoint.done() == {}


def test_a_line_that_was_cut_off_was_not_done(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "a.jsonl")
    checkpoint.begin()
    checkpoint.add(3, report(3, 10))
    whole = checkpoint.file.read_bytes()
    checkpoint.add(7, report(7, 4))
    for end in range(len(whole), checkpoint.file.stat().st_size - 1):
        cut = Checkpoint(tmp_path / "cut.jsonl")
        cut.file.write_bytes(checkpoint.file.read_bytes()[:end])
        assert [*cut.done()] == [3]


def test_a_line_added_after_one_that_was_cut_off_counts(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "a.jsonl")
    checkpoint.begin()
    checkpoint.add(3, report(3, 10))
    with checkpoint.file.open("ab") as file:
        file.write(b'{"partition":4,"ev')
    checkpoint.add(7, report(7, 4))
    assert [*checkpoint.done()] == [3, 7]


@pytest.mark.parametrize(
    "line",
    [
        b"5",
        b"[]",
        b'{"partition":7}',
        b'{"partition":null,"events":1,"offsets":{},"comparisons":[]}',
        b'{"partition":7,"events":1,"offsets":[],"comparisons":[]}',
        b'{"partition":7,"events":1,"offsets":{},"comparisons":[{"projection":"log","of_later":1,"first":null}]}',
        b'{"partition":7,"events":1,"offsets":{},"comparisons":[{"projection":"log"}]}',
        b'{"partition":7,"events":1,"offsets":{},"comparisons":[{"projection":"log","first":{"at":1}}]}',
    ],
)
def test_a_line_of_another_shape_was_not_done(line: bytes, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "a.jsonl")
    checkpoint.begin()
    checkpoint.add(3, report(3, 10))
    with checkpoint.file.open("ab") as file:
        file.write(line + b"\n")
    assert [*checkpoint.done()] == [3]
    assert checkpoint.kept == 1


def test_a_folder_that_cannot_be_used_is_said_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    checkpoint = Checkpoint.of(Settings.load(data_dir=tmp_path / "a file" / "data"), Selection(KAFKA))
    with pytest.raises(ConfigurationError, match="cannot be written"):
        checkpoint.begin()
    with pytest.raises(ConfigurationError, match="leave --resume out"):
        checkpoint.done()


def test_a_disk_that_is_full_is_told_once_and_ends_no_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    checkpoint = Checkpoint(tmp_path / "a.jsonl", told.append)
    checkpoint.begin()
    checkpoint.add(3, report(3, 10))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pml.streams.replay.checkpoint.os.fsync", full)
        for partition in (7, 8):
            checkpoint.add(partition, report(partition, 4))
        patched.setattr(Path, "unlink", full)
        checkpoint.remove()
    assert checkpoint.kept == 1
    assert ["any more (No space left" in told[0], "cannot be removed" in told[1], len(told)] == [
        True,
        True,
        2,
    ]


def test_a_new_replay_begins_anew(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "a.jsonl")
    checkpoint.begin()
    checkpoint.add(3, report(3, 10))
    checkpoint.begin()
    assert checkpoint.done() == {}


def test_each_selection_has_its_own(tmp_path: Path) -> None:
    settings = Settings.load(data_dir=tmp_path)
    other = Settings.load(data_dir=tmp_path, kafka={"topic_prefix": "other."})
    selections = [
        Selection(KAFKA),
        Selection(KAFKA, verify=True),
        Selection(CLICKHOUSE),
        Selection(KAFKA, session=("local", "ses_1")),
        Selection(KAFKA, since_ms=1),
        Selection(KAFKA, until_ms=1),
    ]
    files = [Checkpoint.of(settings, selection).file for selection in selections]
    assert len({*files, Checkpoint.of(other, selections[0]).file}) == len(selections) + 1
    assert Checkpoint.of(settings, Selection(KAFKA)).file == files[0]


def test_each_store_has_its_own_and_a_new_password_changes_nothing(tmp_path: Path) -> None:
    def file(url: str, selection: Selection) -> Path:
        settings = Settings.load(data_dir=tmp_path, clickhouse={"url": url, "database": "pml"})
        return Checkpoint.of(settings, selection).file

    here, there = "http://ann:old@here:8123", "http://ann:old@there:8123"
    for selection in (Selection(CLICKHOUSE), Selection(KAFKA, verify=True)):
        assert file(here, selection) != file(there, selection)
        assert file(here, selection) != file("http://ben:old@here:8123", selection)
        assert file(here, selection) == file("http://ann:new@here:8123", selection)
    assert file(here, Selection(KAFKA)) == file(there, Selection(KAFKA)), "it asks no store"


@pytest.mark.parametrize("order", [(3, 7), (7, 3)])
def test_parts_make_the_report_of_the_whole(order: tuple[int, int]) -> None:
    reports = {3: report(3, 10, differences=2), 7: report(7, 4, differences=1)}
    whole = merged(reports[number] for number in order)
    assert (whole.events, whole.offsets) == (16, {3: [0, 10], 7: [0, 4]})
    sessions = next(each for each in whole.comparisons if each.projection == "sessions")
    assert (sessions.folded, sessions.compared, sessions.differences) == (16, 4, 3)
    assert sessions.first is not None
    assert sessions.first.lies == (3, 9)
    assert sessions.notes == ["10 states found no room"]
    assert not whole.same
