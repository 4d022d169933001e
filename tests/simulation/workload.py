"""Random workflows: chains, forks, joins, branches, references, parameters, tools of all sorts."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.tools import MISSING, PATHS, Toolbox, ToolSpec

NARROW = {"files:read", "files:list", "files:write", "store:get", "store:put"}
READERS = {"read", "list", "pure", "clock"}


@dataclass
class Weaver:
    """Writes one workflow, layer by layer.

    Args:
        conflicts: whether tasks without an order may touch the same thing, so that chance decides what
            they see. A play that is to be compared with another one has none.
        narrow: whether all tasks meet at two paths of two servers.
    """

    random: Random
    toolbox: Toolbox
    conflicts: bool
    narrow: bool = False
    tasks: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    last: list[str] = field(default_factory=list)

    def workflow(self) -> dict[str, Any]:
        """A workflow of one to six layers."""
        for _ in range(self.random.choice([1, 2, 3, 4, 4, 5, 5, 6, 7])):
            self._layer()
        return self._written()

    def call(self) -> dict[str, Any]:
        """A workflow that is one call."""
        self._task(self._tool(alone=False, writes=False), list(PATHS[1:3]), None)
        return self._written()

    def _written(self) -> dict[str, Any]:
        random = self.random
        options = {
            "timeout_s": random.choice([15, 25, 40]),
            "speculation": random.choice(["on"] * 18 + ["off", "shadow"]),
            **self._decision_points(),
        }
        if options["timeout_s"] == 15:
            options["approve"] = "each"
        context = {"where": random.choice(PATHS), "method": random.choice(["GET", "POST"])}
        return {
            "name": random.choice(["notes", "report", "build"]),
            "context": context,
            "options": options,
            "tasks": self.tasks,
            "decisions": self.decisions,
        }

    def _decision_points(self) -> dict[str, Any]:
        """Now and then the run waits for somebody's word, between its layers or where something failed."""
        if self.random.random() > 0.25:
            return {}
        named = self.random.choice(self.tasks)["id"]
        points = self.random.choice([["per_layer"], ["on_error"], [named], ["on_error", named]])
        return {"decision_points": points} if self.random.random() < 0.7 else {"per_layer_validation": True}

    def _layer(self) -> None:
        random = self.random
        condition = self._condition()
        width = random.choice([1, 2, 2, 3, 3, 4])
        free = list(PATHS[1:3] if self.narrow else PATHS)
        names: list[str] = []
        writes = False
        for _ in range(width):
            spec = self._tool(alone=bool(names), writes=writes)
            writes = writes or spec.kind in {"write", "bump", "either"}
            names.append(self._task(spec, free, condition if random.random() < 0.7 else None))
            if not self.conflicts and writes:
                break
        self.last = names

    def _tool(self, alone: bool, writes: bool) -> ToolSpec:
        """A tool; without conflicts a write is the only task of its layer."""
        known = [spec for spec in self.toolbox.specs.values() if spec.kind != "wrote"]
        specs = [spec for spec in known if not self.narrow or spec.name in NARROW]
        if not self.conflicts:
            specs = [spec for spec in specs if spec.kind != "clock" and spec.name != "counters:board"]
            if alone:
                specs = [spec for spec in specs if spec.kind in READERS]
        rare = {"files:nobody", "files:remove", "files:private"}
        weights = [0.08 if spec.name in rare else 2.0 if spec.kind == "read" else 1.0 for spec in specs]
        return self.random.choices(specs, weights)[0]

    def _condition(self) -> dict[str, Any] | None:
        """A decision over what came before, now and then; a branch on one of its outcomes."""
        random = self.random
        if not self.last or random.random() > 0.35:
            return None
        name, read = f"d{len(self.decisions) + 1}", random.choice(self.last)
        expression, outcomes = random.choice(
            [
                (f"{read}.size > 4", ["true", "false"]),
                (f"{read}.kind", ["case:even", "case:odd", "case:default"]),
                (f"{read}.absent == 1", ["true"]),
            ]
            if random.random() < 0.9
            else [(f"{read}.size > 4 and {read}.kind == 'even'", ["true", "false"])]
        )
        if ".absent" in expression and random.random() < 0.8:
            expression, outcomes = f"{read}.size > 2", ["true", "false"]
        self.decisions.append({"id": name, "expression": expression})
        return {"node": name, "outcome": random.choice(outcomes)}

    def _task(self, spec: ToolSpec, free: list[str], condition: dict[str, Any] | None) -> str:
        random = self.random
        name = f"n{len(self.tasks) + 1}"
        task: dict[str, Any] = {
            "id": name,
            "tool": spec.name,
            "arguments": self._arguments(spec, free),
            "safe_to_fail": random.random() < 0.3,
        }
        if self.last:
            task["depends_on"] = random.sample(self.last, random.randint(1, len(self.last)))
        if condition is not None:
            task["condition"] = condition
        if random.random() < 0.1:
            task["timeout_s"] = random.choice([1.5, 4])
        self.tasks.append(task)
        return name

    def _arguments(self, spec: ToolSpec, free: list[str]) -> dict[str, Any]:
        arguments: dict[str, Any] = {"path": self._path(free)}
        if spec.kind == "list":
            arguments = {"path": self.random.choice(["docs", "docs/deep", "a"])}
        if spec.kind == "either":
            arguments["method"] = self.random.choice(
                ["GET", "POST", {"type": "parameter", "parameter_name": "method"}]
            )
        if spec.kind == "write":
            arguments["text"] = self._text()
        if spec.kind in {"pure", "clock"}:
            arguments = {"text": self._text()}
        if self.random.random() < 0.08:
            arguments["note"] = {
                "type": "parameter",
                "parameter_name": self.random.choice(["where", "nowhere"]),
            }
        return arguments

    def _path(self, free: list[str]) -> Any:
        """A literal, a parameter, or what an earlier task found."""
        random, dice = self.random, self.random.random()
        if self.conflicts and dice < (0.5 if self.narrow else 0.2) and self.tasks:
            return self._reference("first")
        if dice < 0.3:
            return {"type": "parameter", "parameter_name": "where"}
        if dice < 0.33:
            return MISSING
        return random.choice(free)

    def _text(self) -> Any:
        if self.tasks and self.random.random() < 0.6:
            return self._reference(self.random.choice(["value"] * 8 + ["size", "absent"]))
        return f"text {self.random.randint(0, 99)}"

    def _reference(self, name: str) -> dict[str, Any]:
        random = self.random
        near = self.narrow and bool(self.last) and random.random() < 0.7
        first = random.choice(self.last) if near else random.choice(self.tasks)["id"]
        expression = f"{first}.{name}"
        if random.random() < 0.2 and len(self.tasks) > 1:
            expression += f"|{random.choice(self.tasks)['id']}.{name}"
        return {"type": "reference", "expression": expression}


def random_workflow(
    random: Random, toolbox: Toolbox, conflicts: bool, narrow: bool = False
) -> dict[str, Any]:
    """One workflow."""
    return Weaver(random, toolbox, conflicts, narrow).workflow()


def random_call(random: Random, toolbox: Toolbox, conflicts: bool) -> dict[str, Any]:
    """A workflow of one call, of few that there are."""
    return Weaver(random, toolbox, conflicts, narrow=True).call()
