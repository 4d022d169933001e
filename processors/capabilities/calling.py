"""Calls of tools, capabilities, functions of the program, methods, and what the language itself has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from pml.processors.capabilities import language_names, merging
from pml.processors.capabilities.program import (
    Call,
    Constant,
    Each,
    Expression,
    Item,
    Mapping,
    Name,
    Native,
)
from pml.processors.capabilities.reading import holds_function
from pml.processors.capabilities.situation import UNROLLED_MAX
from pml.processors.capabilities.values import (
    Arguments,
    Builtin,
    Called,
    Capabilities,
    Closure,
    FunctionWork,
    Items,
    Known,
    Opaque,
    Pending,
    Record,
    TaskGroup,
    ThenWork,
    Tools,
    ToolWork,
    Value,
    is_data,
    parts,
)
from pml.processors.capabilities.waiting import Waiting


class Calling(Waiting):
    """What a call gives."""

    @abstractmethod
    def spread(self, items: Sequence[Expression], at: Expression) -> Iterable[Value]:
        """The values of expressions, of which one may be spread."""

    @abstractmethod
    def written(self, expression: Expression) -> Value:
        """An expression as it stands there, over all that it reads."""

    def called(self, expression: Call) -> Value:
        method = self._method(expression)
        if method is not None:
            return method
        function = self.evaluate(expression.function)
        if isinstance(function, Builtin):
            return self._builtin(function.name, expression)
        if isinstance(function, Opaque) or is_data(function) or isinstance(function, (Pending, TaskGroup)):
            self._given(expression)
            if isinstance(function, Opaque):
                self.say(function, expression.line)
                return function
            return self.opaque(expression.line, f"`{expression.function.source}` is no function here")
        positional, named = self._given(expression)
        return self.call(function, positional, named, expression.line)

    def call(
        self,
        function: Value,
        positional: tuple[Value, ...],
        named: tuple[tuple[str, Value], ...],
        line: int,
    ) -> Value:
        """What a function gives: a value, or something to wait for."""
        match function:
            case Closure(function=written):
                work = FunctionWork(function, positional, named)
                return self.begin(work, line) if written.asynchronous else self.run(work, line)
            case Tools(names=(_, _)) | Capabilities(names=(_,)):
                return self.begin(ToolWork(function, self._tool_arguments(positional, named, line)), line)
            case Builtin(name=name):
                return self._pure(name, None, positional, named, line)
        return self.opaque(line, "what is called here is no function")

    def _given(self, expression: Call) -> tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]:
        positional = tuple(self.spread(expression.positional, expression))
        named: dict[str, Value] = {}
        for name, each in expression.named:
            value = self.evaluate(each)
            if name is not None:
                named[name] = value
            elif isinstance(value, Record):
                named |= dict(value.entries)
            else:
                self.refuse(expression.line, "arguments of unknown names are spread")
        return positional, tuple(named.items())

    def _tool_arguments(
        self, positional: tuple[Value, ...], named: tuple[tuple[str, Value], ...], line: int
    ) -> tuple[tuple[str, Value], ...]:
        """One object, or names: what tools are called with."""
        found = dict(named)
        match positional:
            case ():
                pass
            case (Record(entries=entries),):
                found = dict(entries) | found
            case _:
                self.refuse(line, "the arguments of a tool are not written down name by name")
        return tuple((name, self._argument(value, line)) for name, value in found.items())

    def _argument(self, value: Value, line: int) -> Value:
        match value:
            case Record(entries=entries):
                named = tuple((name, self._argument(item, line)) for name, item in entries)
                return value if _unchanged(parts(value), [item for _, item in named]) else Record(named)
            case Items(items=items):
                listed = tuple(self._argument(item, line) for item in items)
                return value if _unchanged(items, listed) else Items(listed)
        return self.data(value, Constant(None, line=line))

    def _method(self, expression: Call) -> Value | None:
        """A call of a method of a value; None where it is none."""
        match expression.function:
            case Item(value=inner, key=Constant(value=str(name))):
                pass
            case _:
                return None
        receiver = self._receiver(inner, name)
        if isinstance(receiver, (Tools, Capabilities, Builtin, Closure)):
            return None
        if isinstance(receiver, TaskGroup):
            return self._group_method(receiver, name, expression)
        if isinstance(receiver, Pending):
            return self._pending_method(receiver, name, expression)
        if name in {"append", "push"} and isinstance(receiver, Items):
            return self._append(inner, receiver, expression)
        if language_names.changes_its_receiver(name) and not isinstance(receiver, Opaque):
            self._given(expression)
            return self.opaque(expression.line, f"`{name}` changes a value in place", expression.source)
        if holds_function(expression.positional):
            return self.written(expression)
        positional, named = self._given(expression)
        known = self._known_method(receiver, name, positional, expression)
        return known or self._pure(name, receiver, positional, named, expression.line)

    def _receiver(self, expression: Expression, method: str) -> Value:
        """What a method is called on; adding to a list does not read it."""
        known = isinstance(expression, Name) and expression.name in self.reads
        value = self.evaluate(expression)
        if isinstance(expression, Name) and not known and method in {"append", "push"}:
            self.reads.discard(expression.name)
        return value

    def _group_method(self, group: TaskGroup, name: str, expression: Call) -> Value:
        positional, _ = self._given(expression)
        if name != "create_task" or len(positional) != 1 or not isinstance(positional[0], Pending):
            return self.opaque(expression.line, "a task group does more than begin tasks")
        group.begun.append(self.started(positional[0]))
        return positional[0]

    def _pending_method(self, pending: Pending, name: str, expression: Call) -> Value:
        if name == "result" and pending.value is not None:
            return pending.value
        if name == "then" and len(expression.positional) == 1:
            return self.begin(ThenWork(pending, self.evaluate(expression.positional[0])), expression.line)
        self._given(expression)
        self.refuse(expression.line, f"`{name}` of a call that is not awaited")
        return self.force(pending)

    def _append(self, receiver: Expression, items: Items, expression: Call) -> Value:
        positional, _ = self._given(expression)
        scope = self.scope.find(receiver.name) if isinstance(receiver, Name) else None
        if scope is None or not isinstance(receiver, Name) or self.is_shared(items):
            return self.opaque(expression.line, "a list that more than one name stands for is changed")
        scope.values[receiver.name] = Items((*items.items, *positional))
        return merging.NULL

    def _known_method(
        self, receiver: Value, name: str, positional: tuple[Value, ...], at: Call
    ) -> Value | None:
        match receiver, name, positional:
            case Arguments(), "get", (Known(value=str() as key), *default):
                return self.optional(key, default[0] if default else merging.NULL, at.line)
            case Record(entries=entries), "get", (Known(value=key), *default):
                return dict(entries).get(key, default[0] if default else merging.NULL)
            case Record(entries=entries), "items", ():
                return Items(tuple(Items((Known(key), value)) for key, value in entries))
            case Record(entries=entries), "keys", ():
                return Items(tuple(Known(key) for key, _ in entries))
            case Record(entries=entries), "values", ():
                return Items(tuple(value for _, value in entries))
            case Items(items=items), "entries", ():
                return _numbered(items)
        return None

    def _builtin(self, name: str, expression: Call) -> Value:
        if language_names.is_silent(name):
            for value in self._given(expression)[0]:
                self.data(value, expression)
            return merging.NULL
        if holds_function(expression.positional) or holds_function(
            tuple(value for _, value in expression.named)
        ):
            return self.written(expression)
        if (
            language_names.takes_from(name)
            and expression.positional
            and not _is_new(expression.positional[0])
        ):
            return self.opaque(expression.line, f"`{name}` changes what it is given")
        positional, named = self._given(expression)
        return self._known_function(name, positional) or self._pure(
            name, None, positional, named, expression.line
        )

    def _known_function(self, name: str, positional: tuple[Value, ...]) -> Value | None:
        match name, positional:
            case (("asyncio.create_task" | "asyncio.ensure_future"), (Pending(value=None) as pending,)):
                return self.started(pending)
            case "len", (Items(items=items),):
                return Known(len(items))
            case "len", (Known(value=str() as text),):
                return Known(len(text))
            case "range", _ if all(isinstance(each, Known) for each in positional):
                return _range([each.value for each in positional if isinstance(each, Known)])
            case "enumerate", (Items(items=items),):
                return _numbered(items)
            case "zip", _ if positional and all(isinstance(each, Items) for each in positional):
                rows = zip(*(each.items for each in positional if isinstance(each, Items)), strict=False)
                return Items(tuple(map(Items, rows)))
            case (("list" | "tuple" | "Array.from"), (Items(),)):
                return positional[0]
            case "dict", (Record(),):
                return positional[0]
            case (("Object.keys" | "Object.values" | "Object.entries"), (Record(),)):
                method = {"Object.keys": "keys", "Object.values": "values"}.get(name, "items")
                return self._known_method(positional[0], method, (), Call(Constant(None)))
        return None

    def _pure(
        self,
        name: str,
        receiver: Value | None,
        positional: tuple[Value, ...],
        named: tuple[tuple[str, Value], ...],
        line: int,
    ) -> Value:
        if receiver is None and not language_names.is_pure(name, self.language):
            return self.opaque(line, f"`{name}` reads or changes more than its arguments")
        at = Constant(None, line=line)
        return Called(
            name,
            receiver,
            tuple(self.data(each, at) for each in positional),
            tuple((key, self.data(each, at)) for key, each in named),
        )


def _unchanged(old: Sequence[Value], new: Sequence[Value]) -> bool:
    """Whether each is the very same: what a program changes later is changed here, too."""
    return all(one is other for one, other in zip(old, new, strict=True))


def _is_new(expression: Expression) -> bool:
    """Whether nobody else holds what an expression gives: it is made there."""
    return isinstance(expression, (Mapping, Native, Each, Call))


def _numbered(items: tuple[Value, ...]) -> Items:
    return Items(tuple(Items((Known(index), item)) for index, item in enumerate(items)))


def _range(bounds: list[object]) -> Items | None:
    numbers = [each for each in bounds if isinstance(each, int) and not isinstance(each, bool)]
    if not 1 <= len(numbers) <= 3 or len(numbers) != len(bounds) or numbers[2:] == [0]:
        return None
    found = range(*numbers)
    return Items(tuple(map(Known, found))) if len(found) <= UNROLLED_MAX else None
