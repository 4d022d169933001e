"""Which partition a line of a dump belongs to."""

from __future__ import annotations

import pytest

from pml.schemas.codec import decode_event, encode
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.log.recovery import taken_record
from pml.streams.replay.sources import read_lines
from tests.streams.replay.test_comparison import PARTITION, RUN, events


def taken(partition: int, offset: int) -> bytes:
    """The record that begins a term, as `pml events dump` writes it."""
    value = taken_record(partition, "vm-1", offset, 0).value
    assert value is not None
    return value


def test_a_session_has_the_partition_of_its_key_and_a_term_the_one_that_it_names() -> None:
    run = events(*RUN)
    lines = [*map(encode, run), taken(PARTITION, len(run)), taken(SESSION_PARTITIONS - 1, 268)]
    assert [entry.place[:2] for entry in read_lines(lines)] == [
        *((PARTITION, event.offset) for event in run),
        (PARTITION, len(run)),
        (SESSION_PARTITIONS - 1, 268),
    ]


@pytest.mark.parametrize(
    "name", [f"partition/{SESSION_PARTITIONS}:0", "partition/-1:0", "partition/٣:0", "3:0"]
)
def test_a_record_without_a_session_that_names_no_partition_is_passed_over(name: str) -> None:
    event = decode_event(taken(0, 0)).model_copy(update={"id": name})
    assert list(read_lines([encode(event)])) == []
