"""Sessions of an agent that looks things up in the demo's product: three workflows each, drawn by a seed.

All begin alike. What comes next depends on what the user wants and on what was done before; arguments are
those of earlier calls, found in their results, or always the same. Now and then a session ends with something
that nobody could know.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pml.schemas.workflow import Workflow

STEPS = 3
SURPRISES = 0.05
RESOURCES = (
    *("berths", "bookings", "cargo", "carriers", "cranes", "customs", "depots", "drivers", "gates"),
    *("holds", "invoices", "manifests", "moves", "pilots", "quays", "tariffs", "trucks", "yards"),
)
GUIDES = ("01-start", "02-concepts", "03-configuration", "05-security", "06-upgrading")

Call = tuple[str, dict[str, Any]]
Kind = Callable[[random.Random], tuple[str, list[list[Call]]]]


@dataclass(frozen=True, slots=True)
class DemoSession:
    """What the user wants, in words, and the workflows that follow one another."""

    kind: str
    request: str
    steps: tuple[Workflow, ...]


def draw_sessions(count: int, seed: int) -> list[DemoSession]:
    """So many sessions; the same seed draws the same."""
    drawn = random.Random(seed)
    return [_session(drawn) for _ in range(count)]


def _session(drawn: random.Random) -> DemoSession:
    kind = drawn.choice(tuple(_KINDS))
    request, steps = _KINDS[kind](drawn)
    if drawn.random() < SURPRISES:
        steps[-1] = [("files:read_file", {"path": f"docs/guide/{drawn.choice(GUIDES)}.md"})]
    return DemoSession(kind, request, tuple(_workflow(request, calls) for calls in steps))


def _workflow(request: str, calls: Sequence[Call]) -> Workflow:
    tasks = [
        {"id": f"n{number}", "tool": tool, "arguments": arguments}
        for number, (tool, arguments) in enumerate(calls, 1)
    ]
    return Workflow.model_validate({"intent": request, "tasks": tasks})


def _deprecation(drawn: random.Random) -> tuple[str, list[list[Call]]]:
    """The first page that was listed, then all of them."""
    resource, folder, listed = _listed(drawn)
    return f"Which operations of {resource} are deprecated?", [
        listed,
        [("files:read_file", {"path": f"{folder}/archive.md"})],
        [("files:search", {"path": folder, "text": "deprecated"})],
    ]


def _operation(drawn: random.Random) -> tuple[str, list[list[Call]]]:
    """The page that says how to make one and the guide to calling safely, at once; then what is set."""
    resource, folder, listed = _listed(drawn)
    return f"How do I create {resource} by the API?", [
        listed,
        [
            ("files:read_file", {"path": f"{folder}/create.md"}),
            ("files:read_file", {"path": "docs/guide/05-security.md"}),
        ],
        [("files:read_file", {"path": "config/service.json"})],
    ]


def _owner(drawn: random.Random) -> tuple[str, list[list[Call]]]:
    """Where notes speak of it, then whose notes there are and what has changed, at once."""
    resource, _, listed = _listed(drawn)
    return f"Who looks after {resource}?", [
        listed,
        [("files:search", {"path": "notes", "text": "TODO"})],
        [("files:list_dir", {"path": "notes"}), ("files:read_file", {"path": "CHANGELOG.md"})],
    ]


def _listed(drawn: random.Random) -> tuple[str, str, list[Call]]:
    """A resource, the folder of its pages, and the call that all sessions begin with."""
    resource = drawn.choice(RESOURCES)
    folder = f"docs/reference/{resource}"
    return resource, folder, [("files:list_dir", {"path": folder})]


_KINDS: dict[str, Kind] = {"deprecation": _deprecation, "operation": _operation, "owner": _owner}
