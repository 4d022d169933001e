"""A training set as a file: the same selection of the same log gives the same columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from pml.clickhouse.client import Store
from pml.clickhouse.training.columns import sides_sql, traces_sql
from pml.clickhouse.training.reading import LIMITS, Arrays, Pinned, Told, read_columns, read_pinned
from pml.clickhouse.training.selection import SIDES, Selection
from pml.processors.learning.packed_texts import packed

# What the columns are called and mean; a change that a reader would notice raises it.
FORMAT_VERSION = 3
# All values at once, and the file of them where the store is the embedded one.
VALUES_LIMITS = replace(LIMITS, memory_bytes=8 << 30)


def write_npz(store: Store, selection: Selection, file: Path, told: Told = lambda _: None) -> dict[str, Any]:
    """Columns and vocabularies as arrays; the manifest, which is written beside it.

    Args:
        file: is replaced once all is written.
        told: called with the bytes of each piece that was read.

    Raises:
        StoreUnavailable: ClickHouse is away, or the traces changed each time they were read.
        QueryError: ClickHouse refuses; the message says why.
        OSError: the file cannot be written.
    """
    pinned, found = read_pinned(store, selection, lambda pinned: read_columns(store, pinned, told))
    arrays: dict[str, Any] = _unpadded(found)
    with _replacing(file) as place, place.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    counts = np.bincount(found["side"], minlength=len(SIDES)).tolist()
    return _with_manifest(file, pinned, counts, {name: array.dtype.str for name, array in arrays.items()})


def write_parquet(
    store: Store, selection: Selection, file: Path, told: Told = lambda _: None
) -> dict[str, Any]:
    """One row a trace, its calls nested in it, as ClickHouse itself writes it; else as `write_npz`."""
    with _replacing(file) as place:
        pinned, counts = read_pinned(store, selection, lambda pinned: _write_rows(store, pinned, place, told))
    described = store.query(f"DESCRIBE ({traces_sql()})", pinned.parameters(), LIMITS).rows
    return _with_manifest(file, pinned, counts, {row[0]: row[1] for row in described})


def _unpadded(arrays: Arrays) -> Arrays:
    """Words as their bytes and where each begins: an array of texts is as wide as the longest, times four."""
    found: Arrays = {}
    for name, array in arrays.items():
        found |= packed(name, array.tolist()) if name.endswith("_words") else {name: array}
    return found


def _write_rows(store: Store, pinned: Pinned, place: Path, told: Told) -> list[int]:
    """How many are on each side."""
    split, parameters = pinned.selection.split, pinned.parameters()
    rows = store.stream(traces_sql(split), "Parquet", parameters, VALUES_LIMITS)
    with place.open("wb") as out, rows as pieces:
        for piece in pieces:
            out.write(piece)
            told(len(piece))
    counted = dict(store.query(sides_sql(split), parameters, LIMITS).rows)
    return [int(counted.get(side, 0)) for side in range(len(SIDES))]


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """A place beside the file, which takes its name once nothing failed."""
    place = file.with_name(f".{file.name}.part")
    try:
        yield place
        os.replace(place, file)
    finally:
        place.unlink(missing_ok=True)


def _with_manifest(file: Path, pinned: Pinned, counts: list[int], columns: dict[str, str]) -> dict[str, Any]:
    """What the file is, as `<file>.json` beside it: enough to make it again, and to know that it is it."""
    manifest = {
        "format_version": FORMAT_VERSION,
        "file": file.name,
        "blake2b": _hash(file),
        "bytes": file.stat().st_size,
        "selection": pinned.selection.as_dict(),
        "cuts": dict(pinned.cuts),
        "traces": sum(counts),
        "sides": dict(zip(SIDES, counts, strict=True)),
        "columns": columns,
    }
    with _replacing(file.with_name(f"{file.name}.json")) as place:
        place.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
    return manifest


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
