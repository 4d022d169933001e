"""Without its extra, the adapter says what to install."""

from __future__ import annotations

import pytest

from pml.schemas.errors import PrerequisiteError
from pml.streams.discovery import sentence_embedding
from pml.streams.discovery.sentence_embedding import SentenceEmbedding


def test_where_the_package_is_missing_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_embedding, "find_spec", lambda name: None)
    with pytest.raises(
        PrerequisiteError, match=r"pip install 'procedural-memory-layer\[sentence-transformers\]'"
    ):
        SentenceEmbedding("all-MiniLM-L6-v2")
