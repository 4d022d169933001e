"""`replace` does what that of dataclasses does, and `maker` what the class itself does."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow import state
from pml.processors.workflow.copying import maker, replace, replacer
from pml.processors.workflow.state import Counts, Run, Session, TaskState

STATES = [kind for kind in vars(state).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
TASKS = st.builds(
    TaskState,
    status=st.sampled_from(["pending", "running", "completed"]),
    attempt=st.integers(0, 9),
    speculable=st.booleans(),
    result=st.none() | st.just(("pml.tool-outcomes", 1, 2)),
)
CHANGES = st.fixed_dictionaries(
    {}, optional={"status": st.just("failed"), "attempt": st.integers(0, 9), "result": st.none()}
)


@given(TASKS, CHANGES)
def test_a_copy_is_that_of_dataclasses(task: TaskState, changes: dict[str, object]) -> None:
    assert replace(task, **changes) == dataclasses.replace(task, **changes)  # type: ignore[arg-type]


def test_the_original_stays_as_it_was() -> None:
    counts = Counts(hits=1)
    assert (replace(counts, hits=2), counts) == (Counts(hits=2), Counts(hits=1))


def test_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="Counts has no hit"):
        replace(Counts(), hit=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", STATES)
def test_each_state_is_copied_field_by_field(kind: type) -> None:
    """Also those that the fold copies only on rare paths; without slots one could not be."""
    names = [field.name for field in dataclasses.fields(kind)]
    original: Any = object.__new__(kind)
    for name in names:
        object.__setattr__(original, name, f"old {name}")
    for changed in names:
        copy = replace(original, **{changed: "new"})
        expected = ["new" if name == changed else f"old {name}" for name in names]
        assert [getattr(copy, name) for name in names] == expected
        assert getattr(original, changed) == f"old {changed}"


@pytest.mark.parametrize("kind", STATES)
def test_what_is_made_is_what_the_class_makes(kind: Any) -> None:
    """With everything given, and with as little as the class takes."""
    fields = dataclasses.fields(kind)
    needed = {field.name: field.name for field in fields if _is_needed(field)}
    make = maker(kind)
    assert make(**needed) == kind(**needed)
    assert type(make(**needed)) is kind
    everything = [f"given {field.name}" for field in fields]
    assert make(*everything) == kind(*everything)


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


@dataclasses.dataclass(frozen=True, slots=True)
class Awkward:
    """Fields with the names that what is written out for them might use itself."""

    kind: str = "kind"
    new: int = 1
    copy: list[int] = dataclasses.field(default_factory=list)
    state: int = 2
    missing: int = 3
    made: int = 4


def test_no_name_of_a_field_is_in_the_way() -> None:
    assert maker(Awkward)() == Awkward()
    assert maker(Awkward)(new=5, copy=[6]) == Awkward(new=5, copy=[6])
    assert replacer(Awkward, "state", "copy")(Awkward(), 7, [8]) == Awkward(state=7, copy=[8])
    assert replace(Awkward(), kind="other", made=9) == Awkward(kind="other", made=9)


def test_what_is_made_shares_nothing_that_is_made_for_each() -> None:
    make = maker(Session)
    one, other = (make("local", "ses", 0, 0, 0, 0) for _ in range(2))
    assert one.runs == other.runs == {}
    assert one.runs is not other.runs


def test_what_is_made_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        maker(Counts)().hits = 1  # type: ignore[misc]


@pytest.mark.parametrize("given", [{}, {"run": 1}])
def test_what_the_class_does_not_take_nobody_makes(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="argument"):
        maker(Run)(**given)


def test_fields_are_replaced_in_the_order_that_was_named() -> None:
    task = TaskState(attempt=3, earlier=1)
    assert replacer(TaskState, "earlier", "status")(task, 2, "failed") == dataclasses.replace(
        task, earlier=2, status="failed"
    )


def test_a_replacer_of_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="Counts has no hit"):
        replacer(Counts, "hits", "hit")


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    number: int = 0

    def __post_init__(self) -> None:
        assert self.number >= 0


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    number: int = dataclasses.field(default=0, init=False)


@pytest.mark.parametrize("kind", [Checked, Counted])
def test_a_class_that_does_more_than_to_assign_its_fields_is_refused(kind: type) -> None:
    with pytest.raises(TypeError, match="more than to assign"):
        maker(kind)
    with pytest.raises(TypeError, match="more than to assign"):
        replacer(kind, "number")
