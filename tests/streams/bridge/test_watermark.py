"""The committed offset is that of the lowest call in flight."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.streams.bridge.watermark import Watermark


@given(st.lists(st.booleans(), max_size=60), st.data())
def test_it_agrees_with_the_obvious_definition(takes: list[bool], data: st.DataObject) -> None:
    watermark, in_flight, position = Watermark(10), set[int](), 10
    for take in takes:
        if take or not in_flight:
            position += data.draw(st.integers(0, 3))
            watermark.take(position)
            in_flight.add(position)
            position += 1
        else:
            ended = data.draw(st.sampled_from(sorted(in_flight)))
            in_flight.remove(ended)
            watermark.end(ended)
        assert watermark.committable == min(in_flight, default=position)
        assert len(watermark) == len(in_flight)
        assert watermark.position == position


def test_an_offset_is_taken_once() -> None:
    watermark = Watermark(0)
    watermark.take(4)
    with pytest.raises(ValueError, match="taken before"):
        watermark.take(4)


def test_a_second_end_changes_nothing() -> None:
    watermark = Watermark(0)
    watermark.take(0)
    watermark.end(0)
    watermark.end(0)
    assert watermark.committable == 1
