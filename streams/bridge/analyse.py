"""`pml:analyse`: the static analysis as a service of the server `pml` (spec story 10.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from pml.processors.capabilities.analysing import analysed
from pml.processors.capabilities.inlining import Find
from pml.processors.capabilities.linking import with_linked
from pml.processors.capabilities.provides import ToolSchemas
from pml.schemas.analysis import AnalyseRequest
from pml.schemas.calls import CallRun
from pml.schemas.catalog import ServerTools
from pml.schemas.workflow import Workflow

T = TypeVar("T")


class Capabilities(Protocol):
    """The capabilities of tenants, by name or id."""

    async def workflow(self, tenant: str, workflow: Workflow) -> Workflow:
        """A workflow of a tenant with tasks of tools only."""

    async def look(self, tenant: str, question: Callable[[Find], T]) -> T:
        """What a function of a tenant's capabilities comes to."""


class Analyse:
    """Turns programs into structures, one at a time and beside the loop.

    Args:
        servers: what is listed now; the schemas of its tools say who provides what.
        capabilities: those of tenants, for the programs that call them.
    """

    def __init__(
        self,
        servers: Callable[[], Iterable[ServerTools]],
        capabilities: Capabilities,
    ) -> None:
        self._servers, self._capabilities = servers, capabilities
        self._thread = ThreadPoolExecutor(1, "pml-analyse")

    async def __call__(self, run: CallRun) -> dict[str, Any]:
        """The answer, as structured content.

        Raises:
            ValidationError: the arguments are no `AnalyseRequest`.
            SourceError: the program is not of its language.
            WorkflowInvalid: a capability that it calls is unknown, or does not fit.
            BrokerUnavailable: the catalog cannot be read.
        """
        request = AnalyseRequest.model_validate(run.arguments)
        schemas = dict(_schemas(self._servers()))
        work = asyncio.get_running_loop().run_in_executor(self._thread, analysed, request, schemas)
        answer = await work
        if answer.structure.capabilities:
            answer = await self._capabilities.look(
                run.tenant, lambda find: with_linked(answer, request.source, find)
            )
        if answer.workflow is not None:
            workflow = await self._capabilities.workflow(run.tenant, answer.workflow)
            answer = answer.model_copy(update={"workflow": workflow})
        return answer.model_dump(mode="json")

    def close(self) -> None:
        """Answer nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _schemas(servers: Iterable[ServerTools]) -> Iterator[tuple[str, ToolSchemas]]:
    for server in servers:
        for tool in server.tools:
            yield f"{server.server}:{tool.name}", ToolSchemas(tool.input_schema, tool.output_schema)
