"""A structure as a person looks at it: an outline in text, or a flowchart in Mermaid's language."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from pml.schemas.structure import (
    CapabilityNode,
    DecisionNode,
    ForkNode,
    JoinNode,
    LoopNode,
    Structure,
    StructureEdge,
    StructureNode,
    TaskNode,
)
from pml.schemas.workflow import Argument, Expression, ListOf, LiteralValue, ObjectOf, Reference

LITERAL_CHARACTERS_MAX = 40


@dataclass
class _Branch:
    """A line of the outline and what lies under it."""

    text: str
    inside: list[_Branch] = field(default_factory=list)
    named: dict[str, _Branch] = field(default_factory=dict)

    def under(self, name: str) -> _Branch:
        """What lies under one outcome, or in one of several that run at the same time."""
        if name not in self.named:
            self.named[name] = _Branch(name)
            self.inside.append(self.named[name])
        return self.named[name]


def outline(structure: Structure) -> str:
    """Each node on a line, under the branch, loop or fork that it lies in."""
    root = _Branch("")
    drawn: dict[str, _Branch] = {}
    forks = _forks(structure)
    for node in structure.nodes:
        if isinstance(node, JoinNode):
            continue
        place = root
        for holder, part in _holders(node, structure, forks):
            place = drawn[holder].under(part) if part else drawn[holder]
        drawn[node.id] = _Branch(f"{node.id}  {described(node)}")
        place.inside.append(drawn[node.id])
    return "\n".join(_lines(root, ""))


def mermaid(structure: Structure) -> str:
    """A flowchart: data that flow are dotted lines."""
    lines = ["flowchart TD"]
    lines += [f"    {node.id}{_shape(node)}" for node in structure.nodes]
    lines += [f"    {edge.source} {_arrow(edge)} {edge.target}" for edge in structure.edges]
    return "\n".join(lines)


def described(node: StructureNode) -> str:
    """What a node does, in a few words."""
    match node:
        case TaskNode(tool=name, arguments=arguments) | CapabilityNode(capability=name, arguments=arguments):
            given = ", ".join(f"{key}={written(value)}" for key, value in arguments.items())
            return f"{name}({given})"
        case DecisionNode(condition=condition):
            return f"{_one_line(condition)} ?"
        case LoopNode(items=items, parallel=parallel):
            together = ", all at the same time" if parallel else ""
            return f"for each of {written(items)}{together}"
        case ForkNode():
            return "at the same time"
    return "all have ended"


def written(value: Argument) -> str:
    """An argument as one would write it."""
    match value:
        case LiteralValue(value=literal):
            text = json.dumps(literal, ensure_ascii=False)
            return text if len(text) <= LITERAL_CHARACTERS_MAX else text[: LITERAL_CHARACTERS_MAX - 1] + "…"
        case Reference(expression=expression):
            return expression
        case Expression(expression=expression, code=code):
            return _one_line(expression or code)
        case ObjectOf(fields=fields):
            inside = ", ".join(f"{key}: {written(item)}" for key, item in fields.items())
            return f"{{{inside}}}"
        case ListOf(items=items):
            return f"[{', '.join(map(written, items))}]"
    return f"args.{value.parameter_name}"


def _holders(
    node: StructureNode, structure: Structure, forks: dict[str, tuple[str, str]]
) -> list[tuple[str, str]]:
    """What a node lies in, from the outside in: a decision's outcome, a loop, a fork's branch."""
    order = {each.id: position for position, each in enumerate(structure.nodes)}
    found = [(item.node, item.outcome) for item in node.conditions]
    if node.loop is not None:
        found.append((node.loop, ""))
    inner: str | None = node.id
    while inner in forks:
        fork, branch = forks[inner]
        found.append((fork, branch))
        inner = fork
    return sorted(found, key=lambda item: order[item[0]])


def _forks(structure: Structure) -> dict[str, tuple[str, str]]:
    """The innermost fork that each node lies in, and the name of its branch there."""
    begins = {
        edge.target: edge.source
        for edge in structure.edges
        if edge.type == "sequence" and edge.source.startswith("f")
    }
    open_forks: list[tuple[str, int]] = []
    found: dict[str, tuple[str, str]] = {}
    for node in structure.nodes:
        if isinstance(node, JoinNode) and open_forks:
            open_forks.pop()
            continue
        if open_forks:
            fork, branch = open_forks[-1]
            if begins.get(node.id) == fork:
                branch += 1
                open_forks[-1] = (fork, branch)
            found[node.id] = (fork, str(branch))
        if isinstance(node, ForkNode):
            open_forks.append((node.id, 0))
    return found


def _lines(branch: _Branch, indent: str) -> Iterator[str]:
    for position, each in enumerate(branch.inside):
        top = not branch.text
        last = position == len(branch.inside) - 1
        yield indent + ("" if top else "└─ " if last else "├─ ") + each.text
        yield from _lines(each, indent + ("" if top else "   " if last else "│  "))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shape(node: StructureNode) -> str:
    text = _quoted(f"{node.id} {described(node)}")
    match node:
        case DecisionNode():
            return f"{{{text}}}"
        case ForkNode() | JoinNode():
            return f"(({text}))"
        case LoopNode() | CapabilityNode():
            return f"[[{text}]]"
    return f"[{text}]"


def _quoted(text: str) -> str:
    """Mermaid has entities for what would end a label."""
    return (
        '"' + text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;") + '"'
    )


def _arrow(edge: StructureEdge) -> str:
    match edge.type:
        case "conditional":
            return f"-->|{_quoted(edge.outcome or '')}|"
        case "provides":
            return f"-.->|{_quoted(f'provides, {edge.coverage}')}|"
        case "contains":
            return "-->|each|"
    return "-->"
