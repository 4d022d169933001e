"""A question whose model is at hand waits for nothing that other tenants need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import structlog

from pml.processors.discovery.library import Library
from pml.processors.learning.known_sessions import KnownSession, as_sequences
from pml.processors.learning.model import fitted
from pml.processors.memory.embedding import Embedding, HashedNgrams
from pml.schemas.catalog import CatalogRecord
from pml.schemas.prediction import PREDICT_TOOL, PredictAnswer, PredictRequest
from pml.streams.bridge.predict import Anew, Predict
from pml.streams.learning import artefacts
from pml.streams.learning.serving import Known
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


class Reading:
    """The runs of a store; from the second time on somebody has to let it end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, busy: Event) -> None:
        self.busy, self.reads, self.fails = busy, 0, False
        monkeypatch.setattr("pml.streams.learning.counted_runs.read_session_values", self)
        monkeypatch.setattr("pml.streams.learning.counted_runs.Store.connect", lambda *_, **__: None)
        # Always due.
        monkeypatch.setattr("pml.streams.learning.counted_runs.CountedRuns._wait_s", lambda *_: 0.0)

    def __call__(self, _store: object, _stretch: object) -> list[KnownSession]:
        self.reads += 1
        if self.reads > 1:
            self.busy.wait()
        if self.fails:
            raise ValueError("a defect")
        return SESSIONS


def predicting(folder: Path) -> Any:
    settings = Settings(data_dir=folder, clickhouse={"url": "http://127.0.0.1:1"})
    return Predict(settings, Catalog())  # type: ignore[arg-type]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


async def test_what_was_counted_answers_while_it_is_counted_anew_once(
    tmp_path: Path, busy: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict, reading = predicting(tmp_path), Reading(monkeypatch, busy)
    await asked(predict, "local")
    before = predict._serving.ready(Known("local", None, {}))
    for _ in range(3):
        async with asyncio.timeout(PATIENCE_S):
            assert await asked(predict, "local") == ""
    await until(lambda: reading.reads == 2)
    assert predict._serving.ready(Known("local", None, {})) is before
    busy.set()
    await until(lambda: predict._anew._making is None)
    assert reading.reads == 2
    assert predict._serving.ready(Known("local", None, {})) is not before
    predict.close()


async def test_a_model_that_was_promoted_meanwhile_is_not_counted_away(
    tmp_path: Path, busy: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tenant's count holds the thread up; when it is this one's turn, a model serves it."""
    predict, reading = predicting(tmp_path), Reading(monkeypatch, busy)
    reading.reads = -1
    for tenant in ("ann", "bob"):
        await asked(predict, tenant)
    assert reading.reads == 1
    for tenant in ("ann", "bob"):
        assert await asked(predict, tenant) == ""
    await until(lambda: reading.reads == 2)
    model_id = predict._finder.promote(predict._settings.models_folder, "bob")
    busy.set()
    await until(lambda: predict._anew._making is None)
    assert reading.reads == 2
    assert await asked(predict, "bob") == model_id
    predict.close()


async def test_a_defect_of_counting_anew_is_logged_and_what_was_counted_answers_on(
    tmp_path: Path, busy: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict, reading = predicting(tmp_path), Reading(monkeypatch, busy)
    await asked(predict, "local")
    reading.fails = True
    busy.set()
    with structlog.testing.capture_logs() as logs:
        await asked(predict, "local")
        await until(lambda: predict._anew._making is None)
    assert [each["event"] for each in logs if each["log_level"] == "error"] == [
        "what predicts could not be made anew: a defect of PML"
    ]
    assert await asked(predict, "local") == ""
    predict.close()


async def test_so_many_wait_to_be_made_anew_one_after_the_other_until_it_is_closed() -> None:
    made: list[str] = []
    goes_on = asyncio.Event()

    async def make(tenant: str) -> None:
        made.append(tenant)
        await goes_on.wait()

    anew = Anew(make, most=2)
    for tenant in ("ann", "bob", "ann", "cay"):
        anew.begin(tenant)
    await until(lambda: made == ["ann"])
    goes_on.set()
    await until(lambda: anew._making is None)
    assert made == ["ann", "bob"]
    goes_on.clear()
    for tenant in ("cay", "dan"):
        anew.begin(tenant)
    await until(lambda: made[2:] == ["cay"])
    anew.close()
    await until(lambda: anew._making is None)
    assert made[2:] == ["cay"]
