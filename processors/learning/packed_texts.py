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
        ValueError: the bytes are no UTF-8.
    """
    told, offsets = arrays[f"{name}_bytes"].tobytes(), arrays[f"{name}_offsets"].tolist()
    return tuple(told[start:end].decode() for start, end in pairwise(offsets))


def text_array(texts: Sequence[str]) -> NDArray[Any]:
    """StringDType: each takes what it is long; NumPy's `str` pads all to the longest, times four."""
    return np.array(texts, dtype=StringDType())
