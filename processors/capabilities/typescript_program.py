"""TypeScript (and JavaScript) into a `Program`, by tree-sitter's grammar (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from pml.processors.capabilities.program import (
    Assign,
    Await,
    Call,
    Case,
    Choice,
    Constant,
    Default,
    Each,
    Evaluate,
    Expression,
    ForEach,
    Function,
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
from pml.processors.capabilities.typescript_literals import escape_of, number_of, string_of
from pml.schemas.errors import SourceError

_OPERATORS: dict[str, Operator] = {
    "===": "==",
    "!==": "!=",
    "&&": "and",
    "||": "or",
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
    "%": "%",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_NAMED = {
    "try_statement": "`try`",
    "while_statement": "`while`",
    "do_statement": "`do`",
    "for_statement": "a loop that counts",
    "for_in_statement": "a loop over more than names",
    "throw_statement": "`throw`",
    "class_declaration": "a class",
    "break_statement": "`break`",
    "continue_statement": "`continue`",
    "import_statement": "`import`",
    "variable_declaration": "`var`",
    "switch_statement": "a `switch` that falls through",
    "lexical_declaration": "an assignment to a part of a value",
    "labeled_statement": "a label",
    "new_expression": "`new`",
    "regex": "a regular expression",
    "optional_chain": "`?.`",
    "assignment_expression": "an assignment inside of an expression",
    "augmented_assignment_expression": "an assignment inside of an expression",
    "update_expression": "an assignment inside of an expression",
    "object": "an object with computed keys or methods",
    "generator_function_declaration": "a generator",
    "yield_expression": "`yield`",
}
_IMPURE = frozenset(
    [
        "assignment_expression",
        "augmented_assignment_expression",
        "update_expression",
        "yield_expression",
        "import",
        "class",
        "delete",
    ]
)
_TYPES_ONLY = frozenset(
    ["interface_declaration", "type_alias_declaration", "empty_statement", "ambient_declaration", "comment"]
)
_WRAPPERS = frozenset(
    ["parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression"]
)
_FUNCTIONS = frozenset(["arrow_function", "function_expression", "function_declaration", "method_definition"])
_CALLS = frozenset({"call_expression", "await_expression"})


def read_typescript(code: str) -> Program:
    """The program of a source text, which may await and return outside of functions.

    Raises:
        SourceError: it is not TypeScript.
    """
    data = code.encode("utf-8", "replace")
    root = Parser(grammar()).parse(data).root_node
    try:
        if root.has_error:
            raise _broken(root)
        return Program("typescript", _Reader().block(root))
    except RecursionError:
        raise source_error("it is nested too deeply", 1, 1) from None


@cache
def grammar() -> Language:
    """TypeScript, as its parser knows it."""
    return Language(tree_sitter_typescript.language_typescript())


def _broken(root: Node) -> SourceError:
    """Where the grammar gave up, or what it misses."""
    node = next((each for each in _walk(root) if each.is_missing or each.is_error), root)
    text = _text(node).strip().split("\n")[0][:40]
    message = f"`{node.type}` is missing" if node.is_missing else f"unexpected `{text}`"
    before = node.start_byte - node.start_point.column
    column = len((root.text or b"")[before : node.start_byte].decode("utf-8", "replace")) + 1
    return source_error(message, node.start_point.row + 1, column)


class _Reader:
    """Reads trees of one source text."""

    def block(self, tree: Node) -> tuple[Statement, ...]:
        """The statements in a block, or the one that stands in its place."""
        inside = _children(tree) if tree.type in {"program", "statement_block"} else [tree]
        inside.sort(key=lambda each: not _is_hoisted(each))
        return tuple(statement for each in inside for statement in self.statement(each))

    def _at(self, tree: Node) -> dict[str, Any]:
        return {"line": tree.start_point.row + 1, "source": _text(tree)}

    def statement(self, tree: Node) -> Iterator[Statement]:
        """What one statement is; types say nothing."""
        match tree.type:
            case kind if kind in _TYPES_ONLY:
                return
            case "expression_statement":
                yield self._evaluated(_children(tree)[0])
            case "lexical_declaration":
                for each in _children(tree):
                    yield self._declared(each)
            case "function_declaration":
                yield Assign(
                    Names(whole=_text(_field(tree, "name"))), self._function(tree), True, **self._at(tree)
                )
            case "export_statement":
                yield from self._exported(tree)
            case "if_statement":
                yield self._if(tree)
            case "switch_statement":
                yield self._switch(tree)
            case "for_in_statement":
                yield self._for(tree)
            case "return_statement":
                inside = _children(tree)
                yield Return(self.expression(inside[0]) if inside else None, **self._at(tree))
            case "statement_block":
                yield If(Constant(True), self.block(tree), **self._at(tree))
            case _:
                yield self._inexpressible(tree)

    def _inexpressible(self, tree: Node) -> Statement:
        body = tuple(statement for each in _inside(tree) for statement in self._nested(each))
        return Inexpressible(_named(tree), body, **self._at(tree))

    def _nested(self, tree: Node) -> Iterator[Statement]:
        if tree.type in _CALLS:
            yield Evaluate(self.expression(tree), **self._at(tree))
        else:
            yield from self.block(tree)

    def _declared(self, tree: Node) -> Statement:
        value, target = tree.child_by_field_name("value"), names_of(self, _field(tree, "name"))
        if target is None:
            return self._inexpressible(tree)
        written = _undefined() if value is None else self.expression(value)
        return Assign(target, written, True, **self._at(tree))

    def _exported(self, tree: Node) -> Iterator[Statement]:
        given = tree.child_by_field_name("declaration") or tree.child_by_field_name("value")
        if given is None:
            yield self._inexpressible(tree)
        elif given.type in _FUNCTIONS:
            function = replace(self._function(given), entry=True)
            name = given.child_by_field_name("name")
            yield Assign(Names(whole=_text(name) if name else "default"), function, True, **self._at(tree))
        else:
            yield from self.statement(given)

    def _evaluated(self, tree: Node) -> Statement:
        tree = _unwrapped(tree)
        match tree.type:
            case "assignment_expression":
                return self._assigned(tree)
            case "augmented_assignment_expression":
                operator = _text(_field(tree, "operator")).removesuffix("=")
                return self._updated(tree, _field(tree, "left"), operator, _field(tree, "right"))
            case "update_expression":
                operator = _text(_field(tree, "operator"))[0]
                return self._updated(tree, _field(tree, "argument"), operator, None)
        return Evaluate(self.expression(tree), **self._at(tree))

    def _assigned(self, tree: Node) -> Statement:
        left, value = _unwrapped(_field(tree, "left")), self.expression(_field(tree, "right"))
        written = self._part(left)
        match written:
            case Item(value=Name(name=name), key=key):
                return Store(name, key, value, **self._at(tree))
        names = names_of(self, left)
        return Assign(names, value, **self._at(tree)) if names else self._inexpressible(tree)

    def _part(self, tree: Node) -> Expression | None:
        return self.expression(tree) if tree.type in {"member_expression", "subscript_expression"} else None

    def _updated(self, tree: Node, target: Node, operator: str, value: Node | None) -> Statement:
        at = self._at(tree)
        if target.type != "identifier" or operator not in _OPERATORS:
            return self._inexpressible(tree)
        name = _text(target)
        operand = Constant(1, **at) if value is None else self.expression(value)
        computed = Operation(_OPERATORS[operator], (Name(name, **at), operand), **at)
        return Assign(Names(whole=name), computed, in_place=True, **at)

    def _if(self, tree: Node) -> Statement:
        condition = self.expression(_unwrapped(_field(tree, "condition")))
        otherwise = tree.child_by_field_name("alternative")
        following = self.block(_children(otherwise)[0]) if otherwise is not None else ()
        return If(condition, self.block(_field(tree, "consequence")), following, **self._at(tree))

    def _switch(self, tree: Node) -> Statement:
        cases: list[Case] = []
        waiting: list[Expression] = []
        branches = _children(_field(tree, "body"))
        for position, each in enumerate(branches):
            value = each.child_by_field_name("value")
            body = [item for item in each.children_by_field_name("body") if item.is_named]
            default = value is None
            if value is not None:
                waiting.append(self.expression(value))
            if not body and position + 1 < len(branches):
                if default:
                    return self._inexpressible(tree)
                continue
            statements, ended = self._case_body(body)
            if (default and waiting) or not (ended or position + 1 == len(branches)):
                return self._inexpressible(tree)
            cases.append(Case(tuple(waiting), statements, line=each.start_point.row + 1))
            waiting = []
        subject = self.expression(_unwrapped(_field(tree, "value")))
        return Switch(subject, tuple(_default_last(cases)), **self._at(tree))

    def _case_body(self, body: list[Node]) -> tuple[tuple[Statement, ...], bool]:
        """The statements of a case, and whether they end it."""
        if len(body) == 1 and body[0].type == "statement_block":
            body = _children(body[0])
        if body and body[-1].type == "break_statement":
            return tuple(item for each in body[:-1] for item in self.statement(each)), True
        statements = tuple(item for each in body for item in self.statement(each))
        return statements, bool(statements) and isinstance(statements[-1], Return)

    def _for(self, tree: Node) -> Statement:
        variable = names_of(self, _field(tree, "left"))
        operator = tree.child_by_field_name("operator")
        kind = tree.child_by_field_name("kind")
        declares = kind is not None and _text(kind) in {"const", "let"}
        if variable is None or not declares or any(each.type == "await" for each in tree.children):
            return self._inexpressible(tree)
        items = self.expression(_field(tree, "right"))
        if operator is not None and _text(operator) == "in":
            at = self._at(tree)
            items = Call(Item(Name("Object", **at), Constant("keys"), **at), (items,), **at)
        return ForEach(items, variable, self.block(_field(tree, "body")), **self._at(tree))

    def _function(self, tree: Node) -> Function:
        """A function; one that takes more than names is refused when it is called."""
        single = tree.child_by_field_name("parameter")
        listed = tree.child_by_field_name("parameters")
        parameters = [single] if single is not None else _children(listed) if listed is not None else []
        names = [names_of(self, each) for each in parameters]
        body = _field(tree, "body")
        statements = (
            self.block(body)
            if body.type == "statement_block"
            else (Return(self.expression(body), **self._at(body)),)
        )
        if not all(names):
            what = "a function of a variable number of arguments"
            statements = (Inexpressible(what, **self._at(tree)), *statements)
        asynchronous = any(each.type == "async" for each in tree.children)
        kept = tuple(each for each in names if each is not None)
        return Function(kept, statements, asynchronous, **self._at(tree))

    def expression(self, tree: Node) -> Expression:
        """What one expression is."""
        tree, at = _unwrapped(tree), self._at(_unwrapped(tree))
        match tree.type:
            case "identifier":
                return Name(_text(tree), **at)
            case "true" | "false":
                return Constant(tree.type == "true", **at)
            case "null":
                return Constant(None, **at)
            case "undefined":
                return _undefined(**at)
            case "number" if (number := number_of(_text(tree))) is not None:
                return Constant(number, **at)
            case "string" if (text := string_of(tree)) is not None:
                return Constant(text, **at)
            case "template_string":
                return self._template(tree)
            case "member_expression" if tree.child_by_field_name("optional_chain") is None:
                key = Constant(_text(_field(tree, "property")), **at)
                return Item(self.expression(_field(tree, "object")), key, **at)
            case "subscript_expression" if tree.child_by_field_name("optional_chain") is None:
                return Item(*(self.expression(_field(tree, each)) for each in ("object", "index")), **at)
            case "await_expression":
                return Await(self.expression(_children(tree)[0]), **at)
            case "call_expression" if not _is_optional(tree):
                return self._call(tree)
            case "object":
                return self._object(tree)
            case "array":
                return Sequence(tuple(map(self.expression, _children(tree))), **at)
            case "spread_element":
                return Spread(self.expression(_children(tree)[0]), **at)
            case "binary_expression":
                return self._binary(tree)
            case "unary_expression" if (operator := _text(_field(tree, "operator"))) in {"!", "-"}:
                symbol: Operator = "not" if operator == "!" else "-"
                return Operation(symbol, (self.expression(_field(tree, "argument")),), **at)
            case "ternary_expression":
                fields = ("condition", "consequence", "alternative")
                return Choice(*(self.expression(_field(tree, each)) for each in fields), **at)
            case "arrow_function" | "function_expression":
                return self._function(tree)
        return self._native(tree)

    def _binary(self, tree: Node) -> Expression:
        operator, at = _text(_field(tree, "operator")), self._at(tree)
        if operator != "??" and operator not in _OPERATORS:
            return self._native(tree)
        left, right = (self.expression(_field(tree, each)) for each in ("left", "right"))
        if operator == "??":
            return Default(left, right, **at)
        symbol = _OPERATORS[operator]
        if symbol in {"and", "or"} and isinstance(left, Operation) and left.operator == symbol:
            return Operation(symbol, (*left.operands, right), **at)
        return Operation(symbol, (left, right), **at)

    def _template(self, tree: Node) -> Expression:
        found: list[Expression] = []
        for each in _children(tree):
            if each.type == "template_substitution":
                found.append(self.expression(_children(each)[0]))
                continue
            text = _text(each) if each.type == "string_fragment" else escape_of(_text(each))
            if text is None or any("\ud800" <= letter <= "\udfff" for letter in text):
                return self._native(tree)
            found.append(Constant(text, **self._at(each)))
        return Template(tuple(found), **self._at(tree))

    def _object(self, tree: Node) -> Expression:
        entries: list[tuple[str | None, Expression]] = []
        for each in _children(tree):
            entry = self._entry(each)
            if entry is None:
                return self._native(tree)
            entries.append(entry)
        return Mapping(tuple(entries), **self._at(tree))

    def _entry(self, tree: Node) -> tuple[str | None, Expression] | None:
        match tree.type:
            case "shorthand_property_identifier":
                return _text(tree), Name(_text(tree), **self._at(tree))
            case "spread_element":
                return None, self.expression(_children(tree)[0])
            case "pair":
                key = _key(_field(tree, "key"))
                return None if key is None else (key, self.expression(_field(tree, "value")))
        return None

    def _call(self, tree: Node) -> Expression:
        at, function = self._at(tree), _unwrapped(_field(tree, "function"))
        given = _field(tree, "arguments")
        if given.type != "arguments" or function.type == "import":
            return self._native(tree)
        positional = tuple(map(self.expression, _children(given)))
        together = {"Promise.all": False, "Promise.allSettled": True}.get(_text(function))
        if together is not None and len(positional) == 1:
            return Together(positional[0], together, **at)
        callee = self.expression(function)
        if isinstance(callee, Item) and callee.key == Constant("map") and len(positional) == 1:
            return Each(callee.value, positional[0], **at)
        return Call(callee, positional, **at)

    def _native(self, tree: Node) -> Native:
        """What only TypeScript has; the variables that it binds itself are those of the function inside."""
        bound = {name for each in _walk(tree) for name in _bound_by(each)}
        read = {_text(each) for each in _walk(tree) if _is_read(each)}
        calls = tuple(
            Evaluate(self.expression(each), **self._at(each))
            for child in tree.named_children
            for each in _calls_in(child)
        )
        inner = Function(tuple(Names(whole=name) for name in sorted(bound)), calls) if calls else None
        pure = not any(each.type in _IMPURE for each in _walk(tree))
        what = _named(tree)
        if tree.child_by_field_name("optional_chain") is not None or _is_optional(tree):
            what = "`?.`"
        return Native(what, tuple(sorted(read - bound)), inner, pure, **self._at(tree))


def _undefined(**at: Any) -> Native:
    """What JSON has not: an argument of it is not given, and no null is it."""
    return Native("`undefined`", **({"source": "undefined"} | at))


def names_of(reader: _Reader, target: Node) -> Names | None:
    """The variables of a target or of a parameter; None where it is more than names."""
    line = target.start_point.row + 1
    match target.type:
        case "identifier" | "shorthand_property_identifier_pattern":
            return Names(whole=_text(target), line=line)
        case "required_parameter" | "optional_parameter":
            return _with_default(reader, names_of(reader, _field(target, "pattern")), target, "value")
        case "assignment_pattern" | "object_assignment_pattern":
            return _with_default(reader, names_of(reader, _field(target, "left")), target, "right")
        case "array_pattern":
            parts = [names_of(reader, each) for each in _children(target)]
            return Names(parts=tuple(parts), line=line) if parts and all(parts) else None
        case "object_pattern":
            return _object_names(reader, target)
    return None


def _object_names(reader: _Reader, target: Node) -> Names | None:
    keys: list[str] = []
    parts: list[Names] = []
    for each in _children(target):
        pair = each.type == "pair_pattern"
        key = _key(_field(each, "key")) if pair else _text(each.child_by_field_name("left") or each)
        part = names_of(reader, _field(each, "value") if pair else each)
        if key is None or part is None:
            return None
        keys.append(key)
        parts.append(part)
    return Names(parts=tuple(parts), keys=tuple(keys), line=target.start_point.row + 1) if keys else None


def _with_default(reader: _Reader, names: Names | None, target: Node, field: str) -> Names | None:
    """An optional parameter without a default is null where it is not given."""
    value = target.child_by_field_name(field)
    if names is None:
        return None
    if value is None:
        return replace(names, default=Constant(None)) if target.type == "optional_parameter" else names
    return replace(names, default=reader.expression(value))


def _key(tree: Node) -> str | None:
    match tree.type:
        case "property_identifier" | "identifier":
            return _text(tree)
        case "string":
            return string_of(tree)
    return None


def _default_last(cases: list[Case]) -> list[Case]:
    return [each for each in cases if each.values] + [each for each in cases if not each.values]


def _named(tree: Node) -> str:
    operator = tree.child_by_field_name("operator")
    if operator is not None and tree.type in {"unary_expression", "binary_expression"}:
        return f"`{_text(operator)}`"
    return _NAMED.get(tree.type, f"`{tree.type.replace('_', ' ')}`")


def _text(tree: Node | None) -> str:
    return "" if tree is None or tree.text is None else tree.text.decode("utf-8", "replace")


def _field(tree: Node, name: str) -> Node:
    found = tree.child_by_field_name(name)
    assert found is not None, f"the grammar gives every {tree.type} a {name}"
    return found


def _children(tree: Node) -> list[Node]:
    return [each for each in tree.named_children if each.type not in {"comment", "type_annotation"}]


def _unwrapped(tree: Node) -> Node:
    while tree.type in _WRAPPERS:
        tree = _children(tree)[0]
    return tree


def _is_hoisted(tree: Node) -> bool:
    """Whether a statement takes effect where its block begins: a function, also one that is given out."""
    given = tree.child_by_field_name("declaration") if tree.type == "export_statement" else tree
    return given is not None and given.type == "function_declaration"


def _is_optional(tree: Node) -> bool:
    return any(each.type == "optional_chain" for each in tree.children)


def _walk(tree: Node) -> Iterator[Node]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def _is_read(tree: Node) -> bool:
    return tree.type in {"identifier", "shorthand_property_identifier"}


def _bound_by(tree: Node) -> Iterator[str]:
    """The variables that a function or declaration makes."""
    if tree.type == "arrow_function" and (single := tree.child_by_field_name("parameter")) is not None:
        yield _text(single)
    fields = {"required_parameter": "pattern", "optional_parameter": "pattern", "variable_declarator": "name"}
    if tree.type in fields:
        target = _field(tree, fields[tree.type])
        kinds = {"identifier", "shorthand_property_identifier_pattern"}
        yield from (_text(each) for each in _walk(target) if each.type in kinds)


def _inside(tree: Node) -> Iterator[Node]:
    """The statements of a compound one, and the calls in its expressions."""
    for child in tree.named_children:
        if child.type in _CALLS or child.type.endswith(("_statement", "_declaration", "statement_block")):
            yield child
        else:
            yield from _inside(child)


def _calls_in(tree: Node) -> Iterator[Node]:
    """The outermost calls at or below a tree."""
    if tree.type in _CALLS:
        yield tree
        return
    for child in tree.named_children:
        yield from _calls_in(child)
