"""From a program to its structure, without running it (DESIGN §6; spec stories 10.1 and 10.2).

The program is gone through once, as a run would go, with values that say where they come from. Each way of
a branch is gone from the same variables; a loop over constants is unrolled, one over a result is gone through
once for whatever item; functions are gone through where they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pml.processors.capabilities import folding, language_names, merging
from pml.processors.capabilities.branching import Way
from pml.processors.capabilities.draft import TooManyNodes
from pml.processors.capabilities.evaluation import Evaluation
from pml.processors.capabilities.program import (
    Assign,
    Case,
    Evaluate,
    Expression,
    ForEach,
    Function,
    Group,
    If,
    Inexpressible,
    Language,
    Names,
    Program,
    Return,
    Statement,
    Store,
    Switch,
)
from pml.processors.capabilities.pruning import pruned
from pml.processors.capabilities.reading import does, names_in
from pml.processors.capabilities.rendering import TooLong, argument
from pml.processors.capabilities.situation import UNROLLED_MAX, TooManySteps
from pml.processors.capabilities.values import (
    Arguments,
    Called,
    Closure,
    FunctionWork,
    Items,
    Known,
    Opaque,
    Pending,
    Record,
    Scope,
    TaskGroup,
    Value,
    is_data,
    node,
)
from pml.schemas.structure import CapabilityNode, Structure, TaskNode
from pml.schemas.workflow import Argument

_ENTRIES = ("main", "run", "execute", "handler")


def analyse(program: Program) -> Structure:
    """All that a program may do; what no DAG expresses is listed in it."""
    return _Analysis(program.language).structure(program)


class _Analysis(Evaluation):
    """Statements, over an evaluation of expressions.

    Attributes:
        left_alone: the line of the last call that nobody awaits, and the steps up to its end.
        labels: of a decision its line, and the outcomes that are cases.
    """

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self.left_alone: tuple[int, int] | None = None
        self.labels: dict[str, tuple[int, frozenset[str]]] = {}

    def structure(self, program: Program) -> Structure:
        result: Argument | None = None
        try:
            value = self._result(program)
            self._never_awaited()
            self._check_defaults()
            self._check_labels()
            self.say(value, 0)
            result = argument(value, self.language) if self._is_result(value) else None
        except TooManyNodes:
            self.refuse(0, "it has more calls than a workflow may have")
        except TooManySteps:
            self.refuse(0, "it takes too many steps to see through")
        except TooLong:
            self.refuse(0, "a name or a reference in it is too long")
        except RecursionError:
            self.refuse(0, "it is nested too deeply")
        nodes, edges = pruned(self.draft)
        return Structure(
            language=program.language,
            nodes=nodes,
            edges=edges,
            parameters=tuple(self.parameters.values()),
            result=result,
            unsupported=tuple(sorted(self.unsupported.values(), key=lambda item: item.line)),
        )

    def _is_result(self, value: Value) -> bool:
        return is_data(value) and value != merging.NULL

    def _result(self, program: Program) -> Value:
        finished = self.block(program.body)
        result = self.returned_value(finished)
        entry = self._entry()
        if entry is None or self.draft.nodes or self.pending or not all(map(_defines, program.body)):
            return self.force(result) if isinstance(result, Pending) else result
        return self.run(FunctionWork(entry, self._entry_arguments(entry.function), ()), entry.function.line)

    def _entry(self) -> Closure | None:
        """The function that is meant to be called where a program only defines functions."""
        named = {name: value for name, value in self.scope.values.items() if isinstance(value, Closure)}
        given_out = [value for value in named.values() if value.function.entry]
        known = [named[name] for name in _ENTRIES if name in named]
        return next(iter([*given_out, *known, *reversed(named.values())]), None)

    def _entry_arguments(self, function: Function) -> tuple[Value, ...]:
        return tuple(self._entry_argument(names, function.line) for names in function.parameters)

    def _entry_argument(self, names: Names, line: int) -> Value:
        if names.whole is None or names.whole == "args":
            return Arguments()
        if names.default is not None:
            return self.optional(names.whole, self.evaluate(names.default), line)
        return self.parameter(names.whole)

    def _check_defaults(self) -> None:
        for name, parameter in self.parameters.items():
            if parameter.default is not None and self.read_bare.get(name):
                self.refuse(0, f"`{name}` is read with and without its default")

    def _runs_alone(self) -> bool:
        """Whether a call that is not awaited runs nevertheless: a promise at the end of a program does."""
        return self.language == "typescript" and self.depth == 0

    def _never_awaited(self) -> None:
        if self.left_alone is not None and self.left_alone[1] != self.steps:
            self.refuse(self.left_alone[0], "a call is not awaited")
        for pending in list(self.pending):
            if pending.value is None:
                self.refuse(pending.line, "a call is not awaited")
                self.force(pending)

    # Statements: whether the function has returned after them.

    def statements_of(self, closure: Closure, scope: Scope) -> Value:
        return self.block(closure.function.body)

    def block(self, statements: Sequence[Statement]) -> Value:
        """Some statements in their order."""
        return self._in_turn([partial(self.statement, each) for each in statements])

    def _in_turn(self, steps: Sequence[Callable[[], Value]]) -> Value:
        returned: Value = merging.FALSE
        for position, step in enumerate(steps):
            before = self.draft.conditions
            found = step()
            if merging.is_true(found):
                return found
            if merging.is_false(found):
                continue
            if self.draft.conditions == before:
                return merging.either(returned, self._unless(found, steps[position + 1 :]))
            returned = merging.either(returned, found)  # what follows lies in the one way that is left
        return returned

    def _unless(self, returned: Value, steps: Sequence[Callable[[], Value]]) -> Value:
        """What follows where some ways have returned: it lies in a branch of its own."""
        if not steps:
            return returned
        decision = self.decision(merging.negated(returned), "", 0)
        ways = [
            ("true", merging.negated(returned), lambda: self._in_turn(steps)),
            ("false", returned, lambda: merging.TRUE),
        ]
        return merging.either(returned, self.ways(decision, ways))

    def statement(self, statement: Statement) -> Value:
        """One statement."""
        match statement:
            case Assign():
                self._assign(statement)
            case Store():
                self._store(statement)
            case Evaluate(value=value):
                self._evaluated(value)
            case If(condition=condition, then=then, otherwise=otherwise):
                return self._if(condition, then, otherwise)
            case Switch():
                return self._switch(statement)
            case ForEach():
                return self._for_each(statement)
            case Group():
                return self._group(statement)
            case Return(value=value):
                return self._return(value)
            case Inexpressible(what=what, body=body):
                self.refuse(statement.line, what)
                self.inner(body)
        return merging.FALSE

    def inner(self, body: Sequence[Statement]) -> Value:
        """The statements of a block, whose variables are its own where the language has it so."""
        if self.language == "python":
            return self.block(body)
        outer, self.scope = self.scope, Scope(self.scope)
        self.scopes.append(self.scope)
        returned = self.block(body)
        self.scope = outer
        return returned

    def _assign(self, statement: Assign) -> None:
        before = self.scope.find(statement.target.whole or "")
        old = before.values[statement.target.whole or ""] if before else None
        if statement.in_place and isinstance(old, (Items, Record)) and self.is_shared(old):
            self.refuse(statement.line, "a list that more than one name stands for is changed")
        value = self.evaluate(statement.value)
        if isinstance(value, Called) and language_names.is_used_up(value.function, self.language):
            self.refuse(statement.line, f"what `{value.function}` gives is kept, and can be used only once")
        if statement.declares or self.language == "python":
            self.bind(statement.target, value, self.scope, statement.line)
            return
        holder = Scope()
        self.bind(statement.target, value, holder, statement.line)
        for name, part in holder.values.items():
            scope = self.scope.find(name)
            if scope is None:
                self.refuse(statement.line, f"`{name}` is not declared")
            (scope or self.scope).values[name] = part

    def _store(self, statement: Store) -> None:
        scope = self.scope.find(statement.name)
        held = scope.values[statement.name] if scope else None
        if self.language == "python":  # which computes what is stored before where
            value, key = self.evaluate(statement.value), self.evaluate(statement.key)
        else:
            key, value = self.evaluate(statement.key), self.evaluate(statement.value)
        known = isinstance(key, Known) and isinstance(key.value, str)
        if scope is None or not isinstance(held, Record) or not known or self.is_shared(held):
            self.refuse(statement.line, "a part of a value is changed")
            return
        assert isinstance(key, Known)
        scope.values[statement.name] = Record(tuple((dict(held.entries) | {key.value: value}).items()))

    def _evaluated(self, expression: Expression) -> None:
        """An expression whose value nobody keeps; a program's own main function is not always awaited."""
        value = self.evaluate(expression)
        if isinstance(value, Pending) and isinstance(value.work, FunctionWork) and self._runs_alone():
            self.force(value)
            self.left_alone = (expression.line, self.steps)
        self.say(value, expression.line)

    def _return(self, written: Expression | None) -> Value:
        value = merging.NULL if written is None else self.evaluate(written)
        if isinstance(value, Pending) and self.frame.asynchronous and self.language == "typescript":
            value = self.force(value)  # whoever awaits a promise of a promise gets its value
        self.say(value, 0 if written is None else written.line)
        self.frame.returned.append((self.guard, self.draft.conditions, value))
        self.frame.ends = (*self.frame.ends, *self.draft.ends)
        return merging.TRUE

    def _if(self, condition: Expression, then: Sequence[Statement], otherwise: Sequence[Statement]) -> Value:
        test = self.data(self.evaluate(condition), condition)
        known = folding.known_truth(test)
        if known is not None:
            return self.inner(then if known else otherwise)
        decision = self.decision(test, condition.source, condition.line)
        ways = [
            ("true", test, lambda: self.inner(then)),
            ("false", merging.negated(test), lambda: self.inner(otherwise)),
        ]
        return self.ways(decision, ways)

    def _switch(self, statement: Switch) -> Value:
        subject = self.data(self.evaluate(statement.subject), statement.subject)
        cases = _different([(case, self._case_values(case)) for case in statement.cases])
        named = [values for _, values in cases if values]
        silent = any(values and not does(case.body) for case, values in cases)
        if silent or not named or any(len(values) > 1 or not _is_label(values[0]) for values in named):
            return self._chain(subject, statement, cases)
        if isinstance(subject, Known):
            return self._known_case(subject, cases)
        decision = self.decision(subject, statement.subject.source, statement.line)
        ways: list[Way] = []
        otherwise: Sequence[Statement] = ()
        none_of_them: Value = merging.TRUE
        for case, each in cases:
            if not each:
                otherwise = case.body
                continue
            test = folding.operated("==", (subject, each[0]))
            none_of_them = merging.both(none_of_them, merging.negated(test))
            ways.append((_label(each[0]), test, partial(self.inner, case.body)))
        self.labels[decision] = (statement.line, frozenset(outcome for outcome, _, _ in ways))
        ways.append(("case:default", none_of_them, lambda: self.inner(otherwise)))
        return self.ways(decision, ways)

    def _check_labels(self) -> None:
        """What is no case is the default: so each case has to be seen, by a call that lies in it."""
        seen: dict[str, set[str]] = {}
        for drawn in self.draft.nodes.values():
            if isinstance(drawn, (TaskNode, CapabilityNode)):
                for item in drawn.conditions:
                    seen.setdefault(item.node, set()).add(item.outcome)
        for decision, (line, labels) in self.labels.items():
            found = seen.get(decision, set())
            if "case:default" in found and not labels <= found:
                self.refuse(line, "a case without a call of a tool, and a default with one")

    def _case_values(self, case: Case) -> list[Value]:
        return [self.evaluate(value) for value in case.values]

    def _known_case(self, subject: Known, cases: Sequence[tuple[Case, list[Value]]]) -> Value:
        for case, values in cases:
            if not values or values[0] == subject:
                return self.inner(case.body)
        return merging.FALSE

    def _chain(self, subject: Value, statement: Switch, cases: list[tuple[Case, list[Value]]]) -> Value:
        """Cases of several values, or of values that are no labels, as one `if` after the other."""
        if not cases:
            return merging.FALSE
        (case, values), *others = cases
        if not values:
            return self.inner(case.body)
        tests = [folding.operated("==", (subject, value)) for value in values]
        test = folding.operated("or", tuple(tests)) if len(tests) > 1 else tests[0]
        known = folding.known_truth(test)
        if known is not None:
            return self.inner(case.body) if known else self._chain(subject, statement, others)
        decision = self.decision(test, "", case.line)
        ways = [
            ("true", test, lambda: self.inner(case.body)),
            ("false", merging.negated(test), lambda: self._chain(subject, statement, others)),
        ]
        return self.ways(decision, ways)

    def _group(self, statement: Group) -> Value:
        group = TaskGroup()
        self.scope.values[statement.name] = group
        calls = self.draft.calls
        returned = self.inner(statement.body)
        if self.draft.calls > calls or not merging.is_false(returned):
            self.refuse(statement.line, "a task group does more than begin tasks")
        self.together(Items(tuple(group.begun)), statement.line, settled=False)
        return merging.FALSE

    def _for_each(self, statement: ForEach) -> Value:
        items = self.evaluate(statement.items)
        listed = folding.listed(items)
        if listed is not None and len(listed) <= UNROLLED_MAX:
            return self._in_turn([partial(self._once, statement, item) for item in listed])
        if not is_data(items) or isinstance(items, Opaque) or listed is not None:
            self.refuse(statement.line, "a loop over what is not understood")
            items = Opaque(statement.items.source)
        self._repeated(statement, items)
        return merging.FALSE

    def _once(self, statement: ForEach, item: Value) -> Value:
        outer = self.scope
        if self.language == "typescript":
            self.scope = Scope(outer)
            self.scopes.append(self.scope)
        self.bind(statement.variable, item, self.scope, statement.line)
        returned = self.inner(statement.body)
        self.scope = outer
        return returned

    def _repeated(self, statement: ForEach, items: Value) -> None:
        """A loop over a result: gone through once, and nothing may go from one time to the next."""
        before, count = self.variables(), len(self.scopes)
        name, outer = self.open_loop(items, statement.line, parallel=False)
        self.reads.clear()
        returned = self._once(statement, node(name, "item"))
        if not merging.is_false(returned):
            self.refuse(statement.line, "`return` inside of a loop over a result")
        self.close_loop(name, outer, self._collected(statement, name, before[:count]))

    def _collected(self, statement: ForEach, loop: str, before: Sequence[dict[str, Value]]) -> Value | None:
        """What one time adds to a list that was empty; any other change would be one time's for the next."""
        collected: Value | None = None
        own = set(names_in(statement.variable))
        for scope, values in zip(self.scopes, before, strict=False):
            for name in list(scope.values):
                old, new = values.get(name), scope.values[name]
                if new is old or new == old:
                    continue
                added = _added(old, new)
                if added is not None and collected is None and name not in self.reads:
                    collected, scope.values[name] = added, node(loop)
                    continue
                if old is not None and not isinstance(old, Opaque) and name not in own:
                    self.refuse(statement.line, f"`{name}` goes from one time of a loop to the next")
                scope.values[name] = Opaque(reason=f"`{name}` of the last time of a loop is used")
        return collected


