"""The points of tools, kept in the data folder: a start with thousands of them asks the model for none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from pml.processors.discovery.documents import Document
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.persisting import from_bytes, to_bytes
from pml.processors.memory.embedding import Embedding, Vectors
from pml.streams.local.stack import write_whole

FILE = "discovery.index"
log = structlog.get_logger("pml.discovery")


class KeptPoints:
    """Points of the tools that there are; nothing of a tenant is in the file.

    It is a cache: one that cannot be read is made anew, and one of another model gets new points. Several
    processes may write it, each all that it knows. A folder that is not there is not made for it.
    """

    def __init__(self, folder: Path, embedding: Embedding) -> None:
        self._path = folder / FILE
        self._known = _read(self._path, embedding)

    def bring_to(self, tools: Mapping[str, Document]) -> None:
        """Know these tools and no others, and write that down if it is new."""
        if not bring_to(self._known, tools) or not self._path.parent.is_dir():
            return
        try:
            write_whole(self._path, to_bytes(self._known))
        except OSError as error:
            log.warning("points not kept", file=str(self._path), reason=error.strerror)

    def of(self, ids: Sequence[str]) -> Vectors:
        """The points of tools, a row for each."""
        return self._known.points_of(ids)


def bring_to(index: DiscoveryIndex, wanted: Mapping[str, Document], tools: KeptPoints | None = None) -> bool:
    """Change what is not as it should be, and nothing else; whether there was anything.

    Args:
        tools: where the points of tools are known.
    """
    known = {document.id: document for document in index.documents}
    gone = known.keys() - wanted.keys()
    new = [document for name, document in wanted.items() if known.get(name) != document]
    if gone:
        index.remove(gone)
    placed = [document for document in new if tools is not None and document.kind == "tool"]
    if tools is not None and placed:
        index.put(placed, tools.of([document.id for document in placed]))
    if len(placed) < len(new):
        index.put(document for document in new if tools is None or document.kind != "tool")
    return bool(gone or new)


def _read(path: Path, embedding: Embedding) -> DiscoveryIndex:
    try:
        return from_bytes(path.read_bytes(), embedding)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("kept points passed over", file=str(path), reason=str(error))
    return DiscoveryIndex(embedding)
