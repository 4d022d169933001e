"""Capabilities that are no DAG, for the programs that call them: they run inside of these (DESIGN §6).

A program in the sandbox calls a capability that is a DAG as it calls tools: its tasks come to the run. One
that has to run in the sandbox itself becomes a function of the program, so it has to be of its language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pml.processors.capabilities.identity import program_capability_id
from pml.processors.capabilities.inlining import DEPTH_MAX, Find
from pml.processors.capabilities.taken import taken_by
from pml.schemas.analysis import AnalyseAnswer
from pml.schemas.catalog import Capability
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.stepping import Linked, SandboxProgram
from pml.schemas.structure import CapabilityNode, Language

LINKED_MAX = 50
"""As many as a program may be linked with; each has up to 64 KiB."""


def with_linked(answer: AnalyseAnswer, source: str, find: Find) -> AnalyseAnswer:
    """The answer about a program, with all that it calls that has to run in the sandbox.

    A program that would be a DAG by itself runs there too where it calls such a capability.

    Args:
        source: the program.

    Raises:
        WorkflowInvalid: as `linked_with` says.
    """
    own = program_capability_id(source, answer.language)
    found = linked_with(answer.structure.capabilities, answer.language, find, (own,))
    for node in answer.structure.nodes:
        if isinstance(node, CapabilityNode):
            _check_given(node, find(node.capability))
    if answer.mode == "dag" and not found:
        return answer
    reasons = answer.reasons or tuple(
        f"it calls {each.names[0]}, which runs in the sandbox" for each in found
    )
    return answer.model_copy(
        update={
            "mode": "sandbox",
            "reasons": reasons,
            "capability_id": own,
            "workflow": None,
            "program": SandboxProgram(
                language=answer.language,
                source=source,
                reasons=reasons,
                tools=_tools(answer.structure.tools, answer.structure.capabilities, find),
                linked=found,
            ),
        }
    )


def program_of(record: Capability, find: Find) -> SandboxProgram:
    """What runs a capability that is no DAG.

    Raises:
        WorkflowInvalid: as `linked_with` says.
    """
    assert record.language is not None
    return SandboxProgram(
        language=record.language,
        source=record.code or "",
        reasons=record.reasons,
        structure=record.structure,
        tools=_tools(record.uses, record.calls, find),
        linked=linked_with(record.calls, record.language, find, (record.capability_id,)),
    )


def linked_with(
    names: Iterable[str], language: Language, find: Find, above: tuple[str, ...] = ()
) -> tuple[Linked, ...]:
    """The capabilities of these names that are no DAG, and those that these call.

    Raises:
        WorkflowInvalid: one is unknown, is of another language, calls itself, or lies too deep.
    """
    found: dict[str, Linked] = {}
    _gather(names, language, find, above, found)
    if len(found) > LINKED_MAX:
        raise WorkflowInvalid(
            "TOO_MANY_TASKS", f"the program calls more than {LINKED_MAX} programs that are capabilities"
        )
    return tuple(found.values())


def _tools(own: Iterable[str], called: Iterable[str], find: Find) -> tuple[str, ...]:
    """All that a program may call, by what is known of it: its own tools and those of its capabilities."""
    return tuple(dict.fromkeys((*own, *_called(called, find, DEPTH_MAX))))


def _called(names: Iterable[str], find: Find, depth: int) -> Iterator[str]:
    for record in map(find, names) if depth else ():
        if record is not None:
            yield from record.tools
            yield from _called(record.capabilities, find, depth - 1)


def _gather(
    names: Iterable[str], language: Language, find: Find, above: tuple[str, ...], found: dict[str, Linked]
) -> None:
    for name in names:
        record = _known(name, find, above)
        if record.tasks:
            continue
        _check_language(name, record, language)
        known = found.get(record.capability_id)
        if known is not None:
            called = tuple(dict.fromkeys((*known.names, name)))
            found[record.capability_id] = known.model_copy(update={"names": called})
            continue
        _gather(record.calls, language, find, (*above, record.capability_id), found)
        found[record.capability_id] = Linked(
            capability_id=record.capability_id,
            names=(name,),
            source=record.code or "",
            parameters=taken_by(record.code or "", language, ()),
        )


def _known(name: str, find: Find, above: tuple[str, ...]) -> Capability:
    record = find(name)
    if record is None:
        raise WorkflowInvalid("UNKNOWN_CAPABILITY", f"there is no {name}; see: pml capability list")
    if record.not_learned is not None:
        raise WorkflowInvalid("UNKNOWN_CAPABILITY", f"{name} cannot be called: {record.not_learned}")
    if record.capability_id in above:
        raise WorkflowInvalid("CAPABILITY_CYCLE", f"{name} calls itself")
    if len(above) >= DEPTH_MAX:
        message = f"capabilities lie deeper in each other than {DEPTH_MAX}"
        raise WorkflowInvalid("CAPABILITY_TOO_DEEP", message)
    return record


def _check_given(node: CapabilityNode, record: Capability | None) -> None:
    """The literals of a program that runs as it is written stay what they are."""
    if record is None or record.structure is None:
        return
    taken = {item.name for item in taken_by(record.code or "", record.structure.language, ())}
    literals = {item.name for item in record.parameters} - taken
    surplus = sorted(literals & set(node.arguments))
    if surplus:
        told = (
            f"{node.capability} repeats calls and runs as it is written: {', '.join(surplus)} cannot be given"
        )
        raise WorkflowInvalid("CAPABILITY_ARGUMENT", told, node=node.id)


def _check_language(name: str, record: Capability, language: Language) -> None:
    if record.language != language:
        told = f"{name} runs in the sandbox; only a program that is written in {record.language} can call it"
        raise WorkflowInvalid("CAPABILITY_ARGUMENT", told)
