"""Texts as arrays: their UTF-8 one after another, and where each begins; an npz without pickle holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray


def packed(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """`<name>_bytes` (uint8, UTF-8, one after another) and `<name>_offsets` (int64, texts + 1)."""
    encoded = [text.encode() for text in texts]
    lengths = np.array([0, *map(len, encoded)], dtype=np.int64)
    return {
        f"{name}_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}_offsets": np.cumsum(lengths),
    }


def unpacked(name: str, arrays: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """The texts that `packed` wrote.

    Raises:
        KeyError: an array is missing.
        ValueError: the bytes are no UTF-8, or the offsets are not those of so many bytes.
    """
    told, offsets = arrays[f"{name}_bytes"], arrays[f"{name}_offsets"]
    if not _fit(told, offsets):
        raise ValueError(f"{name}_offsets do not rise from 0 to the end of {name}_bytes")
    whole = told.tobytes()
    return tuple(whole[start:end].decode() for start, end in pairwise(offsets.tolist()))


def _fit(told: NDArray[Any], offsets: NDArray[Any]) -> bool:
    if told.dtype != np.uint8 or told.ndim != 1 or offsets.dtype.kind not in "iu" or offsets.ndim != 1:
        return False
    rising = len(offsets) > 0 and not np.any(offsets[1:] < offsets[:-1])
    return rising and offsets[0] == 0 and offsets[-1] == len(told)


def text_array(texts: Sequence[str]) -> NDArray[Any]:
    """StringDType: each takes what it is long; NumPy's `str` pads all to the longest, times four."""
    return np.array(texts, dtype=StringDType())
