"""JSON, YAML and Markdown tables in their normal form; what is broken is a ValueError that says where."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal, NoReturn

import yaml
from pydantic import JsonValue

TEXT_MAX_BYTES = 1024 * 1024
DEPTH_MAX = 100
COLUMNS_MAX = 50

_UNESCAPED_BAR = re.compile(r"(?<!\\)\|")

Syntax = Literal["json", "yaml", "markdown_table"]
Kind = Literal["object", "array", "string", "number", "boolean", "null"]


def render(data: JsonValue, syntax: Syntax, sort_keys: bool = False) -> str:
    """A value, or a document given as text in that syntax, in its normal form.

    Raises:
        ValueError: broken, nested too deeply or too large.
    """
    text = _RENDERERS[syntax](data, sort_keys)
    check_size(text)
    return text


def parse_json(text: str) -> JsonValue:
    """The value of a JSON document; ValueError says where it is broken."""
    check_size(text)
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse_constant)
        if _depth(value) > DEPTH_MAX:
            raise RecursionError
    except RecursionError:
        raise ValueError(f"Invalid JSON: nested deeper than {DEPTH_MAX}.") from None
    except ValueError as error:
        raise ValueError(f"Invalid JSON: {error}.") from None
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def check_size(text: str) -> None:
    """ValueError for a text over TEXT_MAX_BYTES."""
    if len(text.encode()) > TEXT_MAX_BYTES:
        raise ValueError(f"Invalid text: it is larger than {TEXT_MAX_BYTES} bytes.")


def _depth(value: JsonValue) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, children), default=0)


def kind(value: JsonValue) -> Kind:
    """What JSON calls this value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
    return "object"


def _render_json(data: JsonValue, sort_keys: bool) -> str:
    value = parse_json(data) if isinstance(data, str) else data
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=sort_keys) + "\n"


def _render_yaml(data: JsonValue, sort_keys: bool) -> str:
    try:
        value = _parse_yaml(data) if isinstance(data, str) else data
        text = _dump_yaml(value, sort_keys, allow_unicode=True)
        # PyYAML writes these line breaks as they are and then reads them back as spaces.
        breaks = any(mark in text for mark in "\x85\u2028\u2029")
        return _dump_yaml(value, sort_keys, allow_unicode=False) if breaks else text
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"Invalid YAML: {error}.") from None


def _dump_yaml(value: Any, sort_keys: bool, allow_unicode: bool) -> str:
    text: str = yaml.safe_dump(
        value, sort_keys=sort_keys, allow_unicode=allow_unicode, default_flow_style=False
    )
    return text


def _parse_yaml(text: str) -> Any:
    check_size(text)
    # libyaml, where it is installed: the pure Python loader takes seconds for a mebibyte.
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _render_table(data: JsonValue, sort_keys: bool) -> str:
    rows = _table_of_text(data) if isinstance(data, str) else _table_of_records(data, sort_keys)
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    if (sum(widths) + 3 * len(widths)) * len(rows) > TEXT_MAX_BYTES:
        raise ValueError(f"Invalid data: as a table, it is larger than {TEXT_MAX_BYTES} bytes.")
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    lines.insert(1, ["-" * width for width in widths])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _table_of_text(text: str) -> list[list[str]]:
    check_size(text)
    rows = [_cells(line) for line in text.splitlines() if line.strip().startswith("|")]
    if len(rows) < 2 or not all(set(cell) <= set("-: ") and "-" in cell for cell in rows[1]):
        raise ValueError("Invalid Markdown table: a header row and a row of dashes must come first.")
    if any(len(row) != len(rows[0]) for row in rows):
        raise ValueError(f"Invalid Markdown table: every row needs {len(rows[0])} cells.")
    return [rows[0], *rows[2:]]


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in _UNESCAPED_BAR.split(inner)]


def _table_of_records(data: JsonValue, sort_keys: bool) -> list[list[str]]:
    records = [data] if isinstance(data, dict) else data
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ValueError("Invalid data: a Markdown table is made of a list of objects.")
    rows = [record for record in records if isinstance(record, dict)]
    columns = list(dict.fromkeys(key for row in rows for key in row)) or ["(nothing)"]
    if len(columns) > COLUMNS_MAX:
        raise ValueError(f"Invalid data: a table has at most {COLUMNS_MAX} columns.")
    columns = sorted(columns) if sort_keys else columns
    return [[_cell(column) for column in columns], *([_cell(row.get(c)) for c in columns] for row in rows)]


def _cell(value: JsonValue) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return " ".join(text.replace("|", r"\|").split())


_RENDERERS: dict[str, Callable[[JsonValue, bool], str]] = {
    "json": _render_json,
    "yaml": _render_yaml,
    "markdown_table": _render_table,
}
