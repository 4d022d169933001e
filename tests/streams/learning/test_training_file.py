"""Training sets in files that somebody made otherwise than by exporting them: they are told what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pml.processors.learning.packed_texts import packed
from pml.schemas.errors import ConfigurationError
from pml.streams.learning.sources import Known, from_file
from tests.streams.learning.exported import TOOLS, write_export

CALLS = 12
INT = np.dtype("<i4")


def test_what_was_exported_is_read(tmp_path: Path) -> None:
    found = from_file(write_export(tmp_path / "traces.npz", sessions=3), Known(), "local")
    assert (found.about["sessions"], found.about["runs"]) == (3, CALLS)


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"tool": np.zeros(CALLS - 1, INT)}, "tool has 11 values, where 12 belong"),
        ({"epoch": np.zeros(CALLS + 1, "<u8")}, "epoch has 13 values, where 12 belong"),
        ({"tool": np.full(CALLS, 4, INT)}, "tool has numbers that are none of its 4 words"),
        ({"tool": np.full(CALLS, -1, INT)}, "tool has numbers that are none of its 4 words"),
        ({"intent": np.zeros(CALLS)}, "intent is not a column of its kind"),
        ({"intent": np.ones(CALLS, INT)}, "intent has numbers that are none of its 1 words"),
        ({"ended_at_us": np.full(CALLS, np.nan)}, "ended_at_us is not a column of its kind"),
        ({"tool_words": np.array(["a:\ud800"] * 4)}, "tool_words is not a column of its kind"),
        ({"tool_words": np.full(4, 0x110000, "=u4").view("=U1")}, "tool_words is not a column of its kind"),
        ({"intent_words": np.array([], dtype=str)}, "intent has numbers that are none of its 0 words"),
        ({"request_words": np.array(["x"])}, "request is missing beside request_words"),
        ({"offsets": np.arange(1, CALLS + 2)}, "offsets do not rise from 0"),
        ({"offsets": np.array([0, 5, 3])}, "offsets do not rise from 0"),
        ({"offsets": np.array([], dtype=int)}, "offsets do not rise from 0"),
        ({"offsets": np.linspace(0, CALLS, CALLS + 1)}, "offsets is not a column of its kind"),
        ({"success": np.array(["yes"] * CALLS)}, "success is not a column of its kind"),
        ({"run_id": np.arange(CALLS)}, "run_id is not a column of its kind"),
        ({"session_id": np.array(["ses_1"] * CALLS)}, "session_id is not a column of its kind"),
        (
            {"session_id": np.array([b"\xc3", b"\xa4"] * (CALLS // 2))},
            "session_id is not a column of its kind",
        ),
        ({"tool_words": np.array([b"a:b"] * 4)}, "tool_words is not a column of its kind"),
        ({"offsets": np.arange(CALLS + 1, dtype="<u8")}, "offsets is not a column of its kind"),
        ({"tool": np.zeros(CALLS, "<u8")}, "tool has numbers that are none of its 4 words"),
        ({"epoch": np.zeros((CALLS, 2), "<u8")}, "epoch is not a column of its kind"),
    ],
)
def test_columns_that_do_not_fit_together_are_told(tmp_path: Path, others: dict[str, Any], told: str) -> None:
    file = tmp_path / "traces.npz"
    write_export(file, sessions=3, **others)
    with pytest.raises(ConfigurationError, match=f"is no training set: .*{told}"):
        from_file(file, Known(), "local")


def without(file: Path, *names: str, **others: Any) -> Path:
    """The same file but for these columns."""
    with np.load(file) as stored:
        columns = {name: stored[name] for name in stored if name not in names}
    np.savez(file, allow_pickle=False, **columns, **others)
    return file


@pytest.mark.parametrize(
    "missing", ["tool", "tool_words", "call_pattern", "call_pattern_words", "call_success"]
)
def test_a_column_without_its_fellows_is_told(tmp_path: Path, missing: str) -> None:
    file = without(write_export(tmp_path / "traces.npz", sessions=3), missing)
    with pytest.raises(ConfigurationError, match=f"is no training set: .*{missing}"):
        from_file(file, Known(), "local")


@pytest.mark.parametrize(
    "missing",
    [("call_pattern", "call_pattern_words"), ("call_pattern", "call_pattern_words", "call_success")],
)
def test_what_earlier_releases_wrote_is_read(tmp_path: Path, missing: tuple[str, ...]) -> None:
    file = without(write_export(tmp_path / "traces.npz", sessions=3), *missing)
    assert from_file(file, Known(), "local").about["sessions"] == 3


def test_numbers_of_any_width_are_read(tmp_path: Path) -> None:
    """Times in an int8 are no sensible ones, but whole numbers."""
    kinds = {
        name: np.ones(CALLS, "|i1") for name in ("epoch", "log_offset", "ended_at_us", "group", "success")
    }
    kinds |= {"exploratory": np.zeros(CALLS, np.bool_), "call_success": np.ones(CALLS, np.bool_)}
    file = write_export(tmp_path / "traces.npz", sessions=3, **kinds)
    assert from_file(file, Known(), "local").about["sessions"] == 3


def test_packed_words_are_read_as_padded_ones_are(tmp_path: Path) -> None:
    file = write_export(tmp_path / "traces.npz", sessions=3)
    padded = from_file(file, Known(), "local")
    found = from_file(without(file, "tool_words", **packed("tool_words", TOOLS)), Known(), "local")
    assert found.about == padded.about


@pytest.mark.parametrize(
    "offsets",
    [
        np.array([0, 10, 5, 3, 42]),
        np.array([0, 10, 20, 30]),
        np.array([0.0, 42.0]),
        np.array(42),
        np.array([], int),
    ],
)
def test_packed_words_with_other_offsets_are_told(tmp_path: Path, offsets: np.ndarray) -> None:
    words = {**packed("tool_words", TOOLS), "tool_words_offsets": offsets}
    assert len(words["tool_words_bytes"]) == 42
    file = without(write_export(tmp_path / "traces.npz", sessions=3), "tool_words", **words)
    with pytest.raises(ConfigurationError, match="tool_words_offsets do not rise from 0 to the end"):
        from_file(file, Known(), "local")
