"""A model of sentence-transformers in place of the one that PML ships with."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np

from pml.processors.memory.embedding import Vectors, unit
from pml.schemas.errors import PrerequisiteError


class SentenceEmbedding:
    """A model by the name that sentence-transformers knows it under, or a folder that holds one.

    Raises:
        PrerequisiteError: sentence-transformers is not installed.
    """

    def __init__(self, model: str) -> None:
        if find_spec("sentence_transformers") is None:
            raise PrerequisiteError(
                f"the embedding model {model!r} needs sentence-transformers, which is not installed: "
                "pip install 'procedural-memory-layer[sentence-transformers]', or use wordllama"
            )
        self._model: Any = import_module("sentence_transformers").SentenceTransformer(model)
        # A tokenizer that pads one batch must not be told meanwhile how to pad another one: it raises, or
        # pads it wrongly. Points are made in the thread of discovery and in that of predictions.
        self._alone = Lock()
        self.name = f"sentence-transformers-{model}"
        self.dimensions = int(self._model.get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row for each text, float32."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        with self._alone:
            rows = self._model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return unit(np.asarray(rows, dtype=np.float32))
