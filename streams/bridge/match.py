"""`pml:match`: the learned capability that an intent means, as a service of `pml` (spec story 10.6)."""

from __future__ import annotations

from typing import Any

from pml.processors.discovery.match_answer import match_answer
from pml.schemas.calls import CallRun
from pml.schemas.matching import MatchRequest
from pml.streams.bridge.inline import Inline
from pml.streams.discovery.finder import Finder


class Match:
    """Finds it in the catalog as it is now; `threshold` is the confidence from which it runs."""

    def __init__(self, finder: Finder, inline: Inline, threshold: float) -> None:
        self._finder, self._inline, self._threshold = finder, inline, threshold

    async def __call__(self, run: CallRun) -> dict[str, Any]:
        """The answer, as structured content, for the tenant of the call.

        Raises:
            ValidationError: the arguments are no `MatchRequest`.
            WorkflowInvalid: a capability that it calls is gone, or does not fit any more.
            BrokerUnavailable: the catalog cannot be read.
        """
        request = MatchRequest.model_validate(run.arguments)
        answer = await self._finder.ask(
            run.tenant,
            lambda view: match_answer(view.library, view.index, run.tenant, request, self._threshold),
        )
        if answer.workflow is not None:
            workflow = await self._inline.workflow(run.tenant, answer.workflow)
            answer = answer.model_copy(update={"workflow": workflow})
        return answer.model_dump(mode="json")
