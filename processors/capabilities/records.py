"""From events to the records of capabilities: drafted when analysed, learned by success (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pml.processors.capabilities.conversion import repeats, workflow_of
from pml.processors.capabilities.identity import capability_name, parameterised, parameterised_workflow
from pml.processors.capabilities.intents import with_intent
from pml.schemas.analysis import ANALYSE_TOOL
from pml.schemas.canonical import canonical_json
from pml.schemas.catalog import Capability
from pml.schemas.sanitiser.markers import REDACTED, TOO_DEEP
from pml.schemas.structure import Structure, StructureParameter
from pml.schemas.workflow import Task, Workflow

ANALYSED = frozenset({"run.started", "internal.ended"})
STEPPED = "run.expanded"
ENDED = {"run.completed": True, "run.failed": False}
# Every process that reads the catalog holds all of them.
RECORD_BYTES_MAX = 65_536
# Runs whose end is awaited for what they are for; of one that is aborted nothing is heard any more.
AWAITED_MAX = 16
# A program may ask for hundreds of calls; the first ones say what belongs together.
STEPPING_MAX, STEPS_MAX = 8, 50
# Told again when so many of its runs more have ended: each of few, every tenth of many.
TOLD_SHARE = 10
_STATISTICS = ("runs", "successes", "created_at", "used_at")
SECRET = "it has a secret written down; let it be a parameter"
CUT = "a value in it is larger than the log keeps; let it be a parameter"
TOO_LARGE = f"its record would have more than {RECORD_BYTES_MAX} bytes; let its long values be parameters"


@dataclass(frozen=True, slots=True)
class KnownCapability:
    """A capability's record as it is now, and how many runs of it had ended when it was told last.

    `awaited`: runs that have not ended, each with its intent, the last begun ones; `steps`: those in the
    sandbox, each with the calls that it asked for so far.
    """

    record: Capability
    told_runs: int = 0
    awaited: tuple[tuple[str, str], ...] = ()
    steps: tuple[tuple[str, tuple[Task, ...]], ...] = ()

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


def stepped(event_type: str, data: Mapping[str, Any]) -> tuple[str, tuple[Task, ...]] | None:
    """The capability of a program that comes in parts, and the calls of one; None where it tells none.

    Raises:
        ValueError: the event does not say what its type must.
    """
    capability_id = data.get("capability_id")
    in_parts = data.get("mode") == "sandbox" or bool(data.get("grows"))
    if event_type != STEPPED or not in_parts or capability_id is None:
        return None
    asked = data["definition"].get("tasks") or ()
    named = ({name: task.get(name) for name in ("id", "tool", "depends_on")} for task in asked)
    tasks = tuple(Task.model_validate({key: item for key, item in task.items() if item}) for task in named)
    return (capability_id, tasks[:STEPS_MAX]) if tasks else None


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
        kept = record.model_dump(include={"name", "intents", *_STATISTICS})
        return replace(known, record=draft.model_copy(update=kept))
    if record.intent is None and draft.intent is not None:
        return replace(known, record=record.model_copy(update={"intent": draft.intent}))
    return known


def awaiting(known: KnownCapability, run: str | None, intent: str | None) -> KnownCapability:
    """The same, with what one more run of it is for; lessons of earlier releases name no run."""
    if run is None or intent is None:
        return known
    others = tuple(item for item in known.awaited if item[0] != run)
    return replace(known, awaited=(*others, (run, intent))[-AWAITED_MAX:])


def after_steps(known: KnownCapability, run: str, tasks: tuple[Task, ...]) -> KnownCapability:
    """What is known after a program in the sandbox asked for more calls."""
    before = dict(known.steps).get(run, ())
    others = tuple(item for item in known.steps if item[0] != run)
    return replace(known, steps=(*others, (run, (*before, *tasks)[:STEPS_MAX]))[-STEPPING_MAX:])


def after_use(known: KnownCapability, success: bool, at: str, run: str | None = None) -> KnownCapability:
    """What is known after one more run of it has ended; its first success makes it learned.

    What somebody brought the same calls for is one more of its intents, if that went well. A run that was
    found by its intent teaches none: that would prove a match by itself.
    """
    known = _ended(known, success, run)
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


def _ended(known: KnownCapability, success: bool, run: str | None) -> KnownCapability:
    known = replace(known, steps=tuple(item for item in known.steps if item[0] != run))
    intent = dict(known.awaited).get(run or "")
    if intent is None:
        return known
    record = known.record
    if success:
        intents = with_intent(record.intent, record.intents or (), intent)
        record = record.model_copy(update={"intents": intents or None})
    others = tuple(item for item in known.awaited if item[0] != run)
    return replace(known, record=record, awaited=others)


def _of_program(tenant: str, data: Mapping[str, Any]) -> Capability | None:
    answer = data.get("answer")
    if data.get("tool") != ANALYSE_TOOL or not answer:
        return None
    structure, intent = Structure.model_validate(answer["structure"]), answer.get("intent")
    draft = Capability(
        tenant=tenant,
        capability_id=answer["capability_id"],
        name=intent or _named_by_tools(structure.tools),
        source="code",
        intent=intent,
        language=structure.language,
        code=answer.get("source"),
    )
    made = _in_sandbox(structure, answer) if answer.get("mode") == "sandbox" else _as_dag(structure)
    return draft.model_copy(update=made)


def _as_dag(structure: Structure) -> dict[str, Any]:
    general = parameterised(structure)
    if repeats(structure):
        return {"structure": general, "uses": structure.tools, "parameters": general.parameters}
    workflow = workflow_of(general)
    return {
        "parameters": general.parameters,
        "tasks": workflow.tasks,
        "decisions": workflow.decisions,
        "result": workflow.result,
    }


def _in_sandbox(structure: Structure, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Its literals stay in its code; what it takes is what it names as taken."""
    return {
        "mode": "sandbox",
        "reasons": tuple(answer.get("reasons", ())),
        "uses": structure.tools,
        "calls": structure.capabilities,
        "parameters": structure.parameters,
    }


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
        **_source_of(workflow, parameters),
        intent=intent,
        workflow_type=data.get("workflow_type"),
        parameters=parameters,
        tasks=workflow.tasks,
        decisions=workflow.decisions,
        result=workflow.result,
    )


def _source_of(workflow: Workflow, parameters: Collection[StructureParameter]) -> dict[str, Any]:
    """One call of a tool is that tool, with what was given to it; whoever calls it may give other values."""
    tool = workflow.tasks[0].tool if len(workflow.tasks) == 1 else None
    if tool is None:
        return {"source": "dag"}
    defaults = {item.name: item.default for item in parameters if not item.required}
    return {"source": "tool", "tool_id": tool, "default_args": defaults}


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
        emptied |= {"structure": None, "uses": (), "calls": (), "reasons": (), "default_args": None}
        record = record.model_copy(update=emptied | {"name": record.name[:200], "intent": _short(record)})
    return record.model_copy(update={"not_learned": reason})


def _short(record: Capability) -> str | None:
    return record.intent[:2_000] if record.intent else None


def _holds(record: Capability, is_mark: Callable[[Any], bool]) -> bool:
    """Whether something stands in a value's place. What people wrote for people may say anything."""
    runs = {"parameters", "tasks", "decisions", "result", "structure"} | (
        {"code"} if record.mode == "sandbox" else set()
    )
    parts = record.model_dump(mode="json", include=runs)
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
