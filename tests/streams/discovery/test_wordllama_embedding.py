"""The model that PML ships with, from the weights in its wheel."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding

pytest.importorskip("wordllama", reason="install requirements.lock")


@pytest.fixture(scope="module")
def embedding() -> WordLlamaEmbedding:
    return WordLlamaEmbedding()


def test_points_are_of_length_one_and_of_its_dimensions(embedding: WordLlamaEmbedding) -> None:
    points = embedding.embed(["send a mail", "x"])
    assert (points.shape, points.dtype) == ((2, embedding.dimensions), np.float32)
    assert np.linalg.norm(points, axis=1) == pytest.approx(1, abs=1e-5)


def test_several_threads_get_the_points_that_one_gets(embedding: WordLlamaEmbedding) -> None:
    texts = [f"send mail {number} to a user " * (1 + number % 5) for number in range(40)]
    batches = [texts[:count] for count in range(1, len(texts))]
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(embedding.embed, batches)]
    for points, batch in zip(found, batches, strict=True):
        assert np.array_equal(points, embedding.embed(batch))


def test_what_means_nearly_the_same_is_near(embedding: WordLlamaEmbedding) -> None:
    film, movie, tax = embedding.embed(["watch a film", "see a movie", "pay taxes"])
    assert film @ movie > film @ tax + 0.2


def test_texts_do_not_change_each_other(embedding: WordLlamaEmbedding) -> None:
    texts = ["send a mail", "find the weather of the next days in a city"]
    assert embedding.embed(texts)[0] == pytest.approx(embedding.embed(texts[:1])[0], abs=1e-6)


def test_no_text_is_no_row_and_an_empty_one_the_origin(embedding: WordLlamaEmbedding) -> None:
    assert embedding.embed([]).shape == (0, embedding.dimensions)
    assert not embedding.embed([""]).any()


def test_its_name_says_version_and_dimensions(embedding: WordLlamaEmbedding) -> None:
    assert embedding.name.startswith("wordllama-0.4")
    assert embedding.name.endswith("-256")


def test_importing_the_adapter_does_not_import_the_model() -> None:
    program = "import sys, pml.streams.discovery.wordllama_embedding; sys.exit('wordllama' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
