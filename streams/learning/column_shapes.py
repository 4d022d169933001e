"""Whether the columns of a training set fit together, where somebody else may have written them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

OFFSETS = "offsets"
_WORDS = "_words"
# The kinds of NumPy.
_COUNTS, _WHOLE_NUMBERS, _WHOLE_TEXTS, _BYTES = "iu", "iub", "UT", "S"

Columns = Mapping[str, NDArray[Any]]


def check_columns(
    columns: Columns,
    of_calls: Collection[str],
    names: Collection[str],
    fellows: Mapping[str, Collection[str]],
) -> None:
    """Refuse columns that do not fit together; what lies in them may still be anything.

    Args:
        of_calls: the columns with a value for each call; others than offsets and words have one for each run.
        names: the columns that hold names, in UTF-8, instead of numbers.
        fellows: what must be there beside a column.

    Raises:
        ValueError: one has another length or kind (what is neither name nor word is a whole number) or lacks
            its fellows, the offsets do not rise, a number has no word, or a name or word is no Unicode.
    """
    for name, needed in fellows.items():
        if name in columns and (missing := [each for each in needed if each not in columns]):
            raise ValueError(f"{', '.join(missing)} is missing beside {name}")
    for name, column in columns.items():
        if column.ndim != 1 or not _is_of_its_kind(name, column, names):
            raise ValueError(f"{name} is not a column of its kind")
    lengths = {True: _calls(columns[OFFSETS]), False: len(columns[OFFSETS]) - 1}
    for name, column in columns.items():
        if name == OFFSETS or name.endswith(_WORDS):
            continue
        if len(column) != (expected := lengths[name in of_calls]):
            raise ValueError(f"{name} has {len(column)} values, where {expected} belong")
    for name in (name.removesuffix(_WORDS) for name in columns if name.endswith(_WORDS)):
        _check_words(name, columns)


def _is_of_its_kind(name: str, column: NDArray[Any], names: Collection[str]) -> bool:
    kind = column.dtype.kind
    if name in names:
        return kind == _BYTES and _is_utf_8(column)
    if name.endswith(_WORDS):
        return kind in _WHOLE_TEXTS and _is_unicode(column)
    return _counts(column) if name == OFFSETS else kind in _WHOLE_NUMBERS


def _is_utf_8(names: NDArray[Any]) -> bool:
    """Whether all of them are: with a zero behind each, none goes on in the next."""
    try:
        names.astype(f"S{names.dtype.itemsize + 1}").tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_unicode(words: NDArray[Any]) -> bool:
    """Whether none has half a character or one beyond the last (a SystemError): NumPy keeps both."""
    try:
        "".join(words.tolist()).encode()
    except (UnicodeEncodeError, SystemError):
        return False
    return True


def _counts(column: NDArray[Any]) -> bool:
    """Whether what lies in it can be a place: NumPy adds others of 64 bits up to floats."""
    return column.dtype.kind in _COUNTS and np.can_cast(column.dtype, np.int64)


def _calls(offsets: NDArray[Any]) -> int:
    """How many there are."""
    if len(offsets) == 0 or offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"{OFFSETS} do not rise from 0")
    return int(offsets[-1])


def _check_words(name: str, columns: Columns) -> None:
    words = len(columns[f"{name}{_WORDS}"])
    if name not in columns:
        raise ValueError(f"{name}{_WORDS} has no {name}")
    numbers = columns[name]
    if not _counts(numbers) or (len(numbers) and not 0 <= numbers.min() <= numbers.max() < words):
        raise ValueError(f"{name} has numbers that are none of its {words} words")
