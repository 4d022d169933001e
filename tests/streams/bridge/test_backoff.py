"""A server that keeps failing is started less and less often."""

from __future__ import annotations

from pml.streams.bridge.backoff import Backoff


def test_the_first_failure_costs_nothing_and_later_ones_double_up_to_the_limit() -> None:
    backoff = Backoff(first_s=0.5, most_s=4)
    waits = []
    for _ in range(7):
        backoff.failed(100.0)
        waits.append(backoff.remaining_s(100.0))
    assert waits == [0, 0.5, 1, 2, 4, 4, 4]


def test_time_passes() -> None:
    backoff = Backoff(first_s=2, most_s=4)
    backoff.failed(0)
    backoff.failed(0)
    assert backoff.remaining_s(1.5) == 0.5
    assert backoff.remaining_s(9) == 0


def test_an_answer_makes_the_next_failure_a_first_one() -> None:
    backoff = Backoff(first_s=2, most_s=4)
    for _ in range(5):
        backoff.failed(0)
    backoff.succeeded()
    backoff.failed(0)
    assert backoff.remaining_s(0) == 0
