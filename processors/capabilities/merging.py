"""Values after a branch: what a variable is, given what it became on each way (DESIGN §5, alternatives)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pml.processors.capabilities.draft import Draft
from pml.processors.capabilities.values import (
    Items,
    Known,
    Opaque,
    Operated,
    Record,
    Reference,
    Value,
    is_data,
)
from pml.schemas.workflow import Condition

TRUE, FALSE, NULL = Known(True), Known(False), Known(None)


def is_true(value: Value) -> bool:
    """Whether a formula holds whatever happens."""
    return isinstance(value, Known) and value.value is True


def is_false(value: Value) -> bool:
    """Whether a formula never holds."""
    return isinstance(value, Known) and value.value is False


def negated(test: Value) -> Value:
    """That a formula does not hold."""
    if is_true(test) or is_false(test):
        return FALSE if is_true(test) else TRUE
    if isinstance(test, Operated) and test.operator == "not":
        return test.operands[0]
    return Operated("not", (test,))


def both(one: Value, other: Value) -> Value:
    """That two formulas hold; the second is looked at only where the first does."""
    if is_false(one) or is_true(other):
        return one
    return other if is_true(one) or is_false(other) else Operated("and", (one, other))


def either(one: Value, other: Value) -> Value:
    """That one of two formulas holds; the second is looked at only where the first does not."""
    if is_true(one) or is_false(other):
        return one
    return other if is_false(one) or is_true(other) else Operated("or", (one, other))


def choice_of_truths(test: Value, then: Value, otherwise: Value) -> Value:
    """A formula that is one of two formulas, by a third."""
    if then == otherwise:
        return then
    if is_true(then) or is_false(otherwise):
        return either(test, otherwise) if is_true(then) else both(test, then)
    if is_false(then) or is_true(otherwise):
        return both(negated(test), otherwise) if is_false(then) else either(negated(test), then)
    return Operated("choice", (test, then, otherwise))


def merged(
    draft: Draft,
    test: Value,
    within: Sequence[Condition] | None,
    then: Value | None,
    otherwise: Value | None,
) -> Value:
    """What a variable is after a branch was or was not taken.

    Args:
        draft: knows which node lies in which branch.
        test: whether the branch is taken.
        within: what every node of the branch carries; None where no node lies in it.
        then, otherwise: its values; None where it has none.
    """
    if then is None or otherwise is None:
        return _only(otherwise if then is None else then)
    if then is otherwise or (is_data(then) and then == otherwise):
        return then
    match then, otherwise:
        case Record(entries=ours), Record(entries=theirs) if [name for name, _ in ours] == [
            name for name, _ in theirs
        ]:
            pairs = zip(ours, theirs, strict=True)
            return Record(
                tuple((name, merged(draft, test, within, one, two)) for (name, one), (_, two) in pairs)
            )
        case Items(items=ones), Items(items=twos) if len(ones) == len(twos):
            return Items(
                tuple(merged(draft, test, within, one, two) for one, two in zip(ones, twos, strict=True))
            )
        case Reference(), Reference() if within and all(
            draft.lies_in(path.node, within) for path in then.paths
        ):
            return Reference(tuple(dict.fromkeys((*then.paths, *otherwise.paths))))
    if any(isinstance(value, Opaque) or not is_data(value) for value in (then, otherwise)):
        return Opaque(reason="a value that is no data depends on a branch")
    return chosen(test, then, otherwise)


def chosen(test: Value, then: Value, otherwise: Value) -> Value:
    """One of two values."""
    if isinstance(test, Known):
        return then if test.value else otherwise
    return Operated("choice", (test, then, otherwise))


def _only(value: Value | None) -> Value:
    """A variable that has a value on one way only: its nodes gave none on the other, and that is an error."""
    if isinstance(value, Reference):
        return value
    return Opaque(reason="a variable has no value on every way here")


def constant(value: Value) -> Any:
    """What is written down, as a value of JSON.

    Raises:
        LookupError: not all of it is.
    """
    match value:
        case Known(value=literal):
            return literal
        case Items(items=items):
            return [constant(item) for item in items]
        case Record(entries=entries):
            return {name: constant(item) for name, item in entries}
    raise LookupError
