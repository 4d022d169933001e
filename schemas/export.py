"""JSON Schema of every message, for producers and consumers in other languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from pml.schemas.calls import CALLS, CLAIMS, OUTCOMES
from pml.schemas.catalog import CATALOG, CatalogRecord
from pml.schemas.commands import COMMANDS, Command
from pml.schemas.events import EVENTS, Event
from pml.schemas.lessons import LESSONS
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Workflow

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> dict[str, dict[str, Any]]:
    """A schema for each file and message: `workflow`, `run.start`, `task.started`, `catalog.tool`, …

    A command or event is its envelope with the data of its type and version.
    """
    schemas = {"workflow": _schema(Workflow), "permissions": _schema(PermissionFile)}
    for models in (CALLS, OUTCOMES, CLAIMS, LESSONS):
        schemas |= {kind: _schema(model) for kind, model in models.items()}
    for kind, command in COMMANDS.items():
        schemas[kind] = _enveloped(Command, command, {"type": kind, "version": command.VERSION})
    for kind, event in EVENTS.items():
        schemas[kind] = _enveloped(Event, event, {"type": kind, "version": event.VERSION})
    for kind, data in CATALOG.items():
        schemas[f"catalog.{kind}"] = _enveloped(CatalogRecord, data, {"kind": kind, "version": data.VERSION})
    return schemas


def export(folder: Path) -> list[Path]:
    """Write one file a schema, `<name>.json`, and return their paths.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for name, schema in sorted(json_schemas().items()):
        path = folder / f"{name}.json"
        path.write_bytes(orjson.dumps(schema, option=orjson.OPT_INDENT_2) + b"\n")
        paths.append(path)
    return paths


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return _relaxed({"$schema": DIALECT, **model.model_json_schema(mode="validation", by_alias=False)})


def _relaxed(schema: dict[str, Any]) -> dict[str, Any]:
    """What validators accept besides the shape: a bare value as an argument, a single condition."""
    task = schema.get("$defs", {}).get("Task")
    if task is not None:
        properties = task["properties"]
        properties["arguments"]["additionalProperties"] = {"description": "an argument; else a literal value"}
        properties["condition"] = {"anyOf": [properties["condition"], properties["condition"]["items"]]}
    return schema


def _enveloped(envelope: type[BaseModel], data: type[BaseModel], constants: dict[str, Any]) -> dict[str, Any]:
    """The envelope's schema with the data's in its place."""
    outer, inner = _schema(envelope), _schema(data)
    inner.pop("$schema")
    definitions = {**outer.pop("$defs", {}), **inner.pop("$defs", {}), data.__name__: inner}
    properties = {name: {"const": value} for name, value in constants.items()}
    properties["data"] = {"$ref": f"#/$defs/{data.__name__}"}
    outer["properties"] = {**outer["properties"], **properties}
    outer["required"] = sorted({*outer.get("required", ()), *properties})
    outer["$defs"] = {name: definitions[name] for name in definitions if name not in _UNUSED}
    outer["title"] = f"{envelope.__name__} {next(iter(constants.values()))}"
    return outer


# The general data of the envelopes, whose place the message's own takes.
_UNUSED = ("CommandData", "EventData", "CatalogData")
