"""Where one SQL text ends and its inline data begins, and which format it asks for.

ClickHouse's client finds the end of inline data by looking for newlines and semicolons, which binary data
contain too; so the data are cut off here and never reach a parser of SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

WITH_RESULT = frozenset(
    {"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS", "CHECK", "KILL", "FROM"}
)

_TOKEN = re.compile(
    rb"(?P<space>\s+|--[^\n]*|/\*.*?\*/)"
    rb"|(?P<quoted>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`\\]|\\.|``)*`|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)"
    rb"|(?P<word>[A-Za-z_]\w*)"
    rb"|(?P<other>.)",
    re.DOTALL,
)
_NESTING = {b"(": 1, b"[": 1, b")": -1, b"]": -1}
_LINE_AFTER_FORMAT = re.compile(rb"[ \t\f]*(?:\r?\n)?")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; `output_format` is the one that it names.

    For an INSERT with inline data `sql` ends before them, `data` are their bytes in `data_format`, and
    `source_at` is where in `sql` another source of data may be named.
    """

    sql: bytes
    kind: str
    output_format: str | None = None
    data_format: str | None = None
    data: bytes = b""
    source_at: int = 0

    @property
    def gives_result(self) -> bool:
        return self.kind in WITH_RESULT


@dataclass(frozen=True, slots=True)
class _Word:
    name: str
    keyword: str
    start: int
    end: int
    depth: int


def split(text: bytes) -> Statement:
    """The statement in the body of a request, its data cut off."""
    words = _words(text)
    first = next(words, None)
    kind = first.keyword if first else ""
    if kind == "INSERT":
        return _split_insert(text, words)
    return Statement(text, kind, output_format=_trailing_format([word for word in words if word.depth == 0]))


def _split_insert(text: bytes, words: Iterator[_Word]) -> Statement:
    plain = Statement(text, "INSERT")
    before, settings_at = "", None
    for word in words:
        named = before in ("INTO", "TABLE", ".")
        before = word.keyword
        if word.depth or named:
            continue
        if word.keyword in ("SELECT", "WITH", "WATCH", "INFILE"):
            return plain
        if word.keyword == "SETTINGS":
            settings_at = word.start
        elif word.keyword in ("VALUES", "FORMAT"):
            source_at = word.start if settings_at is None else settings_at
            return _cut(replace(plain, source_at=source_at), word, next(words, None))
    return plain


def _cut(whole: Statement, word: _Word, name: _Word | None) -> Statement:
    """The statement before `VALUES …` or `FORMAT name …`, and the data behind."""
    if word.keyword == "VALUES":
        data_format, end = "Values", word.end
    elif name is None:
        return whole
    else:
        line = _LINE_AFTER_FORMAT.match(whole.sql, name.end)
        data_format, end = name.name, line.end() if line else name.end
    return replace(whole, sql=whole.sql[: word.start], data_format=data_format, data=whole.sql[end:])


def _trailing_format(words: list[_Word]) -> str | None:
    """The format a query names at its end: `… FORMAT x`, perhaps with `SETTINGS …` behind it."""
    for at in range(len(words) - 2, -1, -1):
        if words[at].keyword == "FORMAT":
            behind = words[at + 2].keyword if at + 2 < len(words) else "SETTINGS"
            return words[at + 1].name or None if behind == "SETTINGS" else None
    return None


def _words(text: bytes) -> Iterator[_Word]:
    """Words, dots and quoted names (which are no keywords), with the depth of brackets they stand at."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "word" or token.group() == b".":
            name = token.group().decode()
            yield _Word(name, name.upper(), token.start(), token.end(), depth)
        elif token.lastgroup == "quoted":
            yield _Word("", "", token.start(), token.end(), depth)
        elif token.lastgroup == "other":
            depth += _NESTING.get(token.group(), 0)
