"""What an expression stands for; calls in it become nodes as they are met (spec stories 10.1, 10.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pml.processors.capabilities import folding, language_names, merging
from pml.processors.capabilities.draft import Draft, End, joined
from pml.processors.capabilities.program import (
    Await,
    Call,
    Choice,
    Constant,
    Each,
    Expression,
    Function,
    Item,
    Language,
    Mapping,
    Name,
    Names,
    Native,
    Operation,
    Spread,
    Template,
    Together,
)
from pml.processors.capabilities.program import Sequence as Listed
from pml.processors.capabilities.reading import free_names, holds_function, waits
from pml.processors.capabilities.rendering import argument, code_of, common
from pml.processors.capabilities.values import (
    Arguments,
    Builtin,
    Called,
    Capabilities,
    Closure,
    Coded,
    FunctionWork,
    Items,
    Known,
    LoopWork,
    Opaque,
    Operated,
    Parameter,
    Pending,
    Record,
    Reference,
    Scope,
    TaskGroup,
    Tools,
    ToolWork,
    Value,
    is_data,
    item_of,
    node,
    parts,
)
from pml.schemas.structure import (
    CapabilityNode,
    DecisionNode,
    ForkNode,
    JoinNode,
    LoopNode,
    StructureParameter,
    TaskNode,
    Unsupported,
)
from pml.schemas.workflow import Condition

STEPS_MAX = 50_000
INLINED_MAX = 20
UNROLLED_MAX = 200
_CONSTANTS = {"undefined": None, "__name__": "__main__"}


class TooManySteps(Exception):
    """An analysis that would not end in time."""


@dataclass
class Frame:
    """A function that is gone through: the ways on which it returned, and with what."""

    conditions: tuple[Condition, ...]
    returned: list[tuple[Value, tuple[Condition, ...], Value]] = field(default_factory=list)
    ends: tuple[End, ...] = ()


Way = tuple[str, Value, Callable[[], Value]]
"""A branch: its outcome, the test that it is taken by, and what happens in it."""


class Evaluation(ABC):
    """An analysis that is under way: the draft, the variables, and what could not be expressed."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.draft = Draft()
        self.scope = Scope()
        self.scopes: list[Scope] = [self.scope]
        self.parameters: dict[str, StructureParameter] = {}
        self.unsupported: dict[tuple[int, str], Unsupported] = {}
        self.pending: list[Pending] = []
        self.frame = Frame(())
        self.depth = 0
        self.steps = 0
        self.guard: Value = merging.TRUE
        self.reads: set[str] = set()

    @abstractmethod
    def statements_of(self, closure: Closure, scope: Scope) -> Value:
        """Go through the body of a function; whether it has returned."""

    # What is said of a program.

    def refuse(self, line: int, reason: str) -> None:
        """Write down what no DAG expresses."""
        self.unsupported.setdefault((line, reason), Unsupported(line=line, reason=reason))

    def opaque(self, line: int, reason: str, code: str = "") -> Opaque:
        """A value that is not understood."""
        self.refuse(line, reason)
        return Opaque(code)

    def parameter(self, name: str) -> Parameter:
        """A value that the caller gives."""
        self.parameters.setdefault(name, StructureParameter(name=name))
        return Parameter(name)

    def optional(self, name: str, default: Value, line: int) -> Value:
        """A value that the caller may give."""
        try:
            wanted = StructureParameter(name=name, required=False, default=merging.constant(default))
        except LookupError:
            return self.opaque(line, f"the default of `{name}` is not a constant")
        if self.parameters.setdefault(name, wanted) != wanted:
            return self.opaque(line, f"`{name}` has two defaults")
        return Parameter(name)

    # Expressions.

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
                return Items(tuple(self._spread(items, expression)))
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
                return Closure(expression, self.scope)
            case Call():
                return self._call(expression)
            case Await(value=inner):
                return self._awaited(self.evaluate(inner), expression)
            case Each(items=items, function=function):
                return self._each(expression, self.evaluate(items), self.evaluate(function))
            case Together(items=items, settled=settled):
                return self.together(self.evaluate(items), expression.line, settled)
            case Native():
                return self._native(expression)
            case Spread():
                return self.opaque(expression.line, "spreads a value where one is expected")

    def data(self, value: Value, expression: Expression) -> Value:
        """A value that a tool or an operator can take."""
        if isinstance(value, Pending):
            self.refuse(value.line, "a call is used before it is awaited")
            return self.force(value)
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
                if not -len(items) <= literal < len(items):
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
        return isinstance(literal, int) and not isinstance(literal, bool) and literal >= 0

    def _spread(self, items: Sequence[Expression], at: Expression) -> Iterable[Value]:
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

    # Operators and branches inside of expressions.

    def _operation(self, expression: Operation) -> Value:
        first, *others = expression.operands
        if expression.operator in {"and", "or"} and any(map(waits, others)):
            return self._short_circuit(expression, first, others)
        found = tuple(self.data(self.evaluate(each), each) for each in expression.operands)
        return folding.operated(expression.operator, found)

    def _short_circuit(self, expression: Operation, first: Expression, others: list[Expression]) -> Value:
        """`a and b` waits for b only where a holds."""
        left = self.data(self.evaluate(first), first)
        rest = Operation(
            expression.operator, tuple(others), line=expression.line, source=expression.source
        )
        following = rest if len(others) > 1 else others[0]

        def right() -> Value:
            return self.data(self.evaluate(following), following)

        def same() -> Value:
            return left

        ways = (right, same) if expression.operator == "and" else (same, right)
        return self.branch(left, first, *ways)

    def _choice(self, condition: Expression, then: Expression, otherwise: Expression) -> Value:
        test = self.data(self.evaluate(condition), condition)
        if waits(then) or waits(otherwise):
            return self.branch(
                test, condition, lambda: self.evaluate(then), lambda: self.evaluate(otherwise)
            )
        known = folding.known_truth(test)
        if known is not None:
            return self.evaluate(then if known else otherwise)
        one, other = self.evaluate(then), self.evaluate(otherwise)
        return merging.merged(self.draft, test, None, one, other)

    def branch(
        self, test: Value, written: Expression, then: Callable[[], Value], otherwise: Callable[[], Value]
    ) -> Value:
        """One of two values, the calls for which are made only where it is wanted."""
        known = folding.known_truth(test)
        if known is not None:
            return then() if known else otherwise()
        decision = self.decision(test, written.source, written.line)
        found: list[Value] = []

        def kept(way: Callable[[], Value]) -> Callable[[], Value]:
            def run() -> Value:
                found.append(way())
                return merging.FALSE

            return run

        ways = [("true", test, kept(then)), ("false", merging.negated(test), kept(otherwise))]
        self.ways(decision, ways)
        return self.merged(test, (Condition(node=decision, outcome="true"),), *found)

    def merged(
        self, test: Value, within: Sequence[Condition], then: Value | None, otherwise: Value | None
    ) -> Value:
        """What a value is after a branch; where all of the other way lies in it, that way is asked first."""
        value = merging.merged(self.draft, test, within, then, otherwise)
        if isinstance(value, Operated) and value.operator == "choice" and len(within) == 1:
            turned = merging.merged(
                self.draft, merging.negated(test), _other_way(within[0]), otherwise, then
            )
            return turned if isinstance(turned, Reference) else value
        return value

    def decision(self, test: Value, written: str, line: int) -> str:
        """Draw a decision on a value."""
        code, names = code_of(test, self.language)
        return self.draft.add(
            DecisionNode, condition=written or code, expression=common(test), names=names, line=line
        )

    def ways(self, decision: str, ways: Sequence[Way]) -> Value:
        """Go all ways of a decision, each from the same variables; whether they have returned.

        Afterwards variables are what they became on the ways that did not return, and what follows lies in no
        branch, or in the one way that is left.
        """
        conditions, guard, before = self.draft.conditions, self.guard, self.variables()
        returned: list[Value] = []
        after: list[list[dict[str, Value]]] = []
        ends: list[tuple[End, ...]] = []
        for outcome, test, run in ways:
            self.set_variables(before)
            self.draft.conditions = (*conditions, Condition(node=decision, outcome=outcome))
            self.draft.ends = (End(decision, outcome),)
            self.guard = merging.both(guard, test)
            returned.append(run())
            after.append(self.variables())
            ends.append(self.draft.ends)
        self.draft.conditions, self.guard = conditions, guard
        open_ways = [index for index, value in enumerate(returned) if not merging.is_true(value)]
        if not open_ways:
            return merging.TRUE
        if len(open_ways) == 1 and merging.is_false(returned[open_ways[0]]):
            return self._one_way(decision, ways[open_ways[0]], after[open_ways[0]], ends[open_ways[0]])
        self.draft.ends = joined(*(ends[index] for index in open_ways), (End(decision),))
        self.set_variables(self._met(decision, [(ways[index], after[index]) for index in open_ways]))
        return self._whether_returned(ways, returned)

    def _one_way(
        self, decision: str, way: Way, after: list[dict[str, Value]], ends: tuple[End, ...]
    ) -> Value:
        """All other ways have returned: what follows lies in this one."""
        outcome, test, _ = way
        self.draft.conditions = (*self.draft.conditions, Condition(node=decision, outcome=outcome))
        self.guard = merging.both(self.guard, test)
        self.draft.ends = ends
        self.set_variables(after)
        return merging.FALSE

    def _met(
        self, decision: str, ways: Sequence[tuple[Way, list[dict[str, Value]]]]
    ) -> list[dict[str, Value]]:
        (_, met), *others = reversed(ways)
        for (outcome, test, _), variables in others:
            within = (Condition(node=decision, outcome=outcome),)
            met = [
                {
                    name: self.merged(test, within, one.get(name), other.get(name))
                    for name in {**one, **other}
                }
                for one, other in zip(variables, met, strict=False)
            ]
        return met

    def _whether_returned(self, ways: Sequence[Way], returned: Sequence[Value]) -> Value:
        found = returned[-1]
        for (_, test, _), value in reversed(list(zip(ways[:-1], returned[:-1], strict=True))):
            found = merging.choice_of_truths(test, value, found)
        return found

    def variables(self) -> list[dict[str, Value]]:
        """A copy of all variables."""
        return [dict(scope.values) for scope in self.scopes]

    def set_variables(self, copied: Sequence[dict[str, Value]]) -> None:
        """Give all variables the values of a copy."""
        for scope, values in zip(self.scopes, copied, strict=False):
            scope.values = dict(values)

    # Calls.

    def _call(self, expression: Call) -> Value:
        method = self._method(expression)
        if method is not None:
            return method
        function = self.evaluate(expression.function)
        if isinstance(function, Builtin):
            return self._builtin(function.name, expression)
        if isinstance(function, Opaque) or is_data(function) or isinstance(function, (Pending, TaskGroup)):
            self._given(expression)
            if isinstance(function, Opaque):
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
                return self._begun(work, line) if written.asynchronous else self.run(work, line)
            case Tools(names=(_, _)) | Capabilities(names=(_,)):
                return self._begun(
                    ToolWork(function, self._tool_arguments(positional, named, line)), line
                )
            case Builtin(name=name):
                return self._pure(name, None, positional, named, line)
        return self.opaque(line, "what is called here is no function")

    def _begun(self, work: ToolWork | FunctionWork | LoopWork, line: int) -> Pending:
        begun = len(self.draft.nodes) if self.language == "typescript" else None
        pending = Pending(work, line, begun)
        self.pending.append(pending)
        return pending

    def _given(self, expression: Call) -> tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]:
        positional = tuple(self._spread(expression.positional, expression))
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
                return Record(tuple((name, self._argument(item, line)) for name, item in entries))
            case Items(items=items):
                return Items(tuple(self._argument(item, line) for item in items))
            case Opaque(code=code) if code:
                self.refuse(line, f"an argument {code}" if " " in code else f"`{code}` is not understood")
                return value
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
            return self._written(expression)
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
        started = positional[0]
        started.begun = len(self.draft.nodes)
        group.begun.append(started)
        return started

    def _pending_method(self, pending: Pending, name: str, expression: Call) -> Value:
        if name == "result" and pending.value is not None:
            return pending.value
        if name == "then" and len(expression.positional) == 1:
            value = self.force(pending)
            return self.call(self.evaluate(expression.positional[0]), (value,), (), expression.line)
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

    def is_shared(self, value: Value) -> bool:
        """Whether more than one variable holds this very list or object, by itself or inside of another."""
        holders = [item for scope in self.scopes for item in scope.values.values()]
        waiting = [
            item
            for each in self.pending
            if each.value is None and isinstance(each.work, FunctionWork)
            for item in each.work.positional
        ]
        return sum(_holds(item, value) for item in (*holders, *waiting)) > 1

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
            return self._written(expression)
        positional, named = self._given(expression)
        return self._known_function(name, positional) or self._pure(
            name, None, positional, named, expression.line
        )

    def _known_function(self, name: str, positional: tuple[Value, ...]) -> Value | None:
        match name, positional:
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
            case ("list" | "tuple" | "Array.from"), (Items(),):
                return positional[0]
            case "dict", (Record(),):
                return positional[0]
            case ("Object.keys" | "Object.values" | "Object.entries"), (Record(),):
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

    def _written(self, expression: Expression) -> Value:
        """An expression as it stands there, over the variables around it."""
        if waits(expression):
            return self.opaque(expression.line, "a call inside a function that is given away")
        return self._coded(expression, free_names(expression))

    def _native(self, expression: Native) -> Value:
        nodes = len(self.draft.nodes)
        pending = len(self.pending)
        if expression.inner is not None:
            given = tuple(Opaque() for _ in expression.inner.parameters)
            self.run(FunctionWork(Closure(expression.inner, self.scope), given, ()), expression.line)
        if not expression.pure or len(self.draft.nodes) > nodes or len(self.pending) > pending:
            inside = "" if not expression.pure else "a call inside "
            return self.opaque(expression.line, f"{inside}{expression.what}", expression.source)
        return self._coded(expression, expression.names)

    def _coded(self, expression: Expression, names: Sequence[str]) -> Value:
        found: list[tuple[str, Value]] = []
        for name in names:
            value = self._named(name)
            if isinstance(value, Builtin) and language_names.is_pure(value.name, self.language):
                continue
            if not is_data(value) or isinstance(value, Opaque):
                return self.opaque(expression.line, f"`{name}` is no value here", expression.source)
            if not isinstance(value, Arguments):
                found.append((name, value))
        return Coded(expression.source, tuple(found))

    # Waiting.

    def _awaited(self, value: Value, at: Expression) -> Value:
        if isinstance(value, Pending):
            return self.force(value)
        if isinstance(value, Items) and any(isinstance(each, Pending) for each in value.items):
            return self.opaque(at.line, "a list of calls is awaited as if it were one", at.source)
        return value

    def force(self, pending: Pending) -> Value:
        """Wait for a call: what it does is drawn now."""
        if pending.value is not None and not set(pending.conditions) <= set(self.draft.conditions):
            self.refuse(pending.line, "a call is awaited in one branch and its value used in another")
        if pending.value is None:
            pending.conditions = self.draft.conditions
            if pending.begun is not None and pending.begun != len(self.draft.nodes):
                self.refuse(pending.line, "a call is begun here, and others before it is awaited")
            pending.value = merging.NULL  # one that waits for itself ends here
            pending.value = self._done(pending)
        return pending.value

    def _done(self, pending: Pending) -> Value:
        work, line = pending.work, pending.line
        if isinstance(work, FunctionWork):
            return self.run(work, line)
        if isinstance(work, LoopWork):
            return self.loop(work, line, parallel=True)
        arguments = {name: argument(value, self.language) for name, value in work.arguments}
        fields = {"arguments": arguments, "line": line, "safe_to_fail": self.draft.safe_to_fail}
        if isinstance(work.target, Tools):
            return node(self.draft.add(TaskNode, tool=":".join(work.target.names), **fields))
        return node(self.draft.add(CapabilityNode, capability=work.target.names[0], **fields))

    def together(self, value: Value, line: int, settled: bool) -> Value:
        """Wait for several calls at once."""
        if isinstance(value, Pending) and isinstance(value.work, LoopWork):
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
        return Record((("value", value), ("status", Opaque("is whether a call failed"))))

    def _forked(self, waiting: Sequence[Pending], line: int, settled: bool) -> None:
        if any(each.begun not in {None, len(self.draft.nodes)} for each in waiting):
            self.refuse(line, "a call is begun, and others before it is awaited")
        fork = self.draft.add(ForkNode, line=line)
        before, count, safe = self.variables(), len(self.scopes), self.draft.safe_to_fail
        self.draft.safe_to_fail = safe or settled
        ends: list[End] = []
        for pending in waiting:
            self.draft.ends = (End(fork),)
            pending.begun = None
            self.force(pending)
            ends += self.draft.ends
        self.draft.safe_to_fail = safe
        if self.variables()[:count] != before[:count]:
            self.refuse(line, "what runs at the same time changes a variable that others see")
        self.draft.ends = joined(ends)
        self.draft.add(JoinNode, line=line, settled=settled)

    # Functions and loops.

    def run(self, work: FunctionWork, line: int) -> Value:
        """Go through a function in the place of its call."""
        if self.depth >= INLINED_MAX:
            return self.opaque(line, "functions call each other too deeply, or themselves")
        outer, scope = self.scope, Scope(work.closure.around)
        frame, guard, conditions = self.frame, self.guard, self.draft.conditions
        self.scopes.append(scope)
        self.scope, self.frame = scope, Frame(conditions)
        self.guard, self.depth = merging.TRUE, self.depth + 1
        self._bind_parameters(work, line)
        finished = self.statements_of(work.closure, scope)
        value = self._returned(finished)
        self.draft.ends = joined(self.frame.ends, () if merging.is_true(finished) else self.draft.ends)
        self.draft.conditions = conditions
        self.scope, self.frame, self.guard, self.depth = outer, frame, guard, self.depth - 1
        if not scope.captured:
            self.scopes.remove(scope)
        return value

    def _bind_parameters(self, work: FunctionWork, line: int) -> None:
        function = work.closure.function
        named = dict(work.named)
        first_default = len(function.parameters) - len(function.defaults)
        for position, names in enumerate(function.parameters):
            if position < len(work.positional):
                value = work.positional[position]
            elif names.whole in named:
                value = named[names.whole]
            elif position >= first_default:
                value = self.evaluate(function.defaults[position - first_default])
            else:
                value = self.opaque(line, "a function is called without one of its arguments")
            self.bind(names, value, self.scope, line)

    def _returned(self, finished: Value) -> Value:
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
                self.bind(part, self.item(value, Known(key), Constant(None, line=line)), scope, line)

    def _each(self, expression: Each, items: Value, function: Value) -> Value:
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
        draft, pending = self.draft.mark(), len(self.pending)
        unsupported, parameters = dict(self.unsupported), dict(self.parameters)
        nodes = len(self.draft.nodes)
        value = self.loop(work, expression.line, parallel=False)
        if len(self.draft.nodes) > nodes + 1:
            return value
        begun = self.pending[pending:]
        self.draft, self.unsupported, self.parameters = draft, unsupported, parameters
        del self.pending[pending:]
        if begun:
            return self._begun(work, expression.line)
        return self._coded(expression, free_names(expression))

    def loop(self, work: LoopWork, line: int, parallel: bool) -> Value:
        """Draw a loop over a result: its inside once, for whatever item."""
        if self.draft.loop is not None:
            self.refuse(line, "a loop over a result inside of another")
        name = self.draft.add(
            LoopNode, items=argument(work.items, self.language), parallel=parallel, line=line
        )
        outer, self.draft.loop = self.draft.loop, name
        self.draft.ends = (End(name, inside=True),)
        given = self._iteration(work.function, node(name, "item"), node(name, "index"))
        value = self.call(work.function, given, (), line)
        if isinstance(value, Pending) and parallel:
            value = self.force(value)
        self.close_loop(name, outer, value)
        return node(name)

    def close_loop(self, name: str, outer: str | None, each: Value | None) -> None:
        """What follows follows the loop as a whole."""
        self.draft.loop, self.draft.ends = outer, (End(name),)
        if each is not None and is_data(each):
            self.draft.replace(name, each=argument(each, self.language))

    def _iteration(self, function: Value, item: Value, index: Value) -> tuple[Value, ...]:
        """What a function is given for an item: in TypeScript also its number, where it takes one."""
        if isinstance(function, Closure) and len(function.function.parameters) > 1:
            return (item, index)
        return (item,)


def _other_way(condition: Condition) -> tuple[Condition, ...]:
    outcome = "false" if condition.outcome == "true" else "true"
    return (Condition(node=condition.node, outcome=outcome),)


def _holds(holder: Value, value: Value) -> bool:
    return holder is value or any(_holds(part, value) for part in parts(holder))


def _numbered(items: tuple[Value, ...]) -> Items:
    return Items(tuple(Items((Known(index), item)) for index, item in enumerate(items)))


def _range(bounds: list[object]) -> Items | None:
    numbers = [each for each in bounds if isinstance(each, int) and not isinstance(each, bool)]
    if not 1 <= len(numbers) <= 3 or len(numbers) != len(bounds) or numbers[2:] == [0]:
        return None
    found = range(*numbers)
    return Items(tuple(map(Known, found))) if len(found) <= UNROLLED_MAX else None
