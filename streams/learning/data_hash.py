"""The name of what a training saw: the same hash means that a model would be the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import orjson
from numpy.typing import NDArray

from pml.processors.learning.known_sessions import KnownSession

# Padded, or each as long as it is: the same texts have the same hash.
TEXTS = ("U", "T")
_WRITTEN = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def data_hash(
    columns: Mapping[str, NDArray[Any]], known: Mapping[str, Any], values: Sequence[KnownSession]
) -> str:
    """32 hex digits of all that a model is made of.

    Args:
        columns: of traces and calls, in a fixed order.
        known: what the catalog says, as JSON values.
        values: what runs took and gave.
    """
    found = blake2b(digest_size=16)
    for name, column in columns.items():
        told = "\0".join(column.tolist()).encode() if column.dtype.kind in TEXTS else column.tobytes()
        found.update(f"{name}:{len(told)}:".encode() + told)
    found.update(orjson.dumps(known, option=_WRITTEN))
    for session in values:
        found.update(orjson.dumps(asdict(session), option=_WRITTEN))
    return found.hexdigest()
