from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from pml.streams.demo.report import DemoReport, WorkflowReport, show

FOUND = WorkflowReport(
    name="notes",
    layers=3,
    tasks=4,
    wall_ms_plain=100.0,
    wall_ms_speculative=80.0,
    hits=1,
    small_hits=0,
    misses=0,
    wasted=0,
    saved_ms=20.0,
    identical=True,
    differences=(),
    by_shape=(),
    speculated=True,
    unsafe_speculations=0,
    eligible=2,
    eligible_speculated=1,
)


def report(found: WorkflowReport) -> DemoReport:
    return DemoReport((found,), {}, "/tmp/demo")


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (FOUND, True),
        (replace(FOUND, identical=False), False),
        (replace(FOUND, unsafe_speculations=1), False),
        (replace(FOUND, hits=0, eligible=0), False),
        (replace(FOUND, hits=0, speculated=False, eligible_speculated=0), False),
        (replace(FOUND, hits=0, speculated=False, eligible=0, eligible_speculated=0), True),
    ],
)
def test_a_promise_that_was_not_kept_fails_the_demo(found: WorkflowReport, kept: bool) -> None:
    assert report(found).ok is kept
    assert report(found).as_dict()["ok"] is kept


@pytest.mark.parametrize(("speculated", "said"), [(True, "was of no use"), (False, "no call was run early")])
def test_why_there_is_no_hit_is_said(speculated: bool, said: str) -> None:
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        show(report(replace(FOUND, hits=0, speculated=speculated)), console)
    assert f"notes: {'what was run early ' if speculated else ''}{said}, of 2 that could be" in capture.get()
