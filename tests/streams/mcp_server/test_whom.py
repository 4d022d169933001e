"""Who sits at a client and may approve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pml.streams.gateway.callers import ANONYMOUS, Caller
from pml.streams.local_person import local_person
from pml.streams.mcp_server.whom import person_over_http, person_over_stdio
from pml.streams.settings import Settings

ADA = Caller("local", "person:ada", frozenset({"runs:read", "runs:write", "approvals:write"}))
WITHOUT = Caller("local", "person:ada", frozenset({"runs:read", "runs:write"}))
AGENT = Caller("local", "agent:a", frozenset({"runs:read", "runs:write", "approvals:write"}))


def settings(folder: Path, elicitation: str, four_eyes: bool = False) -> Settings:
    given: dict[str, Any] = {"mcp": {"elicitation": elicitation}, "approvals": {"four_eyes": four_eyes}}
    return Settings(data_dir=folder, **given)


@pytest.mark.parametrize(
    ("elicitation", "stdio", "http"), [("off", False, False), ("stdio", True, False), ("on", True, True)]
)
def test_the_setting_says_over_which_transport(
    tmp_path: Path, elicitation: str, stdio: bool, http: bool
) -> None:
    found = settings(tmp_path, elicitation)
    assert person_over_stdio(found) == (local_person() if stdio else None)
    assert person_over_http(found, ADA) == ("person:ada" if http else None)


@pytest.mark.parametrize("caller", [WITHOUT, AGENT, ANONYMOUS])
def test_over_http_only_a_token_of_a_person_with_the_right(tmp_path: Path, caller: Caller) -> None:
    assert person_over_http(settings(tmp_path, "on"), caller) is None


def test_where_four_eyes_are_wanted_nobody_at_the_client_is_asked(tmp_path: Path) -> None:
    found = settings(tmp_path, "on", four_eyes=True)
    assert person_over_stdio(found) is None
    assert person_over_http(found, ADA) is None


def test_over_stdio_only_is_the_default(tmp_path: Path) -> None:
    assert Settings(data_dir=tmp_path).mcp.elicitation == "stdio"
