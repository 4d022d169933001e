"""The definition of a workflow, as a file, a command or a capability gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from pml.schemas.base import Json, Model

TASKS_MAX = 500
LAYER_TASKS_MAX = 200
ARGUMENT_DEPTH_MAX = 20
DEPTH_MAX = 100
EXPRESSION_MAX = 2_000

OnTimeout = Literal["abort", "continue"]
Approve = Literal["before", "each"]
"""When a person is asked about calls: once for all of them before any begins, or about each in its turn."""
NodeId = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


class LiteralValue(Model):
    """A value that is written down."""

    type: Literal["literal"] = "literal"
    value: Json = None


class Reference(Model):
    """A value out of another task's result: `n1.items[0].id`, alternatives `n2.x|n3.x`."""

    type: Literal["reference"] = "reference"
    expression: str = Field(min_length=1, max_length=1_000)


class Parameter(Model):
    """A value out of the run's initial context."""

    type: Literal["parameter"] = "parameter"
    parameter_name: str = Field(min_length=1, max_length=200)


class ObjectOf(Model):
    """An object of which not everything is written down."""

    type: Literal["object_of"] = "object_of"
    fields: dict[str, Argument]

    @field_validator("fields", mode="before")
    @classmethod
    def _bare_values(cls, value: Any) -> Any:
        return {name: as_argument(item) for name, item in value.items()} if isinstance(value, dict) else value


class ListOf(Model):
    """A list of which not everything is written down."""

    type: Literal["list_of"] = "list_of"
    items: tuple[Argument, ...]

    @field_validator("items", mode="before")
    @classmethod
    def _bare_values(cls, value: Any) -> Any:
        return [as_argument(item) for item in value] if isinstance(value, (list, tuple)) else value


class Expression(Model):
    """A value that is computed from others, where the program's language is spoken.

    Attributes:
        expression: over node ids and `args`, where its operators mean the same in every language; else None.
        code: in the program's language, over `names`.
        names: what the variables of `code` stand for.
    """

    type: Literal["expression"] = "expression"
    expression: str | None = None
    code: str = Field(min_length=1, max_length=262_144)
    names: dict[str, Argument] = {}

    @property
    def text(self) -> str:
        """What the core evaluates."""
        return self.expression or self.code

    @field_validator("names", mode="before")
    @classmethod
    def _bare_values(cls, value: Any) -> Any:
        return {name: as_argument(item) for name, item in value.items()} if isinstance(value, dict) else value


Argument = Annotated[
    LiteralValue | Reference | Parameter | ObjectOf | ListOf | Expression, Field(discriminator="type")
]
Leaf = LiteralValue | Reference | Parameter
_KEYS = {
    "literal": {"type", "value"},
    "reference": {"type", "expression"},
    "parameter": {"type", "parameter_name", "parameterName"},
    "object_of": {"type", "fields"},
    "list_of": {"type", "items"},
    "expression": {"type", "expression", "code", "names"},
}


def as_argument(value: Any) -> Any:
    """A bare value is a literal; a mapping counts as an argument only in exactly its shape."""
    if isinstance(value, (LiteralValue, Reference, Parameter, ObjectOf, ListOf, Expression)):
        return value
    kind = value.get("type") if isinstance(value, dict) else None
    known = isinstance(kind, str) and kind in _KEYS and set(value) <= _KEYS[kind]
    if known and _is_whole(kind, value):
        return value
    return {"type": "literal", "value": value}


def _is_whole(kind: Any, value: dict[str, Any]) -> bool:
    if kind == "expression":
        return "code" in value
    return kind == "literal" or len(value) == 2


def leaves(argument: Argument) -> Iterator[Leaf]:
    """What an argument is made of, however deep."""
    if isinstance(argument, (ObjectOf, ListOf, Expression)):
        for item in inside(argument):
            yield from leaves(item)
    else:
        yield argument


def expressions_in(argument: Argument) -> Iterator[Expression]:
    """What of an argument has to be computed; an expression covers what lies inside of it."""
    if isinstance(argument, Expression):
        yield argument
        return
    for item in inside(argument):
        yield from expressions_in(item)


