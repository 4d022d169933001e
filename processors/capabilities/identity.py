"""What makes two programs the same capability, and what a capability is called (DESIGN §6)."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from pml.processors.capabilities.bare_source import bare_source
from pml.schemas.canonical import canonical_json
from pml.schemas.structure import (
    CapabilityNode,
    Language,
    LoopNode,
    Structure,
    StructureNode,
    StructureParameter,
    TaskNode,
)
from pml.schemas.workflow import (
    Argument,
    Expression,
    ListOf,
    LiteralValue,
    ObjectOf,
    Parameter,
    Workflow,
    expressions_in,
    leaves,
)

NAME_CHARACTERS_MAX = 60
# A number may follow; a parameter's name has at most 200.
PARAMETER_CHARACTERS_MAX = 190
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_ARGS = re.compile(r"\bargs\.([A-Za-z_]\w*)")


def parameterised(structure: Structure) -> Structure:
    """The same structure, in which every literal argument is a parameter with that default.

    A parameter is named after its argument, with a number where the name is taken. The same literal under
    the same name is one parameter: whoever changes it means all of them.
    """
    names = _Names(structure.parameters)
    nodes = tuple(_with_arguments(node, names.of_literal) for node in structure.nodes)
    return structure.model_copy(update={"nodes": nodes, "parameters": tuple(names.known.values())})


def parameterised_workflow(
    workflow: Workflow, defaults: Mapping[str, Any]
) -> tuple[Workflow, tuple[StructureParameter, ...]]:
    """The same workflow, in which every literal argument is a parameter, and all that it takes.

    Args:
        defaults: values of its own parameters where nobody gives others; the rest is required.
    """
    own = dict.fromkeys(_parameters(workflow))
    names = _Names([_own_parameter(name, defaults) for name in own])
    tasks = tuple(
        task.model_copy(update={"arguments": _general(task.arguments, names.of_literal)})
        for task in workflow.tasks
    )
    return workflow.model_copy(update={"tasks": tasks}), tuple(names.known.values())


def workflow_capability_id(workflow: Workflow) -> str:
    """As `capability_id`, of a DAG that somebody wrote: its ids of tasks are part of what it is."""
    numbered = _numbering()
    general = parameterised_workflow(workflow, {})[0]
    return _hashed(
        {
            "tasks": [
                {
                    "id": task.id,
                    "calls": task.tool or task.capability,
                    "arguments": _told_arguments(task.arguments, numbered),
                    "after": sorted(task.depends_on),
                    "condition": [[condition.node, condition.outcome] for condition in task.condition],
                    "safe_to_fail": task.safe_to_fail,
                }
                for task in general.tasks
            ],
            "decisions": [
                [item.id, _told_expression(item.expression, numbered)] for item in general.decisions
            ],
            "result": None if general.result is None else _told_argument(general.result, numbered),
        }
    )


def capability_id(structure: Structure) -> str:
    """`cap_` and 12 digits that depend on what is done, not on names of variables or on literals.

    Programs with the same calls, order, conditions and flow of data have the same one, in either language.
    """
    numbered = _numbering()
    general = parameterised(structure)
    told = {
        "nodes": [_told(node, numbered) for node in general.nodes],
        "edges": sorted(
            [edge.source, edge.target, edge.type, edge.outcome or ""]
            for edge in general.edges
            if edge.type != "provides"
        ),
        "result": None if general.result is None else _told_argument(general.result, numbered),
    }
    return _hashed(told)


def program_capability_id(source: str, language: Language) -> str:
    """As `capability_id`, of a program that is no DAG: its text is what it is, but for its comments."""
    return _hashed({"language": language, "source": bare_source(source, language)})


def capability_name(intent: str, taken: Collection[str]) -> str:
    """A name out of an intent, which nobody of the tenant has yet."""
    plain = unicodedata.normalize("NFKD", intent).encode("ascii", "ignore").decode().lower()
    slug = _SEPARATORS.sub("-", plain).strip("-")[:NAME_CHARACTERS_MAX].strip("-") or "capability"
    numbered = (f"{slug}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (slug, *numbered) if name not in taken)


def _hashed(told: Any) -> str:
    return f"cap_{hashlib.blake2b(canonical_json(told), digest_size=6).hexdigest()}"


def _numbering() -> Callable[[str], str]:
    """Names of parameters in the order in which they are told."""
    numbers: dict[str, int] = {}
    return lambda name: f"p{numbers.setdefault(name, len(numbers) + 1)}"


def _parameters(workflow: Workflow) -> Iterator[str]:
    """What a workflow takes from outside, in the order in which it is written."""
    written = [argument for task in workflow.tasks for argument in task.arguments.values()]
    written += [] if workflow.result is None else [workflow.result]
    for argument in written:
        yield from (leaf.parameter_name for leaf in leaves(argument) if isinstance(leaf, Parameter))
    expressions = [item.text for argument in written for item in expressions_in(argument)]
    for text in (*expressions, *(decision.expression for decision in workflow.decisions)):
        yield from _ARGS.findall(text)


def _own_parameter(name: str, defaults: Mapping[str, Any]) -> StructureParameter:
    return StructureParameter(name=name, required=name not in defaults, default=defaults.get(name))


class _Names:
    """The parameters so far, and which literal each stands for."""

    def __init__(self, parameters: Collection[StructureParameter]) -> None:
        self.known = {item.name: item for item in parameters}
        self._literals: dict[tuple[str, bytes], str] = {}

    def of_literal(self, name: str, literal: LiteralValue) -> Parameter:
        """The parameter that stands for a literal of this name."""
        key = (name, canonical_json(literal.value))
        if key not in self._literals:
            self._literals[key] = self._free(name)
            self.known[self._literals[key]] = StructureParameter(
                name=self._literals[key], required=False, default=literal.value
            )
        return Parameter(parameter_name=self._literals[key])

    def _free(self, name: str) -> str:
        """A field of an argument may have any name; that of a parameter is bounded and never empty."""
        base = name[:PARAMETER_CHARACTERS_MAX] or "value"
        numbered = (f"{base}_{number}" for number in range(2, len(self.known) + 3))
        return next(each for each in (base, *numbered) if each not in self.known)


def _with_arguments(
    node: StructureNode, of_literal: Callable[[str, LiteralValue], Parameter]
) -> StructureNode:
    if not isinstance(node, (TaskNode, CapabilityNode)):
        return node

    return node.model_copy(update={"arguments": _general(node.arguments, of_literal)})


def _general(
    arguments: Mapping[str, Argument], of_literal: Callable[[str, LiteralValue], Parameter]
) -> dict[str, Argument]:
    """Arguments with a parameter in place of each literal."""

    def general(name: str, value: Argument) -> Argument:
        match value:
            case LiteralValue():
                return of_literal(name, value)
            case ObjectOf(fields=fields):
                return ObjectOf(fields={key: general(key, item) for key, item in fields.items()})
            case ListOf(items=items):
                return ListOf(items=tuple(general(name, item) for item in items))
        return value

    return {name: general(name, value) for name, value in arguments.items()}


def _told(node: StructureNode, numbered: Callable[[str], str]) -> dict[str, Any]:
    """A node without what its author called things, and without where it stood."""
    told = node.model_dump(mode="json", exclude={"line", "arguments", "condition", "names", "items", "each"})
    match node:
        case TaskNode(arguments=arguments) | CapabilityNode(arguments=arguments):
            told["arguments"] = _told_arguments(arguments, numbered)
        case LoopNode(items=items, each=each):
            told["items"] = _told_argument(items, numbered)
            told["each"] = None if each is None else _told_argument(each, numbered)
    if node.type == "decision":
        told["expression"] = _told_expression(node.expression or node.condition, numbered)
    return told


def _told_arguments(arguments: Mapping[str, Argument], numbered: Callable[[str], str]) -> dict[str, Any]:
    return {name: _told_argument(value, numbered) for name, value in sorted(arguments.items())}


def _told_argument(value: Argument, numbered: Callable[[str], str]) -> Any:
    match value:
        case Parameter(parameter_name=name):
            return {"parameter": numbered(name)}
        case Expression(expression=expression, code=code, names=names):
            told = {name: _told_argument(item, numbered) for name, item in sorted(names.items())}
            return {"expression": _told_expression(expression or code, numbered)} | (
                {} if expression else {"names": told}
            )
        case ObjectOf(fields=fields):
            return {"fields": {name: _told_argument(item, numbered) for name, item in sorted(fields.items())}}
        case ListOf(items=items):
            return {"items": [_told_argument(item, numbered) for item in items]}
    return value.model_dump(mode="json")


def _told_expression(text: str, numbered: Callable[[str], str]) -> str:
    return _ARGS.sub(lambda found: f"args.{numbered(found.group(1))}", text)
