"""The world that tools touch: named resources with values, and a journal of everything that happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class Change:
    """One real effect. `who` is the session whose call it was, or `outside`."""

    at_s: float
    resource: str
    value: str
    who: str
    call_id: str


@dataclass(frozen=True, slots=True)
class Execution:
    """A call that ran: when it looked at or changed the world, and what it said."""

    call_id: str
    tool: str
    session: str
    task: str
    at_s: float
    change: int
    early: bool
    wrote: bool
    value: object


@dataclass
class World:
    """Values by resource. A resource is `server:path`; nothing is there until it is written."""

    values: dict[str, str] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    executions: dict[str, list[Execution]] = field(default_factory=dict)

    def under(self, prefix: str) -> dict[str, str]:
        """Everything at or below a path."""
        below = prefix if prefix.endswith((":", "/")) else prefix + "/"
        return {
            name: value for name, value in self.values.items() if name == prefix or name.startswith(below)
        }

    def write(self, change: Change) -> None:
        """One effect."""
        self.values[change.resource] = change.value
        self.changes.append(change)

    def ran(self, execution: Execution) -> None:
        """One execution."""
        self.executions.setdefault(execution.call_id, []).append(execution)

    def since(self, position: int, prefixes: Iterable[str]) -> list[Change]:
        """The changes after a position of the journal to anything at or below these paths."""
        wanted = tuple(prefixes)
        return [
            change
            for change in self.changes[position:]
            if any(covers(prefix, change.resource) for prefix in wanted)
        ]

    @property
    def position(self) -> int:
        """How many changes there were."""
        return len(self.changes)


def covers(prefix: str, resource: str) -> bool:
    """Whether a resource lies at or below a path."""
    below = prefix if prefix.endswith((":", "/")) else prefix + "/"
    return resource == prefix or resource.startswith(below)
