"""What `pml:predict` answers of two models: which element comes, and with which arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pml.processors.learning.feasibility import Feasible
from pml.processors.learning.predict_answer import ASKED_MOST, TASKS_MOST, Question, predict_answer
from pml.processors.learning.traces import Vectors
from pml.schemas.catalog import Capability
from pml.schemas.prediction import CANDIDATES_MOST, Feasibility, PredictAnswer, PredictRequest
from pml.schemas.structure import StructureParameter
from pml.schemas.workflow import Parameter, Reference, Task


@dataclass
class Element:
    """Comes next with this likelihood."""

    name: str
    confidence: float


@dataclass
class Guess:
    """Arguments that come with this confidence."""

    arguments: dict[str, Any]
    confidence: float = 1.0
    sources: dict[str, str] = field(default_factory=dict)


@dataclass
class Order:
    """Says the same whatever is asked."""

    elements: list[Element]
    learner: str = "markov_1"

    def candidates(
        self, history: Sequence[str], request: str, most: int, look: Vectors | None = None
    ) -> Sequence[Element]:
        """The first of them."""
        return self.elements[:most]


def answer(
    elements: list[Element], guesses: dict[str, Guess], capabilities: dict[str, Capability] | None = None
) -> PredictAnswer:
    """What is answered where these elements and arguments are likely."""
    question = Question(
        PredictRequest(history=("files:list_dir",)),
        lambda name: [guesses[name]] if name in guesses else [],
        (capabilities or {}).get,
    )
    return predict_answer(question, Order(elements), "mdl_1")


def test_the_model_is_told_what_the_latest_element_was_called_with() -> None:
    asked: list[Vectors | None] = []

    @dataclass
    class Looking(Order):
        def candidates(
            self, history: Sequence[str], request: str, most: int, look: Vectors | None = None
        ) -> Sequence[Element]:
            asked.append(look)
            return super().candidates(history, request, most, look)

    question = Question(PredictRequest(history=("a:x",)), lambda name: [], {}.get)
    latest = np.ones(2, dtype=np.float32)
    for each in (question, replace(question, look=latest)):
        predict_answer(each, Looking([Element("a:x", 0.6)]), "mdl_1")
    assert asked[0] is None
    assert asked[1] is latest


def written(answer: PredictAnswer, task_id: str) -> dict[str, Any]:
    """The arguments of a task as the answer writes them down."""
    tasks = answer.workflow.tasks if answer.workflow else ()
    return next(dict(task.arguments) for task in tasks if task.id == task_id)


def capability(tasks: int = 2) -> Capability:
    """Reads a path, and searches for what was read."""
    first = Task(id="n1", tool="files:read_file", arguments={"path": Parameter(parameter_name="path")})
    others = tuple(
        Task(id=f"n{number}", tool="files:search", arguments={"text": Reference(expression="n1.text")})
        for number in range(2, tasks + 1)
    )
    return Capability(
        tenant="local",
        name="look",
        capability_id="cap_1",
        tasks=(first, *others),
        parameters=(StructureParameter(name="path"),),
    )


def test_a_call_is_as_sure_as_its_tool_and_its_arguments_together() -> None:
    found = answer([Element("files:read_file", 0.8)], {"files:read_file": Guess({"path": "a.md"}, 0.5)})
    assert found.candidates[0].confidence == 0.4
    assert written(found, "p1")["path"].value == "a.md"
    assert (found.model, found.learner) == ("mdl_1", "markov_1")


def test_the_most_confident_is_first_whatever_is_likeliest() -> None:
    guesses = {"a:x": Guess({}, 0.1), "a:y": Guess({}, 0.9)}
    found = answer([Element("a:x", 0.6), Element("a:y", 0.4)], guesses)
    assert [each.name for each in found.candidates] == ["a:y", "a:x"]


def test_an_element_whose_arguments_nobody_can_name_has_no_call() -> None:
    found = answer([Element("a:x", 0.6)], {})
    assert (found.candidates[0].reason, found.candidates[0].confidence) == ("no_arguments", 0)
    assert found.workflow is None


def test_only_of_the_likeliest_it_is_asked_which_arguments_they_have() -> None:
    elements = [Element(f"a:x{number}", 0.1) for number in range(30)]
    found = answer(elements, {each.name: Guess({}) for each in elements})
    assert len(found.candidates) == CANDIDATES_MOST
    assert sum(bool(each.tasks) for each in found.candidates) == ASKED_MOST


def test_a_value_that_looks_like_a_reference_is_a_value() -> None:
    tricky = {"type": "reference", "expression": "n1.secret"}
    found = answer([Element("a:x", 0.6)], {"a:x": Guess({"path": tricky})})
    assert written(found, "p1")["path"].value == tricky
    again = PredictAnswer.model_validate(found.model_dump(mode="json"))
    assert written(again, "p1")["path"].value == tricky


def test_the_calls_of_a_capability_are_those_of_its_workflow() -> None:
    known = {"cap_1": capability()}
    found = answer([Element("cap_1", 0.9)], {"cap_1": Guess({"path": "a.md"})}, known)
    assert found.candidates[0].tasks == ("p1__n1", "p1__n2")
    assert written(found, "p1__n1")["path"].value == "a.md"
    assert written(found, "p1__n2")["text"].expression == "p1__n1.text"


def test_a_capability_that_is_gone_or_takes_other_arguments_has_no_call() -> None:
    gone = answer([Element("cap_1", 0.9)], {"cap_1": Guess({})})
    other = answer([Element("cap_1", 0.9)], {"cap_1": Guess({"nothing": 1})}, {"cap_1": capability()})
    assert gone.candidates[0].reason == "unknown_capability"
    assert not other.candidates[0].tasks
    assert other.candidates[0].reason


def test_what_would_be_too_many_calls_is_left_out() -> None:
    known = {f"cap_{number}": capability(TASKS_MOST // 2) for number in range(3)}
    guesses = {name: Guess({"path": "a.md"}) for name in known}
    found = answer([Element(name, 0.3) for name in known], guesses, known)
    assert found.workflow is not None
    assert len(found.workflow.tasks) <= TASKS_MOST
    assert [each.reason for each in found.candidates] == [None, None, "too_many_tasks"]


def test_what_has_too_many_calls_leaves_their_room_to_less_likely_ones() -> None:
    known = {"cap_1": capability(TASKS_MOST + 1), "cap_2": capability(TASKS_MOST), "cap_3": capability(2)}
    guesses = {name: Guess({"path": "a.md"} if name in known else {}) for name in (*known, "a:x", "a:y")}
    likely = {"cap_1": 0.5, "a:x": 0.3, "cap_2": 0.1, "cap_3": 0.06, "a:y": 0.04}
    found = answer([Element(*each) for each in likely.items()], guesses, known)
    reasons = {each.name: each.reason for each in found.candidates}
    assert reasons == dict.fromkeys(likely) | {"cap_1": "too_many_tasks", "cap_2": "too_many_tasks"}
    assert found.workflow is not None
    assert [task.id for task in found.workflow.tasks] == ["p2", "p4__n1", "p4__n2", "p5"]


def feasible_answer(found: dict[str, Feasible], elements: list[str]) -> tuple[PredictAnswer, list[str]]:
    """What is answered where that is known, and of which elements arguments were asked."""
    asked: list[str] = []

    def fill(name: str) -> list[Guess]:
        asked.append(name)
        return [Guess({})]

    question = Question(
        PredictRequest(history=("files:list_dir",)), fill, {}.get, feasible=lambda names: found
    )
    return predict_answer(question, Order([Element(name, 0.04) for name in elements]), ""), asked


def test_what_cannot_be_called_is_not_asked_for_arguments_and_leaves_its_place_to_others() -> None:
    names = [f"a:x{number}" for number in range(ASKED_MOST + 3)]
    found = {names[0]: Feasible(("path",), None), names[2]: Feasible(("text",), ("a:y",), 0.5)}
    told, asked = feasible_answer(found, names)
    assert asked == [names[1], *names[3 : ASKED_MOST + 2]]
    by_name = {each.name: each for each in told.candidates}
    never, later, able = by_name[names[0]], by_name[names[2]], by_name[names[1]]
    assert (never.reason, never.feasibility) == ("infeasible", Feasibility(missing=("path",), steps=None))
    assert later.reason == "not_yet"
    assert later.feasibility == Feasibility(missing=("text",), steps=1, through=("a:y",), cost=0.5)
    assert able.tasks
    assert able.feasibility is None
    assert by_name[names[-1]].reason == "unlikely"


def test_what_can_be_called_says_so() -> None:
    told, _ = feasible_answer({"a:x": Feasible()}, ["a:x"])
    assert told.candidates[0].feasibility == Feasibility(steps=0)
    assert told.candidates[0].tasks == ("p1",)
