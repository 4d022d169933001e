"""Archives of arrays that somebody else may have written, or that a disk has changed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pml.streams.learning.npz import opened_arrays

# One is longer than what `zipfile` reads at once: NumPy sees its beginning before its checksum is compared.
ARRAYS = {
    "offsets": np.random.default_rng(1).integers(0, 1_000, 3_000),
    "words": np.array(["read_file", "write_file"]),
}
Write = Callable[..., None]
BEGINNING = b"\x93NUMPY\x01\x00"


def archive(write: Write) -> bytes:
    stream = io.BytesIO()
    write(stream, **ARRAYS)
    return stream.getvalue()


def read(told: bytes) -> dict[str, Any]:
    stored = opened_arrays(io.BytesIO(told))
    return {name: stored[name].tolist() for name in ARRAYS}


def with_header(header: str) -> bytes:
    """An archive whose checksum is right, with an array that says this of itself."""
    padded = header.encode().ljust(117) + b"\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as told:
        told.writestr("offsets.npy", BEGINNING + len(padded).to_bytes(2, "little") + padded + bytes(80))
    return stream.getvalue()


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_what_was_written_is_read(write: Write) -> None:
    stored = opened_arrays(io.BytesIO(archive(write)))
    assert ({*stored}, len(stored)) == ({*ARRAYS}, len(ARRAYS))
    assert read(archive(write)) == {name: array.tolist() for name, array in ARRAYS.items()}


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("mask", [0x01, 0x10, 0xFF])
def test_a_changed_byte_is_told_or_changes_nothing(write: Write, mask: int) -> None:
    """Also where it says that a member is encrypted, packed otherwise or elsewhere, or another array."""
    told, refused = archive(write), 0
    expected = read(told)
    places = [*range(700), *range(700, len(told) - 700, 97), *range(len(told) - 700, len(told))]
    for place in places:
        changed = bytearray(told)
        changed[place] ^= mask
        try:
            assert read(bytes(changed)) == expected, place
        except (ValueError, KeyError, OSError):
            refused += 1
    assert refused > len(places) // 3


def test_an_archive_that_is_cut_off_is_told() -> None:
    told = archive(np.savez_compressed)
    for length in (*range(200), *range(200, len(told), 53)):
        with pytest.raises(ValueError, match=r"it is (no npz|broken)"):
            read(told[:length])


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (10000000000000,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (100000000000000000000000,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (True,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (10,), }",
        "{[]: 1}",
        "{'descr': (",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (10,), }" + " " * 12_000,
        "  '\\t\\n  x\\n y",
    ],
)
def test_an_array_that_says_what_cannot_be_is_told(header: str) -> None:
    stored = opened_arrays(io.BytesIO(with_header(header)))
    with pytest.raises(ValueError, match=r"its array offsets (is broken|has no room)") as error:
        stored["offsets"]
    assert "pickle" not in str(error.value)


def test_an_array_that_is_shorter_than_its_member_is_read() -> None:
    """So the headers above are wrong in what they say, and not in how they are put there."""
    told = with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (9,), }")
    assert opened_arrays(io.BytesIO(told))["offsets"].tolist() == [0] * 9


def test_a_member_that_is_no_array_is_none() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as told:
        told.writestr("offsets", "0 1 2")
    with pytest.raises(KeyError):
        opened_arrays(io.BytesIO(stream.getvalue()))["offsets"]


@pytest.mark.parametrize(
    "told",
    [b"", b"PAR1", b"#!/bin/sh\n" + archive(np.savez)],
    ids=["empty", "parquet", "behind a program"],
)
def test_what_does_not_begin_as_an_archive_is_none(told: bytes) -> None:
    with pytest.raises(ValueError, match="it is no npz"):
        read(told)


def test_a_name_is_known_without_reading_its_array() -> None:
    stored = opened_arrays(io.BytesIO(with_header("{[]: 1}")))
    assert ("offsets" in stored, "words" in stored) == (True, False)
