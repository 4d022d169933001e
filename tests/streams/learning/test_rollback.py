"""What serves after a model that fell, and who is told of it."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from pml.schemas.catalog import CatalogData, CatalogRecord, ModelLive, ModelRecord
from pml.schemas.errors import BrokerUnavailable, PMLError, Refused
from pml.schemas.times import from_rfc3339
from pml.streams import status
from pml.streams.learning import listing, locked_file, promotion, rollback
from pml.streams.learning.kept_backtests import keep_backtest
from pml.streams.learning.manifests import (
    Manifest,
    ModelDamaged,
    NoSuchModel,
    arrays_file,
    manifest_file,
    read_sound,
)
from pml.streams.learning.retraining import last_training_ms
from pml.streams.settings import Settings
from pml.streams.status import rolled_back
from tests.fixtures.patience import PATIENCE_S
from tests.streams.learning.kept_models import FIRST, PROMOTED_AT, SECOND, THIRD, keep, manifest, serving


class Topic:
    """The catalog without a broker."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *told: CatalogData) -> None:
        self.records: dict[bytes, CatalogRecord] = {}
        for place in (promotion, rollback, listing):
            monkeypatch.setattr(place, "read_catalog", self._read)
        monkeypatch.setattr(promotion, "publish", self._take)
        for data in told:
            self._keep(CatalogRecord(kind=data.KIND, id="local", data=data))

    @property
    def model(self) -> ModelRecord:
        found = promotion.promoted_of(self.records, "local")
        assert found is not None
        return found

    async def _read(self, settings: Settings, needed: bytes | None = None) -> dict[bytes, CatalogRecord]:
        return self.records

    async def _take(self, settings: Settings, record: CatalogRecord) -> None:
        self._keep(record)

    def _keep(self, record: CatalogRecord) -> None:
        self.records[record.key] = record


def live(model_id: str, hits: int = 10, since: str = "2023-01-01T01:00:00.000000Z") -> ModelLive:
    return ModelLive(
        model_id=model_id,
        outcomes=50,
        hits=hits,
        hit_1=hits / 50,
        low=0.0,
        high=hits / 50 + 0.2,
        since=since,
        at=since,
    )


def backtest(model_id: str) -> dict[str, Any]:
    """What a backtest of a model says, as it lies beside it."""
    total = {"begun": 4, "hits": 3, "saved_ms": 30.0, "wasted_ms": 10.0}
    told = {"since": PROMOTED_AT, "until": PROMOTED_AT, "threshold": 0.92, "runs": 9, "known_runs": 0}
    return {"model_id": model_id, **told, "total": total}


def settings_of(folder: Path, **learning: Any) -> Settings:
    return Settings.load(data_dir=folder, learning=learning)


def test_the_catalog_says_how_often_what_serves_is_right_as_a_whole() -> None:
    alone, whole = manifest(FIRST), manifest(FIRST) | {"served": {"hit_1": {"mean": 0.9}}}
    said = [promotion.record_of(told, "ada", ()) for told in (alone, whole)]
    assert [(record.hit_1, record.baseline_hit_1) for record in said] == [(0.8, 0.6), (0.9, 0.6)]


async def test_the_one_before_serves_and_then_what_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND, THIRD))
    keep(settings.models_folder, FIRST, SECOND, THIRD)
    keep_backtest(settings.models_folder, backtest(THIRD))
    arrays_file(settings.models_folder, SECOND).unlink()
    record = await rollback.roll_back_fallen(settings, "local", live(FIRST))
    assert record == topic.model
    assert record is not None
    assert (record.model_id, record.previous, record.reason, record.principal) == (
        THIRD,
        (),
        "rolled_back",
        "thresholds",
    )
    assert record.backtest is not None
    assert record.backtest.hits == 3
    assert record.why is not None
    assert "below the 0.600 of markov_1" in record.why
    assert [item.model_id for item in record.fallen or ()] == [FIRST]

    later = live(THIRD, since="2999-01-01T00:00:00.000000Z")
    assert await rollback.roll_back_fallen(settings, "local", later) == topic.model
    assert (topic.model.model_id, topic.model.learner, topic.model.previous) == ("", "markov_1", ())
    assert [item.model_id for item in topic.model.fallen or ()] == [THIRD, FIRST]
    with pytest.raises(Refused):
        await promotion.roll_back(settings, "ann", "local")


