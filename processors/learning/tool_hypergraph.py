"""Tools as hyperedges: what each needs, and which others give it (DESIGN §6, Provides edges; §7, Hyperpaths).

Nothing is listed beforehand: who searches asks for what it comes to, so a question costs what it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pml.processors.capabilities.aliases import names_alike
from pml.processors.capabilities.coverage import property_of, types_compatible
from pml.processors.capabilities.edge_weights import START
from pml.processors.capabilities.inlining import Find
from pml.processors.capabilities.provides import ToolSchemas
from pml.processors.learning.parameters import Parameter, Seen, declared, parameter
from pml.schemas.catalog import Capability, Edge

# Of the tools that may give one input, those that surely do first.
GIVERS_MOST = 8
# How surely a result gives what schemas or earlier sessions say, where no run taught more.
UNTAUGHT = START["provides"]

Slot = tuple[str, str]
"""An input: the tool or capability that takes it, and its name."""


@dataclass(frozen=True, slots=True)
class Giver:
    """A tool or capability whose result may fill an input, and how surely it does, 0 to 1."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Record:
    """How often something ran, and how often that went well."""

    successes: int = 0
    runs: int = 0


@dataclass(slots=True)
class Taught:
    """What runs taught: who gave something to each input, and how tools and capabilities did."""

    givers: dict[Slot, dict[str, float]] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, edges: Iterable[Edge]) -> Taught:
        """Provides edges with the fields that were seen; how often a tool was a call of a capability."""
        found = cls()
        for edge in edges:
            if edge.type == "contains":
                before = found.records.get(edge.target, Record())
                after = Record(before.successes + edge.successes, before.runs + edge.runs)
                found.records[edge.target] = after
            elif edge.type == "provides":
                for given in edge.fields:
                    slot = edge.target, given.to_field
                    found.givers.setdefault(slot, {})[edge.source] = edge.weight
        return found


class DeclaredTools:
    """What the catalog says of tools, and what past sessions showed of their inputs; made once for both.

    `needs` and `givers` remember what they were asked. One thread uses it.
    """

    def __init__(self, schemas: Mapping[str, ToolSchemas], seen: Mapping[Slot, Seen]) -> None:
        """Schemas by tool, and what is known of inputs from calls, by tool and name."""
        self._schemas, self._seen = schemas, seen
        self._needs: dict[str, tuple[Parameter, ...]] = {}
        self._givers: dict[Slot, tuple[str, ...]] = {}
        self._giving: dict[str, list[tuple[str, Any]]] = {}
        for name, told in sorted(schemas.items()):
            properties = (told.output or {}).get("properties")
            for given, schema in properties.items() if isinstance(properties, Mapping) else ():
                self._giving.setdefault(given, []).append((name, schema))

    def __contains__(self, name: str) -> bool:
        return name in self._schemas

    def needs(self, name: str) -> tuple[Parameter, ...]:
        """The inputs without which a tool refuses a call; none of a tool that is not there."""
        if name not in self._needs:
            known = declared(name, self._schemas.get(name, ToolSchemas()).input)
            self._needs[name] = tuple(
                self.parameter(name, told.name, told) for told in known.values() if told.required
            )
        return self._needs[name]

    def parameter(self, name: str, wanted: str, told: Parameter | None = None) -> Parameter:
        """An input with the habits that were seen of it."""
        return parameter(told, name, wanted, self._seen.get((name, wanted)), None)

    def givers(self, wanted: Parameter) -> tuple[str, ...]:
        """Tools whose result had its value in past sessions, then those with a field that is called alike."""
        key = wanted.tool, wanted.name
        if key not in self._givers:
            meant = sorted(path.split(" ", 2)[1] for path in wanted.paths if path.startswith("result "))
            self._givers[key] = tuple(dict.fromkeys((*meant, *self._alike(wanted))))
        return self._givers[key]

    def _alike(self, wanted: Parameter) -> Iterable[str]:
        """Those with a field of its very name first; types must be compatible."""
        told = self._schemas.get(wanted.tool, ToolSchemas()).input
        schema = property_of(told, wanted.name)
        for name in names_alike(wanted.name):
            for giver, given in self._giving.get(name, ()):
                if types_compatible(given, schema):
                    yield giver


@dataclass(slots=True)
class ToolHypergraph:
    """Tools and a tenant's capabilities, for one question.

    Attributes:
        tools: what schemas and past sessions say.
        find: knows the capabilities of the tenant.
        edges: its tool graph, read when something is missing; a name in it may be gone.
    """

    tools: DeclaredTools
    find: Find
    edges: Callable[[], Iterable[Edge]]
    _taught: Taught | None = field(default=None, init=False)
    _found: dict[str, Capability | None] = field(default_factory=dict, init=False)

    def needs(self, name: str) -> tuple[Parameter, ...]:
        """The inputs that a tool or capability requires; none of one that is not there."""
        if name in self.tools:
            return self.tools.needs(name)
        capability = self._capability(name)
        told = () if capability is None else capability.parameters
        return tuple(self.tools.parameter(name, each.name) for each in told if each.required)

    def givers(self, wanted: Parameter) -> Sequence[Giver]:
        """Who may give an input, the surest first, at most `GIVERS_MOST`; never its own tool."""
        taught = self._learned().givers.get((wanted.tool, wanted.name), {})
        shares = dict.fromkeys(self.tools.givers(wanted), UNTAUGHT) | taught
        ranked = sorted(shares.items(), key=lambda each: -each[1])
        known = (name for name, _ in ranked if name != wanted.tool and self._is_there(name))
        return [Giver(name, shares[name]) for name, _ in zip(known, range(GIVERS_MOST), strict=False)]

    def record(self, name: str) -> Record:
        """How often it ran as a call of a capability, and of those how often the run went well."""
        capability = None if name in self.tools else self._capability(name)
        if capability is not None:
            return Record(capability.successes, capability.runs)
        return self._learned().records.get(name, Record())

    def _is_there(self, name: str) -> bool:
        return name in self.tools or self._capability(name) is not None

    def _capability(self, name: str) -> Capability | None:
        if name not in self._found:
            self._found[name] = self.find(name)
        return self._found[name]

    def _learned(self) -> Taught:
        if self._taught is None:
            self._taught = Taught.of(self.edges())
        return self._taught
