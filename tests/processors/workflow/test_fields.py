"""The field of a result that an argument gets, by the schemas of both tools."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow.fields import SchemaFields
from pml.processors.workflow.graph import build
from pml.processors.workflow.references import Missing, Path
from pml.schemas.catalog import CatalogRecord
from pml.schemas.workflow import Workflow
from tests.processors.session_world import catalog

WHOLE, ABSENT = Path("a", ()), Path("a", ("absent",))
TEXT, OBJECT, ANYTHING = {"type": "string"}, {"type": "object"}, dict[str, Any]()


def fields(gives: dict[str, Any], wanted: dict[str, Any]) -> SchemaFields:
    """Task `a` gives these fields; a tool takes one of them as its `path`."""
    known = catalog()
    described: dict[str, Any] = {
        "list_dir": {"output_schema": {"properties": gives}},
        "read_file": {"input_schema": {"properties": {"path": wanted}}},
    }
    server = known.servers["files"]
    tools = tuple(tool.model_copy(update=described.get(tool.name, {})) for tool in server.tools)
    record = CatalogRecord(kind="tool", id="files", data=server.model_copy(update={"tools": tools}))
    graph = build(Workflow.model_validate({"tasks": [{"id": "a", "tool": "files:list_dir"}]}))
    return SchemaFields(known.with_record(record), graph, "files:read_file")


@pytest.mark.parametrize(("wanted", "value"), [(OBJECT, {}), (ANYTHING, "a.md")])
def test_a_whole_result_stands_where_it_fits(wanted: dict[str, Any], value: Any) -> None:
    assert fields({"path": wanted}, wanted).choose("path", WHOLE, {"path": value}) is None


@pytest.mark.parametrize("wanted", [TEXT, ANYTHING])
def test_a_field_that_does_not_exist_is_replaced_by_the_one_that_is_called_alike(
    wanted: dict[str, Any],
) -> None:
    assert fields({"file": TEXT}, wanted).choose("path", ABSENT, {"file": "a.md"}) == "file"
    assert fields({"other": TEXT}, wanted).choose("path", ABSENT, {"other": "a.md"}) is None


@pytest.mark.parametrize("result", [{"location": "a.md"}, {"file": 3, "location": "a.md"}])
def test_only_fields_that_are_there_and_of_the_type_may_be_meant(result: dict[str, Any]) -> None:
    gives = {"file": ANYTHING, "location": ANYTHING}
    assert fields(gives, TEXT).choose("path", WHOLE, result) == "location"


def test_of_two_fields_none_is_chosen() -> None:
    both = fields({"file": TEXT, "location": TEXT}, TEXT)
    chosen = both.choose("path", WHOLE, {"file": "a.md", "location": "b.md"})
    assert chosen == Missing("a gives file and location, which may both be meant: name one of them")


def test_the_types_that_are_wanted_are_named_in_one_order() -> None:
    """An event says the same in every process."""
    wanted = {"type": ["string", "number", "null", "integer", "boolean", "array"]}
    chosen = fields({"other": TEXT}, wanted).choose("path", WHOLE, {"other": "x"})
    types = "array or boolean or integer or null or number or string"
    assert chosen == Missing(f"a is a whole result and {types} is wanted: name the field")
