"""A training set as a file: the same selection of the same log gives the same columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from pml.clickhouse.client import Store
from pml.clickhouse.training.columns import sides_sql, traces_sql
from pml.clickhouse.training.reading import LIMITS, Told, read_arrays
from pml.clickhouse.training.selection import SIDES, Selection

# What the columns are called and mean; a change that a reader would notice raises it.
FORMAT_VERSION = 1


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
    arrays: dict[str, Any] = read_arrays(store, selection, told)
    with _replacing(file) as place, place.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    counts = np.bincount(arrays["side"], minlength=len(SIDES)).tolist()
    columns = {name: array.dtype.str for name, array in arrays.items()}
    return _with_manifest(file, selection, counts, columns)


def write_parquet(
    store: Store, selection: Selection, file: Path, told: Told = lambda _: None
) -> dict[str, Any]:
    """One row a trace, its calls nested in it, as ClickHouse itself writes it; else as `write_npz`."""
    parameters = selection.parameters()
    with (
        _replacing(file) as place,
        place.open("wb") as out,
        store.stream(traces_sql(), "Parquet", parameters, LIMITS) as pieces,
    ):
        for piece in pieces:
            out.write(piece)
            told(len(piece))
    described = store.query(f"DESCRIBE ({traces_sql()})", parameters, LIMITS).rows
    counted = dict(store.query(sides_sql(), parameters, LIMITS).rows)
    counts = [int(counted.get(side, 0)) for side in range(len(SIDES))]
    return _with_manifest(file, selection, counts, {row[0]: row[1] for row in described})


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """A place beside the file, which takes its name once nothing failed."""
    place = file.with_name(f".{file.name}.part")
    try:
        yield place
        os.replace(place, file)
    finally:
        place.unlink(missing_ok=True)


def _with_manifest(
    file: Path, selection: Selection, counts: list[int], columns: dict[str, str]
) -> dict[str, Any]:
    """What the file is, as `<file>.json` beside it: enough to make it again, and to know that it is it."""
    manifest = {
        "format_version": FORMAT_VERSION,
        "file": file.name,
        "blake2b": _hash(file),
        "bytes": file.stat().st_size,
        "selection": selection.as_dict(),
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
