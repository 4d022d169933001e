"""`pml:inline`: the tasks of capabilities in the place of their calls, by the catalog as it is now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pml.processors.capabilities.inlining import Find, inlined
from pml.schemas.calls import CallRun
from pml.schemas.inlining import InlineAnswer, InlineRequest
from pml.schemas.workflow import Workflow
from pml.streams.discovery.finder import Finder

T = TypeVar("T")


class Inline:
    """The service `pml:inline`; others that need a tenant's capabilities ask it too."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder

    async def __call__(self, run: CallRun) -> dict[str, Any]:
        """The answer, as structured content, for the tenant of the call.

        Raises:
            ValidationError: the arguments are no `InlineRequest`.
            WorkflowInvalid: a capability is unknown, or does not fit where it is called.
            BrokerUnavailable: the catalog cannot be read.
        """
        request = InlineRequest.model_validate(run.arguments)
        workflow = await self.workflow(run.tenant, request.workflow)
        return InlineAnswer(workflow=workflow).model_dump(mode="json")

    async def workflow(self, tenant: str, workflow: Workflow) -> Workflow:
        """A workflow of a tenant with tasks of tools only.

        Raises:
            WorkflowInvalid, BrokerUnavailable: as above.
        """
        if not workflow.calls_capabilities:
            return workflow
        return await self.look(tenant, lambda find: inlined(workflow, find))

    async def look(self, tenant: str, question: Callable[[Find], T]) -> T:
        """What a function of a tenant's capabilities comes to.

        Raises:
            BrokerUnavailable: the catalog cannot be read.
        """
        return await self._finder.look(lambda library: question(lambda name: library.find(tenant, name)))
