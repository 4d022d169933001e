"""`replace` does what that of dataclasses does."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow.copying import replace
from pml.processors.workflow.state import Counts, TaskState

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
