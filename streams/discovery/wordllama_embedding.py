"""The embedding that PML ships with: WordLlama's 256 dimensions, from the weights in its wheel."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pml.processors.memory.embedding import Vectors, unit


class WordLlamaEmbedding:
    """Averages of the points of a text's tokens. Loading takes about a second, reads 18 MB and no network."""

    dimensions = 256

    def __init__(self) -> None:
        # Here and not above: its import alone takes most of a second.
        package: Any = import_module("wordllama")
        # Without a folder it looks beside its own files in vain, and then tries to download.
        folder = Path(package.__file__).parent
        self._model: Any = package.WordLlama.load(
            cache_dir=folder, disable_download=True, dim=self.dimensions
        )
        self.name = f"wordllama-{version('wordllama')}-{self.dimensions}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row for each text, float32; a text without a token is the origin."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: Vectors = np.asarray(self._model.embed(list(texts)), dtype=np.float32)
        return unit(rows)
