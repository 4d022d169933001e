"""What is shown around a capability."""

from __future__ import annotations

from typing import Any

from pml.processors.capabilities.neighbours import PROVIDERS_MOST, neighbours
from pml.processors.capabilities.provides import ToolSchemas
from pml.schemas.catalog import Edge


def edge(kind: str, source: str, target: str, **said: Any) -> Edge:
    given = {"tenant": "local", "type": kind, "source": source, "target": target, "weight": 0.5, "runs": 1}
    return Edge.model_validate({**given, **said})


def schemas(takes: dict[str, str], gives: dict[str, str] | None) -> ToolSchemas:
    def told(fields: dict[str, str]) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {"type": kind} for name, kind in fields.items()}}

    needed = {**told(takes), "required": list(takes)}
    return ToolSchemas(needed, None if gives is None else told(gives))


def test_only_edges_with_an_end_among_them_are_around() -> None:
    edges = [edge("sequence", "a:x", "b:y"), edge("sequence", "b:y", "c:z"), edge("sequence", "c:z", "d:w")]
    found = neighbours(edges, {"a:x", "b:y"}, {})
    assert [(item.source, item.target) for item in found] == [("a:x", "b:y"), ("b:y", "c:z")]


def test_the_strongest_come_first() -> None:
    edges = [
        edge("sequence", "a:x", "b:y", weight=0.5),
        edge("sequence", "a:x", "c:z", weight=0.9),
        edge("contains", "cap_1", "a:x", weight=0.5, runs=7),
    ]
    assert [item.target for item in neighbours(edges, {"a:x"}, {})] == ["c:z", "a:x", "b:y"]


def test_what_is_given_is_told_with_coverage_and_fields() -> None:
    known = {
        "crm:find": schemas({}, {"id": "string", "mail": "string", "rank": "number"}),
        "mail:send": schemas({"mail": "string", "rank": "string"}, None),
    }
    seen = edge("provides", "crm:find", "mail:send", fields=[{"from_field": "mail", "to_field": "mail"}])
    (item,) = neighbours([seen], {"mail:send"}, known)
    assert (item.coverage, item.fields) == ("strict", (("mail", "mail"),))
    (item,) = neighbours([edge("provides", "crm:find", "mail:send")], {"mail:send"}, known)
    assert item.fields == (("mail", "mail"),), "a number is no text"
    (item,) = neighbours([seen], {"mail:send"}, {})
    assert item.coverage == "unknown"


def test_who_could_give_what_is_needed_is_told_behind_what_runs_taught() -> None:
    known = {
        "geo:find": schemas({}, {"city_id": "string"}),
        "geo:other": schemas({}, {"name": "string"}),
        "weather:get": schemas({"city_id": "string", "day": "string"}, {"temperature": "number"}),
    }
    seen, told = neighbours([edge("sequence", "a:x", "weather:get", weight=0.1)], {"weather:get"}, known)
    assert (seen.type, told.source, told.coverage) == ("sequence", "geo:find", "partial")
    assert (told.weight, told.runs, told.fields) == (0.7, 0, (("city_id", "city_id"),))


def test_what_everybody_could_give_is_not_told() -> None:
    many = {f"s:t{number}": schemas({}, {"text": "string"}) for number in range(PROVIDERS_MOST + 1)}
    known = {**many, "mail:send": schemas({"text": "string"}, None)}
    assert neighbours([], {"mail:send"}, known) == []
