"""What a session remembers for prediction: its latest elements, and predicted calls that were not begun.

An element is a run that has ended, also one that failed: an agent goes on from there.
"""

from __future__ import annotations

from typing import Any

from pml.processors.workflow.copying import replace
from pml.processors.workflow.inputs import Address
from pml.processors.workflow.state import Element, Foreseen, Internal, Run, Session
from pml.schemas.prediction import HISTORY_MOST, PREDICT_TOOL, VALUES_MOST

RESULTS_MOST = 8
"""Of a capability's tasks, the latest whose results may be arguments of what follows."""


def with_past(session: Session, run: Run) -> Session:
    """The session after a run that predicts has ended, however it did."""
    element = _element(run)
    return replace(session, past=(*session.past, element)[-HISTORY_MOST:]) if element else session


def past_addresses(session: Session) -> set[Address]:
    """Where the values of the latest elements rest."""
    latest = session.past[-VALUES_MOST:]
    return {address for item in latest for address in (item.payload, *dict(item.results).values())}


def ending_addresses(run: Run) -> set[Address]:
    """Where the values rest that a run which predicts would add, did it end now."""
    latest = (run.task(name).result for name in run.path[-RESULTS_MOST:])
    return {run.payload, *(address for address in latest if address)}


def told(session: Session) -> dict[str, Any]:
    """What an event keeps of a question: names, and where values rest."""
    latest = session.past[-VALUES_MOST:]
    return {
        "history": [item.name for item in session.past],
        "past": [[item.name, list(item.payload), _placed(item)] for item in latest],
        "runs": len(session.runs),
    }


def addresses_in(item: Internal) -> set[Address]:
    """Where the values rest that a question is about; nothing of another internal call."""
    if item.tool != PREDICT_TOOL:
        return set()
    return {address for each in elements_in(item) for address in (each.payload, *dict(each.results).values())}


def with_foreseen(session: Session, item: Foreseen) -> Session:
    """The session with one more predicted call that was not begun."""
    key = foreseen_key(item.run_id, item.task_id)
    return replace(session, foreseen={**session.foreseen, key: item})


def foreseen_key(run_id: str, task_id: str) -> str:
    """What a predicted call that was not begun is found by."""
    return f"{run_id}/{task_id}"


def _element(run: Run) -> Element | None:
    """None where nothing can be learned of a run: it had no task, or is of no capability."""
    assert run.graph is not None
    tools = run.graph.tools()
    name = next(iter(tools.values())) if len(tools) == 1 else run.capability_id
    if not tools or not name:
        return None
    completed = [(task_id, run.task(task_id).result) for task_id in run.path if task_id in tools]
    results = tuple((task_id, result) for task_id, result in completed if result is not None)
    return Element(name, run.payload, results[-RESULTS_MOST:])


def elements_in(item: Internal) -> list[Element]:
    """The latest elements that a question is about."""
    return [
        Element(name, _address(payload), tuple((task_id, _address(place)) for task_id, place in results))
        for name, payload, results in item.arguments["past"]
    ]


def _address(row: Any) -> Address:
    topic, partition, offset = row
    return topic, partition, offset


def _placed(element: Element) -> list[Any]:
    return [[task_id, list(address)] for task_id, address in element.results]
