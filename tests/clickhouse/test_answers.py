"""An answer piece by piece: an error at its end is none of its bytes, wherever pieces are cut."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError
from hypothesis import given
from hypothesis import strategies as st

from pml.clickhouse.answers import ERROR_BYTES_MAX, TAG, pieces

MARK = "6a1f0c2e9b7d4e35"
TOLD = (
    "Code: 241. DB::Exception: Value passed to 'throwIf' is non-zero. (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO)"
)
VERSION = " (version 25.3.2.39 (official build))"


@dataclass
class Answer:
    """Bytes that come in pieces of these sizes, and then in one."""

    body: bytes
    tag: str | None = None
    sizes: list[int] = field(default_factory=list)

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.tag is None else {TAG: self.tag}

    def read(self, size: int) -> bytes:
        taken = min(size, self.sizes.pop(0) if self.sizes else size)
        piece, self.body = self.body[:taken], self.body[taken:]
        return piece


def marked(message: str) -> bytes:
    """As a server writes it behind rows."""
    text = f"{message}\n".encode()
    return b"\r\n__exception__\r\n%s\r\n%s%d %s\r\n__exception__\r\n" % (
        MARK.encode(),
        text,
        len(text),
        MARK.encode(),
    )


def read(answer: Answer) -> tuple[bytes, DatabaseError | None]:
    told = b""
    try:
        for piece in pieces(answer):
            told += piece
    except DatabaseError as error:
        return told, error
    return told, None


SIZES = st.lists(st.integers(1, ERROR_BYTES_MAX), max_size=6)
BODIES = st.one_of(st.binary(max_size=300), st.integers(1, 200_000).map(bytes))


@given(BODIES, SIZES, st.sampled_from([None, MARK]))
def test_what_ended_well_comes_whole(body: bytes, sizes: list[int], tag: str | None) -> None:
    assert read(Answer(body, tag, sizes)) == (body, None)


@given(BODIES, SIZES)
def test_an_error_behind_rows_is_raised_and_none_of_it_is_read(body: bytes, sizes: list[int]) -> None:
    told, error = read(Answer(body + marked(TOLD), MARK, sizes))
    assert error is not None
    assert (error.code, str(error)) == (241, TOLD)
    assert body.startswith(told)


def test_an_error_without_a_mark_is_found_where_the_server_sets_none() -> None:
    told, error = read(Answer(bytes(50) + f"{TOLD}{VERSION}\n".encode()))
    assert error is not None
    assert (told, error.code, str(error)) == (b"", 241, f"{TOLD}{VERSION}")


@pytest.mark.parametrize("body", [marked(TOLD), f"{TOLD}{VERSION}\n".encode(), f"{TOLD} and so on".encode()])
def test_values_that_only_speak_of_errors_are_values(body: bytes) -> None:
    assert read(Answer(body, "another mark")) == (body, None)
    assert read(Answer(body + b"PAR1")) == (body + b"PAR1", None)
