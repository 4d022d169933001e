"""`pml thresholds`, as a user types it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.cli.session import person
from pml.streams.client import new_id
from pml.streams.settings import Settings
from pml.streams.threshold_overrides import chosen_context
from pml.streams.threshold_plot import Panel, draw
from pml.streams.topics import ensure_topics
from tests.streams.cli.conftest import Pml

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_simulation_is_a_picture_and_says_what_settles(pml: Pml) -> None:
    result = pml("thresholds", "plot", "--simulate", "1", "--out", "simulated.png", "--json")
    assert result.exit_code == 0, result.stderr
    told = orjson.loads(result.stdout)
    assert {row["predictor"]: row["settles"] for row in told["predictors"]} == {
        "well_calibrated": True,
        "over_confident": True,
        "under_confident": True,
        "far_over_confident": False,
        "far_under_confident": False,
        "random": False,
        "certain": False,
    }
    assert all(row["settled_after"] <= 3_000 for row in told["predictors"] if row["settles"])
    picture = Path("simulated.png").read_bytes()
    assert picture.startswith(PNG)
    pml("thresholds", "plot", "--simulate", "1", "--out", "again.png")
    assert Path("again.png").read_bytes() == picture


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    panel = Panel("a", "b", [50], [0.9], [0.85])
    with pytest.raises(ConfigurationError, match="cannot be written"):
        draw([panel], tmp_path / "none" / "a.png", "title")


@pytest.mark.parametrize(
    ("named", "key"),
    [
        ((None, None, None), "local/default"),
        ((None, None, "a b"), "local/type=a%20b"),
        ((None, "web", "audit"), "local/domain=web/type=audit"),
        (("ann", None, "audit"), "local/user=ann/type=audit"),
    ],
)
def test_options_name_a_context(named: tuple[str | None, str | None, str | None], key: str) -> None:
    assert chosen_context("local", *named) == key


@pytest.mark.parametrize("named", [("ann", None, None), (None, "web", None), ("ann", "web", "audit")])
def test_options_that_name_no_context_are_a_mistake_of_usage(
    pml: Pml, named: tuple[str | None, str | None, str | None]
) -> None:
    options = [
        word
        for option, text in zip(("--user", "--domain", "--type"), named, strict=True)
        if text
        for word in (option, text)
    ]
    result = pml("thresholds", "set", "0.8", *options)
    assert result.exit_code == 2
    assert "--" in result.stderr


def test_a_threshold_is_a_share(pml: Pml) -> None:
    assert pml("thresholds", "set", "1.5").exit_code == 2


@pytest.mark.integration
def test_what_is_set_is_listed_with_who_set_it_until_it_is_taken_back(
    pml: Pml, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = new_id("cli") + "."
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("PML_KAFKA__TOPIC_PREFIX", prefix)
    asyncio.run(ensure_topics(Settings.load()))
    assert orjson.loads(pml("thresholds", "list", "--json").stdout)["items"] == []
    assert "pml thresholds branches" in pml("thresholds", "list").stderr
    assert orjson.loads(pml("thresholds", "branches", "--json").stdout) == {"items": [], "next_cursor": None}
    done = pml("thresholds", "set", "0.8", "--type", "audit", "--as", "ann", "--json")
    assert orjson.loads(done.stdout) == {"context": "local/type=audit", "value": 0.8, "principal": "ann"}
    pml("thresholds", "set", "0.9", "--tenant", "acme")
    items = orjson.loads(pml("thresholds", "list", "--json").stdout)["items"]
    assert [(item["key"], item["value"], item["state"], item["set_by"]) for item in items] == [
        ("acme/default", 0.9, "cold", person()),
        ("local/type=audit", 0.8, "cold", "ann"),
    ]
    shown = pml("thresholds", "list").stdout
    assert "local/type=audit" in shown
    assert "0.8000" in shown
    done = pml("thresholds", "unset", "--type", "audit", "--json")
    assert orjson.loads(done.stdout)["principal"].startswith("person:")
    items = orjson.loads(pml("thresholds", "list", "--json").stdout)["items"]
    assert [item["key"] for item in items] == ["acme/default"]
