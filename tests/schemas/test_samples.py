"""`tests/samples` keeps one file per type and version for ever: this release must read them all.

A file is named `<topic>/<type>.<version>.json`. A new version adds a file; none is ever changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from pml.schemas.base import Record
from pml.schemas.calls import CALLS, CLAIMS, OUTCOMES
from pml.schemas.catalog import CATALOG
from pml.schemas.codec import (
    decode_call,
    decode_catalog,
    decode_claim,
    decode_command,
    decode_event,
    decode_lesson,
    decode_outcome,
    encode,
)
from pml.schemas.commands import COMMANDS
from pml.schemas.events import EVENTS
from pml.schemas.export import export, json_schemas
from pml.schemas.lessons import LESSONS

FOLDER = Path(__file__).parent.parent / "samples"
DOORS: dict[str, Callable[[bytes], Any]] = {
    "commands": decode_command,
    "events": decode_event,
    "tool-calls": decode_call,
    "tool-outcomes": decode_outcome,
    "call-claims": decode_claim,
    "catalog": decode_catalog,
    "lessons": decode_lesson,
}
PLAIN = (
    ("tool-calls", CALLS),
    ("tool-outcomes", OUTCOMES),
    ("call-claims", CLAIMS),
    ("lessons", LESSONS),
)
FILES = sorted(FOLDER.glob("*/*.json"))
SCHEMAS = json_schemas()
every_sample = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")


def known() -> Iterator[tuple[str, str, int]]:
    """Topic, type and newest version of every message."""
    yield from (("commands", kind, model.VERSION) for kind, model in COMMANDS.items())
    yield from (("events", kind, model.VERSION) for kind, model in EVENTS.items())
    yield from (("catalog", kind, model.VERSION) for kind, model in CATALOG.items())
    for topic, models in PLAIN:
        yield from ((topic, kind, 1) for kind in models)


def test_every_type_has_a_sample_of_every_version() -> None:
    wanted = {
        FOLDER / topic / f"{kind}.{number + 1}.json" for topic, kind, v in known() for number in range(v)
    }
    assert set(FILES) == wanted


@every_sample
def test_a_sample_is_read_and_written_again(path: Path) -> None:
    kind, _, version = path.stem.rpartition(".")
    value = path.read_bytes()
    message = DOORS[path.parent.name](value)
    assert (getattr(message, "type", None) or message.kind) == kind
    again = encode(message)
    assert DOORS[path.parent.name](again) == message
    if message.version == int(version):
        assert orjson.loads(again) == orjson.loads(value)


@every_sample
def test_a_sample_fits_its_schema(path: Path) -> None:
    kind = path.stem.rpartition(".")[0]
    name = f"catalog.{kind}" if path.parent.name == "catalog" else kind
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(orjson.loads(path.read_bytes()), schema)


@every_sample
def test_a_schema_refuses_another_type_and_missing_data(path: Path) -> None:
    kind = path.stem.rpartition(".")[0]
    catalog = path.parent.name == "catalog"
    schema = SCHEMAS[f"catalog.{kind}" if catalog else kind]
    sample = orjson.loads(path.read_bytes())
    other = {**sample, "kind" if catalog else "type": "another"}
    without = {name: value for name, value in sample.items() if name not in {"data", "call_id", "subject"}}
    for wrong in (other, without):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name != "commands"], ids=lambda p: p.stem
)
def test_fields_that_a_newer_release_added_are_passed_over(path: Path) -> None:
    sample = orjson.loads(path.read_bytes())
    sample["added"] = 1
    if "data" in sample:
        sample["data"]["added"] = {"more": 1}
    door = DOORS[path.parent.name]
    assert door(orjson.dumps(sample)) == door(path.read_bytes())


def test_schemas_are_written_one_file_a_message(tmp_path: Path) -> None:
    written = export(tmp_path / "new")
    assert [path.name for path in written] == sorted(f"{name}.json" for name in SCHEMAS)
    for path in written:
        schema = orjson.loads(path.read_bytes())
        assert schema["$schema"].endswith("2020-12/schema")
        assert schema == SCHEMAS[path.stem]


def test_the_workflow_schema_takes_what_people_write() -> None:
    schema = SCHEMAS["workflow"]
    jsonschema.validate(
        {
            "tasks": [
                {
                    "id": "n1",
                    "tool": "a:b",
                    "arguments": {"x": 1, "y": {"type": "parameter", "parameter_name": "p"}},
                },
                {"id": "n2", "tool": "a:b", "condition": {"node": "d", "outcome": "true"}},
            ]
        },
        schema,
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"tasks": [{"id": "n 1", "tool": "a:b"}]}, schema)


def test_our_own_records_take_new_fields() -> None:
    assert all(issubclass(model, Record) for model in EVENTS.values())
