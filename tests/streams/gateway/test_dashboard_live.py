"""The dashboard in a real browser before a whole stack; `PML_TEST_BROWSER` is the path of a Chromium."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import Project
from tests.fixtures.project import guest as project
from tests.streams.gateway.browser import Page, browser

__all__ = ["project"]

BROWSER = os.environ.get("PML_TEST_BROWSER", "")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not BROWSER, reason="PML_TEST_BROWSER names no Chromium"),
]
EVIL = "<img src=x onerror='window.pwned = 1'><script>window.pwned = 1</script> & so on"
WORKFLOW = {
    "name": "evil <b>name</b>",
    "tasks": [
        {"id": "read", "tool": "files:read_file", "arguments": {"path": "evil.html"}},
        {
            "id": "write",
            "tool": "files:write_file",
            "arguments": {"path": "b.txt", "content": EVIL},
            "depends_on": ["read"],
        },
    ],
}


def prepared(project: Project) -> None:
    (project.files / "evil.html").write_text(EVIL)
    file = project.folder / "mcp-permissions.yaml"
    file.write_text(file.read_text().replace("approval: auto, effect: write", "approval: hil, effect: write"))


async def test_a_person_follows_approves_and_scores_with_the_keyboard(
    project: Project, tmp_path: Path
) -> None:
    prepared(project)
    await asyncio.to_thread(project.pml, "up", "--detach")
    part = next(part for part in project.json("status")["parts"] if part["name"] == "gateway")
    door = str(part["address"])
    asked = httpx2.post(f"{door}/v1/runs?wait_s=40", json={"workflow": WORKFLOW}, timeout=PATIENCE_S).json()
    assert asked["status"] == "waiting"
    async with browser(BROWSER, tmp_path / "profile") as page:
        await page.go(f"{door}/ui")
        await page.wait(f"document.body.innerText.includes({asked['run_id']!r})")
        token = project.json(
            "token", "create", "person:ada", *_scopes("runs:read", "runs:write", "approvals:write")
        )
        await _signs_in(page, token["token"])
        await _approves(page, asked["run_id"])
        await _looks_around(page, door)
        assert await page.look("window.pwned === undefined")
        refused = [told for told in page.complaints if "401" not in told]
        assert refused == [], (
            "nothing was refused or went wrong, but the door itself before there was a token"
        )
        assert token["token"] not in await page.look(
            "JSON.stringify([location.href, {...localStorage}, document.cookie])"
        )
    run = httpx2.get(f"{door}/v1/runs/{asked['run_id']}", headers=_bearer(token), timeout=PATIENCE_S).json()
    assert (run["status"], run["scores"]["helpful"]["value"]) == ("completed", True)
    assert run["scores"]["helpful"]["principal"] == "person:ada"


async def _signs_in(page: Page, token: str) -> None:
    """As soon as there is a token, nobody comes in without one."""
    await page.look("location.hash = '#/tools'")
    await page.wait("document.querySelector('#token')")
    await page.do("Input.insertText", text=token)
    await page.press("Go on")
    await page.wait("document.body.innerText.includes('files:read_file')")


async def _approves(page: Page, run_id: str) -> None:
    """The run is followed live: it goes on as soon as its call is approved; what it gave is text."""
    await page.look(f"location.hash = '#/runs/{run_id}?session={run_id}'")
    await page.wait("document.body.innerText.includes('May this call run?')")
    shown = await page.look("document.body.innerText")
    assert EVIL in shown
    assert "evil <b>name</b>" in shown
    await page.press("Approve")
    await page.wait("[...document.querySelectorAll('.card.completed')].length === 2")
    assert "approved by person:ada" in await page.look("document.body.innerText")
    assert await page.look(
        "[...document.querySelectorAll('.layer')].map(one => one.querySelectorAll('li').length)"
    ) == [1, 1]
    await page.press("Whole result")
    await page.wait(
        "[...document.querySelectorAll('pre')].some(one => one.textContent.includes('structured'))"
    )
    await page.press("Yes")
    await page.wait("[...document.querySelectorAll('caption')].some(one => one.textContent === 'Scores')")


async def _looks_around(page: Page, door: str) -> None:
    for place, text in (
        ("approvals?all=true", "granted: files:write_file"),
        ("capabilities", "Learned and drafted capabilities"),
        ("health", "pml_build_info"),
        ("runs?status=completed", "evil <b>name</b>"),
    ):
        await page.look(f"location.hash = '#/{place}'")
        await page.wait(f"document.body.innerText.includes({text!r})")
    await page.look("document.querySelector('.skip').click()")
    assert await page.look("document.activeElement.id") == "content"
    assert await page.look("document.body.innerText.includes('Runs, the newest first')")
    unlabelled: Any = await page.look(
        "[...document.querySelectorAll('button, input, select, a')].filter(one => "
        "!(one.textContent.trim() || one.labels?.length || one.ariaLabel)).map(one => one.outerHTML)"
    )
    assert unlabelled == []


def _scopes(*names: str) -> list[str]:
    return [word for name in names for word in ("--scope", name)]


def _bearer(token: dict[str, str]) -> dict[str, str]:
    return {"authorization": f"Bearer {token['token']}"}
