"""From seconds to rows."""

from __future__ import annotations

import asyncio
import io

import pytest
from rich.console import Console

from benchmarks.speculation.conversion import SourceWorkflow, convert
from benchmarks.speculation.findings import ALL, OF_BOUND, rows
from benchmarks.speculation.player import Account, note
from benchmarks.speculation.regime import Outcome, Played, Regime, Side, side_by_side
from benchmarks.speculation.sample import Drawn, draw
from benchmarks.speculation.table import cells, show_rows
from pml.schemas.base import Coordinate
from pml.schemas.events import (
    Event,
    EventData,
    RunCompleted,
    RunCounts,
    SpeculationEnded,
    SpeculationStarted,
    TaskCompleted,
)
from pml.schemas.times import to_rfc3339

T0_MS = 1_700_000_000_000


def source(dataset: str) -> SourceWorkflow:
    tasks = [{"id": name, "tool": "look", "arguments": {}} for name in ("t1", "t2")]
    return convert(dataset, {"id": dataset, "tasks": tasks, "edges": [["t1", "t2"]]}, {"look": True})


def outcome() -> Outcome:
    regime = Regime("tools only", [source("a"), source("b")], 0.2, 2, [])
    slow = Played([[4.0, 6.0], [4.0, 8.0]], [[4.0, 6.0], [4.0, 8.0]])
    quick = Played([[2.0, 6.0], [2.0, 4.0]], [[2.0, 3.0], [2.0, 4.0]])
    quick.accounts = {"a": Account(hits=3, misses=1, started=2, useful_s=10, wasted_s=1), "b": Account()}
    return Outcome(regime, {"slow": slow, "quick": quick})


def test_a_row_compares_all_seconds_of_a_round_and_the_bound_does_the_same() -> None:
    first, _, both = rows(outcome(), "quick", "slow", ["a", "b", "c"])
    assert (first.dataset, both.dataset) == ("a", ALL)
    assert first.times == (2.0, 2.0)
    assert both.times == (10 / 8, 12 / 6)
    assert both.bound == (2.0, 2.0)
    assert both.figure.ratio == pytest.approx((10 / 8 / 2 + 1) / 2)


def test_only_the_row_of_all_has_a_limit() -> None:
    found = rows(outcome(), "quick", "slow", ["a", "b"])
    assert [row.limit for row in found] == [None, None, OF_BOUND]


def test_a_single_data_set_has_one_row() -> None:
    (row,) = rows(outcome(), "quick", "slow", ["a"])
    assert (row.dataset, row.workflows, row.limit) == (ALL, 1, OF_BOUND)


def test_shares_are_of_what_could_have_been() -> None:
    first, second, _ = rows(outcome(), "quick", "slow", ["a", "b"])
    assert (first.hit_rate, first.early_share, first.waste_share) == (0.75, 1.0, 0.1)
    assert (second.hit_rate, second.early_share, second.waste_share) == (None, 0.0, None)


def test_the_table_says_what_the_rows_say() -> None:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    facts = {
        "rows": [row.as_dict() for row in rows(outcome(), "quick", "slow", ["a", "b"])],
        "limits": {name: {"layers": 8, "tasks": 16} for name in ("tools", "decisions")},
        "datasets": {"a": {"played": 1, "played_with_decisions": 0, "workflows": 5, "unsafe_share": 0.25}},
        "cpu_share": {"tools only": 0.3},
    }
    show_rows(facts, console)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "tools only: quick ÷ slow" in said
    assert "NOT HELD" in said
    assert "a 1 and 0 of 5 (25% of calls unsafe)" in said
    assert cells(facts["rows"][0]) == ("2.00", "2.00–2.00", "2.00", "1.000", "75%", "100%", "10%")


def event(data: EventData) -> Event:
    return Event(
        id="e", type=data.TYPE, tenant="local", session_id="s", epoch=0, seq=0, offset=0,
        occurred_at=to_rfc3339(T0_MS), data=data,
    )  # fmt: skip


def test_accounts_are_read_from_events() -> None:
    call = {"call_id": "c", "task_id": "t", "tool": "replay:read", "arguments_hash": "h"}
    started = SpeculationStarted(
        **call, layer=1, arguments={}, effect="read", touches=(), cacheable=True, ttl_s=1, timeout_ms=1,
        deadline_at=to_rfc3339(T0_MS), permission="p",
    )  # fmt: skip
    ended = {**call, "started_seq": 1, "kind": "layer", "confidence": 1.0, "reason": "", "tool_ms": 500}
    reference = Coordinate(topic="t", partition=0, offset=0)
    done = TaskCompleted(
        **call, attempt=1, layer=1, served_by="speculation", result_ref=reference, result_hash="h",
        result_bytes=1, tool_ms=250, as_of=to_rfc3339(T0_MS),
    )  # fmt: skip
    account = Account()
    for data in (
        started,
        SpeculationEnded(**ended, fate="served"),
        SpeculationEnded(**ended, fate="discarded"),
        done,
        RunCompleted(counts=RunCounts(hits=2, misses=3)),
    ):
        note(account, event(data), T0_MS + 4)
    assert account == Account(hits=2, misses=3, started=1, wasted_s=0.5, useful_s=0.25, serving_ms=[4])


async def test_every_workflow_is_played_once_three_at_a_time_and_keeps_its_place() -> None:
    drawn = [draw(source(name), 0.000_1, 1) for name in "abcdef"]
    three = asyncio.Barrier(3)
    running, most = 0, 0

    async def play(each: Drawn, account: Account) -> float:
        nonlocal running, most
        running += 1
        most = max(most, running)
        account.hits += 1
        await three.wait()
        running -= 1
        return float(ord(each.source.dataset))

    accounts: dict[str, Account] = {}
    seconds = await side_by_side(Side("s", play, lambda _: 0.0), drawn, 3, accounts)
    assert seconds == [float(ord(name)) for name in "abcdef"]
    assert {name: account.hits for name, account in accounts.items()} == dict.fromkeys("abcdef", 1)
    assert most == 3
