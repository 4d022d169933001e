"""Which field of a result an argument gets where its reference alone leads to none (DESIGN §6).

Decided by the schemas of both tools when a call is prepared; written into its starting event, so that
whoever resolves the call again takes the same field, whatever the schemas say then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pml.processors.capabilities.coverage import candidates, property_of, types_of, value_fits
from pml.processors.speculation.guard import listed_tool
from pml.processors.workflow.catalog import Catalog
from pml.processors.workflow.graph import Graph
from pml.processors.workflow.references import Missing, Path


class Fields(Protocol):
    """Chooses the field of a result for an argument; None where the reference stands as it is."""

    def choose(self, argument: str, path: Path, result: Mapping[str, Any]) -> str | Missing | None:
        """
        Args:
            argument: the parameter of the tool that is called.
            path: all of a result, or one field of it that does not exist.
        """


@dataclass(frozen=True, slots=True)
class RecordedFields:
    """The fields that were chosen when the call began."""

    mapped: Mapping[str, str]

    def choose(self, argument: str, path: Path, result: Mapping[str, Any]) -> str | Missing | None:
        """The same field again."""
        return self.mapped.get(argument)


@dataclass(frozen=True, slots=True)
class SchemaFields:
    """The mapping of the edge between two tools, from their schemas."""

    catalog: Catalog
    graph: Graph
    tool: str

    def choose(self, argument: str, path: Path, result: Mapping[str, Any]) -> str | Missing | None:
        """The one output that is called like the parameter and is of its type."""
        takes = self._schema(self.tool, "input_schema")
        wanted = property_of(takes, argument)
        if not path.steps and value_fits(result, wanted):
            return None
        gives = self._schema(self.graph.nodes[path.node].tool, "output_schema")
        named = candidates(gives, takes, argument)
        found = [name for name in named if name in result and value_fits(result[name], wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            return Missing(
                f"{path.node} gives {' and '.join(found)}, which may both be meant: name one of them"
            )
        if path.steps:
            return None
        types = " or ".join(sorted(types_of(wanted)))
        return Missing(f"{path.node} is a whole result and {types} is wanted: name the field")

    def _schema(self, tool: str, which: str) -> Mapping[str, Any] | None:
        listed = listed_tool(tool, self.catalog.server_of(tool))
        found: Mapping[str, Any] | None = getattr(listed, which, None)
        return found