async def test_it_is_done_once_and_only_a_person_promotes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND))
    keep(settings.models_folder, FIRST, SECOND)
    await rollback.roll_back_fallen(settings, "local", live(FIRST))
    after = topic.model
    assert await rollback.roll_back_fallen(settings, "local", live(FIRST)) is None
    assert topic.model is after
    assert rolled_back(topic.records) == ({"tenant": "local", "serves": SECOND, "why": after.why},)

    await promotion.promote(settings, FIRST, "ann")
    assert (topic.model.model_id, topic.model.previous, topic.model.fallen) == (FIRST, (SECOND,), None)
    assert rolled_back(topic.records) == ()
    assert await rollback.roll_back_fallen(settings, "local", live(FIRST)) is None


@pytest.mark.parametrize(("drift", "hits"), [("off", 10), ("on", 25)])
async def test_nothing_is_done_where_it_is_off_or_chance(
    drift: str, hits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path, drift=drift), Topic(monkeypatch, serving(FIRST, SECOND))
    keep(settings.models_folder, FIRST, SECOND)
    assert await rollback.roll_back_fallen(settings, "local", live(FIRST, hits)) is None
    assert topic.model == serving(FIRST, SECOND)


async def test_a_model_that_is_damaged_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND, THIRD))
    keep(settings.models_folder, SECOND, THIRD)
    manifest_file(settings.models_folder, SECOND).write_text("{}")
    await rollback.roll_back_fallen(settings, "local", live(FIRST))
    assert topic.model.model_id == THIRD


async def test_a_model_of_other_bytes_does_not_serve_after_one_that_fell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND, THIRD))
    keep(settings.models_folder, SECOND, THIRD)
    arrays_file(settings.models_folder, SECOND).write_bytes(b"others")
    await rollback.roll_back_fallen(settings, "local", live(FIRST))
    assert topic.model.model_id == THIRD


@pytest.mark.parametrize(("told", "refusal"), [(None, NoSuchModel), (b"others", ModelDamaged)])
async def test_a_model_that_is_gone_or_of_other_bytes_is_not_promoted_and_not_gone_back_to(
    told: bytes | None, refusal: type[PMLError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND))
    keep(settings.models_folder, FIRST, SECOND)
    file = arrays_file(settings.models_folder, SECOND)
    file.unlink() if told is None else file.write_bytes(told)
    with pytest.raises(refusal, match=r"pml model list|train again"):
        await promotion.promote(settings, SECOND, "ann")
    with pytest.raises(refusal, match=r"pml model list|train again"):
        await promotion.roll_back(settings, "ann", "local")
    assert topic.model == serving(FIRST, SECOND)


@pytest.mark.parametrize("meanwhile", [THIRD, FIRST])
async def test_what_a_person_promotes_meanwhile_stands(
    meanwhile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND))
    keep(settings.models_folder, FIRST, SECOND, THIRD)

    def read(folder: Path, model_id: str) -> Manifest:
        # On a thread of its own: a person promotes while the files are read.
        asyncio.run(promotion.promote(settings, meanwhile, "ann"))
        return read_sound(folder, model_id)

    monkeypatch.setattr(rollback, "read_sound", read)
    assert await rollback.roll_back_fallen(settings, "local", live(FIRST)) is None
    assert (topic.model.model_id, topic.model.principal, topic.model.fallen) == (meanwhile, "ann", None)


async def test_what_a_person_promotes_while_a_model_is_rolled_back_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND))
    keep(settings.models_folder, FIRST, SECOND, THIRD)
    publish, persons = promotion.publish, list[asyncio.Task[ModelRecord]]()

    async def slowly(settings: Settings, record: CatalogRecord) -> None:
        if not persons:
            # It is about to be rolled back, and a person is faster, if nothing keeps one out.
            persons.append(asyncio.create_task(promotion.promote(settings, THIRD, "ann")))
            await asyncio.wait(persons, timeout=0.5)
        await publish(settings, record)

    monkeypatch.setattr(promotion, "publish", slowly)
    await rollback.roll_back_fallen(settings, "local", live(FIRST))
    await asyncio.wait_for(persons[0], PATIENCE_S)
    assert (topic.model.model_id, topic.model.principal, topic.model.previous) == (THIRD, "ann", (SECOND,))
    assert [item.model_id for item in topic.model.fallen or ()] == [FIRST]


