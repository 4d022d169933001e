"""What a role lags by, as Prometheus finds it."""

from __future__ import annotations

from pml.streams.telemetry import CONSUMER_LAG, ConsumerLag


def lags(role: str) -> dict[tuple[str, str], float]:
    samples = [sample for family in CONSUMER_LAG.collect() for sample in family.samples]
    return {
        (sample.labels["topic"], sample.labels["partition"]): sample.value
        for sample in samples
        if sample.labels["role"] == role
    }


def test_a_partition_that_is_told_of_no_more_has_no_figure() -> None:
    told = ConsumerLag("test-lost")
    told.tell({("events", 0): 3, ("events", 1): 4})
    assert lags("test-lost") == {("events", "0"): 3, ("events", "1"): 4}
    told.tell({("events", 1): 5})
    assert lags("test-lost") == {("events", "1"): 5}
    told.keep([("events", 0)])
    assert lags("test-lost") == {}
    told.tell({("events", 2): 1})
    told.keep([("events", 2), ("events", 3)])
    assert lags("test-lost") == {("events", "2"): 1}
    told.tell({})
    assert lags("test-lost") == {}


def test_two_of_a_role_in_one_process_do_not_end_each_other() -> None:
    one, other = ConsumerLag("test-two"), ConsumerLag("test-two")
    one.tell({("events", 0): 3})
    other.tell({("events", 0): 2})
    one.tell({})
    other.tell({})
    assert lags("test-two") == {}
