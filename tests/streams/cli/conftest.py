"""The command line as a user types it, in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pml.streams.cli.app import app

Pml = Callable[..., Result]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PML_", "KAFKA_", "CLICKHOUSE_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pml(monkeypatch: pytest.MonkeyPatch) -> Pml:
    """Runs `pml …` in this process."""

    def run(*arguments: str, stdin: str | None = None) -> Result:
        monkeypatch.setattr("sys.argv", ["pml", *arguments])
        return CliRunner().invoke(app, list(arguments), input=stdin, prog_name="pml")

    return run
