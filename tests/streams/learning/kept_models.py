"""Models as they lie in a folder, for whoever only reads what is said of them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import orjson

from pml.schemas.catalog import ModelRecord
from pml.streams.learning.manifests import (
    TENANT,
    Manifest,
    arrays_file,
    digest_of,
    manifest_file,
    model_name,
)


def _arrays(number: int) -> bytes:
    """Whose it is, and what tells it from others: nobody here loads it."""
    stream = io.BytesIO()
    np.savez(stream, **{TENANT: np.array("local"), "number": np.array(number)})
    return stream.getvalue()


_ARRAYS = {model_name(digest_of(told)): told for told in map(_arrays, range(4))}
FIRST, SECOND, THIRD, FOURTH = _ARRAYS
PROMOTED_AT = "2023-01-01T00:00:00.000000Z"


def keep(folder: Path, *model_ids: str) -> None:
    """Put models there, with other bytes in place of their arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    for model_id in model_ids:
        manifest_file(folder, model_id).write_bytes(orjson.dumps(manifest(model_id)))
        arrays_file(folder, model_id).write_bytes(_ARRAYS[model_id])


def manifest(model_id: str) -> Manifest:
    """What is said of one: .8, where the best baseline had .6."""
    return {**about(), "model_id": model_id, "blake2b": digest_of(_ARRAYS[model_id])}


def about(tenant: str = "local") -> Manifest:
    """The same before anybody knows its bytes."""
    rates = {"ranker": 0.8, "markov_1": 0.6}
    return {
        "created_at": PROMOTED_AT,
        "serves": "ranker",
        "baseline": "markov_1",
        "reason": "ranker is right more often",
        "validation": {name: {"hit_1": {"mean": rate}} for name, rate in rates.items()},
        "data": {"tenant": tenant, "questions": 100},
    }


def serving(model_id: str, *previous: str) -> ModelRecord:
    """What the catalog says while it serves."""
    return ModelRecord(
        model_id=model_id,
        learner="ranker",
        hit_1=0.8,
        baseline="markov_1",
        baseline_hit_1=0.6,
        promoted_at=PROMOTED_AT,
        previous=previous,
    )
