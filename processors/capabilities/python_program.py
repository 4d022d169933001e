"""Python into a `Program`, by the standard library's parser (DESIGN §6)."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from typing import Any

from pml.processors.capabilities.program import (
    Assign,
    Await,
    Call,
    Case,
    Choice,
    Constant,
    Each,
    Evaluate,
    Expression,
    ForEach,
    Function,
    Group,
    If,
    Inexpressible,
    Item,
    Mapping,
    Name,
    Names,
    Native,
    Operation,
    Operator,
    Program,
    Return,
    Sequence,
    Spread,
    Statement,
    Store,
    Switch,
    Template,
    Together,
    source_error,
)

# What runs agents' code has these anyway; importing them says nothing.
IMPORTED = frozenset({"__future__", "asyncio", "json", "math", "re", "typing"})
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
_IMPURE = (ast.NamedExpr, ast.Yield, ast.YieldFrom)
_NAMED: dict[type[ast.AST], str] = {
    ast.Try: "`try`",
    ast.TryStar: "`try`",
    ast.While: "`while`",
    ast.Raise: "`raise`",
    ast.Assert: "`assert`",
    ast.With: "`with`",
    ast.AsyncWith: "`async with`",
    ast.AsyncFor: "`async for`",
    ast.For: "a loop with `else`, or over more than names",
    ast.ClassDef: "a class",
    ast.Break: "`break`",
    ast.Continue: "`continue`",
    ast.Import: "`import`",
    ast.ImportFrom: "`import`",
    ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`",
    ast.Delete: "`del`",
    ast.Assign: "an assignment to a part of a value",
    ast.AugAssign: "an assignment to a part of a value",
    ast.AnnAssign: "an assignment to a part of a value",
    ast.NamedExpr: "`:=`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`",
    ast.Slice: "a slice",
    ast.Subscript: "a slice",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.Set: "a set",
    ast.JoinedStr: "a formatted text",
    ast.Dict: "a dictionary with computed keys",
    ast.Compare: "a chain of comparisons",
}


def read_python(code: str) -> Program:
    """The program of a source text, which may await and return outside of functions.

    Raises:
        SourceError: it is not Python.
    """
    try:
        return Program("python", _Reader(code).statements(_parsed(code).body))
    except RecursionError:
        raise source_error("it is nested too deeply", 1, 1) from None


def _parsed(code: str) -> ast.Module:
    # Python itself refuses `return` outside of a function only when it compiles; a tree may have it.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an escape that is none: the author's affair
            tree = compile(code, "<code>", "exec", _TREE_ONLY)
    except SyntaxError as error:
        raise source_error(error.msg, error.lineno or 1, max(error.offset or 1, 1)) from None
    except (ValueError, MemoryError) as error:
        raise source_error(str(error) or "it is nested too deeply", 1, 1) from None
    assert isinstance(tree, ast.Module)
    return tree


class _Reader:
    """Reads trees of one source text."""

    def __init__(self, code: str) -> None:
        self._lines = code.encode("utf-8", "replace").splitlines(keepends=True)

    def statements(self, trees: Iterable[ast.stmt]) -> tuple[Statement, ...]:
        return tuple(statement for tree in trees for statement in self._statement(tree))

    def _at(self, tree: Any) -> dict[str, Any]:
        return {"line": tree.lineno, "source": self._source(tree)}

    def _source(self, tree: ast.expr | ast.stmt | ast.pattern) -> str:
        """As `ast.get_source_segment`, which splits the whole text for each part of it."""
        first, last = tree.lineno - 1, (tree.end_lineno or tree.lineno) - 1
        if first == last:
            return self._lines[first][tree.col_offset : tree.end_col_offset].decode("utf-8", "replace")
        lines = [self._lines[first][tree.col_offset :], *self._lines[first + 1 : last]]
        return b"".join([*lines, self._lines[last][: tree.end_col_offset]]).decode("utf-8", "replace")

    def _statement(self, tree: ast.stmt) -> Iterator[Statement]:
        at = self._at(tree)
        match tree:
            case ast.Pass() | ast.AnnAssign(value=None) | ast.Expr(value=ast.Constant()):
                return
            case ast.Import(names=names) if {alias.name for alias in names if not alias.asname} <= IMPORTED:
                return
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in {"__future__", "typing"}:
                return
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                yield self._assign(tree, target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value) if (
                type(operator) in _OPERATORS
            ):
                operands = (Name(name, **at), self._expression(value))
                computed = Operation(_OPERATORS[type(operator)], operands, **at)
                yield Assign(Names(whole=name), computed, in_place=True, **at)
            case ast.Expr(value=value):
                yield Evaluate(self._expression(value), **at)
            case ast.If(test=test, body=body, orelse=orelse):
                yield If(self._expression(test), self.statements(body), self.statements(orelse), **at)
            case ast.Match():
                yield self._switch(tree)
            case ast.For(target=target, iter=items, body=body, orelse=[]) if variable := names_of(target):
                yield ForEach(self._expression(items), variable, self.statements(body), **at)
            case ast.Return(value=value):
                yield Return(self._expression(value) if value is not None else None, **at)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield self._definition(tree)
            case ast.AsyncWith(
                items=[ast.withitem(context_expr=opened, optional_vars=ast.Name(id=name))], body=body
            ) if is_call_of(opened, "TaskGroup"):
                yield Group(name, self.statements(body), **at)
            case _:
                yield self._inexpressible(tree)

    def _inexpressible(self, tree: ast.stmt) -> Inexpressible:
        return Inexpressible(named(tree), self.statements(_inside(tree)), **self._at(tree))

    def _assign(self, tree: ast.stmt, target: ast.expr, value: ast.expr) -> Statement:
        at = self._at(tree)
        match target:
            case ast.Attribute(value=ast.Name(id=name), attr=key):
                return Store(name, Constant(key, **at), self._expression(value), **at)
            case ast.Subscript(value=ast.Name(id=name), slice=key) if not isinstance(key, ast.Slice):
                return Store(name, self._expression(key), self._expression(value), **at)
        names = names_of(target)
        return Assign(names, self._expression(value), **at) if names else self._inexpressible(tree)

    def _definition(self, tree: ast.FunctionDef | ast.AsyncFunctionDef) -> Statement:
        at = self._at(tree)
        function = self._function(tree.args, self.statements(tree.body), tree)
        if function is None or tree.decorator_list:
            what = "a function with a decorator or a variable number of arguments"
            return Inexpressible(what, self.statements(tree.body), **at)
        return Assign(Names(whole=tree.name), function, declares=True, **at)

    def _function(self, given: ast.arguments, body: tuple[Statement, ...], tree: ast.AST) -> Function | None:
        if given.vararg or given.kwarg:
            return None
        names = (*given.posonlyargs, *given.args)
        bare = len(names) - len(given.defaults)
        defaults: list[ast.expr | None] = [*[None] * bare, *given.defaults, *given.kw_defaults]
        parameters = tuple(
            Names(whole=item.arg, default=None if default is None else self._expression(default))
            for item, default in zip((*names, *given.kwonlyargs), defaults, strict=True)
        )
        return Function(
            parameters,
            body,
            asynchronous=isinstance(tree, ast.AsyncFunctionDef),
            **self._at(tree),
        )

    def _switch(self, tree: ast.Match) -> Statement:
        cases: list[Case] = []
        for case in tree.cases:
            values = self._values(case.pattern)
            if values is None or case.guard is not None:
                body = tuple(each for item in tree.cases for each in self.statements(item.body))
                return Inexpressible("a pattern that is no value, or has a guard", body, **self._at(tree))
            cases.append(Case(values, self.statements(case.body), line=case.pattern.lineno))
        return Switch(self._expression(tree.subject), tuple(cases), **self._at(tree))

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

    def _expression(self, tree: ast.expr) -> Expression:
        at = self._at(tree)
        match tree:
            case ast.Constant(value=value) if _is_json(value):
                return Constant(value, **at)
            case ast.Name(id=name):
                return Name(name, **at)
            case ast.Attribute(value=value, attr=key):
                return Item(self._expression(value), Constant(key, **at), **at)
            case ast.Subscript(value=value, slice=key) if not isinstance(key, ast.Slice):
                return Item(self._expression(value), self._expression(key), **at)
            case ast.Starred(value=value):
                return Spread(self._expression(value), **at)
            case ast.Await(value=value):
                return Await(self._expression(value), **at)
            case ast.Call():
                return self._call(tree)
            case ast.Dict(keys=keys, values=values):
                return self._mapping(tree, keys, values)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return Sequence(tuple(map(self._expression, items)), **at)
            case ast.JoinedStr(values=parts):
                return self._template(tree, parts)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                return self._operation(tree, operator, (left, right))
            case ast.BoolOp(op=operator, values=values):
                return self._logic(self._operation(tree, operator, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Operation("not", (self._expression(operand),), **at)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Operation("-", (self._expression(operand),), **at)
            case ast.Compare(left=left, ops=operators, comparators=others):
                return self._comparison(tree, operators, [left, *others])
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return Choice(*map(self._expression, (test, then, otherwise)), **at)
            case ast.ListComp(elt=body, generators=[each]) | ast.GeneratorExp(elt=body, generators=[each]):
                return self._each(tree, body, each)
            case ast.Lambda(args=given, body=body):
                returned = Return(self._expression(body), **self._at(body))
                return self._function(given, (returned,), tree) or self._native(tree)
        return self._native(tree)

    def _native(self, tree: ast.expr) -> Native:
        """What only Python has; the variables that it binds itself are those of the function inside."""
        bound = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name) and _binds(part)}
        bound |= {part.arg for part in ast.walk(tree) if isinstance(part, ast.arg)}
        read = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        calls = tuple(
            Evaluate(self._expression(each), **self._at(each))
            for child in ast.iter_child_nodes(tree)
            for each in _calls_in(child)
        )
        inner = Function(tuple(Names(whole=name) for name in sorted(bound)), calls) if calls else None
        pure = not any(isinstance(part, _IMPURE) for part in ast.walk(tree))
        return Native(named(tree), tuple(sorted(read - bound)), inner, pure, **self._at(tree))

    def _logic(self, found: Operation) -> Operation:
        """`(a and b) and c` is `a and b and c`, as it is read where operators have two operands."""
        first, *others = found.operands
        if isinstance(first, Operation) and first.operator == found.operator:
            return replace(found, operands=(*first.operands, *others))
        return found

    def _operation(self, tree: ast.expr, operator: ast.AST, operands: Iterable[ast.expr]) -> Operation:
        found = tuple(map(self._expression, operands))
        return Operation(_OPERATORS[type(operator)], found, **self._at(tree))

    def _comparison(
        self, tree: ast.Compare, operators: list[ast.cmpop], operands: list[ast.expr]
    ) -> Expression:
        """A chain compares neighbours; one whose middle is more than a value would be evaluated twice."""
        if any(not isinstance(each, (ast.Constant, ast.Name)) for each in operands[1:-1]):
            return self._native(tree)
        pairs = [
            self._operation(tree, operator, pair)
            for operator, pair in zip(operators, pairwise(operands), strict=True)
        ]
        return pairs[0] if len(pairs) == 1 else Operation("and", tuple(pairs), **self._at(tree))

    def _mapping(self, tree: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr]) -> Expression:
        names = [_text(key) for key in keys]
        if any(name is None for name, key in zip(names, keys, strict=True) if key is not None):
            return self._native(tree)
        return Mapping(tuple(zip(names, map(self._expression, values), strict=True)), **self._at(tree))

    def _template(self, tree: ast.JoinedStr, parts: list[ast.expr]) -> Expression:
        found: list[Expression] = []
        for part in parts:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None or part.conversion != -1:
                    return self._native(tree)
                part = part.value
            found.append(self._expression(part))
        return Template(tuple(found), **self._at(tree))

    def _each(self, tree: ast.expr, body: ast.expr, each: ast.comprehension) -> Expression:
        variable = names_of(each.target)
        lazy = isinstance(tree, ast.GeneratorExp) and any(
            isinstance(part, ast.Await) for part in ast.walk(body)
        )
        if each.is_async or variable is None or lazy or isinstance(body, ast.Lambda):
            return self._native(tree)
        returned = Return(self._expression(body), **self._at(body))
        function = Function((variable,), (returned,), **self._at(body))
        items = self._filtered(each) if each.ifs else self._expression(each.iter)
        return Each(items, function, **self._at(tree))

    def _filtered(self, each: ast.comprehension) -> Expression:
        """The items that a comprehension goes through, where it leaves some out."""
        item = ast.parse(ast.unparse(each.target), mode="eval").body
        tree = ast.copy_location(ast.ListComp(item, [each]), each.iter)
        return replace(self._native(tree), source=ast.unparse(tree))

    def _call(self, tree: ast.Call) -> Expression:
        at = self._at(tree)
        if is_call_of(tree, "gather"):
            return self._gather(tree)
        if is_call_of(tree, "run", "asyncio") and len(tree.args) == 1 and not tree.keywords:
            return Await(self._expression(tree.args[0]), **at)
        named_ones = tuple((each.arg, self._expression(each.value)) for each in tree.keywords)
        positional = tuple(map(self._expression, tree.args))
        return Call(self._expression(tree.func), positional, named_ones, **at)

    def _gather(self, tree: ast.Call) -> Expression:
        settled = [each.value.value for each in tree.keywords if isinstance(each.value, ast.Constant)]
        named = [each.arg for each in tree.keywords]
        if len(settled) != len(named) or any(each != "return_exceptions" for each in named):
            return self._native(tree)
        items = tuple(map(self._expression, tree.args))
        if len(items) == 1 and isinstance(items[0], Spread):
            return Together(items[0].value, any(settled), **self._at(tree))
        return Together(Sequence(items, **self._at(tree)), any(settled), **self._at(tree))


def names_of(target: ast.expr) -> Names | None:
    """The variables of a target; None where it is more than names."""
    match target:
        case ast.Name(id=name):
            return Names(whole=name, line=target.lineno)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            parts = [names_of(each) for each in items]
            return Names(parts=tuple(parts), line=target.lineno) if parts and all(parts) else None
    return None


def is_call_of(tree: ast.expr, name: str, module: str | None = None) -> bool:
    """`asyncio.NAME(…)`, or `NAME(…)` where it was imported and no `module` is asked for."""
    match tree:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr=found)):
            return found == name
        case ast.Call(func=ast.Name(id=found)):
            return found == name and module is None
    return False


def named(tree: ast.AST) -> str:
    """What a construct is called in a message to its author."""
    return _NAMED.get(type(tree), f"`{type(tree).__name__}`")


def _text(tree: ast.expr | None) -> str | None:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str) and _is_json(tree.value):
        return tree.value
    return None


def _is_json(value: object) -> bool:
    """Whether JSON can say a constant: no half of a character, no number beyond 64 bits or all others."""
    match value:
        case str():
            return not any("\ud800" <= each <= "\udfff" for each in value)
        case bool() | None:
            return True
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return isfinite(value)
    return False


def _binds(tree: ast.Name) -> bool:
    return isinstance(tree.ctx, ast.Store)


def _inside(tree: ast.AST) -> list[ast.stmt]:
    """The statements of a compound one, whatever it is; the calls in its expressions as statements."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.expr):
            found += [ast.copy_location(ast.Expr(each), each) for each in _calls_in(child)]
        else:
            found += _inside(child)
    return found


def _calls_in(tree: ast.AST) -> Iterator[ast.expr]:
    """The outermost calls at or below a tree."""
    if isinstance(tree, (ast.Call, ast.Await)):
        yield tree
        return
    for child in ast.iter_child_nodes(tree):
        yield from _calls_in(child)
