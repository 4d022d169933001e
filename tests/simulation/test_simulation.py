"""300 seeds, and what a simulator must be before anybody believes it: the same every time, and not blind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from tests.simulation.command import be_silent
from tests.simulation.play import play
from tests.simulation.plays import PLOTS
from tests.simulation.report import Report, trace

SEEDS = 300
BLOCKS = 10
# A block takes 8 s of one core; a machine that does other things needs longer.
TIMEOUT_S = 600


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    before = structlog.get_config()
    be_silent()
    yield
    structlog.configure(**before)


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_promise_holds(block: int) -> None:
    report = Report()
    for seed in range(block * SEEDS // BLOCKS, (block + 1) * SEEDS // BLOCKS):
        report.add(play(seed))
    assert not report.failed, "\n".join(line for result in report.failed[:2] for line in trace(result))
    assert report.eligible["speculated"] >= 20, "a simulation that speculates nothing proves nothing"
    assert len(report.faults) >= 15, report.faults


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_a_seed_plays_the_same_every_time(plot: object) -> None:
    first, second = play(7, plot=plot), play(7, plot=plot)  # type: ignore[arg-type]
    for name in ("steps", "events", "void", "virtual_s", "results", "world", "checks", "faults", "points"):
        assert getattr(first, name) == getattr(second, name), name
