"""The sanitiser's face: redact first, then measure."""

from __future__ import annotations

from typing import Any

import orjson

from pml.schemas.sanitiser.markers import ELLIPSIS, REDACTED, JsonValue, truncated
from pml.schemas.sanitiser.reading import BriefReader, Reader, TooMany, beginning
from pml.schemas.sanitiser.redaction import redact_text, redact_value

LIMIT_BYTES = 10_240
TEXT_LIMIT_BYTES = 2_048
PREVIEW_CHARS = 240

# A value with more text than this is cut without being searched: redaction would have to take nearly all of
# it away before it fitted. The bound is what keeps an 8 MiB result from holding up everything behind it.
SEARCHED_MAX = 262_144
_ITEMS_MAX = 100_000
_MEASURED_MAX = 16 * 2**20  # characters; above it the size is counted, not measured
_TEXT_WINDOW = 32_768  # of an error message; what lies behind it cannot show within the limit
_CUTS_MAX = 3  # a cut may make something look like a secret that did not before; once or twice at most
_PREVIEW_WINDOW = 1_024  # characters of one text


def sanitise(value: Any, limit_bytes: int = LIMIT_BYTES) -> JsonValue:
    """The value as JSON without secrets, or `{"_truncated": true, "_originalSize": N}` where it is too large.

    N is the size of the redacted JSON in bytes. Of values with more than 256 KiB of text (or four times the
    limit) it is the size before redaction, and of those with more than 100 000 items as much as was
    counted, since neither is searched: they are cut whatever they hold. Never raises, whatever the value.

    Args:
        value: anything; `pml.schemas.sanitiser.reading` says what becomes of types that JSON does not have.
        limit_bytes: of the answer's JSON. The answer for a value too large takes up to 50 bytes by itself.
    """
    reader = Reader(max(limit_bytes, _ITEMS_MAX))
    try:
        read = reader.read(value)
    except TooMany:
        return truncated(reader.characters + max(limit_bytes, _ITEMS_MAX))
    if reader.characters > max(SEARCHED_MAX, 4 * limit_bytes):
        return truncated(_size_bytes(read) if reader.characters <= _MEASURED_MAX else reader.characters)
    clean = redact_value(read, reader.strings)
    size_bytes = _size_bytes(clean)
    return clean if size_bytes <= limit_bytes else truncated(size_bytes)


def sanitise_text(text: str, limit_bytes: int = TEXT_LIMIT_BYTES) -> str:
    """An error message without secrets, cut to `limit_bytes` of UTF-8, never inside a marker."""
    window = beginning(text, max(_TEXT_WINDOW, 8 * limit_bytes))
    clean = redact_text(window.encode("utf-8", "backslashreplace").decode("utf-8"))
    for _ in range(_CUTS_MAX):
        cut = _cut_bytes(clean, limit_bytes)
        if cut == clean:
            break
        clean = redact_text(cut)
    return _cut_bytes(clean, limit_bytes)


def _cut_bytes(text: str, limit_bytes: int) -> str:
    if len(text.encode()) <= limit_bytes:
        return text
    head = text.encode()[: limit_bytes - len(ELLIPSIS.encode())].decode("utf-8", "ignore")
    return _outside_marker(head) + ELLIPSIS


def preview(value: Any, limit_chars: int = PREVIEW_CHARS) -> str:
    """One line that shows how a value begins, without secrets: text as it is, anything else as JSON.

    Redacts before it cuts. Only the beginning is looked at, so that a preview of a large value costs no
    more than one of a small one.
    """
    reader = BriefReader(limit_chars // 2 + 2, max(_PREVIEW_WINDOW, 4 * limit_chars))
    try:
        read = reader.read(value)
    except TooMany:  # a large set: which of its items come first is known only after all
        return ELLIPSIS
    clean = redact_value(read, reader.strings)
    return _shown(clean, orjson.dumps(clean), reader.is_cut, limit_chars)


def sanitise_and_preview(value: Any) -> tuple[JsonValue, str]:
    """`sanitise` and `preview` of a value; one that a preview reads whole is read and searched only once."""
    reader = BriefReader(PREVIEW_CHARS // 2 + 2, _PREVIEW_WINDOW)
    try:
        read = reader.read(value)
    except TooMany:
        return sanitise(value), ELLIPSIS
    if reader.is_cut or reader.is_shortened:
        return sanitise(value), preview(value)
    clean = redact_value(read, reader.strings)
    data = orjson.dumps(clean)
    kept = clean if len(data) <= LIMIT_BYTES else truncated(len(data))
    return kept, _shown(clean, data, False, PREVIEW_CHARS)


def _shown(clean: JsonValue, data: bytes, is_cut: bool, limit_chars: int) -> str:
    shown = clean if isinstance(clean, str) else data.decode()
    if len(shown) + is_cut <= limit_chars:
        return shown + ELLIPSIS if is_cut else shown
    return _outside_marker(shown[: limit_chars - 1]) + ELLIPSIS


def _size_bytes(value: JsonValue) -> int:
    return len(orjson.dumps(value))


def _outside_marker(head: str) -> str:
    start = head.rfind("[", max(0, len(head) - len(REDACTED) + 1))
    return head[:start] if start >= 0 and REDACTED.startswith(head[start:]) else head