async def test_where_a_file_system_knows_no_locks_models_are_let_serve_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND))
    keep(settings.models_folder, FIRST, SECOND)

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locked_file.fcntl, "flock", refused)
    await promotion.promote(settings, SECOND, "ann")
    assert (topic.model.model_id, topic.model.principal) == (SECOND, "ann")


async def test_a_model_stays_while_somebody_else_is_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND))
    keep(settings.models_folder, FIRST, SECOND)
    monkeypatch.setattr(promotion, "alone", partial(locked_file.alone, within_s=0.05))
    async with locked_file.alone(settings.models_folder / promotion.LOCK):
        assert await rollback.roll_back_fallen(settings, "local", live(FIRST)) is None
        with pytest.raises(locked_file.ModelsBusy, match="try again"):
            await promotion.promote(settings, SECOND, "ann")
    assert topic.model == serving(FIRST, SECOND)
    assert await rollback.roll_back_fallen(settings, "local", live(FIRST)) == topic.model


async def test_the_list_shows_what_came_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND), live(FIRST))
    keep(settings.models_folder, FIRST, SECOND)
    before = {row["model_id"]: row for row in await listing.model_rows(settings, "local")}
    assert [before[name]["serves"] for name in (FIRST, SECOND)] == [True, False]
    assert (before[FIRST]["live"]["hits"], before[SECOND]["live"], before[FIRST]["fell"]) == (10, None, None)
    await rollback.roll_back_fallen(settings, "local", live(FIRST))
    after = {row["model_id"]: row for row in await listing.model_rows(settings, "local")}
    assert [after[name]["serves"] for name in (FIRST, SECOND)] == [False, True]
    assert after[FIRST]["fell"] == topic.model.why
    assert (await listing.lived(settings, "local", FIRST))["fell"] == topic.model.why


async def test_a_manifest_that_cannot_be_read_hides_no_other_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND, THIRD))
    keep(settings.models_folder, FIRST, SECOND, THIRD)
    manifest_file(settings.models_folder, THIRD).write_text("{")
    lacking = {name: value for name, value in manifest(SECOND).items() if name != "validation"}
    manifest_file(settings.models_folder, SECOND).write_bytes(orjson.dumps(lacking))
    with structlog.testing.capture_logs() as logs:
        rows = await listing.model_rows(settings, "local")
        assert last_training_ms(settings, "local") == from_rfc3339(PROMOTED_AT)
    assert [row["model_id"] for row in rows] == [FIRST]
    assert [entry["event"] for entry in logs] == ["a model is passed over"] * 4
    # Nor does it end the role that judges models.
    await rollback.roll_back_fallen(settings, "local", live(FIRST))
    assert topic.model.model_id == ""


async def test_the_list_shows_who_went_back_from_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND))
    keep(settings.models_folder, FIRST, SECOND)
    record = await promotion.roll_back(settings, "ann", "local")
    rows = {row["model_id"]: row["fell"] for row in await listing.model_rows(settings, "local")}
    assert rows == {FIRST: f"ann went back to {SECOND}", SECOND: None}
    # `pml status` tells of those alone that were rolled back by themselves.
    assert (record.why, rolled_back(topic.records)) == (None, ())


async def test_what_a_manifest_says_needs_no_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(settings: Settings) -> None:
        raise BrokerUnavailable("no broker")

    monkeypatch.setattr(listing, "read_catalog", silent)
    assert await listing.lived(settings_of(tmp_path), "local", FIRST) == {"live": None, "fell": None}


@pytest.mark.parametrize("fails", ["refused", "hangs"])
async def test_the_status_says_nothing_of_models_where_the_catalog_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    async def unreadable(settings: Settings) -> dict[bytes, CatalogRecord]:
        if fails == "hangs":
            await asyncio.Event().wait()
        raise BrokerUnavailable("the broker does not answer")

    monkeypatch.setattr(status, "read_catalog", unreadable)
    monkeypatch.setattr(status, "BROKER_TIMEOUT_S", 0.05)
    assert await status._rolled_back(Settings.load()) == ()
