"""What kind of failure a tool's error is (CONTRACT.md, Configuration: error types of tasks)."""

from __future__ import annotations

import re
from typing import Literal

ErrorType = Literal["TIMEOUT", "PERMISSION", "NOT_FOUND", "VALIDATION", "NETWORK", "UNKNOWN"]

# A bare number says little ("line 404"): a status code counts only where it is named as one.
_STATUS = r"(?:http|status|code|error)\W{0,3}(?:code\W{0,3})?"
_KINDS: tuple[tuple[ErrorType, str], ...] = (
    ("TIMEOUT", rf"time[sd]?[ -]?out|deadline exceeded|{_STATUS}(?:408|504)\b"),
    (
        "PERMISSION",
        r"permission|access denied|denied by|forbidden|unauthori[sz]ed|\beacces\b|\beperm\b"
        rf"|not (?:authori[sz]ed|allowed|permitted)|authentication|{_STATUS}(?:401|403)\b",
    ),
    (
        "NOT_FOUND",
        r"not found|no such|(?:does not|doesn't) exist|\benoent\b|no longer exists"
        rf"|unknown (?:tool|resource|method|prompt)|{_STATUS}(?:404|410)\b",
    ),
    (
        "VALIDATION",
        r"invalid|validation|malformed|schema|\bexpected\b|unexpected|\brequired\b|missing"
        rf"|must (?:be|have|not)|not a valid|unsupported|cannot parse|{_STATUS}(?:400|422)\b|-32602",
    ),
    (
        "NETWORK",
        r"network|connection|connect to|\beconn\w+|\benotfound\b|\bepipe\b|\behostunreach\b|\bdns\b"
        rf"|name resolution|socket|unreachable|broken pipe|{_STATUS}(?:502|503)\b|\bssl\b|\btls\b",
    ),
)
_PATTERNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS)
_READ_MAX_CHARACTERS = 4_096


def classify(message: str) -> ErrorType:
    """The first type, in the contract's match order, whose words occur in an error's text.

    Only the first 4,096 characters are read: an error says what it is at its beginning.
    """
    text = message[:_READ_MAX_CHARACTERS]
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), "UNKNOWN")
