"""What a program takes from outside, read off its text: for those that are not followed through (DESIGN §6).

A name that nothing in the program gives a value, or a field of `args`. One that is looked for with a default
beside it need not be given. What is missed so is only not asked for before the program runs.
"""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator

from tree_sitter import Node, Parser

from pml.processors.capabilities.language_names import is_known
from pml.processors.capabilities.situation import PARAMETER_NAME_MAX
from pml.processors.capabilities.typescript_program import grammar
from pml.schemas.structure import Language, StructureParameter

GIVEN = "args"
_OURS = frozenset({GIVEN, "mcp", "capabilities", "asyncio", "json", "math", "re"})
_PYTHON = frozenset(dir(builtins)) | _OURS
_TYPESCRIPT = _OURS | {"arguments", "console", "globalThis", "undefined", "setTimeout", "clearTimeout"}
_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

_Taken = tuple[str, bool]
"""A name, and whether it has to be given."""


def taken_by(
    source: str, language: Language, known: Collection[StructureParameter]
) -> tuple[StructureParameter, ...]:
    """All that a program takes.

    Args:
        source: of its language, as `analysing.read` takes it.
        known: what its analysis found; these stay as they are.
    """
    found = _by_python(source) if language == "python" else _by_typescript(source)
    required: dict[str, bool] = {}
    for name, needed in found:
        if 1 <= len(name) <= PARAMETER_NAME_MAX:
            required[name] = required.get(name, True) and needed
    names = {item.name for item in known}
    new = (StructureParameter(name=name, required=needed) for name, needed in required.items())
    return (*known, *(item for item in new if item.name not in names))


def _by_python(source: str) -> Iterator[_Taken]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = compile(source, "<code>", "exec", _FLAGS)
    bound = {name for node in ast.walk(tree) for name in _bound_by(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="args"), attr="get"):
                continue
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="args"), attr="get"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name, False
            case ast.Compare(
                left=ast.Constant(value=str(name)),
                ops=[ast.In() | ast.NotIn()],
                comparators=[ast.Name(id="args")],
            ):
                yield name, False
            case (
                ast.Attribute(value=ast.Name(id="args"), attr=name)
                | ast.Subscript(value=ast.Name(id="args"), slice=ast.Constant(value=str(name)))
            ):
                yield name, True
            case ast.Name(id=name, ctx=ast.Load()) if name not in bound | _PYTHON:
                yield name, True


def _bound_by(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
        case ast.MatchMapping(rest=str(name)):
            return (name,)
        case ast.alias(name=name, asname=other):
            return (other or name.partition(".")[0],)
    return ()


def _by_typescript(source: str) -> Iterator[_Taken]:
    nodes = list(_every(Parser(grammar()).parse(source.encode("utf-8", "replace")).root_node))
    bound = {_text(node) for node in nodes if _is_bound(node)}
    for node in nodes:
        if node.type in _READ and _text(node) not in bound:
            name = _text(node)
            if name not in _TYPESCRIPT and not is_known(name, "typescript"):
                yield name, not _has_default(node)
        elif node.type == "member_expression" and _is_args(node.child_by_field_name("object")):
            field = node.child_by_field_name("property")
            if field is not None:
                yield _text(field), not _has_default(node)
        elif node.type == "subscript_expression" and _is_args(node.child_by_field_name("object")):
            index = node.child_by_field_name("index")
            if index is not None and index.type == "string":
                yield _text(index)[1:-1], not _has_default(node)
        elif node.type == "variable_declarator" and _is_args(node.child_by_field_name("value")):
            yield from _taken_apart(node.child_by_field_name("name"))


_READ = frozenset({"identifier", "shorthand_property_identifier"})
_PATTERNS = frozenset({"object_pattern", "array_pattern", "rest_pattern", "pair_pattern"})
_BINDING: dict[str, Callable[[Node], Node | None]] = {
    **dict.fromkeys(
        [
            "variable_declarator",
            "function_declaration",
            "function_expression",
            "class_declaration",
            "enum_declaration",
        ],
        lambda parent: parent.child_by_field_name("name"),
    ),
    **dict.fromkeys(
        ["required_parameter", "optional_parameter"], lambda parent: parent.child_by_field_name("pattern")
    ),
    "arrow_function": lambda parent: parent.child_by_field_name("parameter"),
    "catch_clause": lambda parent: parent.child_by_field_name("parameter"),
    "for_in_statement": lambda parent: parent.child_by_field_name("left"),
    "labeled_statement": lambda parent: parent.child_by_field_name("label"),
    "assignment_pattern": lambda parent: parent.child_by_field_name("left"),
    "object_assignment_pattern": lambda parent: parent.child_by_field_name("left"),
}
_IMPORTING = frozenset({"import_clause", "import_specifier", "namespace_import"})


def _is_bound(node: Node) -> bool:
    """Whether a name is given a value where it stands."""
    if node.type == "shorthand_property_identifier_pattern":
        return True
    parent = node.parent
    if node.type == "type_identifier":
        return parent is not None and parent.type == "class_declaration"
    if node.type != "identifier" or parent is None:
        return False
    if parent.type in _IMPORTING or parent.type in _PATTERNS:
        return True
    place = _BINDING.get(parent.type)
    return place is not None and place(parent) == node


def _has_default(node: Node) -> bool:
    """`x ?? 3`, `x || 3`, `typeof x`, `x?.y`: it is thought of that it may not be there."""
    parent = node.parent
    if parent is None:
        return False
    operator = parent.child_by_field_name("operator")
    said = _text(operator) if operator is not None else ""
    if parent.type == "binary_expression" and said in {"??", "||"}:
        return parent.child_by_field_name("left") == node
    return parent.type == "unary_expression" and said == "typeof"


def _taken_apart(pattern: Node | None) -> Iterator[_Taken]:
    """`const { a, b = 2, c: d } = args`."""
    for part in pattern.named_children if pattern is not None and pattern.type == "object_pattern" else ():
        if part.type == "shorthand_property_identifier_pattern":
            yield _text(part), True
        elif part.type == "object_assignment_pattern":
            yield _text(part.named_children[0]), False
        elif part.type == "pair_pattern":
            value = part.child_by_field_name("value")
            yield _text(part.named_children[0]), value is None or value.type != "assignment_pattern"


def _is_args(node: Node | None) -> bool:
    return node is not None and node.type == "identifier" and _text(node) == GIVEN


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _every(root: Node) -> Iterator[Node]:
    """A tree in the order of its text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))
