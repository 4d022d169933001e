"""What the benchmark of the proxy counts, without a stack."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest

from benchmarks.proxy import CallFailed, Side, figure


class Client:
    """Answers with what it was given; keeps how many calls were open at once."""

    def __init__(self, wrong: bool = False) -> None:
        self.open = self.most = self.calls = 0
        self._wrong = wrong

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        self.open += 1
        self.calls += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        return types.CallToolResult(content=[], structured_content={} if self._wrong else arguments)


@pytest.mark.parametrize("at_once", [1, 8])
async def test_so_many_calls_are_open_at_once(at_once: int) -> None:
    client: Any = Client()
    side = Side(client, "read")
    await side.measure(at_once, 20)
    await side.measure(at_once, 20)

    assert (client.calls, client.most) == (40, at_once)
    shown = figure(side, side, at_once, 99)
    assert (len(shown.values), shown.ratio) == (2, 1.0)


async def test_an_answer_that_is_none_is_not_measured() -> None:
    client: Any = Client(wrong=True)
    with pytest.raises(CallFailed):
        await Side(client, "read").measure(1, 2)
