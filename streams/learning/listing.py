"""Models as people look at them: those of the folder, and which one the catalog says serves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pml.streams.catalog_topic import read_catalog
from pml.streams.learning.manifests import list_manifests
from pml.streams.learning.promotion import promoted_of, tenant_of
from pml.streams.settings import Settings


async def model_rows(settings: Settings, tenant: str) -> list[dict[str, Any]]:
    """A row for each model of a tenant, the newest first; one that serves and is not here comes last.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ModelDamaged: a manifest cannot be read.
    """
    promoted = promoted_of(await read_catalog(settings), tenant)
    manifests = await asyncio.to_thread(list_manifests, settings.models_folder)
    serving = None if promoted is None else promoted.model_id
    rows = [_row(manifest, serving) for manifest in manifests if tenant_of(manifest) == tenant]
    if promoted is not None and all(row["model_id"] != serving for row in rows):
        rows.append(
            {
                "model_id": promoted.model_id,
                "created_at": None,
                "learner": promoted.learner,
                "hit_1": promoted.hit_1,
                "baseline": promoted.baseline,
                "baseline_hit_1": promoted.baseline_hit_1,
                "questions": None,
                "serves": True,
            }
        )
    return rows


def _row(manifest: Mapping[str, Any], serving: str | None) -> dict[str, Any]:
    hits = {name: found["hit_1"]["mean"] for name, found in manifest["validation"].items()}
    return {
        "model_id": manifest["model_id"],
        "created_at": manifest["created_at"],
        "learner": manifest["serves"],
        "hit_1": hits[manifest["serves"]],
        "baseline": manifest["baseline"],
        "baseline_hit_1": hits[manifest["baseline"]],
        "questions": manifest["data"]["questions"],
        "serves": manifest["model_id"] == serving,
    }
