"""Which model serves: a record of the catalog, written by `pml train` and `pml model`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from pml.processors.learning.drift import with_fallen
from pml.schemas.catalog import CatalogRecord, ModelFallen, ModelLive, ModelRecord
from pml.schemas.errors import PMLError, Refused
from pml.schemas.times import to_rfc3339
from pml.streams.catalog_topic import Records, publish, read_catalog
from pml.streams.learning.kept_backtests import latest_backtest
from pml.streams.learning.locked_file import alone
from pml.streams.learning.manifests import read_sound, tenant_of
from pml.streams.settings import Settings

PREVIOUS_MOST = 10
LOCK = "promotions.lock"


def one_at_a_time(settings: Settings) -> AbstractAsyncContextManager[None]:
    """Held from reading what serves to writing what serves next, so that nothing said between is lost.

    The catalog has no such lock, the folder has: whoever names a model reads it there. Machines whose folders
    are not one are not kept apart.

    Raises:
        ModelsBusy: somebody else holds it, and went on to.
    """
    return alone(settings.models_folder / LOCK)


def model_key(tenant: str) -> bytes:
    """Under which the catalog says what serves a tenant."""
    return f"{ModelRecord.KIND}/{tenant}".encode()


def promoted_of(records: Records, tenant: str) -> ModelRecord | None:
    """What the catalog says serves a tenant; None before the first promotion."""
    found = (record.data for record in records.values() if record.id == tenant)
    return next((data for data in found if isinstance(data, ModelRecord)), None)


def live_of(records: Records, tenant: str) -> ModelLive | None:
    """How often the model that was looked at last is right; None before anything was counted."""
    found = (record.data for record in records.values() if record.id == tenant)
    return next((data for data in found if isinstance(data, ModelLive)), None)


async def promote(settings: Settings, model_id: str, principal: str) -> ModelRecord:
    """Let a model of the folder serve from now on; what served before can be gone back to.

    Raises:
        NoSuchModel, ModelDamaged: it is not there, or one of its files is not what was written.
        BrokerUnavailable: the broker does not answer.
        ModelsBusy: somebody else is letting models serve.
    """
    async with one_at_a_time(settings):
        manifest = await asyncio.to_thread(read_sound, settings.models_folder, model_id)
        before = promoted_of(await read_catalog(settings), tenant_of(manifest))
        return await promote_after(settings, manifest, principal, before)


async def promote_after(
    settings: Settings, manifest: Mapping[str, Any], principal: str, before: ModelRecord | None
) -> ModelRecord:
    """Let a model serve after this record, for whoever holds `one_at_a_time` since reading it.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    model_id = manifest["model_id"]
    previous = () if before is None else (before.model_id, *before.previous)
    kept = tuple(dict.fromkeys(name for name in previous if name not in ("", model_id)))[:PREVIOUS_MOST]
    fallen = () if before is None else before.fallen or ()
    others = tuple(item for item in fallen if item.model_id != model_id)
    told = {"fallen": others or None, "backtest": latest_backtest(settings.models_folder, model_id)}
    record = record_of(manifest, principal, kept).model_copy(update=told)
    return await publish_model(settings, tenant_of(manifest), record)


def kept_back(error: PMLError, model_id: str) -> PMLError:
    """The same error of a model that was trained and could not be promoted, saying which and what to do."""
    lets = f"{model_id} is kept and does not serve, `pml model promote {model_id}` lets it"
    return type(error)(f"{lets}: {error.message}", **{**error.details, "model_id": model_id})


async def roll_back(settings: Settings, principal: str, tenant: str) -> ModelRecord:
    """Let the model serve a tenant that did before; only a person promotes again what served until now.

    Raises:
        Refused: nothing served before.
        UndecodableRecord, UnknownMessage: what serves now cannot be read.
        NoSuchModel, ModelDamaged: what served before is gone, or not what was written.
        BrokerUnavailable: the broker does not answer.
        ModelsBusy: somebody else is letting models serve.
    """
    async with one_at_a_time(settings):
        now = promoted_of(await read_catalog(settings, model_key(tenant)), tenant)
        if now is None or not now.previous:
            raise Refused("no model served before this one; `pml model promote ID` says which shall")
        manifest = await asyncio.to_thread(read_sound, settings.models_folder, now.previous[0])
        return await publish_model(settings, tenant, _gone_back(settings, now, manifest, principal))


def _gone_back(
    settings: Settings, now: ModelRecord, manifest: Mapping[str, Any], principal: str
) -> ModelRecord:
    before, *others = now.previous
    record = record_of(manifest, principal, tuple(others))
    one = ModelFallen(model_id=now.model_id, why=f"{principal} went back to {before}", at=record.promoted_at)
    told = {
        "reason": "rolled_back",
        "fallen": with_fallen(now.fallen or (), one),
        "backtest": latest_backtest(settings.models_folder, before),
    }
    return record.model_copy(update=told)


def record_of(manifest: Mapping[str, Any], principal: str, previous: tuple[str, ...]) -> ModelRecord:
    """What the catalog says of a model that serves from now on.

    How often it was right is said of what serves as a whole, with what recurs: that is what is seen live. A
    manifest of a former release has its learner alone.
    """
    served = manifest.get("served")
    hits = {name: found["hit_1"]["mean"] for name, found in manifest["validation"].items()}
    return ModelRecord(
        model_id=manifest["model_id"],
        learner=manifest["serves"],
        hit_1=served["hit_1"]["mean"] if served else hits[manifest["serves"]],
        baseline=manifest["baseline"],
        baseline_hit_1=hits[manifest["baseline"]],
        promoted_at=_now(),
        principal=principal,
        previous=previous,
    )


def record_of_counting(before: ModelRecord, principal: str) -> ModelRecord:
    """What the catalog says where no model serves any more: what is counted of the latest runs does."""
    return ModelRecord(
        model_id="",
        learner=before.baseline,
        hit_1=before.baseline_hit_1,
        baseline=before.baseline,
        baseline_hit_1=before.baseline_hit_1,
        promoted_at=_now(),
        principal=principal,
    )


async def publish_model(settings: Settings, tenant: str, data: ModelRecord) -> ModelRecord:
    """Say what serves a tenant from now on.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    await publish(settings, CatalogRecord(kind=data.KIND, id=tenant, version=data.VERSION, data=data))
    return data


def _now() -> str:
    return to_rfc3339(time.time_ns() // 1_000_000)
