"""An index as bytes and back: a line of JSON, then the points, which are made anew for another model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import orjson

from pml.processors.discovery.documents import Document
from pml.processors.discovery.history import Past
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.prior import Standing
from pml.processors.discovery.tool_graph import Link
from pml.processors.memory.embedding import Embedding, Vectors

FORMAT = "pml-discovery-1"
_NUMBER = np.dtype("<f4")


def to_bytes(index: DiscoveryIndex) -> bytes:
    """Documents, points, pasts, standings and links. The same contents are the same bytes."""
    documents = index.documents
    header = {
        "format": FORMAT,
        "model": index.embedding.name,
        "dimensions": index.embedding.dimensions,
        "documents": [asdict(document) for document in documents],
        "pasts": [asdict(past) for past in index.pasts],
        "standings": {name: asdict(index.standings[name]) for name in sorted(index.standings)},
        "links": [asdict(link) for link in index.links],
    }
    points = index.points_of([document.id for document in documents])
    return orjson.dumps(header) + b"\n" + points.astype(_NUMBER).tobytes()


def from_bytes(data: bytes, embedding: Embedding) -> DiscoveryIndex:
    """The index that was written, its points made anew where another model made them.

    Raises:
        ValueError: these are not the bytes of an index, or some are missing: build it from the catalog.
    """
    line, _, rest = data.partition(b"\n")
    header = _header(line)
    documents = [Document(**_tuples(each)) for each in header["documents"]]
    index = DiscoveryIndex(embedding)
    same = (header["model"], header["dimensions"]) == (embedding.name, embedding.dimensions)
    index.put(documents, _points(rest, len(documents), embedding.dimensions) if same else None)
    index.remember([Past(**_tuples(each)) for each in header["pasts"]])
    index.rate({name: Standing(**each) for name, each in header["standings"].items()})
    index.link(Link(**each) for each in header.get("links", ()))
    return index


def _header(line: bytes) -> dict[str, Any]:
    try:
        header = orjson.loads(line)
    except orjson.JSONDecodeError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"not an index of the format {FORMAT}: build it from the catalog")
    return header


def _points(data: bytes, rows: int, dimensions: int) -> Vectors:
    if len(data) != rows * dimensions * _NUMBER.itemsize:
        raise ValueError(f"the points of {rows} documents are not whole: build the index from the catalog")
    return np.frombuffer(data, dtype=_NUMBER).reshape(rows, dimensions).astype(np.float32)


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
