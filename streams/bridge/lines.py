"""Lines of bounded length out of a server's byte stream, and what a line too long still says.

The SDK's own stdio client joins a line as one text, however long it is: a result of 100 MB costs
minutes of copying. Here the middle of such a line is thrown away while it arrives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# More than any envelope of a response needs before and after its result.
EDGE_BYTES = 1024

_ID_FIRST = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})'
    rb'|"id"\s*:\s*(\d{1,18})\s*,\s*"jsonrpc"\s*:\s*"2\.0")\s*,\s*"(?:result|error)"'
)
_RESULT_FIRST = re.compile(rb'\s*\{\s*"(?:jsonrpc"\s*:\s*"2\.0"\s*,\s*")?(?:result|error)"')
_ID_LAST = re.compile(
    rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z'
)


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line over the limit: its two ends and how long it was."""

    head: bytes
    tail: bytes
    size_bytes: int


class LineReader:
    """Cuts chunks into lines; never holds more than `limit_bytes` and one chunk."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._start_line()

    def feed(self, chunk: bytes) -> Iterator[bytes | LongLine]:
        """The lines that this chunk completes, without their ends."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._line()
            self._start_line()
        self._add(rest)

    def _start_line(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        self._tail = b""

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._head is None and self._size <= self._limit_bytes:
            self._parts.append(part)
            return
        if self._head is None:
            kept = b"".join(self._parts)
            self._head, self._tail = kept[:EDGE_BYTES], kept[-EDGE_BYTES:]
            self._parts = []
        self._head += part[: EDGE_BYTES - len(self._head)]
        self._tail = (self._tail + part)[-EDGE_BYTES:]

    def _line(self) -> bytes | LongLine:
        if self._head is None:
            return b"".join(self._parts)
        return LongLine(self._head, self._tail, self._size)


def answered_id(head: bytes, tail: bytes) -> int | None:
    """The request that a JSON-RPC response answers, told from the two ends of its line.

    None where the line is no response (a request of the server has an id of its own) or it cannot be told.
    """
    first = _ID_FIRST.match(head)
    if first:
        return int(first.group(1) or first.group(2))
    last = _ID_LAST.search(tail) if _RESULT_FIRST.match(head) else None
    return int(last.group(1)) if last else None
