"""The page and the picture that a measurement leaves."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.page import BEGIN, END, PAGE, figures_of, with_figures
from benchmarks.speculation.picture import PANELS, draw_picture


def row(regime: str, baseline: str, dataset: str, depth: int, **values: Any) -> dict[str, Any]:
    return {
        "regime": regime, "baseline": baseline, "dataset": dataset, "side": f"PML, depth {depth}",
        "times": 1.2, "times_min": 1.1, "times_max": 1.3, "bound": 1.25, "of_bound": 0.96, "held": None,
        "hit_rate": 1.0, "early_share": 0.5, "wasted_of_useful": 0.0, **values,
    }  # fmt: skip


LIMITS = {name: {"layers": 8, "tasks": 16} for name in ("tools", "decisions")}
ROWS = [
    row(regime, baseline, dataset, depth, held=dataset == "all" or None)
    for regime, baseline in PANELS
    for depth in (1, 3)
    for dataset in ("n8n", "api_bank", "all")
]


def result(**values: Any) -> dict[str, Any]:
    figure = {"name": "serving a hit, p99", "unit": "ms", "ratio": 0.03, "limit": 0.05, "held": False}
    return {
        "rounds": 5, "seed": 1, "commit": "abc", "others_share": 0.01, "measured_at": "2026-11-22T01:02:03Z",
        "machine": {"processor": "a processor", "cores": 2},
        "figures": [figure],
        "facts": {"rows": ROWS, "limits": LIMITS, "datasets": {"n8n": {"played": 7}}},
        **values,
    }  # fmt: skip


def test_the_figures_hold_every_total_and_each_data_set_with_its_bound() -> None:
    said = figures_of(result())
    assert said.count("| tools only: PML, depth 1 | layer by layer | 1.20 | 1.10–1.30 | 1.25 | 0.960 |") == 1
    assert "| n8n | 1.20 (1.25) | 1.20 (1.25) | 1.20 (1.25) |" in said
    assert "| serving a hit, p99, ms | 0.03 | 0.05 | **no** |" in said
    assert "5 rounds of 7 workflows" in said


def test_a_busy_machine_is_told_on_the_page() -> None:
    assert "do not trust" not in figures_of(result())
    assert "do not trust" in figures_of(result(others_share=0.5))


def test_figures_replace_what_stood_between_the_marks() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = with_figures(page, "new\n")
    assert once == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert with_figures(once, "new\n") == once


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the marks"):
        with_figures("no marks", "new")


def test_the_page_in_the_documentation_has_the_marks() -> None:
    assert with_figures(PAGE.read_text(encoding="utf-8"), "x")


def test_the_picture_is_the_same_for_the_same_rows_and_names_what_it_shows() -> None:
    picture = draw_picture(ROWS)
    assert picture == draw_picture(ROWS) != draw_picture(ROWS[:-1])
    words = {element.text for element in ElementTree.fromstring(picture).iter() if element.text}
    assert {"n8n", "api_bank", "all of them", "PML, depth 3", "no overhead at all"} <= words
