"""What a run came to, folded from its events."""

from __future__ import annotations

from typing import Any

from pml.schemas.events import (
    ApprovalExpired,
    ApprovalRequested,
    DecisionMade,
    DecisionRequired,
    Event,
    EventData,
    RunExpanded,
    RunFailed,
    RunRetried,
    RunScored,
    TaskResolved,
    TaskStarted,
)
from pml.streams.run_summary import RunSummary, observe
from tests.log_writer import run_completed, run_started, task_completed

REF: Any = {"topic": "pml.tool-outcomes", "partition": 0, "offset": 1}
WAITS = DecisionRequired(checkpoint_id="k1", following=1, deadline_at="2026-01-01T00:00:00.000000Z")


def test_the_newest_score_of_each_name_counts() -> None:
    said = {"source": "human", "known": True, "command_hash": "h"}
    scores = folded(
        run_started(),
        RunScored(name="helpful", number=2.0, **said),
        RunScored(name="tone", category="dry", **said),
        run_completed(),
        RunScored(name="helpful", boolean=False, comment="wrong file", **said),
    ).as_dict()["scores"]
    assert {name: (score["value"], score["comment"]) for name, score in scores.items()} == {
        "helpful": (False, "wrong file"),
        "tone": ("dry", ""),
    }


def folded(*facts: EventData) -> RunSummary:
    summary = RunSummary("run_1", "run_1", "local")
    for seq, data in enumerate(facts):
        place = {"type": data.TYPE, "seq": seq, "offset": seq, "principal": "person:ada"}
        event = Event.model_construct(run_id="run_1", occurred_at="t", data=data, **place)
        summary = observe(summary, event)
    return summary


def test_a_run_that_waits_says_for_what() -> None:
    summary = folded(run_started(), WAITS)
    assert (summary.status, summary.waiting, summary.ended) == ("waiting", True, False)
    assert summary.as_dict()["waits_for"]["k1"]["on_timeout"] == "abort"


def test_a_program_says_how_it_runs_and_why() -> None:
    given = {"workflow_type": "w", "definition": {}, "kept": {}, "payload_ref": REF, "layers": 0, "tasks": 0}
    first = RunExpanded(number=1, **given, mode="sandbox", reasons=("line 4: `while`",))
    then = RunExpanded(number=2, **{**given, "layers": 1}, mode="sandbox")
    summary = folded(run_started(), first, then)
    assert (summary.mode, summary.reasons, summary.layers) == ("sandbox", ("line 4: `while`",), 1)
    assert folded(run_started(), RunExpanded(number=1, **given)).mode == "dag"
    assert folded(run_started()).as_dict()["mode"] is None


def test_a_decision_ends_the_wait() -> None:
    made = DecisionMade(checkpoint_id="k1", choice="continue")
    assert folded(run_started(), WAITS, made).waits_for == {}
    assert folded(run_started(), WAITS, made).status == "running"
    assert folded(run_started(), WAITS, made, run_completed()).ended


def test_a_run_waits_until_the_last_question_is_answered() -> None:
    fields = {
        "layer": 0,
        "tool": "a:b",
        "arguments_hash": "h",
        "effect": "write",
        "code": "c",
        "message": "m",
    }
    asked = [
        ApprovalRequested.model_validate(
            {**fields, "approval_id": f"apr_{n}", "task_id": f"n{n}", "expires_at": WAITS.deadline_at}
        )
        for n in (1, 2)
    ]
    first = ApprovalExpired(approval_id="apr_1", task_id="n1", tool="a:b", run_status="waiting")
    last = ApprovalExpired(approval_id="apr_2", task_id="n2", tool="a:b")
    assert list(folded(run_started(), *asked, first).waits_for) == ["apr_2"]
    assert folded(run_started(), *asked, first).waiting
    assert folded(run_started(), *asked, first, last).status == "running"


def test_a_run_that_is_taken_up_again_has_not_ended() -> None:
    resolved = {"task_id": "n1", "attempt": 1, "layer": 0, "tool": "a:b", "call_id": "c", "after_layer": 0}
    done = TaskResolved.model_validate(
        {**resolved, "resolution": "done", "task_ids": ("n2",), "preview": "x"}
    )
    again = RunRetried(after_layer=0, deadline_at=WAITS.deadline_at)
    failed = RunFailed(error={"code": "OUTCOME_UNKNOWN"})
    summary = folded(run_started(), task_completed("n2"), failed, done, again)
    assert (summary.status, summary.error, summary.ended) == ("running", None, False)
    assert {name: task.status for name, task in summary.results.items()} == {"n1": "completed"}


def test_the_time_of_its_calls_is_from_the_first_to_the_end_of_a_run() -> None:
    summary = RunSummary("run_1", "run_1", "local")
    started = TaskStarted.model_construct(task_id="n1", served_by=None)
    facts = [run_started(), started, started, run_completed()]
    for second, data in enumerate(facts):
        at = f"2026-01-01T00:00:0{second}.500000Z"
        event = Event.model_construct(type=data.TYPE, run_id="run_1", occurred_at=at, data=data, seq=second)
        summary = observe(summary, event)
    assert summary.calling_ms == 2_000
