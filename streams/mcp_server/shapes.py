"""What the tools of this door share: the base of what they are asked and answer, and common arguments."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from pml.schemas.base import Name

WAIT_S = 20.0
WAIT_MAX_S = 50.0
"""Most clients give a tool 60 seconds."""


class PlainSchema(GenerateJsonSchema):
    """Schemas in fewer words, for a model reads them all: no titles made of names, null without ceremony."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        """Two types in one word where both are plain."""
        inner = self.generate_inner(schema["schema"])
        if isinstance(inner.get("type"), str) and "enum" not in inner and "const" not in inner:
            return {**inner, "type": [inner["type"], "null"]}
        return super().nullable_schema(schema)

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """A default of null says nothing."""
        told = super().default_schema(schema)
        return {name: value for name, value in told.items() if (name, value) != ("default", None)}


@cache
def schema_of(model: type[BaseModel], mode: JsonSchemaMode = "validation") -> dict[str, Any]:
    """The JSON Schema of what a tool is asked, or with `serialization` of what it answers."""
    return model.model_json_schema(mode=mode, schema_generator=PlainSchema)


class Asked(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    """What a tool answers."""


def _no_zero_byte(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain a zero byte")
    return text


RunId = Annotated[Name, Field(description="The run, as pml_execute answered it.")]
Session = Annotated[
    Name | None,
    Field(description="The session_id that came with the run; needed where the run is seconds old."),
]
Wait = Annotated[
    float,
    Field(ge=0, le=WAIT_MAX_S, description="Seconds to wait at most; then the run goes on and is running."),
]
Reason = Annotated[
    str, AfterValidator(_no_zero_byte), Field(max_length=2_000, description="Why; it is kept in the log.")
]
Checkpoint = Annotated[
    Name | None, Field(description="The checkpoint that is meant; without it the one that the run waits at.")
]

_ARGUMENT = (
    "A bare value is a literal; {type: parameter, parameter_name} is a value of the context; "
    "{type: reference, expression: 'n1.items[0].id'} is one of another task's result: "
    "it then waits for that task."
)
TASK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "n1, n2, …"},
        "tool": {"type": "string", "description": "server:name"},
        "capability": {"type": "string"},
        "arguments": {"type": "object", "description": _ARGUMENT},
        "depends_on": {"type": "array", "items": {"type": "string"}},
        "condition": {
            "description": "{node: d1, outcome: 'true'}: only where that decision came to it; or a list.",
            "type": ["object", "array"],
        },
        "timeout_s": {"type": "number"},
        "safe_to_fail": {"type": "boolean"},
    },
    "required": ["id"],
}
DECISION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "expression": {"type": "string", "description": "over task ids and args: n1.count > 0"},
    },
    "required": ["id", "expression"],
}
DAG: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "A workflow: tasks whose dependencies make a graph without cycles.",
    "properties": {
        "version": {"const": 1},
        "name": {"type": "string"},
        "intent": {"type": "string"},
        "workflow_type": {"type": "string"},
        "context": {"type": "object"},
        "options": {"type": "object"},
        "tasks": {"type": "array", "items": TASK},
        "decisions": {"type": "array", "items": DECISION},
        "result": {"description": "What the run comes to; written as an argument is."},
    },
    "required": ["tasks"],
}
