"""What `pml:predict` answers: what may come next in a session, with the calls that it would make.

How likely an element comes is one model's, which arguments it comes with another's, how likely a tool
succeeds with those a third one's; a call is as sure as all together. The calls of a capability are those of
its workflow, with its parameters filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pml.processors.capabilities.inlining import Find, inlined
from pml.processors.learning.feasibility import Feasible
from pml.processors.learning.traces import Vectors
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.prediction import CANDIDATES_MOST, Feasibility, PredictAnswer, Predicted, PredictRequest
from pml.schemas.workflow import LiteralValue, Task, Workflow

# Of the likeliest it is asked with which arguments they come; those behind them reach no threshold.
ASKED_MOST = 5
# All calls of all candidates: the answer is a record, and each of its tasks is looked at.
TASKS_MOST = 100
NO_ARGUMENTS = "no_arguments"
UNLIKELY = "unlikely"
# A required input is not there: other calls could give it, or nobody is known who could.
NOT_YET = "not_yet"
INFEASIBLE = "infeasible"
# Its calls do not fit beside those of likelier ones; fewer calls of a less likely one may.
TOO_MANY_TASKS = "too_many_tasks"


class Likely(Protocol):
    """An element and how likely it comes next."""

    @property
    def name(self) -> str:
        """A tool or a capability."""

    @property
    def confidence(self) -> float:
        """0 to 1."""


class NextElement(Protocol):
    """What knows what follows what."""

    @property
    def learner(self) -> str:
        """What of it answers."""

    def candidates(
        self, history: Sequence[str], request: str, most: int, look: Vectors | None = None
    ) -> Sequence[Likely]:
        """The likeliest elements, the best first; `look` is what the latest was called with, or None."""


class Filled(Protocol):
    """Arguments that an element may come with."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """By name, with values."""

    @property
    def confidence(self) -> float:
        """That all of them are right, 0 to 1."""

    @property
    def sources(self) -> Mapping[str, str]:
        """By name, what each was taken from; never a value."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and who answers.

    Attributes:
        fill: names the arguments of an element, the likeliest first.
        find: knows capabilities.
        succeeds: how likely a tool succeeds with arguments, 0 to 1; what fails serves nobody.
        feasible: of elements, what can be called now, or through which calls; who is not told may be.
        look: what the latest element was called with (`looks.look`); None: nobody knows, or asks for it.
    """

    request: PredictRequest
    fill: Callable[[str], Sequence[Filled]]
    find: Find
    succeeds: Callable[[str, Mapping[str, Any]], float] = lambda tool, arguments: 1.0
    feasible: Callable[[Sequence[str]], Mapping[str, Feasible]] = lambda names: {}
    look: Vectors | None = None


def predict_answer(question: Question, model: NextElement, model_id: str) -> PredictAnswer:
    """Candidates with their calls, the most confident first.

    Args:
        model: what knows what follows what.
        model_id: of the artefact that it is; empty where it was counted just now.
    """
    request = question.request
    likely = model.candidates(request.history, request.request, CANDIDATES_MOST, question.look)
    found = list(_filled(question, likely))
    candidates = sorted((candidate for candidate, _ in found), key=_rank)
    tasks = [task for _, each in found for task in each.tasks]
    decisions = tuple(decision for _, each in found for decision in each.decisions)
    workflow = Workflow(tasks=tuple(tasks), decisions=decisions) if tasks else None
    return PredictAnswer(
        model=model_id,
        learner=model.learner,
        first=likely[0].name if likely else None,
        candidates=tuple(candidates),
        workflow=workflow,
    )


def _rank(candidate: Predicted) -> tuple[float, float, str]:
    return -candidate.confidence, -candidate.likelihood, candidate.name


def _filled(question: Question, likely: Sequence[Likely]) -> Iterator[tuple[Predicted, Workflow]]:
    room, asked = TASKS_MOST, 0
    feasible = question.feasible([each.name for each in likely])
    for place, each in enumerate(likely, start=1):
        found = feasible.get(each.name)
        bare = Predicted(name=each.name, likelihood=each.confidence, feasibility=_told(found))
        if found is not None and found.missing:
            yield _without_calls(bare, INFEASIBLE if found.through is None else NOT_YET), Workflow()
            continue
        asked += 1
        guess = next(iter(question.fill(each.name)), None) if asked <= ASKED_MOST else None
        if guess is None:
            yield _without_calls(bare, NO_ARGUMENTS if asked <= ASKED_MOST else UNLIKELY), Workflow()
            continue
        try:
            calls = _calls(question.find, f"p{place}", each.name, guess.arguments)
        except WorkflowInvalid as error:
            yield _without_calls(bare, error.code.lower()), Workflow()
            continue
        if len(calls.tasks) > room:
            yield _without_calls(bare, TOO_MANY_TASKS), Workflow()
            continue
        room -= len(calls.tasks)
        succeeds = question.succeeds(each.name, guess.arguments) if ":" in each.name else 1.0
        yield _with_calls(bare, guess, calls, succeeds), calls


def _told(found: Feasible | None) -> Feasibility | None:
    if found is None:
        return None
    through = found.through or ()
    steps = None if found.through is None else len(through)
    return Feasibility(missing=found.missing, steps=steps, through=through, cost=found.cost)


def _without_calls(candidate: Predicted, reason: str) -> Predicted:
    return candidate.model_copy(update={"reason": reason})


def _with_calls(candidate: Predicted, guess: Filled, calls: Workflow, succeeds: float) -> Predicted:
    called = {
        "confidence": candidate.likelihood * guess.confidence * succeeds,
        "tasks": tuple(task.id for task in calls.tasks),
        "sources": dict(guess.sources),
    }
    return candidate.model_copy(update=called)


def _calls(find: Find, task_id: str, name: str, arguments: Mapping[str, Any]) -> Workflow:
    """
    Raises:
        WorkflowInvalid: the capability is gone, is no DAG, or does not take these arguments.
    """
    given = {key: LiteralValue(value=value) for key, value in arguments.items()}
    if ":" in name:
        return Workflow(tasks=(Task(id=task_id, tool=name, arguments=given),))
    call = Task(id=task_id, capability=name, arguments=given)
    return inlined(Workflow(tasks=(call,)), find)
