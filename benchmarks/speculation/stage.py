"""What is measured on: one broker and one store, a stack of workers for each depth, and the plain driver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from benchmarks.plan import Plan
from benchmarks.speculation.plain import REPLAY, PlainDriver, plain_driver
from benchmarks.speculation.player import Player, player
from benchmarks.stack import bench_settings, beside
from pml.streams.local.supervisor import supervised
from pml.streams.settings import Settings

DEPTHS = (1, 3)
# More than all sessions together have calls: what is measured is speculation, not the limits of a server.
SLOTS = 256


@dataclass(frozen=True, slots=True)
class Stage:
    """The plain driver, and the player of each depth."""

    driver: PlainDriver
    players: dict[int, Player]

    @property
    def boldest(self) -> tuple[int, Player]:
        """The depth that speculates most, and its player."""
        return max(self.players.items())

    @property
    def first(self) -> Player:
        """The one that speculates least."""
        return self.players[min(self.players)]


@asynccontextmanager
async def stage(plan: Plan) -> AsyncIterator[Stage]:
    """Everything that is measured with, while the block runs."""
    async with AsyncExitStack() as stack:
        driver = await stack.enter_async_context(plain_driver())
        first: Settings | None = None
        players: dict[int, Player] = {}
        for depth in DEPTHS:
            settings = _settings(plan, depth, first)
            await stack.enter_async_context(supervised(settings, plan.say))
            first = first or settings
            players[depth] = await stack.enter_async_context(player(settings))
        yield Stage(driver, players)


def _settings(plan: Plan, depth: int, first: Settings | None) -> Settings:
    """Those of a stack; every one after the first uses its broker and its store, with names of its own."""
    if first is not None:
        speculation = first.speculation.model_copy(update={"depth": depth})
        folder = plan.folder / f"depth-{depth}"
        return beside(first, folder, f"pml_depth_{depth}").model_copy(update={"speculation": speculation})
    bridge = {"concurrency": SLOTS, "server_concurrency": SLOTS}
    return bench_settings(plan.folder / "first", REPLAY, bridge=bridge, speculation={"depth": depth})
