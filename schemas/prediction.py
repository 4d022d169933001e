"""What `pml:predict` is asked and answers: which element of a session comes next (spec story 12.4).

An element is a run: the capability that it was, or the tool that its one task called.
"""

from __future__ import annotations

from pydantic import Field

from pml.schemas.base import Json, Record
from pml.schemas.workflow import Workflow

PREDICT_TOOL = "pml:predict"
CANDIDATES_MOST = 20
"""What `prediction.made` keeps (DESIGN §7)."""
HISTORY_MOST = 16
"""Elements that a session remembers; what came before says next to nothing about what comes next."""
REQUEST_CHARACTERS_MAX = 4_000
"""Of the visible text, its beginning."""
VALUES_MOST = 4
"""The latest elements, whose arguments and results may be arguments of the next one."""


class PastElement(Record):
    """An element that ended, with its values; what cannot be had any more, or is too large, is None.

    `context` is what its run knew beside the one call; that of the latest element is enough.
    """

    name: str
    arguments: dict[str, Json] | None = None
    result: Json = None
    context: dict[str, Json] | None = None


class PredictRequest(Record):
    """Arguments of `pml:predict`.

    Attributes:
        history: names of the session's elements, the latest last.
        request: the text that is known of what the user wants; empty where nothing is.
        past: the latest of the history, with their values.
    """

    history: tuple[str, ...] = Field(max_length=HISTORY_MOST)
    request: str = ""
    past: tuple[PastElement, ...] = Field(default=(), max_length=VALUES_MOST)


class Feasibility(Record):
    """Whether something could be called when the answer was made, with what the session had then.

    Attributes:
        missing: inputs that it requires and that nothing in the session names.
        steps: how many other calls could give them; 0 where nothing is missing, None where nobody is known
            who could.
        through: these calls, tools and capabilities in an order in which they can be made.
        cost: of these calls; e^−cost is the probability that they go well and give what is needed.
    """

    missing: tuple[str, ...] = ()
    steps: int | None = None
    through: tuple[str, ...] = ()
    cost: float = 0.0


class Predicted(Record):
    """What may come next.

    Attributes:
        name: a tool or a capability.
        likelihood: how likely it is the next element, 0 to 1.
        confidence: how likely it comes with just these arguments; 0 where nobody can name them.
        tasks: of the answer's workflow, those that are its calls.
        sources: for each argument, what it was taken from.
        reason: why it has no calls.
        feasibility: whether it can be called at all; None where that was not looked at.
    """

    name: str
    likelihood: float = Field(ge=0.0, le=1.0)
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    tasks: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    reason: str | None = None
    feasibility: Feasibility | None = None


class PredictAnswer(Record):
    """Candidates, the most confident first.

    Attributes:
        model: the artefact that made it; empty where a baseline did that was counted just now.
        learner: what of it.
        first: the likeliest element as the learner ranks them; None where it names none.
        workflow: the calls of all candidates, with their arguments; None where there is none.
    """

    model: str = ""
    learner: str
    first: str | None = None
    candidates: tuple[Predicted, ...] = Field(default=(), max_length=CANDIDATES_MOST)
    workflow: Workflow | None = None
