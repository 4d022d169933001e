"""`pml export traces` on a real store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from pml.clickhouse.client import Store
from pml.processors.learning.packed_texts import unpacked
from tests.clickhouse import history as h
from tests.clickhouse.history import History
from tests.streams.cli.conftest import Pml

pytestmark = pytest.mark.integration


@pytest.fixture
def store(migrated_store: Store, clickhouse_url: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("CLICKHOUSE_URL", clickhouse_url)
    monkeypatch.setenv("PML_CLICKHOUSE__DATABASE", migrated_store.address.database)
    session = History()
    session.add(h.run_started())
    session.add(h.completed("n1"))
    session.add(h.run_completed())
    session.insert(migrated_store)
    return migrated_store


@pytest.mark.usefixtures("store")
def test_the_name_of_the_file_says_what_is_written(pml: Pml, tmp_path: Path) -> None:
    told = pml("export", "traces", str(tmp_path / "traces.npz"), "--json")
    assert told.exit_code == 0
    manifest = orjson.loads(told.stdout)
    assert (manifest["traces"], manifest["selection"]["seed"]) == (1, 0)
    with np.load(tmp_path / "traces.npz") as stored:
        assert unpacked("tool_words", stored) == ("git:git_log",)
    told = pml("export", "traces", str(tmp_path / "traces.parquet"))
    assert (told.exit_code, (tmp_path / "traces.parquet").read_bytes()[:4]) == (0, b"PAR1")
    assert "1 traces" in told.stderr
    told = pml("export", "traces", str(tmp_path / "traces.npz"), "--split", "time", "--json")
    assert orjson.loads(told.stdout)["selection"]["split"] == "time"


@pytest.mark.usefixtures("store")
def test_times_may_have_a_zone_or_none(pml: Pml, tmp_path: Path) -> None:
    file = str(tmp_path / "traces.npz")
    for moment in ("2100-01-01", "2100-01-01T02:00:00+02:00", "2100-01-01T00:00:00Z"):
        manifest = orjson.loads(pml("export", "traces", file, "--since", moment, "--json").stdout)
        assert manifest["selection"]["since"] == "2100-01-01T00:00:00.000000Z"
        assert manifest["traces"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["traces.csv"], "none of npz, parquet"),
        (["traces.npz", "--since", "yesterday"], "is no time such as"),
    ],
)
def test_what_cannot_be_meant_is_said(pml: Pml, arguments: list[str], said: str) -> None:
    told = pml("export", "traces", *arguments)
    assert told.exit_code == 2
    assert said in told.stderr


@pytest.mark.usefixtures("store")
def test_a_folder_that_is_not_there_is_told_in_a_sentence(pml: Pml, tmp_path: Path) -> None:
    told = pml("export", "traces", str(tmp_path / "nowhere" / "traces.npz"))
    assert told.exit_code != 0
    assert "cannot be written: No such file or directory" in told.stderr
    assert "Traceback" not in told.stderr
