"""ClickHouse's errors: their codes, and the HTTP status each is answered with."""

from __future__ import annotations

import re

SYNTAX_ERROR = (62, "SYNTAX_ERROR")
NOT_IMPLEMENTED = (48, "NOT_IMPLEMENTED")
UNKNOWN_COMPRESSION_METHOD = (89, "UNKNOWN_COMPRESSION_METHOD")
UNKNOWN_SETTING = (115, "UNKNOWN_SETTING")
TOO_MANY_SIMULTANEOUS_QUERIES = (202, "TOO_MANY_SIMULTANEOUS_QUERIES")
QUERY_IS_TOO_LARGE = (229, "QUERY_IS_TOO_LARGE")
CANNOT_DECOMPRESS = (271, "CANNOT_DECOMPRESS")
INTO_OUTFILE_NOT_ALLOWED = (358, "INTO_OUTFILE_NOT_ALLOWED")
AUTHENTICATION_FAILED = (516, "AUTHENTICATION_FAILED")
UNKNOWN_EXCEPTION = (1002, "UNKNOWN_EXCEPTION")

# What a server answers, by code (its source: src/Server/HTTP/exceptionCodeToHTTPStatus.cpp); else 500.
_CODES_BY_STATUS = {
    400: (
        6,
        8,
        15,
        25,
        26,
        27,
        36,
        37,
        38,
        41,
        44,
        53,
        62,
        72,
        117,
        123,
        167,
        168,
        223,
        321,
        376,
        427,
        441,
        675,
        676,
    ),
    401: (194,),
    403: (192, 193, 497, 512, 516),
    404: (46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511),
    408: (159,),
    411: (381,),
    413: (229,),
    415: (779,),
    501: (48,),
    503: (76, 209, 439),
}
_STATUS = {code: status for status, codes in _CODES_BY_STATUS.items() for code in codes}
_PREFIX = re.compile(r"(?:Code: (?P<code>\d+)\. DB::Exception: )+")
_TRAILERS = re.compile(r"(?:\s*\((?:version [^)]*|(?P<name>[A-Z][A-Z0-9_]{3,}))\)\.?)+$")


class ClickHouseError(Exception):
    """An error as ClickHouse tells it; `str()` is the body a server answers with."""

    def __init__(self, code: tuple[int, str], message: str, version: str = "") -> None:
        self.number, self.name = code
        trailer = f" (version {version})" if version else ""
        super().__init__(f"Code: {self.number}. DB::Exception: {message} ({self.name}){trailer}")

    @property
    def status(self) -> int:
        return _STATUS.get(self.number, 500)


def from_engine(message: str, version: str) -> ClickHouseError:
    """The error in a message of the engine, which repeats prefix and trailers once a layer it passed."""
    prefix = _PREFIX.search(message)
    if prefix is None or prefix["code"] is None:
        return ClickHouseError(UNKNOWN_EXCEPTION, message.strip() or "The engine gave no reason.", version)
    text = message[prefix.end() :]
    name = next(
        (trailer["name"] for trailer in _TRAILERS.finditer(text) if trailer["name"]), "UNKNOWN_EXCEPTION"
    )
    return ClickHouseError((int(prefix["code"]), name), _TRAILERS.sub("", text), version)
