from __future__ import annotations

import pytest

from pml.clickhouse.embedded.errors import SYNTAX_ERROR, ClickHouseError, from_engine


@pytest.mark.parametrize(
    ("message", "number", "name", "status", "text"),
    [
        ("Code: 60. DB::Exception: No table t. (UNKNOWN_TABLE)", 60, "UNKNOWN_TABLE", 404, "No table t."),
        (
            "Streaming query failed: Code: 73. DB::Exception: Code: 73. DB::Exception: Unknown format"
            " Nope. (UNKNOWN_FORMAT) (version 26.9.2.1). (UNKNOWN_FORMAT)",
            73,
            "UNKNOWN_FORMAT",
            404,
            "Unknown format Nope.",
        ),
        (
            "Code: 395. DB::Exception: (a) (THROWN_IF) told. (SOME_NAME)",
            395,
            "SOME_NAME",
            500,
            "(a) (THROWN_IF) told.",
        ),
        ("Code: 33. DB::Exception: Short. (version 26.9.2.1)", 33, "UNKNOWN_EXCEPTION", 500, "Short."),
        ("no code at all", 1002, "UNKNOWN_EXCEPTION", 500, "no code at all"),
    ],
)
def test_the_engines_message_is_told_once(
    message: str, number: int, name: str, status: int, text: str
) -> None:
    error = from_engine(message, "26.9")
    assert (error.number, error.name, error.status) == (number, name, status)
    assert str(error) == f"Code: {number}. DB::Exception: {text} ({name}) (version 26.9)"


def test_an_error_of_ours_reads_like_one_of_a_server() -> None:
    assert str(ClickHouseError(SYNTAX_ERROR, "No.")) == "Code: 62. DB::Exception: No. (SYNTAX_ERROR)"
