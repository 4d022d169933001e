"""A served model that does worse than its best baseline did is rolled back, without anybody asking for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import structlog

from pml.processors.learning.drift import fall, has_fallen, successors, with_fallen
from pml.schemas.catalog import ModelFallen, ModelLive, ModelRecord
from pml.schemas.errors import PMLError
from pml.streams.catalog_topic import read_catalog
from pml.streams.learning.kept_backtests import latest_backtest
from pml.streams.learning.locked_file import ModelsBusy
from pml.streams.learning.manifests import Manifest, read_sound
from pml.streams.learning.promotion import (
    one_at_a_time,
    promoted_of,
    publish_model,
    record_of,
    record_of_counting,
)
from pml.streams.settings import Settings

PRINCIPAL = "thresholds"

log = structlog.get_logger("pml.models")


async def roll_back_fallen(settings: Settings, tenant: str, live: ModelLive) -> ModelRecord | None:
    """Let another model serve where this one has fallen; the record, or None where all stays as it is.

    What serves now is asked of the catalog itself, so doing it again does nothing; and asked again while
    nobody else may promote, so that nothing is taken back that was promoted meanwhile.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    now = promoted_of(await read_catalog(settings), tenant)
    if now is None or not has_fallen(live, now):
        return None
    one = fall(live, now)
    if settings.learning.drift == "off":
        log.warning("model does worse than its baseline; drift is off, so it goes on", why=one.why)
        return None
    record = await asyncio.to_thread(_successor, settings.models_folder, now, one)
    try:
        if not await _published(settings, tenant, now, record):
            log.warning("another model was promoted meanwhile; nothing is rolled back", model=one.model_id)
            return None
    except ModelsBusy as error:
        # With more outcomes it is judged again.
        log.warning("nothing is rolled back for now", model=one.model_id, reason=error.message)
        return None
    log.warning("model rolled back", model=one.model_id, why=one.why, serves=record.model_id or "counting")
    return record


async def _published(settings: Settings, tenant: str, now: ModelRecord, record: ModelRecord) -> bool:
    """Write the record where what serves is still what was judged; whether it was.

    Reading models took a while, and what a person said meanwhile stands.
    """
    async with one_at_a_time(settings):
        if promoted_of(await read_catalog(settings), tenant) != now:
            return False
        await publish_model(settings, tenant, record)
        return True


def _successor(folder: Path, now: ModelRecord, one: ModelFallen) -> ModelRecord:
    """The model that was promoted before it; where none is left, what is counted of the latest runs."""
    fallen = with_fallen(now.fallen or (), one)
    there = {name: manifest for name in now.previous if (manifest := _manifest(folder, name)) is not None}
    named = successors(now.previous, fallen, there)
    told: dict[str, Any] = {"reason": "rolled_back", "why": one.why, "fallen": fallen}
    if not named:
        return record_of_counting(now, PRINCIPAL).model_copy(update=told)
    told["backtest"] = latest_backtest(folder, named[0])
    return record_of(there[named[0]], PRINCIPAL, tuple(named[1:])).model_copy(update=told)


def _manifest(folder: Path, model_id: str) -> Manifest | None:
    try:
        return read_sound(folder, model_id)
    except PMLError as error:
        log.warning("a model that served before cannot be gone back to", reason=error.message)
        return None
