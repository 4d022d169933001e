"""Without its extra, the adapter says what to install."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
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


class Tokenizing:
    """As sentence-transformers: who is let in while another one is at it finds the tokenizer borrowed."""

    def __init__(self, model: str) -> None:
        self._borrowed, self._second = Lock(), Event()

    def get_sentence_embedding_dimension(self) -> int:
        return 2

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        if not self._borrowed.acquire(blocking=False):
            self._second.set()
            raise RuntimeError("Already borrowed")
        # Long enough for the other thread to come, if nothing keeps it out.
        self._second.wait(0.3)
        self._borrowed.release()
        return np.array([[len(text), 1.0] for text in texts])


def test_two_threads_do_not_use_its_tokenizer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_embedding, "find_spec", lambda name: object())
    package = SimpleNamespace(SentenceTransformer=Tokenizing)
    monkeypatch.setattr(sentence_embedding, "import_module", lambda name: package)
    embedding = SentenceEmbedding("any")
    with ThreadPoolExecutor(2) as threads:
        found = [*threads.map(embedding.embed, (["a"], ["bc"]))]
    assert [each.shape for each in found] == [(1, 2), (1, 2)]
