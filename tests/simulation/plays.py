"""What a seed plays: which sort of trouble, how many processes, sessions and workflows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random


@dataclass(frozen=True)
class Plot:
    """How a seed is played. Shares are probabilities; rates are how often a second something happens.

    Attributes:
        calm: one session, no faults: played again without speculation, and compared.
        turns: runs follow one another with a pause, and most are one call, often the one before: what is
            predicted after one may serve the next.
        narrow: all tasks meet at two paths of two servers.
        troubles: of tool calls.
        losses: of appends, by topic (without prefix).
        kills, pauses: a pass of a named kill point kills or stops its process.
        events: what else happens, by name and weight.
        patience_s: how long a call may not have been sent that must be running.
        rate: how many of `events` happen a second.
    """

    name: str
    calm: bool = False
    turns: bool = False
    narrow: bool = False
    sessions: tuple[int, int] = (1, 4)
    runs: tuple[int, int] = (1, 3)
    orchestrators: int = 1
    bridges: int = 1
    troubles: Mapping[str, float] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    kills: float = 0.0
    pauses: float = 0.0
    events: Mapping[str, float] = field(default_factory=dict)
    rate: float = 0.0
    patience_s: float = 3.0


TOOL_TROUBLES = {"fails": 0.08, "hangs": 0.02, "slow": 0.1, "lost": 0.03, "down": 0.02}
CATALOG = {
    "permission withdrawn": 2.0,
    "permission given back": 2.0,
    "definition changed": 1.0,
    "switch": 2.0,
    "switch of a scope": 1.5,
    "server unavailable": 1.0,
    "time to live changed": 1.0,
}
INPUTS = {
    "command sent again": 2.0,
    "other content under the same id": 1.0,
    "poison": 1.0,
    "command astray": 1.5,
    "outcome sent again": 2.0,
    "outcome astray": 1.0,
    "outcome of nobody": 1.0,
    "deadline too early": 2.0,
    "call sent again": 1.5,
    "key mismatch": 0.5,
}
CLOCKS = {"log time stands": 1.0, "log time jumps": 1.0}
OUTSIDE = {"world changed outside": 3.0}
OWNERS = {
    "orchestrator killed": 1.0,
    "bridge killed": 1.0,
    "orchestrator paused": 1.0,
    "bridge paused": 0.7,
    "rebalance": 1.0,
    "late state": 1.5,
    "late marker": 0.7,
}
PAYLOADS = {"payloads expired": 1.0}
LOSSES = {
    "events": 0.06,
    "tool-calls": 0.04,
    "tool-outcomes": 0.04,
    "call-claims": 0.06,
    "commands": 0.03,
    "changelog": 0.04,
}

PLOTS = (
    Plot("calm", calm=True, sessions=(1, 1), runs=(1, 2)),
    Plot("talk", calm=True, turns=True, narrow=True, sessions=(1, 1), runs=(4, 7)),
    Plot(
        "turns",
        turns=True,
        narrow=True,
        sessions=(1, 2),
        runs=(4, 7),
        troubles=TOOL_TROUBLES,
        events={**OUTSIDE, "switch": 0.5},
        rate=0.2,
    ),
    Plot(
        "cache",
        narrow=True,
        sessions=(1, 2),
        runs=(2, 4),
        troubles={"hangs": 0.08, "slow": 0.3, "fails": 0.05},
    ),
    Plot("crowd", troubles=TOOL_TROUBLES, events=OUTSIDE, rate=0.4),
    Plot("catalog", troubles=TOOL_TROUBLES, events={**CATALOG, **CLOCKS, **OUTSIDE}, rate=0.8),
    Plot("inputs", troubles=TOOL_TROUBLES, events={**INPUTS, **CLOCKS}, rate=1.5),
    Plot("kills", troubles={"slow": 0.1}, kills=0.02, events={**OWNERS, **PAYLOADS}, rate=0.2, patience_s=45),
    Plot("owners", orchestrators=2, bridges=2, pauses=0.03, events=OWNERS, rate=0.3, patience_s=45),
    Plot("broker", orchestrators=2, losses=LOSSES, troubles={"slow": 0.1}, patience_s=45),
    Plot("doubts", orchestrators=2, losses={"events": 0.2}, patience_s=11),
    Plot(
        "storm",
        orchestrators=2,
        bridges=2,
        troubles=TOOL_TROUBLES,
        losses={name: share / 2 for name, share in LOSSES.items()},
        kills=0.006,
        pauses=0.006,
        events={**CATALOG, **INPUTS, **CLOCKS, **OUTSIDE, **OWNERS, **PAYLOADS},
        rate=0.8,
        patience_s=45,
    ),
)


def plot_of(random: Random) -> Plot:
    """What this seed plays."""
    return random.choice(PLOTS)
