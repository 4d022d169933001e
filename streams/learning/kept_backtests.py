"""The latest backtest of a model, `<model_id>.backtest.json`. It needs nothing of what models need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from pml.schemas.catalog import ModelBacktest
from pml.schemas.errors import ConfigurationError
from pml.streams.learning.manifests import put


def backtest_file(folder: Path, model_id: str) -> Path:
    """Where it lies."""
    return folder / f"{model_id}.backtest.json"


def keep_backtest(folder: Path, told: Mapping[str, Any]) -> None:
    """Lay a backtest beside its model, in place of an earlier one.

    Raises:
        ConfigurationError: the folder cannot be written.
    """
    place = backtest_file(folder, str(told["model_id"]))
    try:
        put(place, orjson.dumps(told, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise ConfigurationError(f"{place} cannot be written: {error.strerror or error}") from None


def latest_backtest(folder: Path, model_id: str) -> ModelBacktest | None:
    """What it came to; None where there is none, or nobody can read it."""
    try:
        found = orjson.loads(backtest_file(folder, model_id).read_bytes())
        total = found["total"]
        return ModelBacktest(
            **{name: found[name] for name in ("since", "until", "threshold", "runs", "known_runs")},
            **{name: total[name] for name in ("begun", "hits", "saved_ms", "wasted_ms")},
        )
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return None
