"""What is answered to an intent: the capability that it means, or why none and what there is instead."""

from __future__ import annotations

from typing import Any

from pml.processors.capabilities.linking import program_of
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.library import Library, workflow_of
from pml.processors.discovery.matching import Candidate, matches
from pml.schemas.catalog import Capability
from pml.schemas.identifiers import split_tool
from pml.schemas.matching import MatchAnswer, MatchRequest, Suggestion

SUGGESTIONS = 5


def match_answer(
    library: Library, index: DiscoveryIndex, tenant: str, request: MatchRequest, threshold: float
) -> MatchAnswer:
    """The answer to a request of this tenant; nothing of another one can be in it.

    Raises:
        WorkflowInvalid: the capability calls one that is gone, or does not fit any more.
    """
    best = next(iter(matches(index, _candidates(library, tenant), request.intent)), None)
    if best is None:
        told = (
            "no capability of this tenant can be called: none was learned (a run is, a second after its "
            "first success), or its servers are away"
        )
        return MatchAnswer(
            threshold=threshold, reason=told, suggestions=_near(library, index, tenant, request)
        )
    capability, name = library.capability(tenant, best.id), library.name_of(tenant, best.id)
    if best.confidence < threshold:
        told = (
            f"the nearest learned capability is {name}, with confidence {best.confidence:.2f}; "
            f"capabilities.match_threshold is {threshold:g}"
        )
        return MatchAnswer(
            confidence=best.confidence,
            threshold=threshold,
            reason=told,
            suggestions=_near(library, index, tenant, request),
        )
    missing = tuple(
        taken.name for taken in capability.parameters if taken.required and taken.name not in request.context
    )
    return MatchAnswer(
        confidence=best.confidence,
        threshold=threshold,
        capability_id=best.id,
        name=name,
        **_runs(library, tenant, capability, name),
        parameters=capability.parameters,
        missing=missing,
        reason=f"{name} takes {', '.join(missing)}, which the context does not give" if missing else None,
        suggestions=_near(library, index, tenant, request) if missing else (),
    )


def _runs(library: Library, tenant: str, capability: Capability, name: str) -> dict[str, Any]:
    if not capability.tasks:
        return {"program": program_of(capability, lambda called: library.find(tenant, called))}
    return {"workflow": workflow_of(capability, name)}


def _candidates(library: Library, tenant: str) -> list[Candidate]:
    return [
        Candidate(name, capability.asked_for, library.tools_of(tenant, name))
        for name, capability in library.offered(tenant).items()
        if capability.asked_for
    ]


def _near(
    library: Library, index: DiscoveryIndex, tenant: str, request: MatchRequest
) -> tuple[Suggestion, ...]:
    found = index.search(request.intent, limit=SUGGESTIONS).items
    return tuple(
        Suggestion(
            type=item.document.kind,
            id=item.document.id,
            name=split_tool(item.document.id)[1]
            if item.document.kind == "tool"
            else library.name_of(tenant, item.document.id),
            score=item.score,
        )
        for item in found
    )
