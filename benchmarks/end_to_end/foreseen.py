"""What a model foresees in recorded sessions that it has not seen, by the code that answers `pml:predict`."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.end_to_end.clock import Call, Guess, key_of
from benchmarks.end_to_end.times import MEDIAN_S
from benchmarks.learning.argument_sets import ArgumentSet
from benchmarks.learning.ways import WAYS
from benchmarks.speculation.conversion import is_safe
from benchmarks.speculation.sample import DECISION_S, SIGMA
from pml.processors.capabilities.provides import ToolSchemas
from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.argument_sources import Guess as Arguments
from pml.processors.learning.feasibility import Feasible, feasibility
from pml.processors.learning.holdings import Holdings
from pml.processors.learning.model import Candidate, NextModel
from pml.processors.learning.predict_answer import Question, predict_answer
from pml.processors.learning.scene import Past
from pml.processors.learning.tool_hypergraph import DeclaredTools, ToolHypergraph
from pml.processors.learning.traces import Vectors
from pml.schemas.prediction import HISTORY_MOST, VALUES_MOST, PredictRequest
from pml.schemas.workflow import LiteralValue

SERVER = "recorded"

ReadOnly = Mapping[str, bool | None]


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What was foreseen after a call, and the tools that were named with or without arguments."""

    guesses: tuple[Guess, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A data set with what its tools do."""

    data: ArgumentSet
    read_only: ReadOnly
    seed: int

    def calls(self, row: int) -> tuple[Call, ...]:
        """The calls of a session, with times that are the same for all who play it."""
        drawn = random.Random(f"{self.seed}/{self._folder}/{row}")
        return tuple(
            Call(
                each.name,
                key_of(each.name, each.arguments),
                self.safe(each.name),
                drawn.lognormvariate(math.log(MEDIAN_S), SIGMA),
                drawn.uniform(*DECISION_S),
            )
            for each in self.made(row)
        )

    def made(self, row: int) -> tuple[Past, ...]:
        """The elements of a session that are calls."""
        return self.data.sessions[row]

    def safe(self, tool: str) -> bool:
        """Whether a tool only reads."""
        return is_safe(self._folder, tool, self.read_only.get(tool))

    @property
    def _folder(self) -> str:
        """However much is visible, calls take the same time, and the same tools write."""
        return WAYS[self.data.name].folder


class Asked:
    """A model, asked after each call of a session. Arguments are asked for once, whoever names the tool."""

    def __init__(self, recorded: Recorded, sources: ArgumentSources) -> None:
        self._recorded, self._sources = recorded, sources
        schemas = {name: ToolSchemas(schema) for name, schema in recorded.data.schemas.items()}
        tools = DeclaredTools(schemas, sources.known.seen)
        self._tools = ToolHypergraph(tools, lambda name: None, tuple)
        self._filled: dict[tuple[int, int, str], tuple[Arguments, ...]] = {}

    def foreseen(self, model: NextModel, row: int) -> tuple[Foreseen, ...]:
        """What comes next after each call; after the last one too, because nobody knows that it was."""
        calls = len(self._recorded.made(row))
        return tuple(self._after(model, row, place) for place in range(1, calls + 1))

    def _after(self, model: NextModel, row: int, place: int) -> Foreseen:
        data, made = self._recorded.data, self._recorded.made(row)
        text = (*data.requests[row], data.end_texts[row])[place]
        past = made[max(0, place - VALUES_MOST) : place]

        def fill(name: str) -> tuple[Arguments, ...]:
            key = (row, place, name.partition(":")[2])
            if key not in self._filled:
                self._filled[key] = self._sources.guesses(key[2], past, text, 1)
            return self._filled[key]

        def feasible(names: Sequence[str]) -> dict[str, Feasible]:
            bare = {name: name.partition(":")[2] for name in names}
            found = feasibility(list(bare.values()), self._tools, Holdings(past, text).has)
            return {name: found[tool] for name, tool in bare.items()}

        history = tuple(each.name for each in made[max(0, place - HISTORY_MOST) : place])
        asked = PredictRequest(history=history, request=text)
        question = Question(asked, fill, lambda name: None, feasible=feasible)
        answer = predict_answer(question, _Served(model), "")
        tasks = {task.id: task for task in answer.workflow.tasks} if answer.workflow else {}
        guesses = [
            self._guess(row, each.name, tasks[each.tasks[0]].arguments, each.confidence)
            for each in answer.candidates
            if each.tasks
        ]
        return Foreseen(tuple(guesses), tuple(each.name.partition(":")[2] for each in answer.candidates))

    def _guess(self, row: int, name: str, given: Mapping[str, Any], confidence: float) -> Guess:
        tool = name.partition(":")[2]
        values = {each: value.value for each, value in given.items() if isinstance(value, LiteralValue)}
        key = key_of(tool, values)
        known = {call.key: call.tool_s for call in self._recorded.calls(row)}
        drawn = random.Random(f"{self._recorded.seed}/{row}".encode() + key)
        tool_s = known.get(key) or drawn.lognormvariate(math.log(MEDIAN_S), SIGMA)
        return Guess(tool, key, confidence, self._recorded.safe(tool), tool_s)


@dataclass(frozen=True, slots=True)
class _Served:
    """A model of recorded tools, which have no server of their own."""

    model: NextModel

    @property
    def learner(self) -> str:
        return self.model.learner

    def candidates(
        self, history: Sequence[str], request: str, most: int, look: Vectors | None = None
    ) -> Sequence[Candidate]:
        found = self.model.candidates(history, request, most, look)
        return [Candidate(f"{SERVER}:{each.name}", each.confidence) for each in found]
