"""The example server's own record of every call: what a test of effects is counted from."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

CALL_ID_KEY = "pml/call-id"
SPECULATIVE_KEY = "pml/speculative"


class CallLog:
    """Middleware that appends two JSON lines a call: one before its effect, one after its end.

    The first has `ended_at: null`. Each line is one write to a file opened for appending, so lines of
    several servers do not mix and a killed server leaves what it had begun. Arguments appear as a digest.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._numbers = itertools.count(1)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        record = self._begin(ctx)
        outcome = "error"
        try:
            result = await call_next(ctx)
            outcome = "error" if _is_error(result) else "ok"
            return result
        finally:
            self._append({**record, "ended_at": _now(), "outcome": outcome})

    def _begin(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        params, meta = dict(ctx.params or {}), dict(ctx.meta or {})
        record = {
            "call": f"{os.getpid()}-{next(self._numbers)}",
            "tool": params.get("name"),
            "arguments_digest": _digest(params.get("arguments")),
            "call_id": meta.get(CALL_ID_KEY),
            "speculative": bool(meta.get(SPECULATIVE_KEY, False)),
            "started_at": _now(),
            "ended_at": None,
            "outcome": None,
        }
        self._append(record)
        return record

    def _append(self, record: dict[str, Any]) -> None:
        os.write(self._descriptor, json.dumps(record).encode() + b"\n")


def _is_error(result: HandlerResult) -> bool:
    if isinstance(result, dict):
        return bool(result.get("isError", False))
    return bool(getattr(result, "is_error", False))


def _digest(arguments: object) -> str:
    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
