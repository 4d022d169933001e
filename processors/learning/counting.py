"""What is counted of runs where no model serves: the best baseline, and what recurs (DESIGN §7).

Nothing is learned that would have to earn its place. How sure it is, is held against sessions that it had not
seen, as of every learner.
"""

from __future__ import annotations

from typing import Final

from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.learners import BASELINES
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.recall import Recall
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.training import Verdict, judged_and_chosen
from pml.processors.memory.embedding import Embedding

# What counts where no baseline can be judged: there is one session, or all are alike.
FIRST: Final = "discounting"
SEED: Final = 0


def counted(sessions: Sessions, embedding: Embedding, arguments: ArgumentSources | None = None) -> NextModel:
    """A model of these sessions by whichever baseline was right most often, as sure as it was right.

    Args:
        sessions: at least one of them goes on after its first element.
        arguments: what was learned of values in the same sessions.
    """
    verdict = _verdict(sessions, embedding)
    return fitted(
        sessions,
        embedding,
        SEED,
        FIRST if verdict is None else verdict.choice.serves,
        calibration=None if verdict is None else verdict.calibrated.calibration,
        arguments=arguments,
        recall=Recall.fit(sessions),
    )


def _verdict(sessions: Sessions, embedding: Embedding) -> Verdict | None:
    try:
        return judged_and_chosen(sessions, embedding, SEED, learners=BASELINES)
    except ValueError:
        return None  # nothing is unlike what was seen, or nothing was named in any question
