"""Rows of recorded data sets, each kept as soon as it is measured.

All sets together take hours: what is there is not lost with what is not, and a set that is measured again
leaves the others as they were.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from benchmarks.machine import commit
from benchmarks.report import RESULTS
from pml.schemas.times import to_rfc3339

Row = Mapping[str, Any]


def kept_rows(name: str, seed: int, folder: Path = RESULTS) -> dict[str, Row]:
    """The rows of the last result of a benchmark, by the name of their set; none of another seed."""
    try:
        result = orjson.loads((folder / f"{name}.json").read_bytes())
    except FileNotFoundError:
        return {}
    if result["seed"] != seed:
        return {}
    when = {"commit": result["commit"], "measured_at": result["measured_at"]}
    return {row["name"]: {**when, **row} for row in result["facts"]["sets"]}


def measured_now(row: Row) -> Row:
    """A row with the commit and the time of its measurement."""
    return {**row, "commit": commit(), "measured_at": to_rfc3339(time.time_ns() // 1_000_000)}


def in_order(rows: Mapping[str, Row], names: Sequence[str]) -> list[Row]:
    """Those of these sets that there are."""
    return [rows[name] for name in names if name in rows]
