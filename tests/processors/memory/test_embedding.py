"""What every embedding must hold; an adapter is added to the list."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.memory.embedding import Embedding, HashedNgrams

ADAPTERS: list[Embedding] = [HashedNgrams()]
every_adapter = pytest.mark.parametrize("embedding", ADAPTERS, ids=lambda embedding: embedding.name)


@every_adapter
@given(texts=st.lists(st.text(max_size=60), max_size=5))
def test_each_text_is_a_row_of_length_one_whoever_stands_beside_it(
    embedding: Embedding, texts: list[str]
) -> None:
    rows = embedding.embed(texts)
    assert rows.shape == (len(texts), embedding.dimensions)
    assert rows.dtype == np.float32
    for row, text in zip(rows, texts, strict=True):
        assert np.array_equal(row, embedding.embed([text])[0])
        length = float(np.linalg.norm(row))
        assert length == pytest.approx(1, abs=1e-5) or not row.any()


@every_adapter
def test_a_text_without_a_word_is_the_origin(embedding: Embedding) -> None:
    assert not embedding.embed(["", " ", "{}"]).any()


@every_adapter
def test_similar_texts_lie_closer_than_others(embedding: Embedding) -> None:
    asked, alike, other = embedding.embed(
        [
            "write the release notes of the repository pml since the last tag",
            "write release notes for the repository pml since the tag before",
            "book a flight to Lisbon for two passengers on Friday",
        ]
    )
    assert asked @ alike > 0.7
    assert asked @ other < 0.3


@every_adapter
def test_another_process_finds_the_same_points(embedding: Embedding) -> None:
    code = (
        f"from {type(embedding).__module__} import {type(embedding).__name__} as Adapter; "
        "print(Adapter().embed(['release notes of pml', 'Überschrift']).tobytes().hex())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == embedding.embed(["release notes of pml", "Überschrift"]).tobytes().hex()
