"""`pml:analyse`: the static analysis as a service of the server `pml` (spec story 10.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pml.processors.capabilities.analysing import analysed
from pml.processors.capabilities.provides import ToolSchemas
from pml.schemas.analysis import AnalyseRequest
from pml.schemas.calls import CallRun
from pml.schemas.catalog import ServerTools


class Analyse:
    """Turns programs into structures, one at a time and beside the loop.

    Args:
        servers: what is listed now; the schemas of its tools say who provides what.
    """

    def __init__(self, servers: Callable[[], Iterable[ServerTools]]) -> None:
        self._servers = servers
        self._thread = ThreadPoolExecutor(1, "pml-analyse")

    async def __call__(self, run: CallRun) -> dict[str, Any]:
        """The answer, as structured content.

        Raises:
            ValidationError: the arguments are no `AnalyseRequest`.
            SourceError: the program is not of its language.
        """
        request = AnalyseRequest.model_validate(run.arguments)
        schemas = dict(_schemas(self._servers()))
        work = asyncio.get_running_loop().run_in_executor(self._thread, analysed, request, schemas)
        return (await work).model_dump(mode="json")

    def close(self) -> None:
        """Answer nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _schemas(servers: Iterable[ServerTools]) -> Iterator[tuple[str, ToolSchemas]]:
    for server in servers:
        for tool in server.tools:
            yield f"{server.server}:{tool.name}", ToolSchemas(tool.input_schema, tool.output_schema)
