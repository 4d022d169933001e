"""Models as people look at them: those of the folder, and which one the catalog says serves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pml.schemas.errors import BrokerUnavailable, PMLError
from pml.streams.catalog_topic import Records, read_catalog
from pml.streams.learning.manifests import list_manifests, tenant_of, warn_of
from pml.streams.learning.promotion import live_of, promoted_of
from pml.streams.settings import Settings


async def model_rows(
    settings: Settings, tenant: str, passed_over: Callable[[PMLError], None] = warn_of
) -> list[dict[str, Any]]:
    """A row for each model of a tenant, the newest first; one that serves and is not here comes last.

    Args:
        passed_over: is told of each whose manifest cannot be read, whosever it is.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    records = await read_catalog(settings)
    manifests = await asyncio.to_thread(list_manifests, settings.models_folder, passed_over)
    rows = [_row(manifest) for manifest in manifests if tenant_of(manifest) == tenant]
    promoted = promoted_of(records, tenant)
    serving = promoted.model_id if promoted is not None else ""
    if promoted is not None and serving and all(row["model_id"] != serving for row in rows):
        rows.append(
            {
                "model_id": serving,
                "created_at": None,
                "learner": promoted.learner,
                "hit_1": promoted.hit_1,
                "baseline": promoted.baseline,
                "baseline_hit_1": promoted.baseline_hit_1,
                "questions": None,
            }
        )
    return [{**row, "serves": row["model_id"] == serving, **_lived(records, tenant, row)} for row in rows]


async def lived(settings: Settings, tenant: str, model_id: str) -> dict[str, Any]:
    """What came of a model: `live`, how often it was right, and `fell`, why it was rolled back; else None.

    Both are None too where the broker does not answer: what a manifest says needs none.
    """
    try:
        return _lived(await read_catalog(settings), tenant, {"model_id": model_id})
    except BrokerUnavailable:
        return {"live": None, "fell": None}


def _lived(records: Records, tenant: str, row: Mapping[str, Any]) -> dict[str, Any]:
    live, promoted = live_of(records, tenant), promoted_of(records, tenant)
    fallen = {} if promoted is None else {item.model_id: item.why for item in promoted.fallen or ()}
    mine = live is not None and live.model_id == row["model_id"]
    return {
        "live": live.model_dump(mode="json") if live and mine else None,
        "fell": fallen.get(row["model_id"]),
    }


def _row(manifest: Mapping[str, Any]) -> dict[str, Any]:
    hits = {name: found["hit_1"]["mean"] for name, found in manifest["validation"].items()}
    return {
        "model_id": manifest["model_id"],
        "created_at": manifest["created_at"],
        "learner": manifest["serves"],
        "hit_1": hits[manifest["serves"]],
        "baseline": manifest["baseline"],
        "baseline_hit_1": hits[manifest["baseline"]],
        "questions": manifest["data"]["questions"],
    }
