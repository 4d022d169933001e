"""`pml mcp`: what it is told holds beside what is configured."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from pml.streams.mcp_server import stdio
from pml.streams.settings import Settings
from tests.streams.cli.conftest import Pml


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """The command gives them to whoever started it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("tools", ["proxy", "pml"])
def test_whose_tools_are_served_says_nothing_about_forms(
    pml: Pml, monkeypatch: pytest.MonkeyPatch, tools: str
) -> None:
    """A client that answers forms by itself must not be sent any, where the installation says so."""
    served: list[Settings] = []

    async def serve(settings: Settings) -> None:
        served.append(settings)

    monkeypatch.setattr(stdio, "serve", serve)
    monkeypatch.setenv("PML_MCP__ELICITATION", "off")
    result = pml("mcp", "--tools", tools)
    assert result.exit_code == 0, result.output
    assert (served[0].mcp.tools, served[0].mcp.elicitation) == (tools, "off")
