"""From events to the records of capabilities: drafted when analysed, learned by success (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pml.processors.capabilities.conversion import obstacles, workflow_of
from pml.processors.capabilities.identity import capability_name, parameterised, parameterised_workflow
from pml.schemas.analysis import ANALYSE_TOOL
from pml.schemas.canonical import canonical_json
from pml.schemas.catalog import Capability
from pml.schemas.sanitiser.markers import REDACTED, TOO_DEEP
from pml.schemas.structure import Structure
from pml.schemas.workflow import Workflow

ANALYSED = frozenset({"run.started", "internal.ended"})
ENDED = {"run.completed": True, "run.failed": False}
# Every process that reads the catalog holds all of them.
RECORD_BYTES_MAX = 65_536
# Told again when so many of its runs more have ended: each of few, every tenth of many.
TOLD_SHARE = 10
SECRET = "it has a secret written down; let it be a parameter"
CUT = "a value in it is larger than the log keeps; let it be a parameter"
TOO_LARGE = f"its record would have more than {RECORD_BYTES_MAX} bytes; let its long values be parameters"


@dataclass(frozen=True, slots=True)
class KnownCapability:
    """A capability's record as it is now, and how many runs of it had ended when it was told last."""

    record: Capability
    told_runs: int = 0

    @property
    def stale(self) -> bool:
        """Whether enough has happened to tell it again."""
        return self.record.runs - self.told_runs >= max(1, self.told_runs // TOLD_SHARE)


def drafted(event_type: str, tenant: str, data: Mapping[str, Any], at: str) -> Capability | None:
    """The capability that an event tells for the first time, or once more; None where it tells none.

    Args:
        event_type: one of `ANALYSED`.
        data: what the event says, sanitised as the log has it.
        at: the event's time.

    Returns:
        Its name is only what it wants to be called: `first_draft` makes it one that nobody has.
    """
    make = _of_program if event_type == "internal.ended" else _of_workflow
    found = make(tenant, data)
    return None if found is None else _bounded(found.model_copy(update={"created_at": at, "used_at": at}))


def used(event_type: str, data: Mapping[str, Any]) -> tuple[str, bool] | None:
    """The capability of a run that has ended, and whether it went well; None where it does not count."""
    success, capability_id = ENDED.get(event_type), data.get("capability_id")
    return None if success is None or capability_id is None else (capability_id, success)


def first_draft(draft: Capability, taken: Collection[str]) -> KnownCapability:
    """What is known of a capability that was never seen, under a name that nobody of its tenant has."""
    return KnownCapability(draft.model_copy(update={"name": capability_name(draft.name, taken)}))


def drafted_again(known: KnownCapability, draft: Capability) -> KnownCapability:
    """What is known after the same structure was analysed once more.

    The first one counts, with its name, its defaults and its statistics, but for what it had not: an intent,
    or values that may be kept.
    """
    record = known.record
    if record.not_learned is not None and draft.not_learned is None:
        kept = record.model_dump(include={"name", "runs", "successes", "created_at", "used_at"})
        return replace(known, record=draft.model_copy(update=kept))
    if record.intent is None and draft.intent is not None:
        return replace(known, record=record.model_copy(update={"intent": draft.intent}))
    return known


def after_use(known: KnownCapability, success: bool, at: str) -> KnownCapability:
    """What is known after one more run of it has ended; its first success makes it learned."""
    record = known.record
    learned = record.status == "learned" or (success and record.not_learned is None)
    changed = {
        "runs": record.runs + 1,
        "successes": record.successes + success,
        "used_at": max(record.used_at, at),
        "status": "learned" if learned else "draft",
    }
    return replace(known, record=record.model_copy(update=changed))


def told(known: KnownCapability) -> KnownCapability:
    """The same, as it is when its record was published."""
    return replace(known, told_runs=known.record.runs)


def _of_program(tenant: str, data: Mapping[str, Any]) -> Capability | None:
    answer = data.get("answer")
    if data.get("tool") != ANALYSE_TOOL or not answer:
        return None
    structure = Structure.model_validate(answer["structure"])
    if obstacles(structure):
        return None
    general = parameterised(structure)
    workflow, intent = workflow_of(general), answer.get("intent")
    return Capability(
        tenant=tenant,
        capability_id=answer["capability_id"],
        name=intent or _named_by_tools(structure.tools),
        source="code",
        intent=intent,
        language=structure.language,
        code=answer.get("source"),
        parameters=general.parameters,
        tasks=workflow.tasks,
        decisions=workflow.decisions,
        result=workflow.result,
    )


def _of_workflow(tenant: str, data: Mapping[str, Any]) -> Capability | None:
    capability_id = data.get("capability_id")
    if capability_id is None:
        return None
    written = Workflow.model_validate(data.get("written") or data["definition"])
    workflow, parameters = parameterised_workflow(written, _defaults(data))
    intent = data.get("intent")
    tools = tuple(dict.fromkeys(task.tool for task in workflow.tasks if task.tool is not None))
    return Capability(
        tenant=tenant,
        capability_id=capability_id,
        name=data.get("name") or intent or _named_by_tools(tools),
        source="dag" if len(workflow.tasks) > 1 else "tool",
        intent=intent,
        workflow_type=data.get("workflow_type"),
        parameters=parameters,
        tasks=workflow.tasks,
        decisions=workflow.decisions,
        result=workflow.result,
    )


def _defaults(data: Mapping[str, Any]) -> dict[str, Any]:
    """Values that the workflow itself gives to its parameters."""
    return {name: data["context"][name] for name in data.get("defaults") or ()}


def _named_by_tools(tools: Collection[str]) -> str:
    return " ".join(tool.partition(":")[2] for tool in tools)


def _bounded(record: Capability) -> Capability:
    """The record, or where it cannot run again as it is, one that says why."""
    reason = next((why for mark, why in _MARKS if _holds(record, mark)), None)
    if len(canonical_json(record.model_dump(mode="json"))) > RECORD_BYTES_MAX:
        reason = TOO_LARGE
        emptied = {"code": None, "parameters": (), "tasks": (), "decisions": (), "result": None}
        record = record.model_copy(update=emptied | {"name": record.name[:200], "intent": _short(record)})
    return record.model_copy(update={"not_learned": reason})


def _short(record: Capability) -> str | None:
    return record.intent[:2_000] if record.intent else None


def _holds(record: Capability, is_mark: Callable[[Any], bool]) -> bool:
    """Whether something stands in a value's place. What people wrote for people may say anything."""
    parts = record.model_dump(mode="json", include={"parameters", "tasks", "decisions", "result"})
    return any(is_mark(value) for value in _values(parts))


def _values(value: Any) -> Iterator[Any]:
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        yield from _values(item)


_MARKS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda value: isinstance(value, str) and REDACTED in value, SECRET),
    (lambda value: isinstance(value, dict) and "_truncated" in value, CUT),
    (lambda value: value == TOO_DEEP, CUT),
)
