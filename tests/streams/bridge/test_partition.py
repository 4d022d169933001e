"""What a partition remembers of its calls, through a rebalance too."""

from __future__ import annotations

import pytest

from pml.streams.bridge import partition as module
from pml.streams.bridge.call import Call
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.partition import Partition
from pml.streams.bridge.partitions import Partitions
from pml.streams.log.append import Appender
from pml.streams.log.tail import Tails
from tests.streams.bridge.running import run


def new(number: int = 0, in_flight_max: int = 4) -> Partition:
    claims = Claims("claims", number, "me", Appender({}), Tails({}))
    partition = Partition(number, claims, in_flight_max)
    partition.begin(0, [])
    return partition


def call(offset: int, size_bytes: int = 10) -> Call:
    return Call.of(run("a:b", call_id=f"call_{offset}"), 0, offset, size_bytes)


def test_it_is_full_at_its_limit_and_roomy_again_a_good_deal_below() -> None:
    partition = new()
    calls = [call(offset) for offset in range(4)]
    for each in calls:
        assert not partition.full
        partition.take(each)
    assert partition.full
    assert not partition.roomy
    partition.end(calls[2])
    assert partition.roomy
    assert partition.watermark.committable == 0


def test_large_arguments_fill_it_too() -> None:
    partition = new(in_flight_max=1_000)
    partition.take(call(0, module.BYTES_MAX))
    assert partition.full


def test_a_call_that_runs_through_a_rebalance_holds_the_watermark_when_it_comes_again() -> None:
    partition = new()
    running = call(0)
    partition.take(running)
    partition.begin(0, [])
    partition.attach(running, 0)
    partition.pass_over(1)
    assert partition.watermark.committable == 0
    partition.end(running)
    assert partition.watermark.committable == 2
    assert partition.settled("call_0")


async def test_a_call_that_nobody_claimed_before_the_partition_was_lost_is_taken_when_it_comes_again() -> (
    None
):
    partition = new()
    first = call(0)
    partition.take(first)
    partition.claims.lost = True
    assert not await partition.claims.claim(first.run, 0)
    partition.leave(first)
    assert not partition.settled("call_0")
    assert partition.watermark.committable == 0


def test_a_call_that_somebody_claimed_is_settled() -> None:
    partition = new()
    first = call(0)
    partition.take(first)
    partition.claims._claimed["call_0"] = "somebody"
    partition.leave(first)
    assert partition.settled("call_0")
    assert partition.watermark.committable == 1


def test_a_call_let_go_is_not_taken_for_answered() -> None:
    partition = new()
    gone = call(0)
    partition.take(gone)
    partition.drop(gone)
    assert not partition.settled("call_0")
    assert partition.watermark.committable == 0


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWERED_MAX", 3)
    partition = new()
    partition.remember(["a", "b", "c"])
    partition.remember(["a", "d"])
    assert [name for name in "abcd" if partition.settled(name)] == ["a", "c", "d"]


def test_a_lost_partition_stays_until_its_last_call_is_answered() -> None:
    partitions = Partitions(new)
    kept, lost = partitions.assign([0, 1])
    assert ([p.number for p in kept], lost) == ([0, 1], [])
    kept[1].take(call(0))
    _, lost = partitions.assign([])
    assert {p.number for p in lost} == {0, 1}
    assert all(p.lost and not p.ready for p in lost)
    assert [p.number for p in partitions.all()] == [1]
    (again,), _ = partitions.assign([1])
    assert again is kept[1]
