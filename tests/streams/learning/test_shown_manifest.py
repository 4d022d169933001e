"""A manifest that somebody cut or edited is damaged, never a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from pml.streams.cli import model
from pml.streams.cli.train_report import print_manifest
from pml.streams.learning import listing
from pml.streams.learning.manifests import ModelDamaged, manifest_file, tenant_of
from pml.streams.learning.shown_manifest import read_shown
from tests.streams.learning.kept_models import FIRST, keep, manifest

MEAN = {"mean": 0.8, "interval": [0.7, 0.9]}
GAIN = {"hit_1": 0.2, "interval": [0.1, 0.3]}
JUDGED = dict.fromkeys(("hit_1", "hit_3", "mrr", "brier"), MEAN)
SHOWN: dict[str, Any] = {
    "seed": 1,
    "data": {"tenant": "local", "runs": 9, "sessions": 5, "questions": 100},
    "validation": {"ranker": JUDGED, "markov_1": JUDGED},
    "gains": {"ranker": GAIN},
    "message_passing": GAIN,
    "reads_looks": True,
    "calibration": {name: {"expected_error": 0.1, "brier": 0.2} for name in ("before", "after")},
    "recalled": {
        "questions": 10,
        "right": 9,
        "used": True,
        "latest": {"questions": 20, "ends": 5, "answered": 4, "gain": {**GAIN, "brier": -0.1}},
    },
    "served": {**JUDGED, "gain": GAIN},
    "call_success": {
        "calls": 50,
        "learners": {"tool": {"auc": 0.5, "brier": MEAN}},
        "gain": {"brier": 0.1, "interval": [0.05, 0.2]},
        "used": True,
    },
    "test": {
        "hash": "0" * 32,
        "openings": 1,
        "questions": 9,
        "learners": {"ranker": JUDGED},
        "gain": GAIN,
        "served": {**JUDGED, "gain": GAIN},
    },
    "phases_s": {"judging": 3.5},
}
CUTS = (None, {}, [], "cut", -1, {"ranker": {}})


def laid(folder: Path, told: dict[str, Any]) -> None:
    """Put a model there of which this is said."""
    keep(folder, FIRST)
    manifest_file(folder, FIRST).write_bytes(orjson.dumps({**manifest(FIRST), **told}))


def places(told: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every value in it."""
    for name, value in told.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from places(value, (*above, name))


def cut(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """With another value there; with none where that is Ellipsis."""
    told = deepcopy(SHOWN)
    inner = told
    for name in path[:-1]:
        inner = inner[name]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return told


def test_all_that_is_shown_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    laid(tmp_path, SHOWN)
    print_manifest(read_shown(tmp_path, FIRST))
    told = capsys.readouterr().out
    assert "took: judging 3.5 s" in told
    assert "it reads what the latest call's arguments look like" in told


def test_of_a_model_that_reads_no_looks_nothing_is_said_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in (False, ...):
        laid(tmp_path, cut(("reads_looks",), value))
        print_manifest(read_shown(tmp_path, FIRST))
    assert "look like" not in capsys.readouterr().out


@pytest.mark.parametrize("path", list(places(SHOWN)), ids=".".join)
def test_what_is_cut_is_damaged_or_no_part_of_what_is_shown(path: tuple[str, ...], tmp_path: Path) -> None:
    for value in (..., *CUTS):
        laid(tmp_path, cut(path, value))
        try:
            found = read_shown(tmp_path, FIRST)
        except ModelDamaged:
            continue
        print_manifest(found)


@pytest.mark.parametrize("told", [{}, cut(("calibration", "after"), ...), cut(("seed",), ...)])
def test_the_command_says_so(told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> dict[str, Any]:
        return {"live": None, "fell": None}

    monkeypatch.setattr(listing, "lived", nothing)
    monkeypatch.setenv("PML_LEARNING__MODELS_FOLDER", str(tmp_path))
    laid(tmp_path, told)
    found = CliRunner().invoke(model.app, ["show", FIRST])
    assert isinstance(found.exception, ModelDamaged), found.exception
    # As JSON it is told as it is, as long as it can serve.
    as_json = CliRunner().invoke(model.app, ["show", FIRST, "--json"])
    assert orjson.loads(as_json.stdout).items() >= told.items()
    laid(tmp_path, SHOWN)
    assert CliRunner().invoke(model.app, ["show", FIRST]).exit_code == 0
    assert tenant_of(read_shown(tmp_path, FIRST)) == "local"
