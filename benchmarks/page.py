"""`python -m benchmarks.page`: the page about speculation with the figures of the last measurement.

Reads benchmarks/results/speculation.json, writes the tables of docs/guide/worth.md between its two
marks, and the picture beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from benchmarks.machine import BUSY_SHARE
from benchmarks.report import RESULTS
from benchmarks.speculation.findings import ALL
from benchmarks.speculation.picture import draw_picture
from benchmarks.speculation.table import cells, scope_of
from pml.streams.local.stack import write_whole

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guide" / "worth.md"
PICTURE = PAGE.with_suffix(".svg")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HELD = {True: "yes", False: "**no**", None: ""}


def main() -> None:
    """Write both."""
    result = orjson.loads((RESULTS / "speculation.json").read_bytes())
    write_whole(PAGE, with_figures(PAGE.read_text(encoding="utf-8"), figures_of(result)).encode())
    write_whole(PICTURE, draw_picture(result["facts"]["rows"]))


def with_figures(page: str, figures: str) -> str:
    """The page with these figures between its marks.

    Raises:
        ValueError: it does not have both marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page needs the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{figures}\n{END}{after}"


def figures_of(result: Mapping[str, Any]) -> str:
    """The figures of a measurement as Markdown."""
    rows = result["facts"]["rows"]
    return "\n".join(
        [_measured(result), "", *_totals(rows), "", *_by_dataset(rows), "", *_others(result), ""]
    )


def _measured(result: Mapping[str, Any]) -> str:
    machine, facts = result["machine"], result["facts"]
    played = sum(each["played"] for each in facts["datasets"].values())
    said = (
        f"Measured on {result['measured_at'][:10]} at commit `{result['commit']}`: {result['rounds']} rounds "
        f"of {played} workflows, {scope_of(facts)}, drawn with seed {result['seed']}; "
        f"{machine['processor']}, {machine['cores']} cores."
    )
    if result["others_share"] > BUSY_SHARE:
        share = f"{result['others_share']:.0%}"
        said += f" **Others took {share} of the cores meanwhile: do not trust these figures.**"
    return said


def _totals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    head = [
        "what",
        "beside",
        "times as fast",
        "min–max",
        "bound",
        "of bound",
        "hits",
        "early",
        "wasted",
        "held",
    ]
    found = [
        [f"{row['regime']}: {row['side']}", row["baseline"], *cells(row), HELD[row["held"]]]
        for row in rows
        if row["dataset"] == ALL
    ]
    return _table(head, found)


def _by_dataset(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each data set at depth 1: measured, and the bound in brackets."""
    chosen = {(row["dataset"], row["regime"]): row for row in reversed(rows) if row["side"] == "PML, depth 1"}
    regimes = list(dict.fromkeys(regime for _, regime in reversed(chosen)))
    datasets = list(dict.fromkeys(name for name, _ in reversed(chosen) if name != ALL))
    found = [
        [name, *(_pair(chosen[name, regime]) if (name, regime) in chosen else "" for regime in regimes)]
        for name in datasets
    ]
    return _table(["data set, depth 1 (bound)", *regimes], found)


def _pair(row: Mapping[str, Any]) -> str:
    return f"{row['times']:.2f} ({row['bound']:.2f})"


def _others(result: Mapping[str, Any]) -> list[str]:
    """The figures that are no rows."""
    named = [figure for figure in result["figures"] if figure["unit"] != "times as fast"]
    found = [
        [
            f"{figure['name']}, {figure['unit']}",
            f"{figure['ratio']:.2f}",
            f"{figure['limit']:g}",
            HELD[figure["held"]],
        ]
        for figure in named
    ]
    return _table(["besides", "ratio", "at most", "held"], found)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


if __name__ == "__main__":
    main()
