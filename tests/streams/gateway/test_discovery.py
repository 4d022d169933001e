"""`/v1/discover`, `/v1/capabilities` and `/v1/models` over a real catalog, for two tenants."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from pml.schemas.catalog import CatalogRecord, ModelRecord
from pml.streams.gateway.app import make_app
from pml.streams.gateway.tokens import TokenFile
from pml.streams.learning.manifests import manifest_file
from pml.streams.settings import Settings
from tests.processors.discovery.catalog_records import capability, permissions, renamed, server
from tests.streams.discovery.catalog_world import catalog_world
from tests.streams.gateway.test_app import NOW, nobody
from tests.streams.learning.kept_models import FIRST, SECOND, THIRD, manifest, serving

pytest.importorskip("wordllama", reason="install requirements.lock")
pytestmark = pytest.mark.integration
FILES = server("files", "read_file", "write_file")
TENANTS = ("ann", "bob")


def asked_by_both(settings: Settings) -> dict[str, dict[str, Any]]:
    """What each tenant is answered, by one gateway."""
    found = {}
    with TestClient(make_app(settings, nobody, lambda: None), base_url="http://127.0.0.1") as door:
        for tenant in TENANTS:
            made = TokenFile(settings.data_dir).create(tenant, "agent:a", ["runs:read"], NOW)
            door.headers["authorization"] = f"Bearer {made}"
            asked = {"intent": "tidy up my folder", "limit": 2}
            found[tenant] = {
                "first": door.post("/v1/discover", json=asked).json(),
                "second": door.post("/v1/discover", json={**asked, "offset": 2}).json(),
                "tools": door.post("/v1/discover", json={**asked, "filter": {"type": "tool"}}).json(),
                "learned": door.get("/v1/capabilities").json(),
            }
    return found


async def test_each_tenant_finds_the_tools_and_its_own_capabilities(kafka: str, tmp_path: Path) -> None:
    async with catalog_world(kafka, tmp_path) as world:
        mine = capability("tidy", "tidy up my folder", "files:read_file", tenant="ann")
        draft = capability("draft", "tidy up my folder", "files:read_file", tenant="ann", status="draft")
        theirs = capability("sweep", "sweep the floor", "files:write_file", tenant="bob")
        await world.put(FILES, permissions(files__read_file={"approval": "auto"}))
        await world.put(mine, draft, theirs, renamed(mine, "spring-cleaning"))
        answers = await asyncio.to_thread(asked_by_both, world.settings)

    ann, bob = (answers[tenant] for tenant in TENANTS)
    assert (ann["first"]["total"], ann["first"]["next_offset"], ann["first"]["complete"]) == (3, 2, True)
    best = ann["first"]["items"][0]
    assert (best["id"], best["name"], best["tools"]) == ("cap_tidy", "spring-cleaning", ["files:read_file"])
    assert "shortened" not in best
    everything = ann["first"]["items"] + ann["second"]["items"]
    assert [item["score"] for item in everything] == sorted(
        (item["score"] for item in everything), reverse=True
    )
    assert {item["id"] for item in everything} == {"cap_tidy", "files:read_file", "files:write_file"}
    assert {item["id"] for item in ann["tools"]["items"]} == {"files:read_file", "files:write_file"}
    assert "cap_tidy" not in str(bob)
    assert "cap_sweep" not in str(ann)
    listed = [(item["name"], item["status"], item["tools"]) for item in ann["learned"]["items"]]
    assert listed == [
        ("draft", "draft", ["files:read_file"]),
        ("spring-cleaning", "learned", ["files:read_file"]),
    ]
    assert ann["learned"]["next_cursor"] is None
    assert [item["name"] for item in bob["learned"]["items"]] == ["sweep"]


def models_of_both(settings: Settings) -> dict[str, list[dict[str, Any]]]:
    found = {}
    with TestClient(make_app(settings, nobody, lambda: None), base_url="http://127.0.0.1") as door:
        for tenant in TENANTS:
            made = TokenFile(settings.data_dir).create(tenant, "agent:a", ["runs:read"], NOW)
            door.headers["authorization"] = f"Bearer {made}"
            found[tenant] = door.get("/v1/models").json()["items"]
        made = TokenFile(settings.data_dir).create("ann", "agent:b", ["runs:write"], NOW)
        door.headers["authorization"] = f"Bearer {made}"
        assert door.get("/v1/models").status_code == HTTPStatus.FORBIDDEN
    return found


async def test_each_tenant_sees_its_own_models_and_which_one_serves(kafka: str, tmp_path: Path) -> None:
    async with catalog_world(kafka, tmp_path) as world:
        folder = world.settings.models_folder
        folder.mkdir(parents=True)
        for model_id in (FIRST, SECOND):
            own = manifest(model_id) | {"data": {"tenant": "ann", "questions": 100}}
            manifest_file(folder, model_id).write_bytes(orjson.dumps(own))
        await world.put(
            CatalogRecord(kind="model", id="ann", version=ModelRecord.VERSION, data=serving(SECOND, FIRST)),
            CatalogRecord(kind="model", id="bob", version=ModelRecord.VERSION, data=serving(THIRD)),
        )
        found = await asyncio.to_thread(models_of_both, world.settings)
    assert {row["model_id"]: row["serves"] for row in found["ann"]} == {FIRST: False, SECOND: True}
    assert {row["questions"] for row in found["ann"]} == {100}
    # What serves bob is not in this folder.
    assert [(row["model_id"], row["serves"], row["created_at"]) for row in found["bob"]] == [
        (THIRD, True, None)
    ]
