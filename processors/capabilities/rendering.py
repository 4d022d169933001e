"""Values of an analysis as the structure keeps them: arguments, and the text of expressions.

An expression is kept twice: over node ids in the one grammar that the core evaluates (`conditions`), where it
has operators only, and as code of the program's own language for what computes all others.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
from dataclasses import dataclass, field
from typing import Any

from pml.processors.capabilities.program import Language
from pml.processors.capabilities.values import (
    Arguments,
    Called,
    Coded,
    Items,
    Known,
    Opaque,
    Operated,
    Parameter,
    Record,
    Reference,
    Value,
)
from pml.processors.workflow.references import Path
from pml.schemas.workflow import Argument, ListOf, LiteralValue, ObjectOf
from pml.schemas.workflow import Expression as Computed
from pml.schemas.workflow import Parameter as ParameterArgument
from pml.schemas.workflow import Reference as ReferenceArgument

REFERENCE_MAX = 1_000
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUOTED = re.compile(r'["\\]')
_PYTHON: dict[str, Any] = {
    "+": ast.Add(),
    "-": ast.Sub(),
    "*": ast.Mult(),
    "/": ast.Div(),
    "%": ast.Mod(),
    "==": ast.Eq(),
    "!=": ast.NotEq(),
    "<": ast.Lt(),
    "<=": ast.LtE(),
    ">": ast.Gt(),
    ">=": ast.GtE(),
    "in": ast.In(),
    "not in": ast.NotIn(),
    "and": ast.And(),
    "or": ast.Or(),
}
_TYPESCRIPT = {"==": "===", "!=": "!==", "and": "&&", "or": "||"}


class TooLong(Exception):
    """A name or a reference that is longer than a workflow may have."""


class NotCommon(Exception):
    """A value that the grammar of the core has no words for."""


def argument(value: Value, language: Language) -> Argument:
    """A value as an argument of a node.

    Raises:
        TooLong: a reference would have to be longer than a workflow allows.
    """
    match value:
        case Known(value=literal):
            return LiteralValue(value=literal)
        case Reference():
            text = reference_text(value)
            if len(text) > REFERENCE_MAX:
                raise TooLong
            return ReferenceArgument(expression=text)
        case Parameter(name=name):
            return ParameterArgument(parameter_name=name)
        case Record(entries=entries):
            fields = {name: argument(item, language) for name, item in entries}
            return _literal_object(fields) or ObjectOf(fields=fields)
        case Items(items=items):
            found = tuple(argument(item, language) for item in items)
            return _literal_list(found) or ListOf(items=found)
    code, names = code_of(value, language)
    return Computed(expression=common(value), code=code, names=names)


def common(value: Value) -> str | None:
    """An expression over node ids and `args` that means the same in every language, if there is one."""
    try:
        return ast.unparse(_tree(value))
    except (NotCommon, ValueError):  # a text inside of a template inside of a text has no quotes left
        return None


def code_of(value: Value, language: Language) -> tuple[str, dict[str, Argument]]:
    """An expression in a language, and what its variables stand for; `args` is what the caller gives."""
    if isinstance(value, Coded):
        return value.code, {name: argument(item, language) for name, item in value.names}
    writer = _Writer(language)
    return writer.text(value), writer.names


def reference_text(reference: Reference) -> str:
    """A reference as a workflow has it: `n1.items[0].id`, alternatives `n2.x|n3.x`."""
    return "|".join(path.node + "".join(map(_step, path.steps)) for path in reference.paths)


def _step(step: str | int) -> str:
    if isinstance(step, str) and _IDENTIFIER.match(step):
        return f".{step}"
    if isinstance(step, int):
        return f"[{step}]"
    return '["' + _QUOTED.sub(r"\\\g<0>", step) + '"]'


def _literal_object(fields: dict[str, Argument]) -> LiteralValue | None:
    values = {name: item.value for name, item in fields.items() if isinstance(item, LiteralValue)}
    return LiteralValue(value=values) if len(values) == len(fields) else None


def _literal_list(items: tuple[Argument, ...]) -> LiteralValue | None:
    values = [item.value for item in items if isinstance(item, LiteralValue)]
    return LiteralValue(value=values) if len(values) == len(items) else None


def _tree(value: Value) -> ast.expr:
    match value:
        case Known(value=literal) if literal is None or isinstance(literal, (bool, int, float, str)):
            return _constant(literal)
        case Reference(paths=(path,)):
            return _steps(ast.Name(path.node), path.steps)
        case Parameter(name=name):
            return _steps(ast.Name("args"), (name,))
        case Arguments():
            return ast.Name("args")
        case Items(items=items):
            return ast.List([_tree(item) for item in items])
        case Operated(operator=operator, operands=operands):
            return _operation(operator, [_tree(item) for item in operands])
    raise NotCommon


def _constant(literal: Any) -> ast.expr:
    """The grammar of the core writes booleans and null as JSON does, so that both languages read them."""
    if literal is None or isinstance(literal, bool):
        return ast.Name(json.dumps(literal))
    if isinstance(literal, (int, float)) and literal < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-literal))
    return ast.Constant(literal)


def _steps(tree: ast.expr, steps: tuple[str | int, ...]) -> ast.expr:
    for step in steps:
        if isinstance(step, str) and _IDENTIFIER.match(step) and not keyword.iskeyword(step):
            tree = ast.Attribute(tree, step)
        else:
            tree = ast.Subscript(tree, ast.Constant(step))
    return tree


def _operation(operator: str, operands: list[ast.expr]) -> ast.expr:
    match operator, operands:
        case "not", [operand]:
            return ast.UnaryOp(ast.Not(), operand)
        case "-", [operand]:
            return ast.UnaryOp(ast.USub(), operand)
        case (("and" | "or"), _):
            return ast.BoolOp(_PYTHON[operator], operands)
        case "%", _:
            raise NotCommon  # less than zero it gives another sign in each language
        case "item", [_, ast.Constant(value="length")]:
            raise NotCommon  # only of a list in TypeScript it is more than a field
        case "item", [inner, ast.Constant(value=str() | int() as key)]:
            return _steps(inner, (key,))
        case "item", [inner, key]:
            return ast.Subscript(inner, key)
        case "choice", [condition, then, otherwise]:
            return ast.IfExp(condition, then, otherwise)
        case "template", _:
            return ast.JoinedStr(
                [each if _is_text(each) else ast.FormattedValue(each, -1) for each in operands]
            )
        case (("+" | "-" | "*" | "/" | "%"), [left, right]):
            return ast.BinOp(left, _PYTHON[operator], right)
        case _, [left, right]:
            return ast.Compare(left, [_PYTHON[operator]], [right])
    raise NotCommon


def _is_text(tree: ast.expr) -> bool:
    return isinstance(tree, ast.Constant) and isinstance(tree.value, str)


@dataclass
class _Writer:
    """Writes one expression; every variable in it is a node, or a value of its own."""

    language: Language
    names: dict[str, Argument] = field(default_factory=dict)

    def text(self, value: Value) -> str:
        match value:
            case Known(value=literal):
                return self._literal(literal)
            case Reference(paths=(path,)):
                self.names[path.node] = ReferenceArgument(expression=path.node)
                return path.node + self._steps(path)
            case Parameter(name=name):
                return "args" + self._steps(Path("args", (name,)))
            case Arguments():
                return "args"
            case Record(entries=entries):
                return self._object(entries)
            case Items(items=items):
                return f"[{', '.join(map(self.text, items))}]"
            case Operated(operator=operator, operands=operands):
                return self._operated(operator, operands)
            case Called():
                return self._called(value)
            case Opaque(code=code) | Coded(code=code, names=()):
                return f"({code})"
        return self._named(value)

    def _object(self, entries: tuple[tuple[str, Value], ...]) -> str:
        written = ", ".join(f"{json.dumps(name)}: {self.text(item)}" for name, item in entries)
        return f"{{{written}}}"

    def _named(self, value: Value) -> str:
        """A variable of its own for what has to be computed apart, or chosen among alternatives."""
        name = f"v{len(self.names) + 1}"
        self.names[name] = argument(value, self.language)
        return name

    def _literal(self, literal: Any) -> str:
        if self.language == "python" and not isinstance(literal, str):
            return repr(literal)
        return json.dumps(literal, ensure_ascii=False)

    def _steps(self, path: Path) -> str:
        """Fields by their names in quotes: that reads a dictionary in Python and an object in TypeScript."""
        return "".join(f"[{json.dumps(step, ensure_ascii=False)}]" for step in path.steps)

    def _operated(self, operator: str, operands: tuple[Value, ...]) -> str:
        texts = [self._inner(each) for each in operands]
        match operator, texts:
            case "not", [text]:
                return f"not {text}" if self.language == "python" else f"!{text}"
            case "-", [text]:
                return f"-{text}"
            case "item", [inner, key]:
                return f"{inner}[{key}]"
            case "choice", [condition, then, otherwise]:
                if self.language == "python":
                    return f"{then} if {condition} else {otherwise}"
                return f"{condition} ? {then} : {otherwise}"
            case "template", _:
                return self._template(operands)
        written = operator if self.language == "python" else _TYPESCRIPT.get(operator, operator)
        return f" {written} ".join(texts)

    def _inner(self, value: Value) -> str:
        text = self.text(value)
        return f"({text})" if isinstance(value, Operated) else text

    def _template(self, operands: tuple[Value, ...]) -> str:
        if self.language == "python":
            return " + ".join(self._formatted(part) for part in operands)
        return f"`{''.join(self._interpolated(part) for part in operands)}`"

    def _formatted(self, part: Value) -> str:
        written = isinstance(part, Known) and isinstance(part.value, str)
        return self.text(part) if written else f"format({self.text(part)})"

    def _interpolated(self, part: Value) -> str:
        if isinstance(part, Known) and isinstance(part.value, str):
            return part.value.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
        return f"${{{self.text(part)}}}"

    def _called(self, value: Called) -> str:
        given = [self.text(each) for each in value.positional]
        given += [f"{name}={self.text(each)}" for name, each in value.named]
        receiver = "" if value.receiver is None else f"{self._receiver(value.receiver)}."
        return f"{receiver}{value.function}({', '.join(given)})"

    def _receiver(self, value: Value) -> str:
        """A number with a dot behind it would be another number."""
        return f"({self.text(value)})" if isinstance(value, Known) else self._inner(value)
