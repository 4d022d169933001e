"""Runs as the command line shows them."""

from __future__ import annotations

import orjson
import pytest

from pml.schemas.events import EventData
from pml.streams.cli import exits
from tests.log_writer import run_started
from tests.streams.cli.conftest import Pml
from tests.streams.gateway.session_log import log_has, refused


@pytest.mark.parametrize("command", ["show", "trace"])
@pytest.mark.parametrize(
    ("told", "code"), [(refused(), "SESSION_FULL"), (refused("UNKNOWN_TOOL", invalid=True), "UNKNOWN_TOOL")]
)
def test_a_run_whose_start_was_refused_ends_with_the_refusal(
    pml: Pml, monkeypatch: pytest.MonkeyPatch, command: str, told: EventData, code: str
) -> None:
    log_has(monkeypatch, (4, told))
    result = pml("run", command, "run_1", "--session", "s", "--json")

    error = orjson.loads(result.stdout)["error"]
    assert (result.exit_code, error["code"], error["message"]) == (exits.REFUSED, code, f"this is {code}")


def test_a_run_that_began_after_a_refusal_is_shown(pml: Pml, monkeypatch: pytest.MonkeyPatch) -> None:
    log_has(monkeypatch, (4, refused()), (4, run_started()))
    result = pml("run", "show", "run_1", "--session", "s", "--json")

    assert (result.exit_code, orjson.loads(result.stdout)["status"]) == (0, "running")
