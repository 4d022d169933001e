"""TypeScript as the sandbox takes it: the body of an asynchronous function, line by line as it was written.

A module's `export` is blanked out, and what a module exports as default without a name gets one. There is
nothing to import: the interpreter has modules of its own that are not the program's affair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node, Parser

from pml.processors.capabilities.program import source_error
from pml.processors.capabilities.typescript_program import grammar
from pml.processors.sandboxing.prepared import GIVEN, Entry, Part, Prepared, entry_of
from pml.schemas.stepping import Linked

DEFAULT = "default"
LINKED = "$linked"
"""What the module exports its capabilities as, by their names."""
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_RESERVED = frozenset(
    [
        *(
            "arguments",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "debugger",
            "default",
        ),
        *("delete", "do", "else", "enum", "eval", "export", "extends", "false", "finally", "for", "function"),
        *("if", "implements", "import", "in", "instanceof", "interface", "let", "new", "null", "package"),
        *("private", "protected", "public", "return", "static", "super", "switch", "this", "throw", "true"),
        *("try", "typeof", "var", "void", "while", "with", "yield"),
    ]
)
_UNNAMED = "$default"
_NO_IMPORT = "`import` is not to be had in the sandbox"


def prepared_typescript(source: str, given: Collection[str], linked: Sequence[Linked] = ()) -> Prepared:
    """The source for the sandbox; `given` are the names of what the caller gives.

    Args:
        linked: capabilities that become functions of the program.

    Raises:
        SourceError: it is not TypeScript, or imports something.
        WorkflowInvalid: the caller does not give all that the program takes.
    """
    entry = entry_of(source, "typescript")
    beginning = "" if entry is None else f"\n{_beginning(entry, given)}"
    code = f"{_plain(source)}{beginning}"
    more, parts = _functions(linked, code.count("\n") + 2)
    return Prepared(code, more=more, parts=parts)


def _functions(linked: Sequence[Linked], lines: int) -> tuple[str, tuple[Part, ...]]:
    """The capabilities as functions by their names, behind a program that ends on this line."""
    text, parts = "", []
    for number, each in enumerate(linked):
        text += "\n"
        parts.append(Part(each.names[0], lines + text.count("\n") - 1))
        text += f"const $capability{number} = async (mcp, capabilities, args) => {{{_body(each)}\n}}}};"
    named = (f"{json.dumps(name)}: $capability{n}" for n, each in enumerate(linked) for name in each.names)
    return (f"{text}\nexport const {LINKED} = {{{', '.join(named)}}};" if linked else ""), tuple(parts)


def _body(linked: Linked) -> str:
    """On the first line what it takes, then the program in a block of its own, and its entry."""
    entry = entry_of(linked.source, "typescript")
    names = [item.name for item in linked.parameters if item.name != GIVEN and _NAME.fullmatch(item.name)]
    taken = ", ".join(name for name in names if name not in _RESERVED)
    call = "" if entry is None else f"\n{_beginning(entry, entry.names)}"
    return f"const {{{taken}}} = args;{{{_plain(linked.source)}{call}"


def _plain(source: str) -> str:
    """The program without what only a module may have.

    Raises:
        SourceError: it imports something.
    """
    data = bytearray(source.encode("utf-8", "replace"))
    root = Parser(grammar()).parse(bytes(data)).root_node
    for node in _every(root):
        _check_import(node)
    edits = [edit for node in root.named_children for edit in _edits(node)]
    for start, end, text in reversed(edits):
        data[start:end] = text + b"\n" * bytes(data[start:end]).count(b"\n")
    return data.decode("utf-8")


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
