"""An answer of ClickHouse's piece by piece, and the error that may stand at its end.

Its status was sent before the query had ended. What fails then is told behind the rows, as text: in a format
of bytes it would be taken for rows, or for the end of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from clickhouse_connect.driver.exceptions import DatabaseError

# Large enough that Python is not what takes the time.
PIECE_BYTES = 1 << 20
# ClickHouse cuts what it tells of an error at 16 KiB.
ERROR_BYTES_MAX = 32 << 10
TAG = "X-ClickHouse-Exception-Tag"

_CODE = re.compile(r"Code: (\d+)\. ")
# Of servers before 25.11, which set no mark.
_UNMARKED = re.compile(
    rb"Code: \d+\. DB::Exception: (?:(?!DB::Exception: ).)*\(version [^\n]+\)\s*\Z", re.DOTALL
)


class Headers(Protocol):
    def get(self, name: str) -> str | None: ...


class Body(Protocol):
    """A response of urllib3's that is being read."""

    @property
    def headers(self) -> Headers: ...

    def read(self, size: int) -> bytes: ...


def pieces(answer: Body) -> Iterator[bytes]:
    """Its bytes, but for what may still be an error.

    Raises:
        DatabaseError: the query failed after its first rows; it has the code of ClickHouse.
        urllib3.exceptions.HTTPError: the connection broke, or nothing came in time.
    """
    held = b""
    while piece := answer.read(PIECE_BYTES):
        held += piece
        if told := held[:-ERROR_BYTES_MAX]:
            yield told
            held = held[-ERROR_BYTES_MAX:]
    _refuse_error(held, answer.headers.get(TAG))
    if held:
        yield held


def _refuse_error(end: bytes, tag: str | None) -> None:
    found = _UNMARKED.search(end) if tag is None else _marked(tag).search(end)
    if found is None:
        return
    message = found[0 if tag is None else 1].decode(errors="replace").strip()
    code = _CODE.search(message)
    raise DatabaseError(message, code=int(code[1]) if code else None)


def _marked(tag: str) -> re.Pattern[bytes]:
    mark = re.escape(tag.encode())
    return re.compile(
        rb"__exception__\r\n%s\r\n(.*?)\n\d+ %s\r\n__exception__\s*\Z" % (mark, mark), re.DOTALL
    )
