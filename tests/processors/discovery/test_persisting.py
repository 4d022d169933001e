"""An index survives being written, and notices that another model reads it."""

from __future__ import annotations

import pytest
from hypothesis import given

from pml.processors.discovery.documents import Document
from pml.processors.discovery.history import Past
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.persisting import from_bytes, to_bytes
from pml.processors.discovery.prior import Standing
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.discovery.small_catalog import drawn_documents, drawn_pasts, small_index, texts


class Other(HashedNgrams):
    """The same points by another name, and a count of what was given to the model."""

    name = "other"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts):  # type: ignore[no-untyped-def]
        self.texts += texts
        return super().embed(texts)


@given(drawn_documents(), drawn_pasts(), texts)
def test_what_is_read_is_what_was_written(documents: list[Document], pasts: list[Past], intent: str) -> None:
    index = DiscoveryIndex(HashedNgrams())
    index.put(documents)
    index.remember(pasts)
    index.rate({"d01": Standing(0.5, 0.25, 0.1)})
    written = to_bytes(index)
    read = from_bytes(written, HashedNgrams())
    assert read.search(intent, limit=50) == index.search(intent, limit=50)
    assert to_bytes(read) == written


def test_another_model_makes_the_points_anew() -> None:
    index = small_index()
    other = Other()
    read = from_bytes(to_bytes(index), other)
    assert other.texts == [document.text for document in index.documents]
    assert read.search("read a file").items[0].document.id == "files:read_file"


@pytest.mark.parametrize("data", [b"", b"nonsense", b"[]", b'{"format": "pml-discovery-0"}'])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="build it from the catalog"):
        from_bytes(data, HashedNgrams())


def test_missing_points_are_noticed() -> None:
    with pytest.raises(ValueError, match="are not whole"):
        from_bytes(to_bytes(small_index())[:-4], HashedNgrams())
