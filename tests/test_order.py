"""The order in which the files of tests begin."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import SLOW_FILES


def test_the_files_that_begin_first_are_there() -> None:
    root = Path(__file__).parents[1]
    assert [name for name in SLOW_FILES if not (root / name).is_file()] == []
    assert len(set(SLOW_FILES)) == len(SLOW_FILES)
