"""Calls that are waited for, functions in the place of their calls, and loops over results."""

from __future__ import annotations

from collections.abc import Sequence

from pml.processors.capabilities import folding, merging
from pml.processors.capabilities.branching import Branching
from pml.processors.capabilities.draft import End, joined
from pml.processors.capabilities.program import Constant, Default, Each, Expression, Names
from pml.processors.capabilities.reading import free_names
from pml.processors.capabilities.rendering import argument
from pml.processors.capabilities.situation import INLINED_MAX, UNROLLED_MAX, Frame
from pml.processors.capabilities.values import (
    Arguments,
    Builtin,
    Closure,
    FunctionWork,
    Items,
    Known,
    LoopWork,
    Opaque,
    Parameter,
    Pending,
    Record,
    Scope,
    ThenWork,
    TogetherWork,
    Tools,
    Value,
    Work,
    is_data,
    node,
)
from pml.schemas.structure import CapabilityNode, ForkNode, JoinNode, LoopNode, TaskNode


class Waiting(Branching):
    """What becomes a node when it is awaited."""

    def begin(self, work: Work, line: int) -> Pending:
        """Make a call; a coroutine of Python is begun only where it is awaited, what gathers some at once."""
        pending = Pending(work, line, loop=self.draft.loop)
        if self.language == "typescript" or isinstance(work, TogetherWork):
            self.started(pending)
        elif isinstance(work, LoopWork):
            pending.around = self._read_by(work.function)
        self.pending.append(pending)
        return pending

    def started(self, pending: Pending) -> Pending:
        """Say that a call is begun here, wherever it will be awaited."""
        pending.begun, pending.conditions = self.draft.calls, self.draft.conditions
        match pending.work:
            case FunctionWork(closure=function) | LoopWork(function=function):
                pending.around = self._read_by(function)
        return pending

    def _read_by(self, function: Value) -> tuple[tuple[Scope, str, Value], ...]:
        """The variables around a function that it reads, and those that the functions in them read."""
        found: dict[tuple[int, str], tuple[Scope, str, Value]] = {}
        waiting = [function]
        while waiting:
            closure = waiting.pop()
            if not isinstance(closure, Closure):
                continue
            for name in free_names(closure.function):
                scope = closure.around.find(name)
                if scope is not None and (id(scope), name) not in found:
                    found[id(scope), name] = (scope, name, scope.values[name])
                    waiting.append(scope.values[name])
        return tuple(found.values())

    def awaited(self, value: Value, at: Expression) -> Value:
        if isinstance(value, Pending):
            return self.force(value)
        if isinstance(value, Items) and any(isinstance(each, Pending) for each in value.items):
            return self.opaque(at.line, "a list of calls is awaited as if it were one", at.source)
        return value

    def force(self, pending: Pending) -> Value:
        """Wait for a call: what it does is drawn now."""
        if pending.value is not None and not set(pending.conditions) <= set(self.draft.conditions):
            self.refuse(pending.line, "a call is awaited in one branch and its value used in another")
        if pending.value is not None and _at_the_same_time(pending.arms, self.arms):
            self.refuse(pending.line, "a call is awaited by several that run at the same time")
        if pending.value is None:
            self._check_begun(pending)
            pending.arms = self.arms
            pending.conditions = self.draft.conditions
            pending.value = merging.NULL  # one that waits for itself ends here
            pending.value = self._done(pending)
        return pending.value

    def _check_begun(self, pending: Pending) -> None:
        """What was begun before it is awaited did not wait for what happened since."""
        begun = pending.begun is not None
        if begun and pending.begun != self.draft.calls:
            self.refuse(pending.line, "a call is begun here, and others before it is awaited")
        if begun and pending.conditions != self.draft.conditions:
            self.refuse(pending.line, "a call is begun here, and awaited in a branch")
        if pending.loop != self.draft.loop:
            self.refuse(pending.line, "a call is begun outside of a loop, and awaited in it")
        if any(scope.values.get(name) != value for scope, name, value in pending.around):
            self.refuse(pending.line, "a variable changes between a call and where it is awaited")

    def _done(self, pending: Pending) -> Value:
        work, line = pending.work, pending.line
        match work:
            case FunctionWork():
                return self.run(work, line)
            case LoopWork():
                return self.loop(work, line, parallel=True)
            case TogetherWork(items=items, settled=settled):
                return self.together(items, line, settled)
            case ThenWork(first=first, function=function):
                found = self.call(function, (self.force(first),), (), line)
                return self.force(found) if isinstance(found, Pending) else found
        arguments = {name: argument(value, self.language) for name, value in work.arguments}
        fields = {"arguments": arguments, "line": line, "safe_to_fail": self.draft.safe_to_fail}
        if isinstance(work.target, Tools):
            return node(self.draft.add(TaskNode, tool=":".join(work.target.names), **fields))
        return node(self.draft.add(CapabilityNode, capability=work.target.names[0], **fields))

    def together(self, value: Value, line: int, settled: bool) -> Value:
        """Wait for several calls at once."""
        if isinstance(value, Pending) and isinstance(value.work, LoopWork):
            if settled:
                self.refuse(line, "calls for every item of a result, of which some may fail")
            return self.force(value)
        if not isinstance(value, Items):
            return value
        waiting = [each for each in value.items if isinstance(each, Pending) and each.value is None]
        if waiting:
            self._forked(list(dict.fromkeys(waiting)), line, settled)
        found = (each.value or Opaque() if isinstance(each, Pending) else each for each in value.items)
        return Items(tuple(self._settled(each) if settled else each for each in found))

    def _settled(self, value: Value) -> Value:
        """How a call that may have failed is told of: only what it gave is understood."""
        if self.language == "python":
            return value
        return Record((("value", value), ("status", Opaque(reason="whether a call failed is asked"))))

    def _forked(self, waiting: Sequence[Pending], line: int, settled: bool) -> None:
        for pending in waiting:
            self._check_begun(pending)
            _release(pending)
        fork = self.draft.add(ForkNode, line=line)
        before, count, safe = self.variables(), len(self.scopes), self.draft.safe_to_fail
        self.draft.safe_to_fail = safe or settled
        ends: list[End] = []
        around = self.arms
        for pending in waiting:
            self.draft.ends = (End(fork),)
            self.arms = (*around, id(pending))
            self.force(pending)
            ends += self.draft.ends
        self.arms = around
        self.draft.safe_to_fail = safe
        if self.variables()[:count] != before[:count]:
            self.refuse(line, "what runs at the same time changes a variable that others see")
        self.draft.ends = joined(ends)
        self.draft.add(JoinNode, line=line, settled=settled)

    def run(self, work: FunctionWork, line: int) -> Value:
        """Go through a function in the place of its call."""
        if self.depth >= INLINED_MAX:
            return self.opaque(line, "functions call each other too deeply, or themselves")
        outer, scope = self.scope, Scope(work.closure.around)
        frame, guard, conditions = self.frame, self.guard, self.draft.conditions
        self.scopes.append(scope)
        self.scope, self.frame = scope, Frame(conditions, work.closure.function.asynchronous)
        self.guard, self.depth = merging.TRUE, self.depth + 1
        self._bind_parameters(work, line)
        finished = self.statements_of(work.closure, scope)
        value = self.returned_value(finished)
        self.draft.ends = joined(self.frame.ends, () if merging.is_true(finished) else self.draft.ends)
        self.draft.conditions = conditions
        self.scope, self.frame, self.guard, self.depth = outer, frame, guard, self.depth - 1
        if not scope.captured:
            self.scopes.remove(scope)
        return value

    def _bind_parameters(self, work: FunctionWork, line: int) -> None:
        function = work.closure.function
        named, defaults = dict(work.named), dict(work.closure.defaults)
        for position, names in enumerate(function.parameters):
            if position < len(work.positional):
                value = work.positional[position]
            elif names.whole in named:
                value = named[names.whole]
            elif names.whole in defaults:
                value = defaults[names.whole]
            elif names.default is not None:
                value = self.evaluate(names.default)
            else:
                value = self.opaque(line, "a function is called without one of its arguments")
            self.bind(names, value, self.scope, line)

    def returned_value(self, finished: Value) -> Value:
        """What a function gave: on each way what it returned there, and nothing where it did not."""
        ways = list(self.frame.returned)
        value: Value = merging.NULL
        if merging.is_true(finished) and ways:
            value = ways.pop()[2]
        for test, conditions, returned in reversed(ways):
            within = [item for item in conditions if item not in self.frame.conditions]
            if not within:
                value = merging.chosen(test, returned, value) if returned != value else value
            else:
                value = self.merged(test, within, returned, value)
        return value

    def bind(self, names: Names, value: Value, scope: Scope, line: int) -> None:
        """Give the variables of a target their parts of a value."""
        if names.whole is not None:
            scope.values[names.whole] = value
            return
        keys: Sequence[str | int] = names.keys or range(len(names.parts))
        for key, part in zip(keys, names.parts, strict=True):
            if part is not None:
                self.bind(part, self._part(value, key, part, line), scope, line)

    def _part(self, value: Value, key: str | int, names: Names, line: int) -> Value:
        at = Constant(None, line=line, source=str(key))
        if names.default is None:
            return self.item(value, Known(key), at)
        if isinstance(value, Record) and key not in dict(value.entries):
            return self.evaluate(names.default)
        found = self.item(value, Known(key), at)
        if isinstance(found, Parameter):
            return self.default(Default(at, names.default, line=line), found, names.default)
        if isinstance(found, (Known, Items, Record)):
            return found
        return self.opaque(line, f"`{key}` may be missing, and has a default")

    def each_of(self, expression: Each, items: Value, function: Value) -> Value:
        if isinstance(function, Builtin):
            return self.coded(expression, free_names(expression))
        listed = folding.listed(items)
        if listed is not None and len(listed) <= UNROLLED_MAX:
            return Items(
                tuple(
                    self.call(function, self._iteration(function, item, Known(index)), (), expression.line)
                    for index, item in enumerate(listed)
                )
            )
        if not is_data(items) or isinstance(items, Opaque) or listed is not None:
            return self.opaque(expression.line, "a loop over what is not understood", expression.source)
        return self._mapped(expression, LoopWork(items, function))

    def _mapped(self, expression: Each, work: LoopWork) -> Value:
        """A function for every item of a result: calls, something to wait for, or only a computation."""
        draft, pending, variables = self.draft.mark(), len(self.pending), self.variables()
        unsupported, parameters = dict(self.unsupported), dict(self.parameters)
        value = self.loop(work, expression.line, parallel=False)
        if self.draft.calls > draft.calls:
            return value
        begun = self.pending[pending:]
        self.draft, self.unsupported, self.parameters = draft, unsupported, parameters
        del self.pending[pending:]
        self.set_variables(variables)
        if begun:
            return self.begin(work, expression.line)
        return self.coded(expression, free_names(expression))

    def loop(self, work: LoopWork, line: int, parallel: bool) -> Value:
        """Draw a loop over a result: its inside once, for whatever item."""
        before, count = self.variables(), len(self.scopes)
        name, outer = self.open_loop(work.items, line, parallel)
        given = self._iteration(work.function, node(name, "item"), node(name, "index"))
        value = self.call(work.function, given, (), line)
        if isinstance(value, Pending) and parallel:
            value = self.force(value)
        if self.variables()[:count] != before[:count]:
            self.refuse(line, "what is done for every item changes a variable that others see")
        self.close_loop(name, outer, value)
        return node(name)

    def open_loop(self, items: Value, line: int, parallel: bool) -> tuple[str, str | None]:
        """What follows lies in a loop: its name, and that of the loop around it."""
        if self.draft.loop is not None:
            self.refuse(line, "a loop over a result inside of another")
        if isinstance(items, (Record, Arguments)):
            self.refuse(line, "a loop over an object")
        name = self.draft.add(LoopNode, items=argument(items, self.language), parallel=parallel, line=line)
        outer, self.draft.loop = self.draft.loop, name
        self.draft.ends = (End(name, inside=True),)
        return name, outer

    def close_loop(self, name: str, outer: str | None, each: Value | None) -> None:
        """What follows follows the loop as a whole."""
        self.draft.loop, self.draft.ends = outer, (End(name),)
        if each is not None and is_data(each):
            self.draft.replace(name, each=argument(each, self.language))

    def _iteration(self, function: Value, item: Value, index: Value) -> tuple[Value, ...]:
        """What a function is given for an item: in TypeScript also its number, where it takes one."""
        if isinstance(function, Closure) and len(function.function.parameters) > 2:
            self.refuse(function.function.line, "a function that takes the whole list, too")
        if isinstance(function, Closure) and len(function.function.parameters) > 1:
            return (item, index)
        return (item,)


def _at_the_same_time(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether neither of two ways waits for the other."""
    return any(left != right for left, right in zip(one, other, strict=False))


def _release(pending: Pending) -> None:
    """What is awaited at once with others begins with them, and so does what it waits for."""
    pending.begun, pending.around = None, ()
    match pending.work:
        case TogetherWork(items=Items(items=items)):
            inner: Sequence[Value] = items
        case TogetherWork(items=items):
            inner = (items,)
        case ThenWork(first=first):
            inner = (first,)
        case _:
            inner = ()
    for each in inner:
        if isinstance(each, Pending):
            _release(each)
