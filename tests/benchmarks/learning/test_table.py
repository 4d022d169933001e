"""The table says who is best by counting, and the command knows its sets."""

from __future__ import annotations

import io
from typing import Any

import pytest
import typer
from rich.console import Console

from benchmarks.learning.__main__ import _figures
from benchmarks.learning.table import show
from benchmarks.learning.ways import WAYS, ways_named
from pml.processors.learning.learners import LEARNERS


def row(hits: float) -> dict[str, Any]:
    measured = {name: {"mean": hits, "interval": (hits, hits)} for name in ("hit_1", "hit_3", "mrr", "brier")}
    return {
        "name": "small",
        "asked": 1_234,
        "unseen": 0.25,
        "visible": "nothing",
        "ways": dict.fromkeys(LEARNERS, measured),
        "best_counting": "markov_2",
        "reached_before": {"hit_1": 0.3, "hit_3": 0.4},
        "serves": "boosted",
        "wanted": {"hit_1": 0.4, "hit_3": 0.625},
        "message_passing": {"hit_1": -0.2, "interval": (-0.3, -0.1)},
        "gains": {"ranker": {"hit_1": 0.1, "interval": (-0.05, 0.2)}},
    }


def test_a_table_has_every_learner_and_marks_the_best_by_counting() -> None:
    told = io.StringIO()
    show([row(0.5)], Console(file=told, width=160))
    lines = told.getvalue().splitlines()
    assert all(any(name in line for line in lines) for name in LEARNERS)
    assert any("markov_2 *" in line and "0.500 [0.500, 0.500]" in line for line in lines)
    assert any("attention − its head" in line and "-0.200 [-0.300, -0.100]" in line for line in lines)
    assert any("small (1,234, 25%)" in line for line in lines)
    assert any("ranker − *" in line and "+0.100 [-0.050, +0.200]" in line for line in lines)
    assert any("boosted serves; at least" in line and "0.400 held" in line for line in lines)
    assert any("0.625 missed" in line for line in lines)
    assert "small: visible was nothing" in lines


def test_of_a_set_that_nothing_is_known_of_the_table_says_what_was_measured() -> None:
    told = io.StringIO()
    show([row(0.5) | {"reached_before": None, "wanted": None}], Console(file=told, width=160))
    printed = told.getvalue()
    assert "0.500 [0.500, 0.500]" in printed
    assert "before" not in printed
    assert "at least" not in printed


def test_figures_are_ratios_to_popularity_where_it_is_ever_right() -> None:
    figures = _figures([row(0.5)])
    assert [figure.ratio for figure in figures if figure.bound is None] == [1] * (len(LEARNERS) - 1)
    aims = [figure for figure in figures if figure.bound is not None]
    assert [(figure.ratio, figure.bound.holds(figure.ratio)) for figure in aims if figure.bound] == [
        (1.25, True),
        (0.8, False),
    ]
    assert _figures([row(0.0) | {"wanted": None}]) == []


def test_a_row_that_was_kept_before_there_were_all_learners_has_figures_of_its_own() -> None:
    told = row(0.5)
    known = {name: found for name, found in told["ways"].items() if name != "attention"}
    names = {figure.name for figure in _figures([told | {"ways": known}])}
    assert "small: boosted" in names
    assert "small: attention" not in names


def test_only_known_sets_are_measured() -> None:
    assert ways_named("", WAYS) == tuple(WAYS)
    assert ways_named("n8n, tau", WAYS) == ("n8n", "tau", "tau_sessions", "tau, script")
    assert ways_named("tau, script,n8n", WAYS) == ("n8n", "tau, script")
    assert ways_named("tau, script", WAYS) == ("tau, script",)
    with pytest.raises(typer.BadParameter, match="no set mine"):
        ways_named("mine", WAYS)