def _defines(statement: Statement) -> bool:
    """Whether a statement only says what a name means."""
    if not isinstance(statement, Assign):
        return False
    return isinstance(statement.value, Function) or not does(statement.value)


def _added(old: Value | None, new: Value) -> Value | None:
    """The one item that was put into an empty list."""
    match old, new:
        case Items(items=()), Items(items=(item,)) if is_data(item):
            return item
    return None


def _different(cases: Sequence[tuple[Case, list[Value]]]) -> list[tuple[Case, list[Value]]]:
    """The cases that can be met: of several for one constant it is the first."""
    seen: set[tuple[str, Any]] = set()
    found: list[tuple[Case, list[Value]]] = []
    for case, values in cases:
        known = [(type(each.value).__name__, each.value) for each in values if isinstance(each, Known)]
        if not values or len(known) < len(values) or not seen.issuperset(known):
            found.append((case, values))
        seen |= set(known)
    return found


def _is_label(value: Value) -> bool:
    """Whether an outcome can be named after a value: a text that no number and no boolean is written like."""
    if not isinstance(value, Known) or not isinstance(value.value, str):
        return False
    try:
        float(value.value)
    except ValueError:
        return value.value.lower() not in {"true", "false", "default"}
    return False


def _label(value: Value) -> str:
    assert isinstance(value, Known)
    return f"case:{value.value}"
