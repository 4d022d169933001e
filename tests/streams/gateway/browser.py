"""A real Chromium over its DevTools protocol: what a person would see, and what the console says."""

from __future__ import annotations

import asyncio
import itertools
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.fixtures.patience import PATIENCE_S

POLL_S = 0.1
FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--in-process-gpu",
        "--no-zygote",
        "--disable-dev-shm-usage",
    ),
    *("--no-first-run", "--disable-background-networking", "--remote-debugging-port=0"),
)


class Page:
    """One page; `complaints` are errors of scripts, of the console, and refusals by the security policy."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.complaints: list[str] = []

    async def do(self, method: str, **parameters: Any) -> Any:
        """Send a command of the protocol and wait for its answer."""
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json(timeout=PATIENCE_S)
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._hear(message)

    async def look(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        told = await self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def wait(self, expression: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait until an expression is true."""
        give_up = time.monotonic() + timeout_s
        while not await self.look(f"Boolean(document.body && ({expression}))"):
            shown = await self.look("document.body?.innerText")
            assert time.monotonic() < give_up, (
                f"waited for {expression}; the page shows:\n{shown}\n{self.complaints}"
            )
            await asyncio.sleep(POLL_S)

    async def go(self, address: str) -> None:
        """Go to an address."""
        await self.do("Page.navigate", url=address)

    async def press(self, text: str) -> None:
        """Press the first button with this text, by keyboard: with the focus on it, Enter."""
        found = f"[...document.querySelectorAll('button')].find(one => one.textContent === {text!r})"
        await self.wait(found)
        await self.look(f"{found}.focus()")
        for kind in ("keyDown", "keyUp"):
            key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
            await self.do("Input.dispatchKeyEvent", type=kind, **key)

    def _hear(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        elif message.get("method") == "Runtime.consoleAPICalled" and told["type"] == "error":
            self.complaints.append(str(told["args"]))


@asynccontextmanager
async def browser(command: str, profile: Path) -> AsyncIterator[Page]:
    """A browser with an empty page, ended afterwards."""
    arguments = (*FLAGS, f"--user-data-dir={profile}", "about:blank")
    process = await asyncio.create_subprocess_exec(command, *arguments, stdout=DEVNULL, stderr=DEVNULL)
    try:
        address = await _address(profile / "DevToolsActivePort", process)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{address}/json") as answer:
                page = next(one for one in await answer.json() if one["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                found = Page(socket)
                for domain in ("Runtime", "Log", "Page"):
                    await found.do(f"{domain}.enable")
                yield found
    finally:
        process.terminate()
        await process.wait()


async def _address(file: Path, process: Process) -> str:
    give_up = time.monotonic() + PATIENCE_S
    while not (port := await asyncio.to_thread(_port, file)):
        assert process.returncode is None, f"the browser ended with {process.returncode}"
        assert time.monotonic() < give_up, "the browser does not start"
        await asyncio.sleep(POLL_S)
    return f"127.0.0.1:{port}"


def _port(file: Path) -> str:
    return file.read_text().partition("\n")[0] if file.exists() else ""
