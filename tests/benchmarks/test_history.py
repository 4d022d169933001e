"""The log that projections are measured on."""

from __future__ import annotations

from benchmarks.history import history
from pml.schemas.identifiers import session_key
from pml.streams.connection import partition_for

LOG = history(600, seed=3)


def test_the_same_seed_gives_the_same_log() -> None:
    assert history(600, seed=3) == LOG != history(600, seed=4)


def test_every_event_lies_at_its_offset_in_its_partition() -> None:
    for partition, events in LOG.items():
        assert [event.offset for event in events] == list(range(len(events)))
        keys = {session_key(event.tenant, event.session_id) for event in events}
        assert all(partition_for(key) == partition for key in keys)


def test_every_run_ends_and_speculation_is_part_of_it() -> None:
    types = [event.type for events in LOG.values() for event in events]
    assert len(types) >= 600
    assert types.count("run.started") == types.count("run.completed") + types.count("run.failed") > 0
    assert types.count("speculation.started") == types.count("speculation.ended") > 0
    assert types.count("task.failed") > 0
