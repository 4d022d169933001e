"""Python into a `Program`, by the standard library's parser (DESIGN §6)."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pml.processors.capabilities.program import (
    Assign,
    Call,
    Case,
    Choice,
    Constant,
    Define,
    Each,
    Evaluate,
    Expression,
    ForEach,
    If,
    Inexpressible,
    Item,
    Mapping,
    Name,
    Names,
    Operation,
    Operator,
    Program,
    Return,
    Sequence,
    SourceError,
    Statement,
    Switch,
    Template,
    Together,
    Unknown,
)

# What runs agents' code has these anyway; importing them says nothing.
_IMPORTED = frozenset({"__future__", "asyncio", "typing"})
_OPERATORS: dict[type[ast.AST], Operator] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "==",
    ast.IsNot: "!=",
    ast.And: "and",
    ast.Or: "or",
}
_TREE_ONLY = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def read_python(code: str) -> Program:
    """The program of a source text, which may await and return outside of functions.

    Raises:
        SourceError: it is not Python.
    """
    return Program("python", _Reader(code).statements(_parsed(code).body))


def _parsed(code: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an escape that is none: the author's affair
            tree = compile(code, "<code>", "exec", _TREE_ONLY)
    except SyntaxError as error:
        raise SourceError(error.msg, error.lineno or 1, error.offset or 1) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceError(str(error) or "it is nested too deeply", 1, 1) from None
    assert isinstance(tree, ast.Module)
    return tree


class _Reader:
    """Reads trees of one source text."""

    def __init__(self, code: str) -> None:
        self._code = code

    def statements(self, trees: Iterable[ast.stmt]) -> tuple[Statement, ...]:
        return tuple(statement for tree in trees for statement in self._statement(tree))

    def _at(self, tree: Any) -> dict[str, Any]:
        return {"line": tree.lineno, "source": ast.get_source_segment(self._code, tree) or ""}

    def _statement(self, tree: ast.stmt) -> Iterator[Statement]:
        at = self._at(tree)
        match tree:
            case ast.Pass():
                return
            case ast.Import(names=names) if {alias.name for alias in names} <= _IMPORTED:
                return
            case ast.ImportFrom(module=module) if module in _IMPORTED:
                return
            case ast.Assign(targets=[target], value=value):
                yield self._assign(target, self._expression(value), at)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield self._assign(target, self._expression(value), at)
            case ast.AnnAssign():
                return
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value) if (
                type(operator) in _OPERATORS
            ):
                operands = (Name(name, **at), self._expression(value))
                yield Assign(Names(whole=name), Operation(_OPERATORS[type(operator)], operands, **at), **at)
            case ast.Expr(value=ast.Constant()):
                return  # a docstring
            case ast.Expr(value=value):
                yield Evaluate(self._expression(value), **at)
            case ast.If(test=test, body=body, orelse=orelse):
                yield If(self._expression(test), self.statements(body), self.statements(orelse), **at)
            case ast.Match():
                yield self._switch(tree, at)
            case ast.For(target=target, iter=items, body=body, orelse=[]) if variable := names_of(target):
                yield ForEach(self._expression(items), variable, self.statements(body), **at)
            case ast.Return(value=value):
                yield Return(self._expression(value) if value is not None else None, **at)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield self._function(tree, at)
            case ast.AsyncWith(
                items=[ast.withitem(context_expr=opened, optional_vars=ast.Name(id=group))]
            ) if _is_call_of(opened, "TaskGroup"):
                yield from self._task_group(tree, group, at)
            case _:
                yield Inexpressible(_named(tree), self.statements(_inside(tree)), **at)

    def _assign(self, target: ast.expr, value: Expression, at: dict[str, Any]) -> Statement:
        names = names_of(target)
        if names is None:
            return Inexpressible("assigns to a part of a value", (Evaluate(value, **at),), **at)
        return Assign(names, value, **at)

    def _function(self, tree: ast.FunctionDef | ast.AsyncFunctionDef, at: dict[str, Any]) -> Statement:
        given = tree.args
        body = self.statements(tree.body)
        if given.vararg or given.kwarg or tree.decorator_list or any(given.kw_defaults):
            return Inexpressible("a function with a decorator or a variable number of arguments", body, **at)
        names = tuple(item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs))
        defaults = tuple(map(self._expression, given.defaults))
        return Define(tree.name, names, body, defaults, **at)

    def _switch(self, tree: ast.Match, at: dict[str, Any]) -> Statement:
        cases: list[Case] = []
        for case in tree.cases:
            values = self._values(case.pattern)
            if values is None or case.guard is not None:
                body = tuple(each for item in tree.cases for each in self.statements(item.body))
                return Inexpressible("a pattern that is no value, or has a guard", body, **at)
            cases.append(Case(values, self.statements(case.body), line=case.pattern.lineno))
        return Switch(self._expression(tree.subject), tuple(cases), **at)

    def _values(self, pattern: ast.pattern) -> tuple[Expression, ...] | None:
        match pattern:
            case ast.MatchAs(pattern=None, name=None):
                return ()
            case ast.MatchValue(value=value):
                return (self._expression(value),)
            case ast.MatchSingleton(value=value):
                return (Constant(value, line=pattern.lineno),)
            case ast.MatchOr(patterns=patterns):
                found = [self._values(each) for each in patterns]
                return tuple(item for each in found for item in each or ()) if all(found) else None
        return None

    def _task_group(self, tree: ast.AsyncWith, group: str, at: dict[str, Any]) -> Iterator[Statement]:
        """Every statement must start a task; a task's `result()` is its value, so its name stands for it."""
        names: list[Names | None] = []
        values: list[Expression] = []
        for each in tree.body:
            target, started = _started(each, group)
            if started is None:
                yield Inexpressible(
                    "a task group that does more than start tasks", self.statements(tree.body), **at
                )
                return
            names.append(Names(whole=target) if target else None)
            values.append(_awaited(self._expression(started)))
        yield Assign(Names(parts=tuple(names)), Together(Sequence(tuple(values), **at), **at), **at)

    def _expression(self, tree: ast.expr) -> Expression:
        at = self._at(tree)
        match tree:
            case ast.Constant(value=value) if value is None or isinstance(value, (str, int, float, bool)):
                return Constant(value, **at)
            case ast.Name(id=name):
                return Name(name, **at)
            case ast.Attribute(value=value, attr=key):
                return Item(self._expression(value), Constant(key, **at), **at)
            case ast.Subscript(value=value, slice=key) if not isinstance(key, ast.Slice):
                return Item(self._expression(value), self._expression(key), **at)
            case ast.Await(value=value):
                return _awaited(self._expression(value))
            case ast.Call():
                return self._call(tree, at)
            case ast.Dict(keys=keys, values=values):
                return self._mapping(tree, keys, values, at)
            case ast.List(elts=items) | ast.Tuple(elts=items) if not _starred(items):
                return Sequence(tuple(map(self._expression, items)), **at)
            case ast.JoinedStr(values=parts):
                return self._template(tree, parts, at)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                return self._operation(_OPERATORS[type(operator)], (left, right), at)
            case ast.BoolOp(op=operator, values=values):
                return self._operation(_OPERATORS[type(operator)], values, at)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._operation("not", (operand,), at)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._operation("-", (operand,), at)
            case ast.Compare(left=left, ops=operators, comparators=others):
                return self._comparison(tree, operators, [left, *others], at)
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return Choice(*map(self._expression, (test, then, otherwise)), **at)
            case ast.ListComp(elt=body, generators=[each]) | ast.GeneratorExp(elt=body, generators=[each]):
                return self._each(tree, body, each, at)
        return self._unknown(tree, at)

    def _unknown(self, tree: ast.AST, at: dict[str, Any]) -> Unknown:
        parts = tuple(self._expression(each) for each in _expressions_in(tree))
        return Unknown(_named(tree), parts, **at)

    def _operation(self, operator: Operator, operands: Iterable[ast.expr], at: dict[str, Any]) -> Expression:
        return Operation(operator, tuple(map(self._expression, operands)), **at)

    def _comparison(
        self, tree: ast.Compare, operators: list[ast.cmpop], operands: list[ast.expr], at: dict[str, Any]
    ) -> Expression:
        """A chain compares neighbours; one whose middle is more than a value would be evaluated twice."""
        if any(not isinstance(each, (ast.Constant, ast.Name)) for each in operands[1:-1]):
            return self._unknown(tree, at)
        pairs = [
            self._operation(_OPERATORS[type(operator)], pair, at)
            for operator, pair in zip(operators, pairwise(operands), strict=True)
        ]
        return pairs[0] if len(pairs) == 1 else Operation("and", tuple(pairs), **at)

    def _mapping(
        self, tree: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr], at: dict[str, Any]
    ) -> Expression:
        if not all(
            key is None or isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys
        ):
            return self._unknown(tree, at)
        names = [key.value if isinstance(key, ast.Constant) else None for key in keys]
        return Mapping(tuple(zip(names, map(self._expression, values), strict=True)), **at)

    def _template(self, tree: ast.JoinedStr, parts: list[ast.expr], at: dict[str, Any]) -> Expression:
        found: list[Expression] = []
        for part in parts:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None or part.conversion != -1:
                    return self._unknown(tree, at)
                part = part.value
            found.append(self._expression(part))
        return Template(tuple(found), **at)

    def _each(self, tree: ast.AST, body: ast.expr, each: ast.comprehension, at: dict[str, Any]) -> Expression:
        variable = names_of(each.target)
        if each.ifs or each.is_async or variable is None:
            return self._unknown(tree, at)
        return Each(self._expression(each.iter), variable, self._expression(body), **at)

    def _call(self, tree: ast.Call, at: dict[str, Any]) -> Expression:
        if _is_call_of(tree, "gather"):
            return self._gather(tree, at)
        if _starred(tree.args):
            return self._unknown(tree, at)
        named = tuple((each.arg, self._expression(each.value)) for each in tree.keywords)
        return Call(self._expression(tree.func), tuple(map(self._expression, tree.args)), named, **at)

    def _gather(self, tree: ast.Call, at: dict[str, Any]) -> Expression:
        settled = [ast.dump(each.value) == "Constant(value=True)" for each in tree.keywords]
        if any(each.arg != "return_exceptions" for each in tree.keywords):
            return self._unknown(tree, at)
        match tree.args:
            case [ast.Starred(value=value)]:
                items = self._expression(value)
                if isinstance(items, Each):
                    items = replace(items, body=_awaited(items.body))
            case args if not _starred(args):
                items = Sequence(tuple(_awaited(self._expression(each)) for each in args), **at)
            case _:
                return self._unknown(tree, at)
        return Together(items, any(settled), **at)


