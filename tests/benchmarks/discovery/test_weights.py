"""The weights that PML ships are those that the kept runs learned."""

from __future__ import annotations

from dataclasses import asdict

import orjson
import pytest

from benchmarks.report import RESULTS
from pml.processors.discovery import matching
from pml.processors.discovery.ranking import DEFAULT


def test_the_shipped_weights_of_a_match_are_the_learned_ones() -> None:
    learned = orjson.loads((RESULTS / "matching.json").read_bytes())["facts"]["weights"]
    assert asdict(matching.DEFAULT) == pytest.approx(learned, abs=0.01)


def test_the_shipped_weights_are_the_learned_ones() -> None:
    learned = orjson.loads((RESULTS / "discovery.json").read_bytes())["facts"]["weights"]
    assert asdict(DEFAULT) == pytest.approx(learned, abs=0.05)
