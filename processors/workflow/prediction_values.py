"""What `pml:predict` is asked: names of a session's elements, and the values of the latest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pml.processors.workflow.arguments import Resolved, Values, resolve
from pml.processors.workflow.draft import full_arguments, full_context
from pml.processors.workflow.elements import elements_in
from pml.processors.workflow.inputs import Payloads, payload_value
from pml.processors.workflow.state import Element, Internal
from pml.schemas.canonical import NotJson, canonical_json, is_too_deep
from pml.schemas.commands import RunStart
from pml.schemas.prediction import REQUEST_CHARACTERS_MAX, PastElement, PredictRequest

VALUE_BYTES_MAX = 65_536
"""An argument that nobody would look for in more than that; a record holds at most 8 MiB of them."""


def prediction_asked(item: Internal, payloads: Payloads) -> PredictRequest:
    """The question with its values; one that is gone or too large is left out."""
    elements = elements_in(item)
    start = payloads.get(elements[-1].payload) if elements else None
    past = [_with_values(each, payloads) for each in elements]
    if isinstance(start, RunStart) and ":" in elements[-1].name:
        past[-1] = past[-1].model_copy(update={"context": _context(start)})
    return PredictRequest(
        history=tuple(item.arguments["history"]),
        request=_request(start)[:REQUEST_CHARACTERS_MAX] if isinstance(start, RunStart) else "",
        past=tuple(past),
    )


def _context(start: RunStart) -> dict[str, Any] | None:
    """What is known beside the latest call; of a capability it is its parameters."""
    context = full_context(start)
    return context if context and _fits(context) else None


def _request(start: RunStart) -> str:
    return start.request or start.intent or (start.workflow.intent if start.workflow else None) or ""


def _with_values(element: Element, payloads: Payloads) -> PastElement:
    found = {name: payload_value(payloads[at]) for name, at in element.results if at in payloads}
    whole = len(found) == len(element.results) and bool(found)
    one_call = ":" in element.name
    result: Any = next(iter(found.values())) if whole and one_call else found
    start = payloads.get(element.payload)
    arguments = _arguments(start, one_call) if isinstance(start, RunStart) else None
    return PastElement(
        name=element.name,
        arguments=arguments if arguments is not None and _fits(arguments) else None,
        result=result if found and (whole or not one_call) and _fits(result) else None,
    )


def _arguments(start: RunStart, one_call: bool) -> Mapping[str, Any] | None:
    """Those of the one call, or the parameters of a capability; None where a program named them."""
    context = full_context(start)
    if not one_call:
        return context
    tasks = start.workflow.tasks if start.workflow else ()
    if len(tasks) != 1:
        return None
    resolved = resolve(full_arguments(start, tasks[0].id), Values(context, {}), frozenset())
    return resolved.arguments if isinstance(resolved, Resolved) else None


def _fits(value: Any) -> bool:
    """Whether a question may carry it. What is no JSON, such as a number that was computed to be infinite, is
    the business of the call that has it."""
    try:
        return len(canonical_json(value)) <= VALUE_BYTES_MAX and not is_too_deep(value)
    except NotJson:
        return False
