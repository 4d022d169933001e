"""What `Content-Encoding` and `Accept-Encoding` name, bounded: a small body never becomes a large one."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import lz4.frame

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from pml.clickhouse.embedded.errors import (
    CANNOT_DECOMPRESS,
    QUERY_IS_TOO_LARGE,
    UNKNOWN_COMPRESSION_METHOD,
    ClickHouseError,
)


class Compressor(Protocol):
    """Gives the compressed bytes of each chunk, and what remains at the end."""

    def compress(self, data: bytes) -> bytes: ...
    def flush(self) -> bytes: ...


class _Lz4:
    def __init__(self) -> None:
        self._frame = lz4.frame.LZ4FrameCompressor()
        self._head: bytes = self._frame.begin()

    def compress(self, data: bytes) -> bytes:
        head, self._head = self._head, b""
        return head + bytes(self._frame.compress(data))

    def flush(self) -> bytes:
        return self._head + bytes(self._frame.flush())


_COMPRESSORS: dict[str, Callable[[], Compressor]] = {
    "lz4": _Lz4,
    "zstd": zstd.ZstdCompressor,
    "gzip": lambda: zlib.compressobj(wbits=31),
    "deflate": zlib.compressobj,
}
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "lz4": lz4.frame.LZ4FrameDecompressor,
    "zstd": zstd.ZstdDecompressor,
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "deflate": zlib.decompressobj,
}


def accepted(header: str) -> str | None:
    """The first encoding in an `Accept-Encoding` header that is known here."""
    names = (part.split(";")[0].strip().lower() for part in header.split(","))
    return next((name for name in names if name in _COMPRESSORS), None)


def compressor(encoding: str) -> Compressor:
    return _COMPRESSORS[encoding]()


def decompressed(data: bytes, encoding: str, limit_bytes: int) -> bytes:
    """The plain bytes of a body, which may be several frames one after another.

    Raises:
        ClickHouseError: an unknown encoding, broken data, or more than `limit_bytes` come out.
    """
    if encoding in ("", "identity"):
        return data
    if encoding not in _DECOMPRESSORS:
        raise ClickHouseError(UNKNOWN_COMPRESSION_METHOD, f"Unknown Content-Encoding: {encoding[:40]}.")
    parts: list[bytes] = []
    try:
        while data:
            part, data = _frame(data, encoding, limit_bytes + 1 - sum(map(len, parts)))
            parts.append(part)
    except (RuntimeError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise ClickHouseError(CANNOT_DECOMPRESS, f"The body is not valid {encoding}: {error}.") from None
    return b"".join(parts)


def _frame(data: bytes, encoding: str, room: int) -> tuple[bytes, bytes]:
    """The plain bytes of the first frame, and the data behind it."""
    frame = _DECOMPRESSORS[encoding]()
    plain: bytes = frame.decompress(data, room)
    if len(plain) >= room:
        raise ClickHouseError(QUERY_IS_TOO_LARGE, "The decompressed body is larger than this server takes.")
    if not frame.eof:
        raise EOFError("it ends too early")
    return plain, frame.unused_data or b""
