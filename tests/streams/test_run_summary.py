"""What a run came to, folded from its events."""

from __future__ import annotations

from pml.schemas.events import DecisionMade, DecisionRequired, Event, EventData
from pml.streams.run_summary import RunSummary, observe
from tests.log_writer import run_completed, run_started

WAITS = DecisionRequired(checkpoint_id="k1", following=1, deadline_at="2026-01-01T00:00:00.000000Z")


def folded(*facts: EventData) -> RunSummary:
    summary = RunSummary("run_1", "run_1", "local")
    for seq, data in enumerate(facts):
        event = Event.model_construct(run_id="run_1", type=data.TYPE, seq=seq, offset=seq, data=data)
        summary = observe(summary, event)
    return summary


def test_a_run_that_waits_says_for_what() -> None:
    summary = folded(run_started(), WAITS)
    assert (summary.status, summary.waiting, summary.ended) == ("waiting", True, False)
    assert summary.as_dict()["waits_for"]["k1"]["on_timeout"] == "abort"


def test_a_decision_ends_the_wait() -> None:
    made = DecisionMade(checkpoint_id="k1", choice="continue")
    assert folded(run_started(), WAITS, made).waits_for == {}
    assert folded(run_started(), WAITS, made).status == "running"
    assert folded(run_started(), WAITS, made, run_completed()).ended