def depth_of(argument: Argument) -> int:
    """How deep objects, lists and expressions lie in each other; 0 for what is none."""
    depth, level = 0, [argument]
    while level := [inner for item in level for inner in inside(item)]:
        depth += 1
    return depth


def inside(argument: Argument) -> Iterable[Argument]:
    """The parts that an argument is put together from, one level deep."""
    match argument:
        case ObjectOf(fields=inner) | Expression(names=inner):
            return inner.values()
        case ListOf(items=items):
            return items
    return ()


class Condition(Model):
    """A task runs only where a decision had this outcome."""

    node: NodeId
    outcome: str

    @field_validator("outcome", mode="before")
    @classmethod
    def _yaml_booleans(cls, value: Any) -> Any:
        return str(value).lower() if isinstance(value, bool) else value


class Task(Model):
    """One node: a tool or a capability, its arguments and what it waits for."""

    id: NodeId
    tool: str | None = Field(default=None, max_length=300)
    capability: str | None = Field(default=None, max_length=300)
    arguments: dict[str, Argument] = {}
    depends_on: tuple[NodeId, ...] = ()
    condition: tuple[Condition, ...] = ()
    timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    safe_to_fail: bool = False

    @field_validator("arguments", mode="before")
    @classmethod
    def _bare_values(cls, value: Any) -> Any:
        return {name: as_argument(item) for name, item in value.items()} if isinstance(value, dict) else value

    @field_validator("arguments", mode="after")
    @classmethod
    def _not_too_deep(cls, value: dict[str, Argument]) -> dict[str, Argument]:
        deep = [name for name, argument in value.items() if depth_of(argument) > ARGUMENT_DEPTH_MAX]
        if deep:
            raise ValueError(f"argument {deep[0]} is nested deeper than {ARGUMENT_DEPTH_MAX} levels")
        return value

    @field_validator("condition", mode="before")
    @classmethod
    def _one_condition(cls, value: Any) -> Any:
        return (value,) if isinstance(value, (dict, Condition)) else value

    @model_validator(mode="after")
    def _tool_or_capability(self) -> Task:
        if (self.tool is None) == (self.capability is None):
            raise ValueError(f"task {self.id} needs either `tool` or `capability`")
        if self.tool is not None and not all(self.tool.partition(":")):
            raise ValueError(f"task {self.id}: `tool` is written server:name")
        return self


class Decision(Model):
    """An expression over results whose outcome opens one branch."""

    id: NodeId
    expression: str = Field(min_length=1, max_length=EXPRESSION_MAX)


class Options(Model):
    """How a run is run.

    `decision_points` holds `per_layer`, `on_error`, or ids of tasks after which the run waits (`manual`
    may stand beside them). Time-outs that are not given are those of the settings.
    """

    per_layer_validation: bool = False
    decision_points: Annotated[tuple[Annotated[str, Field(max_length=64)], ...], Field(max_length=500)] = ()
    timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    speculation: Literal["on", "shadow", "off"] = "on"
    decision_timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    approval_timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    on_timeout: OnTimeout | None = None
    approve: Approve | None = None

    @field_validator("decision_points", mode="before")
    @classmethod
    def _one_point(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("speculation", mode="before")
    @classmethod
    def _yaml_on(cls, value: Any) -> Any:
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


class Workflow(Model):
    """A DAG of tasks (CONTRACT.md, Workflow).

    `result` is what a run of it comes to: a value out of its tasks' results, as an argument is.
    """

    version: Literal[1] = 1
    name: str | None = Field(default=None, max_length=200)
    intent: str | None = Field(default=None, max_length=10_000)
    workflow_type: str | None = Field(default=None, max_length=200)
    context: dict[str, Json] = {}
    options: Options = Options()
    tasks: tuple[Task, ...] = ()
    decisions: tuple[Decision, ...] = ()
    result: Argument | None = None

    @field_validator("result", mode="before")
    @classmethod
    def _bare_value(cls, value: Any) -> Any:
        return None if value is None else as_argument(value)

    @property
    def calls_capabilities(self) -> bool:
        """Whether the tasks of others have to be put in the place of some."""
        return any(task.capability is not None for task in self.tasks)

    @property
    def type_name(self) -> str:
        """The workflow type: as given, else the name, else `default`."""
        return self.workflow_type or self.name or "default"
