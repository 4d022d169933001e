"""What a model foresees in recorded sessions that it has not seen, by the code that answers `pml:predict`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.end_to_end.clock import Guess, key_of
from benchmarks.end_to_end.models import catalog_of
from benchmarks.end_to_end.play import SERVER, Play, Session, given
from benchmarks.end_to_end.times import drawn_s
from pml.processors.discovery.library import Library
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.schemas.prediction import HISTORY_MOST, VALUES_MOST, PastElement, PredictAnswer, PredictRequest
from pml.schemas.workflow import LiteralValue, Task
from pml.streams.learning.serving import Served, answered


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What was foreseen after a call, and the tools that were named with or without arguments."""

    guesses: tuple[Guess, ...]
    tools: tuple[str, ...]


class Asked:
    """A model that serves, asked after each call of a session."""

    def __init__(self, play: Play, served: Served) -> None:
        self._play, self._served, self._library = play, served, Library()
        for record in catalog_of(play).values():
            self._library.take(record)

    def foreseen(self, session: Session) -> tuple[Foreseen, ...]:
        """What comes next after each call; after the last one too, because nobody knows that it was."""
        places = range(1, len(session.made) + 1)
        return tuple(self._told(self._answered(session, place), session) for place in places)

    def _answered(self, session: Session, place: int) -> PredictAnswer:
        """The answer to the question that a stack asks when so many calls have been made."""
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
        return answered(self._library, DEFAULT_TENANT, request, self._served)

    def _told(self, answer: PredictAnswer, session: Session) -> Foreseen:
        tasks = {task.id: task for task in answer.workflow.tasks} if answer.workflow else {}
        guesses = (
            self._guess(tasks[name], candidate.confidence, session)
            for candidate in answer.candidates
            for name in candidate.tasks
        )
        return Foreseen(tuple(guesses), tuple(_tools(each.name for each in answer.candidates)))

    def _guess(self, task: Task, confidence: float, session: Session) -> Guess:
        (tool,) = _tools([task.tool or ""])
        arguments = {
            name: value.value for name, value in task.arguments.items() if isinstance(value, LiteralValue)
        }
        key, reads = key_of(tool, arguments), self._play.reads.get(tool, False)
        return Guess(tool, key, confidence, reads, drawn_s(session.trace_id, key))


def _tools(names: Iterable[str]) -> list[str]:
    """As the recorded server calls them."""
    return [name.partition(":")[2] for name in names]
