"""`pml discover`, as a user types it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from tests.processors.discovery.catalog_records import capability, server
from tests.streams.cli.conftest import Pml
from tests.streams.discovery.catalog_world import catalog_world


@pytest.mark.integration
def test_what_fits_is_a_table_or_one_document(
    pml: Pml, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wordllama", reason="install requirements.lock")
    prefix = asyncio.run(filled(kafka, tmp_path))
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("PML_KAFKA__TOPIC_PREFIX", prefix)

    table = pml("discover", "tidy up my folder", "--limit", "2")
    assert table.exit_code == 0, table.stderr
    assert table.stdout.splitlines()[1].split()[1:3] == ["capability", "cap_tidy"]
    assert "3 in all; more with --offset 2" in table.stderr

    told = orjson.loads(pml("discover", "tidy up my folder", "--type", "tool", "--json").stdout)
    assert {item["id"] for item in told["items"]} == {"files:read_file", "files:write_file"}
    assert (told["total"], told["next_offset"], told["complete"]) == (2, None, True)
    foreign = orjson.loads(pml("discover", "tidy up", "--tenant", "other", "--json").stdout)
    assert {item["type"] for item in foreign["items"]} == {"tool"}
    nothing = pml("discover", "tidy up", "--min-score", "1")
    assert (nothing.exit_code, nothing.stdout.strip()) == (0, "nothing to show")


async def filled(kafka: str, folder: Path) -> str:
    """A catalog with two tools and a capability; the prefix of its topic."""
    async with catalog_world(kafka, folder) as world:
        await world.put(server("files", "read_file", "write_file"))
        await world.put(capability("tidy", "tidy up my folder", "files:read_file"))
        return world.settings.kafka.topic_prefix


@pytest.mark.parametrize(
    "wrong", [("x", "--limit", "51"), ("x", "--type", "run"), ("x", "--min-score", "2"), ("",), ()]
)
def test_what_cannot_be_asked_is_told(pml: Pml, wrong: tuple[str, ...]) -> None:
    assert pml("discover", *wrong).exit_code == 2


def test_without_a_broker_it_says_so(pml: Pml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    result = pml("discover", "read a file", "--json")
    assert result.exit_code == 4
    assert orjson.loads(result.stdout)["error"]["code"] == "BROKER_UNAVAILABLE"
