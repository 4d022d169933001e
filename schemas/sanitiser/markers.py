"""What stands in the place of what was taken out."""

from __future__ import annotations

from typing import TypeAlias

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None

REDACTED = "[REDACTED]"
CYCLE = "[CYCLE]"
TOO_DEEP = "[TOO DEEP]"
UNREADABLE = "[UNREADABLE]"
ELLIPSIS = "…"


def truncated(size_bytes: int) -> dict[str, JsonValue]:
    """What a value becomes that is larger than its limit."""
    return {"_truncated": True, "_originalSize": size_bytes}
