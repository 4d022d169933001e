"""The regimes that are measured: tools only, decisions between layers, the agent loop, and adversaries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.speculation import forks
from benchmarks.speculation.conversion import READ, VOLATILE, SourceWorkflow, steps_of, workflow_of
from benchmarks.speculation.model import Step, by_layer_s, ideal, in_turn_s
from benchmarks.speculation.player import Account, Player
from benchmarks.speculation.regime import Play, Regime, Side
from benchmarks.speculation.sample import Drawn, draw
from benchmarks.speculation.stage import Stage
from pml.streams.client import new_id

TOOLS_MEDIAN_S = 0.2
SLOW_MEDIAN_S = 1.5
# So many side by side keep two cores at about a third: what is measured is waiting, not a full machine.
TOOLS_LANES = 5
# Where all run at once they begin one after another: thirty within a second would wait for each other.
SPREAD_S = 20.0
# One and a half times what a session may start early.
ERRING_RUNS = 50
ERRING_MEDIAN_S = 0.05
IN_TURN, BY_LAYER, LOOP = "one by one", "layer by layer", "agent loop"
WITHOUT = "PML without speculation"

Sources = Sequence[SourceWorkflow]


def depth_name(depth: int) -> str:
    """The side that speculates so many layers ahead."""
    return f"PML, depth {depth}"


def tools_only(stage: Stage, sources: Sources) -> Regime:
    """(a) Nobody decides anything: the DAG is known, tools are quick."""
    driver = stage.driver
    sides = [
        Side(IN_TURN, _plain(driver.in_turn), lambda drawn: in_turn_s(_steps(drawn))),
        Side(BY_LAYER, _plain(driver.by_layer), lambda drawn: by_layer_s(_steps(drawn))),
        Side(WITHOUT, _submitted(stage.first, speculation="off"), _ideal(0)),
        *(Side(depth_name(d), _submitted(player), _ideal(d)) for d, player in stage.players.items()),
    ]
    return Regime("tools only", sources, TOOLS_MEDIAN_S, TOOLS_LANES, sides)


def decisions(stage: Stage, sources: Sources) -> Regime:
    """(b) After each layer somebody decides for one to three seconds; tools take about as long."""
    sides = [
        Side(WITHOUT, _decided(stage.first, speculation="off"), _ideal_decided(0)),
        *(Side(depth_name(d), _decided(player), _ideal_decided(d)) for d, player in stage.players.items()),
    ]
    return Regime("decisions", sources, SLOW_MEDIAN_S, len(sources), sides, True, SPREAD_S)


def agent_loop(stage: Stage, sources: Sources) -> Regime:
    """(c) A decision before every single call, beside one decision and then the whole DAG at once."""

    def loop_s(drawn: Drawn) -> float:
        return sum(drawn.thoughts_s) + in_turn_s(_steps(drawn))

    sides = [
        Side(LOOP, _plain(stage.driver.agent_loop), loop_s),
        *(Side(depth_name(d), _planned(player), _ideal_planned(d)) for d, player in stage.players.items()),
    ]
    return Regime("agent loop", sources, TOOLS_MEDIAN_S, len(sources), sides, True, SPREAD_S)


def nothing_speculable(stage: Stage, sources: Sources) -> Regime:
    """Every read is one that the operator's file does not let run early: looking ahead is all cost."""
    depth, player = stage.boldest
    sides = [
        Side(WITHOUT, _submitted(player, VOLATILE, speculation="off"), _ideal(0)),
        Side(depth_name(depth), _submitted(player, VOLATILE), _ideal(0)),
    ]
    return Regime("nothing to speculate", sources, TOOLS_MEDIAN_S, TOOLS_LANES, sides)


def always_wrong(stage: Stage, count: int) -> Regime:
    """Everything that is speculated is in vain (see `forks`); `teach` comes first."""
    depth, player = stage.boldest
    sides = [
        Side(WITHOUT, _forked(player, "off"), forks.ideal_s),
        Side(depth_name(depth), _forked(player, "on"), forks.ideal_s),
    ]
    sources = [forks.fork(number) for number in range(count)]
    return Regime("always wrong", sources, TOOLS_MEDIAN_S, TOOLS_LANES, sides)


async def err_in_one_session(player: Player, seed: int) -> Account:
    """More runs of one session than its budget has calls for, all in vain."""
    account, session_id = Account(), new_id("ses")
    for number in range(ERRING_RUNS):
        drawn = draw(forks.fork(number), ERRING_MEDIAN_S, seed)
        workflow = forks.fork_workflow(drawn, forks.type_of(drawn), "on")
        await player.play(workflow, account, session_id=session_id)
    return account


def _forked(player: Player, speculation: str) -> Play:
    async def play(drawn: Drawn, account: Account) -> float:
        workflow_type = forks.type_of(drawn) if speculation == "on" else drawn.source.id
        return await player.play(forks.fork_workflow(drawn, workflow_type, speculation), account)

    return play


def _steps(drawn: Drawn) -> tuple[Step, ...]:
    return steps_of(drawn.source, drawn.tools_s)


def _plain(run: Callable[[Drawn], Awaitable[float]]) -> Play:
    async def play(drawn: Drawn, _: Account) -> float:
        return await run(drawn)

    return play


def _submitted(player: Player, read: str = READ, speculation: str = "on") -> Play:
    async def play(drawn: Drawn, account: Account) -> float:
        workflow = workflow_of(drawn.source, drawn.tools_s, read, speculation=speculation)
        return await player.play(workflow, account)

    return play


def _decided(player: Player, speculation: str = "on") -> Play:
    async def play(drawn: Drawn, account: Account) -> float:
        workflow = workflow_of(
            drawn.source, drawn.tools_s, speculation=speculation, per_layer_validation=True
        )
        return await player.play(workflow, account, drawn.decisions_s)

    return play


def _planned(player: Player) -> Play:
    """Whoever submits a DAG has thought once."""
    submit = _submitted(player)

    async def play(drawn: Drawn, account: Account) -> float:
        await asyncio.sleep(drawn.thoughts_s[0])
        return drawn.thoughts_s[0] + await submit(drawn, account)

    return play


def _ideal(depth: int) -> Callable[[Drawn], float]:
    return lambda drawn: ideal(_steps(drawn), depth).total_s


def _ideal_decided(depth: int) -> Callable[[Drawn], float]:
    return lambda drawn: ideal(_steps(drawn), depth, decisions_s=drawn.decisions_s).total_s


def _ideal_planned(depth: int) -> Callable[[Drawn], float]:
    return lambda drawn: drawn.thoughts_s[0] + ideal(_steps(drawn), depth).total_s
