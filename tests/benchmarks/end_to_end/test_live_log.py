from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks.end_to_end.clock import Account
from benchmarks.end_to_end.live_log import EarlyCalls
from benchmarks.end_to_end.live_table import Fold, row_of, show
from benchmarks.end_to_end.play import Play, Session
from pml.processors.learning.scene import Past
from pml.schemas.base import Coordinate
from pml.schemas.event_data import EventData
from pml.schemas.events import Event
from pml.schemas.speculation_events import SpeculationReady, SpeculationStarted
from pml.schemas.times import to_rfc3339
from tests.log_writer import START_MS, event_of, speculation_ended, task_completed, task_started


def event(data: EventData, after_ms: int) -> Event:
    return event_of(data, after_ms, after_ms, to_rfc3339(START_MS + after_ms))


def begins(call_id: str) -> SpeculationStarted:
    given = task_started().model_dump(exclude={"attempt", "served_by"}) | {"call_id": call_id}
    return SpeculationStarted.model_validate(
        {name: value for name, value in given.items() if name in SpeculationStarted.model_fields}
    )


def ready(call_id: str, tool_ms: float) -> SpeculationReady:
    place = Coordinate(topic="pml.outcomes", partition=0, offset=1)
    time = to_rfc3339(START_MS)
    return SpeculationReady(
        call_id=call_id,
        result_ref=place,
        result_hash="h",
        result_bytes=2,
        tool_ms=tool_ms,
        as_of=time,
        expires_at=time,
    )


def read(*told: tuple[EventData, int]) -> EarlyCalls:
    found = EarlyCalls()
    for data, after_ms in told:
        found.take(event(data, after_ms))
    return found


def test_what_was_served_is_used_and_what_waits_for_nobody_was_in_vain() -> None:
    found = read(
        (begins("call_1"), 0),
        (begins("call_2"), 10),
        (ready("call_1", 700.0), 700),
        (speculation_ended("served", call_id="call_1", tool_ms=700.0), 900),
        (task_completed(served_by="speculation"), 900),
        (task_completed(), 950),
        (ready("call_2", 300.0), 960),
    )
    assert not found.run
    assert found.account(4.0) == Account(4.0, begun=2, hits=1, used_s=0.7, wasted_s=0.3)


def test_what_was_cancelled_took_until_then() -> None:
    cancelled = speculation_ended("discarded", "unused", call_id="call_1", tool_ms=0.0, cancelled=True)
    found = read((begins("call_1"), 100), (cancelled, 350))
    assert found.account(1.0) == Account(1.0, begun=1, wasted_s=0.25)


def test_a_call_that_is_joined_is_used_and_nothing_has_ended_before_its_answer() -> None:
    found = read((begins("call_1"), 0))
    assert found.run
    found.take(event(speculation_ended("served", "joined", call_id="call_1", tool_ms=500.0), 500))
    assert not found.run
    assert found.account(1.0).used_s == pytest.approx(0.5)


def fold(ranker_s: float, learner: str, threshold: float) -> Fold:
    """One session: ten seconds unless somebody predicts, eight at best."""
    made = tuple(Past(name, {}, None) for name in ("look_up", "list_all", "send"))
    session = Session("s1", "t1", made, (1.0, 2.0, 3.0), ("", "", ""))
    play = Play(
        [session],
        {"look_up": True, "list_all": True, "send": False},
        {},
        {},
        [],
        np.zeros(0, dtype=np.int64),
        1,
    )
    sides = {"baseline": Account(10.0), "ranker": Account(ranker_s, 2, 1, 1.5, 0.3)}
    return Fold(
        play,
        {"baseline": 0.5, "ranker": threshold},
        {"nothing": Account(10.1), **sides},
        {"baseline": ("counting", sides["baseline"]), "ranker": (learner, sides["ranker"])},
        nothing=Account(10.0),
        oracle=Account(8.0),
    )


def test_a_row_has_both_places_side_by_side() -> None:
    row = row_of([fold(9.0, "boosted", 0.3)])
    assert (row["sessions"], row["calls"], row["may_run_early"]) == (1, 3, 1)
    assert row["ranker"]["clock"] == {
        "wall_s": 9.0,
        "times_as_long": 0.9,
        "begun": 2,
        "hits": 1,
        "hit_rate": 1.0,
        "waste": 0.2,
        "share_of_oracle": 0.5,
        "share_of_each_fold": [0.5],
    }
    assert (row["ranker"]["learners"], row["ranker"]["thresholds"]) == (["boosted"], [0.3])
    assert row["ranker"]["stack"]["share_of_oracle"] == pytest.approx(0.55)
    printed = shown(row)
    assert "nestful (1, 3, 1)" in printed
    assert "ranker (boosted)" in printed
    assert "1.010" in printed


def test_a_row_is_of_all_folds_together_and_tells_each() -> None:
    row = row_of([fold(9.0, "boosted", 0.3), fold(8.5, "linear", 0.2), fold(9.5, "boosted", 0.4)])
    assert (row["sessions"], row["calls"], row["may_run_early"]) == (3, 9, 3)
    assert row["nothing"] == {"stack": 30.3, "clock": 30.0}
    assert row["ranker"]["clock"]["share_of_each_fold"] == [0.5, 0.75, 0.25]
    assert row["ranker"]["clock"]["share_of_oracle"] == 0.5
    assert row["ranker"]["stack"]["share_of_oracle"] == pytest.approx(0.55)
    assert (row["ranker"]["stack"]["begun"], row["ranker"]["stack"]["hits"]) == (6, 3)
    printed = shown(row)
    assert "ranker (boosted, linear)" in printed
    assert "0.2–0.4" in printed


def shown(row: Mapping[str, Any]) -> str:
    console = Console(width=160, force_terminal=False)
    with console.capture() as capture:
        show([{"name": "nestful", **row}], console)
    return capture.get()
