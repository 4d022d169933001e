"""A question whose model is at hand waits for nothing that other tenants need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from pml.processors.discovery.library import Library
from pml.processors.learning.known_sessions import as_sequences
from pml.processors.learning.model import fitted
from pml.processors.memory.embedding import Embedding, HashedNgrams
from pml.schemas.catalog import CatalogRecord
from pml.schemas.prediction import PREDICT_TOOL, PredictAnswer, PredictRequest
from pml.streams.bridge.predict import Predict
from pml.streams.learning import artefacts
from pml.streams.settings import Settings
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.running import run
from tests.streams.learning.kept_models import about, serving
from tests.streams.learning.test_serving import SESSIONS, listed


class Catalog:
    """A finder without a broker."""

    def __init__(self) -> None:
        self.library = Library()
        self.library.take(listed({}))

    def promote(self, folder: Path, tenant: str) -> str:
        model = fitted(as_sequences(SESSIONS, {}), HashedNgrams(), seed=1, learner="markov_1")
        model_id = artefacts.write(folder, model, about(tenant))
        data = serving(model_id)
        self.library.take(CatalogRecord(kind=data.KIND, id=tenant, data=data))
        return model_id

    async def embedding(self) -> Embedding:
        return HashedNgrams()

    async def look(self, question: Callable[[Library], Any]) -> Any:
        return question(self.library)


@pytest.fixture
async def busy() -> AsyncIterator[Event]:
    """Until it is set somebody else's model is being read."""
    event = Event()
    yield event
    event.set()


async def asked(predict: Predict, tenant: str) -> str:
    request = PredictRequest(history=("files:list",))
    told = await predict(run(PREDICT_TOOL, tenant=tenant, arguments=request.model_dump(mode="json")))
    return PredictAnswer.model_validate(told).model


async def test_a_model_at_hand_answers_while_another_is_read(tmp_path: Path, busy: Event) -> None:
    settings, catalog = Settings(data_dir=tmp_path, clickhouse={"url": "http://127.0.0.1:1"}), Catalog()
    model_id = catalog.promote(settings.models_folder, "local")
    predict: Any = Predict(settings, catalog)  # type: ignore[arg-type]
    assert await asked(predict, "local") == model_id
    predict._thread.submit(busy.wait)
    async with asyncio.timeout(PATIENCE_S):
        assert await asked(predict, "local") == model_id
    other = catalog.promote(settings.models_folder, "bob")
    waits = asyncio.create_task(asked(predict, "bob"))
    assert await asked(predict, "local") == model_id
    assert not waits.done()
    busy.set()
    assert await waits == other
    predict.close()
