"""The programs under `cases` and the structures that they have: one table for every test that reads it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parent / "cases"


@cache
def read_cases() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Each case with the name of its file, by the parser written in C: every test process reads them all."""
    return tuple(
        (path.stem, case)
        for path in sorted(CASES.glob("*.yaml"))
        for case in yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    )
