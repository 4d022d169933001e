"""`pml:predict` over a real bridge, a real broker and the embedded ClickHouse."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import SecretStr

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.processors.learning.known_sessions import KnownSession, as_sequences, learned_sources
from pml.processors.learning.model import fitted
from pml.processors.learning.scene import Past
from pml.schemas.calls import CallEnded
from pml.schemas.catalog import CatalogRecord, ModelRecord
from pml.schemas.codec import encode
from pml.schemas.prediction import (
    PREDICT_TOOL,
    Feasibility,
    PastElement,
    PredictAnswer,
    Predicted,
    PredictRequest,
)
from pml.streams.bridge.predict import Predict
from pml.streams.discovery.finder import Finder
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding
from pml.streams.learning import artefacts
from pml.streams.settings import ClickHouseSettings
from tests.clickhouse import history as h
from tests.clickhouse.history import History
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.running import World, bridge, run, world
from tests.streams.learning.kept_models import about

pytest.importorskip("wordllama", reason="install requirements.lock")
pytestmark = pytest.mark.integration
FILES_SERVER = "pml.deploy.examples.files_server"
LISTED = PastElement(name="files:list_dir", arguments={"path": "docs"}, result={"first": "docs/new.md"})


def looked(number: int) -> KnownSession:
    """Lists a folder, then reads what it found there."""
    found = f"docs/{number}.md"
    elements = (
        Past("files:list_dir", {"path": "docs"}, {"first": found}),
        Past("files:read_file", {"path": found}, {"text": "…"}),
    )
    return KnownSession(elements, ("", ""), number)


def recorded(number: int) -> History:
    """The same, as the log has it."""
    session = History(f"ses_{number}", number % 3, 1_000 * number, 1_000 * number)
    for place, element in enumerate(looked(number).elements):
        name = f"run_{number}_{place}"
        session.add(h.run_started(intent=None, tasks=1, layers=1), name)
        session.add(
            h.completed("n1", tool=element.name, arguments=element.arguments, result=element.result), name
        )
        session.add(h.run_completed(), name)
    return session


async def outcome(
    stack: World, tenant: str = "local", past: tuple[PastElement, ...] = (LISTED,)
) -> CallEnded:
    """What is answered after a folder was listed."""
    request = PredictRequest(history=("files:list_dir",), past=past)
    call = run(PREDICT_TOOL, tenant=tenant, arguments=request.model_dump(mode="json"), timeout_ms=60_000)
    await stack.send(call)
    return await stack.answer(call.call_id)


async def answered(stack: World, past: tuple[PastElement, ...] = (LISTED,)) -> PredictAnswer:
    ended = await outcome(stack, past=past)
    assert ended.status == "ok", ended.error
    assert ended.result is not None
    return PredictAnswer.model_validate(ended.result.structured)


def expected(answer: PredictAnswer) -> bool:
    """Whether the file that was found is read next."""
    best = answer.candidates[0]
    assert answer.workflow is not None
    path: Any = next(task for task in answer.workflow.tasks if task.id == best.tasks[0]).arguments["path"]
    return best.name == "files:read_file" and best.confidence > 0.7 and path.value == "docs/new.md"


async def test_what_was_counted_answers_until_a_model_is_promoted(
    kafka: str, tmp_path: Path, clickhouse_url: str, empty_store: Store, database: str
) -> None:
    await asyncio.to_thread(migrate, empty_store)
    files = {"command": sys.executable, "args": ["-m", FILES_SERVER, "--root", str(tmp_path)]}
    async with world(kafka, tmp_path, ["trouble"], {"files": files}) as stack:
        store = ClickHouseSettings(url=SecretStr(clickhouse_url), database=database)
        stack.settings = stack.settings.model_copy(update={"clickhouse": store})
        async with bridge(stack):
            nothing = await outcome(stack)
            assert nothing.error is not None
            assert nothing.error.code == "NOTHING_KNOWN"

            for number in range(1, 21):
                recorded(number).insert(empty_store)
            async with asyncio.timeout(PATIENCE_S):  # numba may compile first
                while (await outcome(stack)).status != "ok":
                    await asyncio.sleep(0.2)
            counted = await answered(stack)
            assert (counted.model, counted.learner) == ("", "markov_1")
            assert expected(counted)
            other = await outcome(stack, "bob")
            assert other.error is not None
            assert other.error.code == "NOTHING_KNOWN"

            model_id = await asyncio.to_thread(_trained, stack.settings.models_folder)
            await _promote(stack, model_id)
            served = await answered(stack)
            assert (served.model, served.learner) == (model_id, "markov_1")
            assert expected(served)

            assert _read(await answered(stack)).feasibility == Feasibility(steps=0)
            gone = await answered(stack, past=())
            assert _read(gone).reason == "not_yet"
            told = _read(gone).feasibility
            assert told is not None
            assert (told.missing, told.steps, told.through) == (("path",), 1, ("files:list_dir",))

            await _promote(stack, "mdl_000000000000")
            assert (await answered(stack)).model == ""


def predicting(stack: World, predictions: str) -> None:
    """Switch predictions on or off in the settings."""
    speculation = stack.settings.speculation.model_copy(update={"predictions": predictions})
    stack.settings = stack.settings.model_copy(update={"speculation": speculation})


async def test_a_promoted_model_is_loaded_before_the_first_question_where_predictions_are_on(
    kafka: str, tmp_path: Path
) -> None:
    async with world(kafka, tmp_path, ["trouble"]) as stack:
        predicting(stack, "on")
        await _promote(stack, await asyncio.to_thread(_trained, stack.settings.models_folder))
        with structlog.testing.capture_logs() as logs:
            async with bridge(stack), asyncio.timeout(PATIENCE_S):
                while "model loaded" not in events_of(logs):
                    await asyncio.sleep(0.05)


@pytest.mark.parametrize(("predictions", "prepared"), [("on", 1), ("off", 0)])
async def test_who_does_not_predict_prepares_nothing(
    kafka: str, tmp_path: Path, predictions: str, prepared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Predict] = []

    async def prepare(predict: Predict) -> None:
        calls.append(predict)

    monkeypatch.setattr(Predict, "prepare", prepare)
    async with world(kafka, tmp_path, ["trouble"]) as stack:
        predicting(stack, predictions)
        async with bridge(stack):
            pass
    assert len(calls) == prepared


async def test_a_defect_of_what_predicts_does_not_end_a_bridge_that_prepares(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(predict: Predict) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(Predict, "_load_promoted", fails)
    async with world(kafka, tmp_path, ["trouble"]) as stack:
        predicting(stack, "on")
        with structlog.testing.capture_logs() as logs:
            async with bridge(stack):
                pass
    assert "predictions could not be prepared: a defect of PML" in events_of(logs)


async def test_a_model_that_is_gone_is_left_to_the_first_question(kafka: str, tmp_path: Path) -> None:
    async with world(kafka, tmp_path, ["trouble"]) as stack:
        await _promote(stack, "mdl_000000000000")
        finder = Finder(stack.settings)
        predict = Predict(stack.settings, finder)
        with structlog.testing.capture_logs() as logs:
            await predict.prepare()
        predict.close()
        await finder.close()
    assert "predictions could not be prepared; the first takes longer" in events_of(logs)


def events_of(logs: Sequence[MutableMapping[str, Any]]) -> list[str]:
    return [entry["event"] for entry in logs]


def _read(answer: PredictAnswer) -> Predicted:
    return next(each for each in answer.candidates if each.name == "files:read_file")


def _trained(folder: Path) -> str:
    sessions = [looked(number) for number in range(1, 21)]
    sources = learned_sources(sessions, {})
    known = as_sequences(sessions, {})
    model = fitted(known, WordLlamaEmbedding(), seed=1, learner="markov_1", arguments=sources)
    return artefacts.write(folder, model, about())


async def _promote(stack: World, model_id: str) -> None:
    data = ModelRecord(
        model_id=model_id,
        learner="markov_1",
        hit_1=1.0,
        baseline="discounting",
        baseline_hit_1=1.0,
        promoted_at="2026-11-23T09:00:00Z",
    )
    record = CatalogRecord(kind=ModelRecord.KIND, id="local", data=data)
    await stack.send_raw(stack.topics.catalog, encode(record), record.key)
