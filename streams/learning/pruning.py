"""Models that nobody needs any more are removed: a watch makes one after the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pml.schemas.catalog import ModelRecord
from pml.schemas.errors import ConfigurationError
from pml.streams.catalog_topic import read_catalog
from pml.streams.learning.kept_backtests import backtest_file
from pml.streams.learning.manifests import arrays_file, list_manifests, manifest_file, tenant_of
from pml.streams.learning.promotion import model_key, one_at_a_time, promoted_of
from pml.streams.settings import Settings

KEEP = 20
"""How many of the newest models of a tenant a watch keeps."""


async def prune(settings: Settings, tenant: str, keep: int) -> list[str]:
    """Remove the models of a tenant but for the newest `keep`, and for those that the catalog names.

    Returns:
        Their ids, the newest first.

    Raises:
        BrokerUnavailable: the broker does not answer: nobody knows what serves, and nothing is removed.
        UndecodableRecord, UnknownMessage: what serves cannot be read: the same.
        ModelsBusy: somebody else is letting models serve.
        ConfigurationError: the folder cannot be written.
    """
    async with one_at_a_time(settings):
        serving = promoted_of(await read_catalog(settings, model_key(tenant)), tenant)
        return await asyncio.to_thread(_pruned, settings.models_folder, tenant, keep, serving)


def _pruned(folder: Path, tenant: str, keep: int, serving: ModelRecord | None) -> list[str]:
    needed = set() if serving is None else {serving.model_id, *serving.previous}
    models = [each["model_id"] for each in list_manifests(folder) if tenant_of(each) == tenant]
    removed = [model_id for model_id in models[keep:] if model_id not in needed]
    for model_id in removed:
        _remove(folder, model_id)
    return removed


def _remove(folder: Path, model_id: str) -> None:
    """The manifest goes last: who could not remove all finds the model again, and tries again."""
    for file in (backtest_file, arrays_file, manifest_file):
        place = file(folder, model_id)
        try:
            place.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{place} cannot be removed: {error.strerror or error}") from None
