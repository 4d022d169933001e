"""The model that serves: what may come next in a session, with confidence that is how often it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.argument_success import ArgumentSuccess, Pattern
from pml.processors.learning.attention.model import Attention
from pml.processors.learning.candidates import CANDIDATES_MOST, candidates
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.learners import LEARNERS, Given, Learnt, asked
from pml.processors.learning.looks import LOOK
from pml.processors.learning.packed_texts import packed, unpacked
from pml.processors.learning.recall import END, Recall, with_recalled
from pml.processors.learning.requests import RequestReader
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, Prefixes, Vectors
from pml.processors.learning.vocabulary import Vocabulary
from pml.processors.memory.embedding import Embedding

# Raised where a reader of older arrays would misread newer ones.
FORMAT = 1
_LEARNT, _CALIBRATION, _ARGUMENTS, _SUCCESS = "learnt.", "calibration.", "arguments.", "success."
_RECALL = "recall."


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may come next, a tool `server:name` or a capability `cap_…`, and how likely, 0 to 1."""

    name: str
    confidence: float


@dataclass(frozen=True, slots=True, eq=False)
class NextModel:
    """What serves: vocabulary, a description for each of its numbers, the learner, and its calibration.

    Attributes:
        learner: which of `LEARNERS` it is.
        learnt: what that learned.
        calibration: from its probabilities to how often it is right; None: they are taken as they are.
        embedding: makes the points of requests; the one whose points the model was fitted with.
        arguments: names the arguments of what comes next; None where nothing was learned of values.
        success: how likely a call with such arguments succeeds; None where they say nothing of that.
        recall: what sessions that had gone exactly so did next; None where too little recurs, or it harms.
    """

    learner: str
    vocabulary: Vocabulary
    descriptions: tuple[str, ...]
    learnt: Learnt
    calibration: Isotonic | None
    embedding: Embedding
    arguments: ArgumentSources | None = None
    success: ArgumentSuccess | None = None
    recall: Recall | None = None
    _reader: RequestReader = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reader", RequestReader(self.descriptions, self.embedding))

    @property
    def reads_looks(self) -> bool:
        """Whether it makes a difference what the latest element was called with."""
        return isinstance(self.learnt, Attention) and self.learnt.sizes.features > 0

    def candidates(
        self,
        history: Sequence[str],
        request: str,
        most: int = CANDIDATES_MOST,
        look: Vectors | None = None,
    ) -> tuple[Candidate, ...]:
        """What may come next, the best first; the same question always has the same answer.

        Args:
            history: what the session called, the latest last; it may name what the model does not know.
            request: the text that is visible of the request, empty where nothing is.
            most: how many at most.
            look: float32 [`LOOK`], what the latest was called with (`looks.look`); None: nobody knows. Who
                reads none (`reads_looks`) passes it over.

        Raises:
            ValueError: `most` is less than 1.
        """
        requests = self._reader.read([request] if request else [])
        told = np.array([0 if request else NO_TEXT], dtype=np.int64)
        texts = requests.points if request else np.zeros((1, self.embedding.dimensions), dtype=np.float32)
        ends = np.array([len(history)], dtype=np.int64)
        looks = None if look is None else look[None, :]
        prefixes = Prefixes(self.vocabulary.ids(history), ends * 0, ends, texts, told, looks)
        named = candidates(asked(self.learnt, requests), prefixes, most)
        if self.calibration is not None:
            named = self.calibration.of(named)
        if self.recall is not None:
            named = with_recalled(named, [self.recall.after(history, request)])
        return tuple(
            Candidate(name, confidence)
            for item, confidence in zip(named.items[0].tolist(), named.probabilities[0].tolist(), strict=True)
            if (name := self.vocabulary.name(item)) is not None
        )

    def succeeds(self, tool: str, pattern: Pattern) -> float:
        """How likely a call whose arguments look like this succeeds; 1.0 where nothing is known of that."""
        return 1.0 if self.success is None else float(self.success.probabilities([tool], [pattern])[0])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it but the embedding, of which it keeps the name."""
        calibration = {} if self.calibration is None else self.calibration.to_arrays()
        arguments = {} if self.arguments is None else self.arguments.to_arrays()
        success = {} if self.success is None else self.success.to_arrays()
        recall = {} if self.recall is None else self.recall.to_arrays()
        return {
            "format": np.array([FORMAT]),
            **packed("learner", (self.learner, self.embedding.name)),
            **self.vocabulary.to_arrays(),
            **packed("description", self.descriptions),
            **{_LEARNT + name: array for name, array in self.learnt.to_arrays().items()},
            **{_CALIBRATION + name: array for name, array in calibration.items()},
            **{_ARGUMENTS + name: array for name, array in arguments.items()},
            **{_SUCCESS + name: array for name, array in success.items()},
            **{_RECALL + name: array for name, array in recall.items()},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], embedding: Embedding) -> NextModel:
        """The model that `to_arrays` told.

        Raises:
            ValueError: an array is missing or does not fit, or `embedding` is another one than it was
                fitted with: train the model again.
        """
        try:
            learner, fitted_with = _head(arrays)
            vocabulary, descriptions = Vocabulary.from_arrays(arrays), unpacked("description", arrays)
        except (KeyError, IndexError) as error:
            raise ValueError(f"the model has no array {error}: train it again") from None
        if fitted_with != embedding.name:
            raise ValueError(
                f"the model was fitted with the embedding {fitted_with}, "
                f"this is {embedding.name}: train it again"
            )
        if learner not in LEARNERS or len(descriptions) != vocabulary.size:
            raise ValueError(f"the model is of a learner {learner!r} that this version does not have")
        learnt = LEARNERS[learner].restored(_under(_LEARNT, arrays))
        if isinstance(learnt, Attention) and learnt.sizes.features not in (0, LOOK):
            raise ValueError("the model reads other looks of arguments than these: train it again")
        calibration = _under(_CALIBRATION, arrays)
        known = Isotonic.from_arrays(calibration) if calibration else None
        sources = _under(_ARGUMENTS, arrays)
        arguments = ArgumentSources.from_arrays(sources) if sources else None
        ends = _under(_SUCCESS, arrays)
        success = ArgumentSuccess.from_arrays(ends) if ends else None
        recall = _recall(_under(_RECALL, arrays), vocabulary)
        return cls(learner, vocabulary, descriptions, learnt, known, embedding, arguments, success, recall)


def fitted(
    sessions: Sessions,
    embedding: Embedding,
    seed: int,
    learner: str,
    *,
    calibration: Isotonic | None = None,
    arguments: ArgumentSources | None = None,
    success: ArgumentSuccess | None = None,
    recall: Recall | None = None,
) -> NextModel:
    """A model of all of these sessions.

    Args:
        sessions: what to learn from, with the vocabulary that it will have.
        embedding: makes the points of texts and descriptions.
        seed: of whatever the learner draws.
        learner: one of `LEARNERS`.
        calibration: learned from sessions that the learner had not seen.
        arguments: what was learned of values in the same sessions.
        success: what was learned of how calls end.
        recall: what recurs in these sessions.

    Raises:
        KeyError: there is no such learner.
    """
    descriptions = sessions.described()
    given = Given(
        sessions.traces,
        embedding.embed(descriptions),
        RequestReader(descriptions, embedding).read(sessions.texts),
        seed,
        sessions.members(),
    )
    learnt = LEARNERS[learner].fit(given)
    return NextModel(
        learner, sessions.vocabulary, descriptions, learnt, calibration, embedding, arguments, success, recall
    )


def _recall(arrays: Mapping[str, NDArray[Any]], vocabulary: Vocabulary) -> Recall | None:
    """What recurs, in the numbers of this vocabulary; None where nothing was kept.

    Raises:
        ValueError: it does not fit.
    """
    if not arrays:
        return None
    found = Recall.from_arrays(arrays)
    if np.any((found.items < END) | (found.items >= vocabulary.size)):
        raise ValueError("what the model recalls is not in its vocabulary: train it again")
    return found


def _head(arrays: Mapping[str, NDArray[Any]]) -> tuple[str, str]:
    """The names of learner and embedding.

    Raises:
        KeyError, ValueError
    """
    version = arrays["format"].tolist()
    if version != [FORMAT]:
        raise ValueError(f"the model is of format {version}, this version reads {FORMAT}: train it again")
    learner, embedding = unpacked("learner", arrays)
    return learner, embedding


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
