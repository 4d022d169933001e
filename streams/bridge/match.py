"""`pml:match`: the learned capability that an intent means, as a service of `pml` (spec story 10.6)."""

from __future__ import annotations

from typing import Any

from pml.processors.discovery.match_answer import match_answer
from pml.schemas.calls import CallRun
from pml.schemas.matching import MatchRequest
from pml.streams.discovery.finder import Finder


class Match:
    """Finds it in the catalog as it is now; `threshold` is the confidence from which it runs."""

    def __init__(self, finder: Finder, threshold: float) -> None:
        self._finder, self._threshold = finder, threshold

    async def __call__(self, run: CallRun) -> dict[str, Any]:
        """The answer, as structured content, for the tenant of the call.

        Raises:
            ValidationError: the arguments are no `MatchRequest`.
            BrokerUnavailable: the catalog cannot be read.
        """
        request = MatchRequest.model_validate(run.arguments)
        answer = await self._finder.ask(
            run.tenant,
            lambda view: match_answer(view.library, view.index, run.tenant, request, self._threshold),
        )
        return answer.model_dump(mode="json")
