"""What an expression stands for; calls in it become nodes as they are met (spec stories 10.1, 10.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pml.processors.capabilities import folding, language_names, merging
from pml.processors.capabilities.calling import Calling
from pml.processors.capabilities.program import (
    Await,
    Call,
    Choice,
    Constant,
    Default,
    Each,
    Expression,
    Function,
    Item,
    Mapping,
    Name,
    Native,
    Operation,
    Spread,
    Template,
    Together,
)
from pml.processors.capabilities.program import Sequence as Listed
from pml.processors.capabilities.reading import changes, does, free_names, waits
from pml.processors.capabilities.situation import STEPS_MAX, TooManySteps
from pml.processors.capabilities.values import (
    Arguments,
    Builtin,
    Capabilities,
    Closure,
    Coded,
    FunctionWork,
    Items,
    Known,
    Opaque,
    Operated,
    Parameter,
    Pending,
    Record,
    Reference,
    TaskGroup,
    TogetherWork,
    Tools,
    Value,
    is_data,
    item_of,
)

INDEX_MAX = 10**9 - 1
"""The largest index that a reference may have (`workflow.references`)."""
_CONSTANTS = {"__name__": "__main__"}


class Evaluation(Calling):
    """Expressions."""

    def evaluate(self, expression: Expression) -> Value:
        """What an expression stands for."""
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise TooManySteps
        match expression:
            case Constant(value=value):
                return Known(value)
            case Name(name=name):
                return self._named(name)
            case Item(value=inner, key=key):
                return self.item(self.evaluate(inner), self.evaluate(key), expression)
            case Listed(items=items):
                return Items(tuple(self.spread(items, expression)))
            case Mapping(entries=entries):
                return self._record(entries, expression)
            case Template(parts=inner):
                return folding.template(tuple(self.data(self.evaluate(each), each) for each in inner))
            case Operation():
                return self._operation(expression)
            case Choice(condition=condition, then=then, otherwise=otherwise):
                return self._choice(condition, then, otherwise)
            case Function():
                self.scope.captured = True
                return Closure(expression, self.scope, self._defaults(expression))
            case Call():
                return self.called(expression)
            case Await(value=inner):
                return self.awaited(self.evaluate(inner), expression)
            case Each(items=items, function=function):
                return self.each_of(expression, self.evaluate(items), self.evaluate(function))
            case Together(items=items, settled=settled):
                return self.begin(TogetherWork(self.evaluate(items), settled), expression.line)
            case Native():
                return self._native(expression)
            case Default(value=inner, otherwise=otherwise):
                return self.default(expression, self.evaluate(inner), otherwise)
            case Spread():
                return self.opaque(expression.line, "spreads a value where one is expected")

    def data(self, value: Value, expression: Expression) -> Value:
        """A value that a tool or an operator can take."""
        if isinstance(value, Pending):
            self.refuse(value.line, "a call is used before it is awaited")
            return self.force(value)
        self.say(value, expression.line)
        if is_data(value):
            return value
        return self.opaque(expression.line, "a function is used as a value", expression.source)

    def _named(self, name: str) -> Value:
        scope = self.scope.find(name)
        if scope is not None:
            self.reads.add(name)
            return scope.values[name]
        if name in {"mcp", "capabilities"}:
            return Tools() if name == "mcp" else Capabilities()
        if name == "args":
            return Arguments()
        if name in _CONSTANTS:
            return Known(_CONSTANTS[name])
        return Builtin(name) if language_names.is_known(name, self.language) else self.parameter(name)

    def item(self, value: Value, key: Value, at: Expression) -> Value:
        """A field or an element of a value."""
        literal = key.value if isinstance(key, Known) else None
        match value:
            case Tools(names=names) if isinstance(literal, str) and len(names) < 2:
                return Tools((*names, literal))
            case Capabilities(names=()) if isinstance(literal, str):
                return Capabilities((literal,))
            case Tools() | Capabilities():
                return self.opaque(at.line, "which tool is called is only known when it runs", at.source)
            case Builtin(name=name) if isinstance(literal, str):
                return Builtin(f"{name}.{literal}")
            case Arguments() if isinstance(literal, str):
                return self.parameter(literal)
            case Record(entries=entries) if isinstance(literal, str):
                found = dict(entries).get(literal)
                return found or self.opaque(at.line, f"there is no `{literal}` in it", at.source)
            case Items(items=items) if isinstance(literal, int) and not isinstance(literal, bool):
                first = 0 if self.language == "typescript" else -len(items)
                if not first <= literal < len(items):
                    return self.opaque(at.line, f"there is no item {literal} in it", at.source)
                return items[literal]
            case Items(items=items) if literal == "length":
                return Known(len(items))
            case Reference() if self._is_step(literal):
                assert isinstance(literal, (str, int))
                return item_of(value, literal)
            case Closure() | TaskGroup():
                return self.opaque(at.line, "a function has no fields", at.source)
        return Operated("item", (self.data(value, at), self.data(key, at)))

    def _is_step(self, literal: object) -> bool:
        """Whether a key leads into a result; the length of a list is no field of it."""
        if isinstance(literal, str):
            return not (self.language == "typescript" and literal == "length")
        return isinstance(literal, int) and not isinstance(literal, bool) and 0 <= literal <= INDEX_MAX

    def spread(self, items: Sequence[Expression], at: Expression) -> Iterable[Value]:
        for item in items:
            if not isinstance(item, Spread):
                yield self.evaluate(item)
                continue
            listed = folding.listed(self.evaluate(item.value))
            if listed is None:
                yield self.opaque(at.line, "a list of unknown length is spread", at.source)
            else:
                yield from listed

    def _record(self, entries: Sequence[tuple[str | None, Expression]], at: Expression) -> Value:
        found: dict[str, Value] = {}
        for name, expression in entries:
            value = self.evaluate(expression)
            if name is not None:
                found[name] = value
            elif isinstance(value, Record):
                found |= dict(value.entries)
            else:
                return self.opaque(at.line, "an object of unknown fields is spread", at.source)
        return Record(tuple(found.items()))

    def _operation(self, expression: Operation) -> Value:
        symbol, operands = expression.operator, expression.operands
        doing = [at for at, each in enumerate(operands) if at > 0 and does(each)]
        if symbol in {"and", "or"} and doing:
            before = operands[: doing[0]]
            first = before[0] if len(before) == 1 else replace(expression, operands=before)
            return self._short_circuit(expression, first, list(operands[doing[0] :]))
        found = tuple(self.data(self.evaluate(each), each) for each in expression.operands)
        if self.language == "typescript" and any(isinstance(each, (Items, Record)) for each in found):
            return Operated(expression.operator, found)
        return folding.operated(expression.operator, found)

    def _short_circuit(self, expression: Operation, first: Expression, others: list[Expression]) -> Value:
        """`a and b` does what b does only where a holds."""
        left = self.data(self.evaluate(first), first)
        rest = Operation(expression.operator, tuple(others), line=expression.line, source=expression.source)
        following = rest if len(others) > 1 else others[0]

        def right() -> Value:
            return self.data(self.evaluate(following), following)

        def same() -> Value:
            return left

        ways = (right, same) if expression.operator == "and" else (same, right)
        return self.branch(left, first, *ways)

    def _defaults(self, function: Function) -> tuple[tuple[str, Value], ...]:
        """What Python computes where a function is defined; TypeScript does so at each call."""
        if self.language == "typescript":
            return ()
        given = [(each.whole, each.default) for each in function.parameters]
        return tuple((name, self.evaluate(value)) for name, value in given if name and value is not None)

    def _choice(self, condition: Expression, then: Expression, otherwise: Expression) -> Value:
        test = self.data(self.evaluate(condition), condition)
        if does(then) or does(otherwise):
            return self.branch(test, condition, lambda: self.evaluate(then), lambda: self.evaluate(otherwise))
        known = folding.known_truth(test)
        if known is not None:
            return self.evaluate(then if known else otherwise)
        one, other = self.evaluate(then), self.evaluate(otherwise)
        return merging.merged(self.draft, test, None, one, other)

    def default(self, expression: Default, value: Value, otherwise: Expression) -> Value:
        match value:
            case Parameter(name=name):
                self.read_bare[name] = max(0, self.read_bare.get(name, 0) - 1)
                return self.optional(name, self.evaluate(otherwise), expression.line)
            case Known(value=None):
                return self.evaluate(otherwise)
            case Known() | Record() | Items():
                return value
        return self.written(expression)

    def _native(self, expression: Native) -> Value:
        calls, pending = self.draft.calls, len(self.pending)
        if expression.inner is not None:
            given = tuple(Opaque() for _ in expression.inner.parameters)
            self.run(FunctionWork(Closure(expression.inner, self.scope), given, ()), expression.line)
        if not expression.pure or self.draft.calls > calls or len(self.pending) > pending:
            inside = "" if not expression.pure else "a call inside "
            return self.opaque(expression.line, f"{inside}{expression.what}", expression.source)
        return self.coded(expression, expression.names)

    def written(self, expression: Expression) -> Value:
        """An expression as it stands there, over the variables around it."""
        if waits(expression):
            return self.opaque(expression.line, "a call inside a function that is given away")
        return self.coded(expression, free_names(expression))

    def coded(self, expression: Expression, names: Sequence[str]) -> Value:
        if changes(expression):
            return self.opaque(expression.line, "a function changes what is around it", expression.source)
        found: list[tuple[str, Value]] = []
        for name in names:
            if language_names.is_random(expression.source, name):
                return self.opaque(expression.line, f"`{name}.random` gives another value each time")
            value = self._named(name)
            if isinstance(value, Builtin) and language_names.is_pure(value.name, self.language):
                continue
            self.say(value, expression.line)
            if not is_data(value) or isinstance(value, Opaque):
                return self.opaque(expression.line, f"`{name}` is no value here", expression.source)
            if not isinstance(value, Arguments):
                found.append((name, value))
        return Coded(expression.source, tuple(found))
