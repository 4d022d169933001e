"""`pml backtest` on a real broker and a real store, and what a promotion says of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.training import session_values
from pml.clickhouse.training.session_values import Stretch, read_session_values
from pml.processors.learning.known_sessions import as_sequences, learned_sources
from pml.processors.learning.model import fitted
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding
from pml.streams.learning import artefacts
from tests.streams.cli.conftest import Pml
from tests.streams.cli.gone_on import SEARCH, SESSIONS, store

__all__ = ["store"]

pytestmark = pytest.mark.integration


@pytest.fixture
def model_id(store: Store, tmp_path: Path) -> str:
    """A model of them; both tools may run early."""
    return _kept(store, tmp_path / ".pml" / "models")


def _kept(store: Store, folder: Path) -> str:
    known = read_session_values(store, Stretch("local"))
    sources = learned_sources(known, {})
    model = fitted(as_sequences(known, {}), WordLlamaEmbedding(), 0, "markov_1", arguments=sources)
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    said = {"serves": "markov_1", "baseline": "markov_1", "data": {"questions": 8}, "created_at": now}
    return artefacts.write(folder, model, {**said, "validation": {"markov_1": {"hit_1": {"mean": 1.0}}}})


def test_a_model_is_held_against_what_went_on_and_promoted_with_it(pml: Pml, model_id: str) -> None:
    refused = pml("backtest", "--model", model_id)
    assert (refused.exit_code, "has ended since" in refused.stderr) == (1, True)
    assert "no backtest goes with it" in pml("model", "promote", model_id).stderr

    told = pml("backtest", "--model", model_id, "--since", "2020-01-01", "--threshold", "0.3", "--json")
    found = orjson.loads(told.stdout)
    assert (found["sessions"], found["runs"], found["known_runs"], found["asked"]) == (4, 8, 8, 8)
    by_tool = {row["tool"]: row for row in found["tools"]}
    assert (by_tool[SEARCH]["calls"], by_tool[SEARCH]["hits"]) == (SESSIONS, SESSIONS)
    assert by_tool[SEARCH]["saved_ms"] == SESSIONS * 400
    assert found["total"]["really"]["begun"] == 0

    others = {row["threshold"]: row for row in found["thresholds"]}
    assert {name: others[0.3][name] for name in ("begun", "hits", "saved_ms")} == {
        name: found["total"][name] for name in ("begun", "hits", "saved_ms")
    }
    best = found["best_threshold"]
    assert others[best]["saved_ms"] == max(row["saved_ms"] for row in others.values())

    people = pml("backtest", "--model", model_id, "--since", "2020-01-01", "--threshold", "1.0", "--no-keep")
    assert ("0.00" in people.stdout, "it may know them" in people.stderr) == (True, True)
    assert f"pml thresholds set {best:.2f}" in people.stdout
    promoted = orjson.loads(pml("model", "promote", model_id, "--json").stdout)
    assert (promoted["backtest"]["runs"], promoted["backtest"]["hits"]) == (8, found["total"]["hits"])
    assert orjson.loads(pml("model", "show", model_id, "--json").stdout)["backtest"]["threshold"] == 0.3
    assert (pml("backtest", "--model", "mdl_000000000000").exit_code) == refused.exit_code


def test_a_stretch_with_more_runs_than_can_be_read_says_where_it_begins(
    pml: Pml, model_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("backtest", "--model", model_id, "--since", "2020-01-01", "--no-keep")
    whole = orjson.loads(pml(*asked, "--json").stdout)
    assert (whole["left_out_runs"], whole["since"][:10]) == (0, "2020-01-01")
    monkeypatch.setattr(session_values, "RUNS_MAX", 5)
    cut = orjson.loads(pml(*asked, "--json").stdout)
    assert (cut["runs"], cut["left_out_runs"]) == (5, 3)
    assert cut["since"] > whole["since"]
    told = pml(*asked).stderr.replace("\n", " ")
    assert "3 earlier runs of that time are left out: more cannot be read at once" in told
    assert f"these begin at {cut['since']}" in told
