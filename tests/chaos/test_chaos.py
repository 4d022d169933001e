"""A minute of chaos, and whether its verdict would notice what must not be."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pml.schemas.codec import decode_event, encode
from tests.chaos.play import WRITTEN
from tests.chaos.reading import Findings, Reading, Written
from tests.chaos.toolbox import ROOT, toolbox_of
from tests.chaos.verdict import ENDS, judge_runs
from tests.simulation.tools import Toolbox

SECONDS = 40
# It takes a minute and a half; a machine that is slow or busy several times that.
TIMEOUT_S = 1_500
pytestmark = [pytest.mark.integration]


@dataclass(frozen=True)
class Played:
    """What a play said, and what is left of it."""

    report: dict[str, Any]
    folder: Path

    @property
    def written(self) -> Written:
        """A copy of everything that was written, to be spoiled."""
        found: Written = pickle.loads((self.folder / WRITTEN).read_bytes())
        return found

    @property
    def toolbox(self) -> Toolbox:
        """The tools of its servers."""
        return toolbox_of(self.folder)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One seed, played in a process of its own."""
    folder = tmp_path_factory.mktemp("chaos")
    words = ["--seconds", str(SECONDS), "--seed", "1", "--folder", str(folder), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *words],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S - 10,
        check=False,
    )
    assert done.stdout, done.stderr[-3_000:]
    return Played(json.loads(done.stdout), folder)


def test_every_invariant_holds_while_parts_die(played: Played) -> None:
    report = played.report
    assert report["violations"] == []
    assert len(report["faults"]) >= 3
    assert report["runs"]["completed"] >= 10
    assert report["eligible"]["speculated"] > 0
    assert len(report["checks"]) >= 50
    assert report["checks"]["served values are what the tool would answer"] > 0


Spoil = Callable[[Written], None]


def _an_event_is_void(written: Written) -> None:
    records = written.records[written.topics.events]
    place = next(p for p, record in enumerate(records) if decode_event(record.value).seq == 3)
    headers = tuple((n, b"-1" if n == "pml-offset" else v) for n, v in records[place].headers)
    records[place] = replace(records[place], headers=headers)


def _an_input_is_decided_again(written: Written) -> None:
    """One more event of the last session, which follows from the first input of its partition."""
    records = written.records[written.topics.events]
    last = decode_event(records[-1].value)
    same = (decode_event(record.value) for record in records if record.partition == records[-1].partition)
    cause = next(event.cause for event in same if event.cause is not None)
    again = last.model_copy(update={"offset": last.offset + 1, "seq": last.seq + 1, "cause": cause})
    headers = tuple((n, b"%d" % again.offset if n == "pml-offset" else v) for n, v in records[-1].headers)
    records.append(replace(records[-1], offset=again.offset, value=encode(again), headers=headers))


def _nothing_is_claimed(written: Written) -> None:
    written.records[written.topics.call_claims] = []


def _a_call_follows_from_nothing(written: Written) -> None:
    calls = written.records[written.topics.tool_calls]
    written.records[written.topics.tool_calls] = [
        replace(record, value=(record.value or b"").replace(b'"call_id":"call_', b'"call_id":"call_x'))
        for record in calls
    ]


def _an_effect_happens_twice(written: Written) -> None:
    line = next(line for line in written.journal if line.get("wrote"))
    written.journal.append(line)


def _an_unsafe_call_runs_early(written: Written) -> None:
    wrote = {line["call_id"] for line in written.journal if line.get("wrote")}
    for line in written.journal:
        if line["kind"] == "reached" and line["call_id"] in wrote:
            line["early"] = True


def _a_tool_said_something_else(written: Written) -> None:
    for line in written.journal:
        if line["kind"] == "ran":
            line["value"] = {"value": "something else"}


def _what_was_read_early_is_written_by_its_own_session(written: Written) -> None:
    """Right after each read, its own call is said to have changed what it read."""
    journal = []
    for line in written.journal:
        journal.append(line)
        if line["kind"] == "ran" and not line.get("wrote"):
            arguments = next(
                reached["arguments"]
                for reached in written.journal
                if reached["kind"] == "reached" and reached["call_id"] == line["call_id"]
            )
            server = line["tool"].partition(":")[0]
            resource = f"{server}:{arguments.get('path', '')}"
            journal.append({**line, "wrote": True, "resource": resource, "text": "spoiled"})
    written.journal = journal


SPOILED: dict[Spoil, str] = {
    _an_event_is_void: "seq has no gap among counted events",
    _an_input_is_decided_again: "an input is decided once",
    _nothing_is_claimed: "an unsafe call runs under a claim that counts",
    _a_call_follows_from_nothing: "a call follows from an event that counts",
    _an_effect_happens_twice: "an unsafe call has its effect at most once",
    _an_unsafe_call_runs_early: "an unsafe call never runs early",
    _a_tool_said_something_else: "a result is what the tool said",
    _what_was_read_early_is_written_by_its_own_session: "served values follow this session's last write",
}


def findings_of(written: Written, toolbox: Toolbox) -> Findings:
    """What a reading of this finds."""
    reading = Reading(written, toolbox)
    reading.go_through()
    return reading.findings


def test_what_was_written_can_be_judged_again(played: Played) -> None:
    again = findings_of(played.written, played.toolbox)
    assert again.found == []
    assert again.counts["an input is decided once"] == played.report["checks"]["an input is decided once"]


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__.strip("_"))
def test_the_verdict_notices(played: Played, spoil: Spoil) -> None:
    written = played.written
    spoil(written)
    found = {violation.check for violation in findings_of(written, played.toolbox).found}
    assert SPOILED[spoil] in found, f"found only {found}"


def test_the_verdict_notices_a_run_that_did_not_end(played: Played) -> None:
    events = [event for _, event in played.written.events]
    findings = Reading(played.written, played.toolbox).findings
    ends = Counter(event.run_id for event in events if event.type in ENDS)
    last = next(event for event in events if event.type == "run.completed" and ends[event.run_id] == 1)
    asked = {event.command_id or "": event.run_id or "" for event in events if event.type == "run.started"}
    judge_runs(findings, [event for event in events if event is not last], asked)
    assert [violation.check for violation in findings.found] == ["every run ended"]
