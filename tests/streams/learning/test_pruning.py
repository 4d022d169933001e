"""Old models are removed, but none that serves or that somebody may go back to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from pml.schemas.errors import BrokerUnavailable, ConfigurationError
from pml.streams.learning import pruning
from pml.streams.learning.kept_backtests import keep_backtest
from pml.streams.learning.manifests import list_manifests, manifest_file
from pml.streams.learning.pruning import prune
from pml.streams.settings import Settings
from tests.streams.learning.kept_models import FIRST, FOURTH, SECOND, THIRD, keep, manifest, serving
from tests.streams.learning.test_rollback import Topic, settings_of


@pytest.fixture
def found(tmp_path: Path) -> Settings:
    """Four models, the first the oldest."""
    settings = settings_of(tmp_path)
    keep(settings.models_folder, FIRST, SECOND, THIRD, FOURTH)
    for month, model_id in enumerate((FIRST, SECOND, THIRD, FOURTH), start=1):
        told = manifest(model_id) | {"created_at": f"2023-0{month}-01T00:00:00.000000Z"}
        manifest_file(settings.models_folder, model_id).write_bytes(orjson.dumps(told))
        keep_backtest(settings.models_folder, {"model_id": model_id})
    return settings


def in_catalog(monkeypatch: pytest.MonkeyPatch, *told: Any) -> None:
    topic = Topic(monkeypatch, *told)
    monkeypatch.setattr(pruning, "read_catalog", topic._read)


async def test_the_newest_stay_and_of_the_others_nothing_is_left(
    found: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_catalog(monkeypatch)
    assert await prune(found, "local", 3) == [FIRST]
    assert await prune(found, "local", 1) == [THIRD, SECOND]
    assert await prune(found, "local", 1) == []
    left = {file.name.partition(".")[0] for file in found.models_folder.glob("mdl_*")}
    assert left == {FOURTH}


async def test_what_serves_and_what_can_be_gone_back_to_stays(
    found: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_catalog(monkeypatch, serving(SECOND, FIRST))
    assert await prune(found, "local", 1) == [THIRD]
    assert {each["model_id"] for each in list_manifests(found.models_folder)} == {FIRST, SECOND, FOURTH}


async def test_models_of_others_stay(found: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    in_catalog(monkeypatch)
    assert await prune(found, "acme", 1) == []


async def test_while_nobody_knows_what_serves_nothing_is_removed(
    found: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(settings: Settings, needed: bytes) -> None:
        assert needed == b"model/local"
        raise BrokerUnavailable("no broker")

    monkeypatch.setattr(pruning, "read_catalog", away)
    with pytest.raises(BrokerUnavailable):
        await prune(found, "local", 1)
    assert len(list_manifests(found.models_folder)) == 4


async def test_what_cannot_be_removed_is_said(found: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    in_catalog(monkeypatch)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(ConfigurationError, match="cannot be removed: Permission denied"):
        await prune(found, "local", 3)