def names_of(target: ast.expr) -> Names | None:
    """The variables of a target; None where it is more than names."""
    match target:
        case ast.Name(id=name):
            return Names(whole=name, line=target.lineno)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            parts = [names_of(each) for each in items]
            return Names(parts=tuple(parts), line=target.lineno) if all(parts) else None
    return None


def _awaited(value: Expression) -> Expression:
    return replace(value, awaited=True) if isinstance(value, Call) else value


def _starred(items: Iterable[ast.expr]) -> bool:
    return any(isinstance(each, ast.Starred) for each in items)


def _is_call_of(tree: ast.expr, name: str) -> bool:
    """`asyncio.NAME(…)`, or `NAME(…)` where it was imported."""
    match tree:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr=found) | ast.Name(id=found)):
            return found == name
    return False


def _started(tree: ast.stmt, group: str) -> tuple[str | None, ast.expr | None]:
    """The variable and the call of `t = group.create_task(call)`."""
    target: str | None = None
    match tree:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) | ast.Expr(value=value):
            pass
        case _:
            return None, None
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="create_task"), args=[call]) if (
            name == group
        ):
            return target, call
    return None, None


def _named(tree: ast.AST) -> str:
    """What a construct is called in a message to its author."""
    names: dict[type[ast.AST], str] = {
        ast.Try: "`try`",
        ast.While: "`while`",
        ast.Raise: "`raise`",
        ast.With: "`with`",
        ast.AsyncWith: "`async with`",
        ast.AsyncFor: "`async for`",
        ast.For: "a loop with `else`, or over more than names",
        ast.ClassDef: "a class",
        ast.Break: "`break`",
        ast.Continue: "`continue`",
        ast.Import: "`import`",
        ast.ImportFrom: "`import`",
        ast.Lambda: "a function in an expression",
    }
    return names.get(type(tree), f"{type(tree).__name__}")


def _inside(tree: ast.AST) -> list[ast.stmt]:
    """The statements of a compound one, whatever it is; its expressions as statements before them."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.expr) and not isinstance(child, (ast.Constant, ast.Name)):
            found.append(ast.copy_location(ast.Expr(child), child))
        else:
            found += _inside(child)
    return found


def _expressions_in(tree: ast.AST) -> Iterator[ast.expr]:
    """The nearest expressions below a tree."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.expr):
            yield child
        else:
            yield from _expressions_in(child)


Reader = Callable[[str], Program]
