"""The built-in server `pml`: internal calls of the core, answered in this process (DESIGN §2, rule 2).

It is in no file and no catalog, so no workflow can name it and no permission is asked. What is not cheap
runs in threads of its own; how many calls run at once is the admission's, like those of any server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from pydantic import ValidationError

from pml.schemas.calls import CallEnded, CallError, CallRun, ToolResult
from pml.schemas.codec import explain
from pml.schemas.errors import PMLError
from pml.schemas.identifiers import split_tool
from pml.streams.bridge.call import ended
from pml.streams.bridge.results import Answer, failed, timed_out

# More would only wait for the store, or for the one thread that each service has.
CONCURRENCY = 4

Service = Callable[[CallRun], Awaitable[dict[str, Any]]]
"""Answers a call with structured content; its errors are PMLErrors."""

log = structlog.get_logger("pml.bridge")


class Builtin:
    """Services by their names; an error of one is the answer to its call and never the bridge's end."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = dict(services)

    async def run(self, run: CallRun, started_at: str) -> CallEnded:
        """The answer to a call that begins now (RFC 3339), within its time-out."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        status, result, error = await self._answer(run)
        duration_ms = (loop.time() - began_s) * 1000
        return ended(run, status, result, error, started_at=started_at, duration_ms=duration_ms)

    async def _answer(self, run: CallRun) -> Answer:
        service = self._services.get(split_tool(run.tool)[1])
        if service is None:
            return failed("UNKNOWN_TOOL", "NOT_FOUND", f"the server pml of this release has no {run.tool}")
        try:
            async with asyncio.timeout(run.timeout_ms / 1000):
                return "ok", ToolResult(structured=await service(run)), None
        except TimeoutError:
            return timed_out(run.timeout_ms / 1000)
        except ValidationError as error:
            return failed("BAD_ARGUMENTS", "VALIDATION", explain(error))
        except PMLError as error:
            return "error", None, CallError(code=error.code, message=error.message, retryable=error.retryable)
        except Exception:
            log.exception("internal call failed", tool=run.tool)
            return failed("INTERNAL", "UNKNOWN", f"{run.tool} failed: a defect of PML, see the bridge's log")
