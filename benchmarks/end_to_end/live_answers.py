"""What a promoted model answers after each call of the sessions that are played, by the code that serves."""

from __future__ import annotations

from benchmarks.end_to_end.clock import Guess, key_of
from benchmarks.end_to_end.foreseen import SERVER
from benchmarks.end_to_end.play import Play, Session, given
from benchmarks.end_to_end.times import drawn_s
from pml.processors.discovery.library import Library
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.schemas.prediction import HISTORY_MOST, VALUES_MOST, PastElement, PredictRequest
from pml.schemas.workflow import LiteralValue, Task
from pml.streams.catalog_topic import read_catalog
from pml.streams.learning.serving import Served, answered, as_served
from pml.streams.learning.training import Trained
from pml.streams.settings import Settings


async def answers(settings: Settings, play: Play, trained: Trained) -> list[list[list[Guess]]]:
    """For each session and call what the model answers after it."""
    library = Library()
    for record in (await read_catalog(settings)).values():
        library.take(record)
    served = as_served(settings, trained.model, trained.manifest)
    return [
        [_guesses(library, served, play, session, place) for place in range(1, len(session.made) + 1)]
        for session in play.sessions
    ]


def _guesses(library: Library, served: Served, play: Play, session: Session, place: int) -> list[Guess]:
    names = [f"{SERVER}:{each.name}" for each in session.made[:place]]
    past = tuple(
        PastElement(
            name=name,
            arguments=dict(each.arguments),
            result=given(each),
            context=dict(each.context) or None,
        )
        for name, each in zip(names[-VALUES_MOST:], session.made[:place][-VALUES_MOST:], strict=True)
    )
    text = session.requests[place - 1]
    request = PredictRequest(history=tuple(names[-HISTORY_MOST:]), request=text, past=past)
    answer = answered(library, DEFAULT_TENANT, request, served)
    tasks = {task.id: task for task in answer.workflow.tasks} if answer.workflow else {}
    return [
        _guess(play, tasks[name], candidate.confidence)
        for candidate in answer.candidates
        for name in candidate.tasks
    ]


def _guess(play: Play, task: Task, confidence: float) -> Guess:
    tool = (task.tool or "").partition(":")[2]
    arguments = {
        name: value.value for name, value in task.arguments.items() if isinstance(value, LiteralValue)
    }
    key = key_of(tool, arguments)
    return Guess(tool, key, confidence, play.reads.get(tool, False), drawn_s(play.seed, key))
