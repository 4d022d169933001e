"""What people are shown of a model's manifest, beyond what lists, promotions and trainings need of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from pml.schemas.base import Record
from pml.schemas.catalog import Count
from pml.streams.learning.manifests import Manifest, damaged, manifest_file, read_manifest

_Interval = Annotated[list[float], Field(min_length=2, max_length=2)]


class _Mean(Record):
    mean: float
    interval: _Interval


class _Gain(Record):
    hit_1: float
    interval: _Interval


class _Learner(Record):
    hit_1: _Mean
    hit_3: _Mean
    mrr: _Mean
    brier: _Mean


class _Data(Record):
    runs: Count
    sessions: Count
    questions: Count


class _Confidence(Record):
    expected_error: float
    brier: float


class _Calibration(Record):
    before: _Confidence
    after: _Confidence


class _RecallGain(_Gain):
    brier: float


class _Latest(Record):
    questions: Count
    ends: Count
    answered: Count
    gain: _RecallGain


class _Recalled(Record):
    questions: Annotated[int, Field(ge=1)]
    right: Count
    used: bool = True
    latest: _Latest | None = None


class _Served(Record):
    hit_1: _Mean
    hit_3: _Mean
    brier: _Mean
    gain: _Gain


class _Call(Record):
    auc: float
    brier: _Mean


class _CallGain(Record):
    brier: float
    interval: _Interval


class _Calls(Record):
    calls: Count
    learners: dict[str, _Call]
    gain: _CallGain
    used: bool


class _Asked(Record):
    hash: str
    openings: Count
    questions: Count
    learners: dict[str, _Learner]
    gain: _Gain | None
    served: _Served | None = None


class _Shown(Record):
    serves: str
    reason: str
    seed: int
    data: _Data
    validation: dict[str, _Learner]
    gains: dict[str, _Gain | None]
    message_passing: _Gain | None = None
    reads_looks: bool = False
    calibration: _Calibration
    recalled: _Recalled | None = None
    served: _Served | None = None
    call_success: _Calls | None = None
    test: dict[str, Any]
    phases_s: dict[str, float]

    @model_validator(mode="after")
    def _examined(self) -> Self:
        """Of a test side that asks nothing no more is said."""
        if "learners" not in self.test:
            return self
        if self.serves not in _Asked.model_validate(self.test, strict=True).learners:
            raise ValueError("what serves must have been asked")
        return self


def read_shown(folder: Path, model_id: str) -> Manifest:
    """What is said of a model, with all that people are shown.

    Raises:
        NoSuchModel: it is not in the folder.
        ModelDamaged: its manifest is not what was written: something of that is cut off, or another.
    """
    found = read_manifest(folder, model_id)
    try:
        _Shown.model_validate(found, strict=True)
    except ValidationError:
        raise damaged(manifest_file(folder, model_id)) from None
    return found
