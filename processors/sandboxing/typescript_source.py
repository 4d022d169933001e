"""TypeScript as the sandbox takes it: the body of an asynchronous function, line by line as it was written.

A module's `export` is blanked out, and what a module exports as default without a name gets one. There is
nothing to import: the interpreter has modules of its own that are not the program's affair.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from tree_sitter import Node, Parser

from pml.processors.capabilities.program import source_error
from pml.processors.capabilities.typescript_program import grammar
from pml.processors.sandboxing.prepared import GIVEN, Entry, Prepared, entry_of

DEFAULT = "default"
_UNNAMED = "$default"
_NO_IMPORT = "`import` is not to be had in the sandbox"


def prepared_typescript(source: str, given: Collection[str]) -> Prepared:
    """The source for the sandbox; `given` are the names of what the caller gives.

    Raises:
        SourceError: it is not TypeScript, or imports something.
        WorkflowInvalid: the caller does not give all that the program takes.
    """
    entry = entry_of(source, "typescript")
    data = bytearray(source.encode("utf-8", "replace"))
    root = Parser(grammar()).parse(bytes(data)).root_node
    for node in _every(root):
        _check_import(node)
    edits = [edit for node in root.named_children for edit in _edits(node)]
    for start, end, text in reversed(edits):
        data[start:end] = text + b"\n" * bytes(data[start:end]).count(b"\n")
    beginning = "" if entry is None else f"\n{_beginning(entry, given)}"
    return Prepared(data.decode("utf-8") + beginning)


def _every(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)


def _check_import(node: Node) -> None:
    line = node.start_point.row + 1
    if node.type == "import" and node.parent is not None and node.parent.type != "import_statement":
        raise source_error(_NO_IMPORT, line, node.start_point.column + 1)
    if node.type == "import_statement" and not _is_of_types(node):
        raise source_error(_NO_IMPORT, line, node.start_point.column + 1)


def _is_of_types(node: Node) -> bool:
    """`import type { … }`: gone before anything runs."""
    return any(each.type == "type" for each in node.children)


def _edits(node: Node) -> Iterator[tuple[int, int, bytes]]:
    """What is written in the place of some bytes; nothing moves to another line."""
    if node.type == "import_statement":
        yield node.start_byte, node.end_byte, b""
    elif node.type == "export_statement":
        yield from _exported(node)


def _exported(node: Node) -> Iterator[tuple[int, int, bytes]]:
    declared = node.child_by_field_name("declaration")
    value = node.child_by_field_name("value")
    if declared is not None:
        yield node.start_byte, declared.start_byte, b""
    elif value is not None:
        named = value.child_by_field_name("name") if value.type == "function_expression" else None
        keeps = named is not None
        yield node.start_byte, value.start_byte, b"" if keeps else f"const {_UNNAMED} = ".encode()
    else:
        yield node.start_byte, node.end_byte, b""


def _beginning(entry: Entry, given: Collection[str]) -> str:
    """`return await main(args["path"], undefined)`: what is not given has its default."""
    values = (_value(name) if is_given else "undefined" for name, is_given in entry.given(given))
    name = _UNNAMED if entry.name == DEFAULT else entry.name
    return f"return await {name}({', '.join(values)});"


def _value(name: str) -> str:
    return GIVEN if name == GIVEN else f"{GIVEN}[{json.dumps(name)}]"
